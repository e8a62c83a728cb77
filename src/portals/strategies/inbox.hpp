// Inbox - the receives of one process as an MPI library has them, over the Portals calls.
//
// Contract: commit() takes a datatype with its user's attributes and chooses its strategy; its layout goes to NIC
//   memory with the first receive that wants it, or now. post() is MPI_Irecv: an entry with the handlers of (type,
//   count), or with a host buffer where the NIC has no room. wait() and test() complete it. free() forgets the type;
//   receives under way keep what they hold. Source: SC'19 datatypes paper, section 3.2.6.
//   A receive that may get more than `eager_bytes` is ready for a request (AskingSend): its NIC answers, and the data
//   come to a second entry. The host answers a request that came before, or that its receive was not ready for.
//   A message that matches a posted receive is unpacked by handlers (or lands in place, or is unpacked by the host from
//   the buffer). A message without one lands in an unexpected block, and the host unpacks it when the receive is
//   posted. A message longer than its receive is truncated. If handlers unpack it, or if it asks first, nothing of it
//   is written; otherwise it fills the receive. Its sender completes in any case.
// Invariants: (1) receives match in the order in which they were posted, as MPI asks; (2) what a receive holds on the
//   NIC goes back to the cache when it completes; (3) an Error other than `invalid` leaves the Inbox fit for
//   destruction only.
// Threads: the owner of the Interface. Time: that of its port; unpacking by the host is announced as host work.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "portals/strategies/receive_cache.hpp"
#include "portals/strategies/unexpected.hpp"

namespace spinloom::strategies {

// The envelope of the messages that a receive takes: MPI's source, tag and communicator.
struct Envelope {
  nic::Rank source = nic::Rank::any();
  std::optional<uint32_t> tag;  // none: any
  uint32_t communicator = 0;  // less than 2^30

  [[nodiscard]] uint64_t match_bits() const { return uint64_t{communicator} << 32 | tag.value_or(0); }
  [[nodiscard]] uint64_t ignore_bits() const { return tag ? 0 : uint64_t{UINT32_MAX}; }
};

// The side that unpacks a message, and the memory from which it does.
enum class UnpackPath : uint8_t {
  nic,  // unpacked by handlers, or landed in its place
  host,  // unpacked by the host, from the receive's buffer
  unexpected,  // unpacked by the host, from an unexpected block
};
[[nodiscard]] const char* name_of(UnpackPath path);

// The values of MPI_Status for a completed receive, and the path on which it was unpacked.
struct Completion {
  nic::Rank source;
  uint32_t tag = 0;
  uint64_t bytes = 0;  // bytes in the receive's memory
  bool truncated = false;
  UnpackPath unpack_path = UnpackPath::nic;
  Strategy strategy = Strategy::host_mpitypes;  // the one that the receive had
  std::string fallback;  // the reason why that is not the strategy of its type; empty if it is
  Time completed_at{};  // the time at which the bytes were in place, also those that the host unpacks
};

struct TypeId {
  uint32_t value = 0;
};
struct RequestId {
  uint64_t value = 0;
};

class Inbox {
 public:
  struct Options {
    // The strategy of every message of several blocks; none: choose() decides for each.
    std::optional<Strategy> strategy;
    Strategy general = Strategy::rw_cp;  // choose() takes it for types without a better strategy
    uint64_t eager_bytes = 1 << 16;  // no message without a request is longer
    uint64_t unexpected_blocks = 4;
    uint64_t unexpected_block_bytes = 1 << 18;
    uint32_t queue_slots = 1024;
  };
  struct Nic {
    portals::Interface& interface;
    std::vector<HandlerImage> images;
    NicFacts facts;
    HandlerCost cost;
  };

  // The Interface outlives the Inbox.
  static Result<std::unique_ptr<Inbox>> create(Nic nic, const Options& options);

  // `ready_for`: a number of elements whose layout goes to the NIC now; 0: none. Code::invalid for a type that writes
  // some byte twice.
  [[nodiscard]] Result<TypeId> commit(const layout::Type& type, const TypeAttributes& attributes = {},
                                      int64_t ready_for = 0);
  [[nodiscard]] Status free(TypeId type);
  // `base` is the buffer address as given to MPI.
  [[nodiscard]] Result<RequestId> post(uint8_t* base, int64_t count, TypeId type, const Envelope& envelope);
  // A request may be completed once.
  [[nodiscard]] Result<Completion> wait(RequestId request);
  [[nodiscard]] Result<std::optional<Completion>> test(RequestId request);

  [[nodiscard]] nic::PortalIndex portal() const { return portal_; }
  [[nodiscard]] const ReceiveCache& cache() const { return *cache_; }
  // The NIC memory of a request that is under way.
  [[nodiscard]] uint64_t nic_memory_bytes(RequestId request) const {
    return requests_.at(request.value).lease.receive->nic_memory_bytes();
  }

 private:
  struct Committed {
    layout::Type type;
    TypeAttributes attributes;
    uint64_t pending_receives = 0;
    bool is_freed = false;
    std::vector<int64_t> counts;  // numbers of elements for which the cache may hold receives
  };
  struct Request {
    TypeId type;
    uint8_t* base = nullptr;
    ReceiveCache::Lease lease = {};
    nic::CounterId counter = {};  // holds values that handlers read; none: no handlers
    nic::EntryId data_entry = {};  // takes data that were asked for
    std::unique_ptr<uint64_t> answer_payload = {};  // the eight bytes of an answer that the host sends
    std::optional<Completion> completion = {};
    bool is_returned = false;  // wait() or test() has returned the completion
  };

  Inbox(Nic nic, const Options& options)
      : nic_(std::move(nic)),
        options_(options),
        unexpected_(options.unexpected_blocks, options.unexpected_block_bytes, options.eager_bytes) {}

  [[nodiscard]] Result<Committed*> find_type(TypeId type);
  // Returns an Error if the request does not exist, or if its completion has been returned.
  [[nodiscard]] Result<Request*> find_pending(RequestId request);
  [[nodiscard]] Result<Strategy> strategy_of(const Committed& type, int64_t count) const;
  // True if a message for this receive may be so long that its sender asks first.
  [[nodiscard]] bool may_ask_first(const Request& request) const {
    return static_cast<uint64_t>(request.lease.receive->message().bytes) > options_.eager_bytes;
  }
  [[nodiscard]] Result<nic::CounterId> counter_for(const Request& request, uint64_t number);
  [[nodiscard]] Status on_event(const nic::Event& event);
  [[nodiscard]] Status append_data_entry(Request& request, nic::Entry entry, uint64_t number);
  [[nodiscard]] Status append_sink();
  [[nodiscard]] Status on_message(Request& request, const nic::Event& event);
  [[nodiscard]] Status on_request_to_send(Request& request, const nic::Event& event);
  [[nodiscard]] Status answer(const nic::Event& event, uint64_t data_bits);
  [[nodiscard]] Status complete(Request& request, const nic::Event& event, UnpackPath path, uint64_t bytes,
                                bool truncated);
  [[nodiscard]] Status forget_if_unused(Committed& type);

  Nic nic_;
  Options options_;
  UnexpectedBlocks unexpected_;
  nic::QueueId queue_;
  nic::PortalIndex portal_;
  nic::ContextId plain_context_;  // header handlers of receives without a layout on the NIC
  std::optional<ReceiveCache> cache_;
  std::vector<Committed> types_;
  std::vector<Request> requests_;
  std::vector<nic::CounterId> free_counters_;
};

}  // namespace spinloom::strategies
