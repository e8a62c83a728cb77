// Context - a rank's one-sided memory on its NIC: registered memory, operations begun at other ranks, and operations
// that its processor does for others.
//
// Contract: all ranks of the job open theirs on the same two portal table entries: one for all messages, and one for
//   notified operations that leave notices, which is closed while there is no room for more. Operations (Operation) go
//   to the target's NIC; or, emulated, as messages to its processor, which takes them in progress(). Calls that wait
//   call progress().
// Invariants: (1) a target's counter reaches the number of messages that the NIC has begun there without a request when
//   all have ended; failures count as ends; a request has a counter of its own; (2) an emulated operation's messages
//   are numbered; the target executes them in the order of their numbers, and answers each;
//   (3) at most `messages` of them are under way from one rank to another, each with a slot of memory at both; (4) the
//   emulation changes elements by atomics of the target's own NIC, so that they are atomic with those of others; (5) if
//   only long accumulating operations are emulated (emulate_above_limit), an emulated one to a target begins when the
//   native operations to it have ended, and a native one when the emulated ones have.
// Threads: the owner of the Interface. Time: that of its port.
#pragma once

#include <array>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "portals/interface/interface.hpp"
#include "portals/rma/elements.hpp"
#include "portals/rma/key.hpp"
#include "portals/rma/memory.hpp"

namespace spinloom::rma {

struct Options {
  nic::PortalIndex portal = {62};
  nic::PortalIndex notice_portal = {61};
  bool emulated = false;  // all operations are emulated, but those of begin_native() and add_one()
  bool emulate_above_limit = false;  // accumulating operations longer than an atomic of the NIC are emulated
  uint32_t message_bytes = 8192;  // the longest message of the emulation; a multiple of 64
  uint32_t messages = 8;  // the most messages of the emulation under way from one rank to another
  uint32_t notices = 1024;  // the number of notices that may wait to be read, of all memory together
  uint32_t small_pieces = 0;  // bytes; pieces that are shorter on average go packed to the target's processor
  uint32_t ranks = 1;  // the number of ranks of the job
  uint64_t atomic_bytes = 2048;
  uint64_t fetch_bytes = 2048;
  std::function<uint64_t()> random;  // gives bits for keys, which others cannot guess
  std::function<void()> spend_call_time;  // spends the time of a call to the NIC
  // Waits until something may have changed, or until the deadline. False: the caller must stop waiting. Without it the
  // port waits, without deadlines.
  std::function<bool(const char* what, Time deadline)> pause;
  std::function<bool(uint32_t rank)> has_ended;  // true if a rank's program has ended, as far as the driver knows
  // Called once this rank's entries are there: returns when those of all ranks are. May be empty.
  std::function<Status(portals::Interface&, nic::PortalIndex)> meet;
};

class Context;

// An operation that can be waited for by itself.
struct Request {
  uint32_t rank = 0;
  nic::CounterId counter;
  uint64_t base = 0;  // the counter's value before the request
  uint64_t native_begun = 0;  // messages of the NIC
  uint64_t emulated_begun = 0;  // messages of the emulation
  uint64_t emulated_ended = 0;  // messages of the emulation that have ended, also by failure
  uint64_t emulated_failed = 0;  // messages of the emulation that have failed
};

// A part of a key's memory.
struct Piece {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

struct Operation {
  enum class Kind : uint8_t { put, get, accumulate, fetch, compare_swap };
  Kind kind = Kind::put;
  Key key;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  const uint8_t* from = nullptr;
  uint8_t* to = nullptr;
  nic::DescriptorRef list;  // a list in place of `from` (put) or `to` (get)
  uint64_t list_offset = 0;  // the operation begins at this byte of the list
  uint32_t op = 0;  // the operation of an accumulate or a fetch: a number that plan_of() knows
  spin::Datatype type = spin::Datatype::int8;
  spin::AtomicOperand operand{};  // the value with which compare_swap compares
  std::optional<uint64_t> notice;  // the value of the notice that a put or a get leaves
  Request* request = nullptr;
};

class Context {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Context>> open(portals::Interface& interface, const Options& options);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Closes the context; all ranks call this. Gives all resources back in any case.
  [[nodiscard]] Status close();
  [[nodiscard]] uint32_t rank() const { return interface_.rank().value; }
  [[nodiscard]] uint32_t ranks() const { return options_.ranks; }
  [[nodiscard]] const Options& options() const { return options_; }

  [[nodiscard]] Result<Memory*> add_memory(std::vector<spin::IovecElement> pieces, Notices notices,
                                           bool counts_all = false);
  [[nodiscard]] Result<Key> share(Memory& memory, uint32_t rights);
  [[nodiscard]] Status revoke(Memory& memory, uint64_t bits);
  [[nodiscard]] Status remove(Memory& memory);
  [[nodiscard]] uint64_t notified(const Memory& memory) const;
  [[nodiscard]] std::optional<Notice> next_notice(Memory& memory);

  [[nodiscard]] Status begin(const Operation& operation);
  // Begins a put or a get of several parts of the key's memory, one behind the other in operation.list. Each part is a
  // message; if the parts are small or the context is emulated, they go packed to the target's processor.
  [[nodiscard]] Status begin_pieces(Operation operation, std::span<const Piece> pieces);
  // Begins an operation that the NICs do, also in an emulated context. Leaves no notice after a get.
  [[nodiscard]] Status begin_native(const Operation& operation);
  [[nodiscard]] Result<Request*> make_request(uint32_t rank);
  [[nodiscard]] bool is_done(const Request& request) const;
  // Frees a request that has ended. Returns an Error if its operations failed.
  [[nodiscard]] Status retire(Request* request);
  [[nodiscard]] Status wait(Request* request);
  // True if all operations to the rank have ended.
  [[nodiscard]] bool is_quiet(uint32_t rank) const;
  [[nodiscard]] Status flush(uint32_t rank);
  [[nodiscard]] Status flush_all();
  struct Counts {
    uint64_t begun = 0;
    uint64_t ended = 0;
    uint64_t failed = 0;
  };
  [[nodiscard]] Counts counts(uint32_t rank) const;

  // After one barrier has failed, all later ones fail.
  [[nodiscard]] Status barrier() { return barrier(false); }
  // Returns the bytes that all ranks give to this call, in the order of ranks. Each rank gives the same number of
  // bytes, at most allgather_bytes_max.
  static constexpr size_t allgather_bytes_max = 128;
  [[nodiscard]] Result<std::vector<uint8_t>> allgather(std::span<const uint8_t> own);
  // Adds 1 to each of `count` words of 64 bits (2 at most) from `offset` on, and does not wait.
  [[nodiscard]] Status add_one(const Key& key, uint64_t offset, uint32_t count = 1);

  Status progress();
  // Waits until is_met() is true. With WaitFor::all_ranks, it returns an Error when a rank of the context is gone.
  enum class WaitFor : uint8_t { targets, all_ranks };
  template <class Condition>
  [[nodiscard]] Status wait_until(const char* what, WaitFor awaited, Condition is_met) {
    for (;;) {
      SPL_TRY(progress());
      if (is_met()) return {};
      if (awaited == WaitFor::all_ranks && is_anyone_gone()) {
        SPL_TRY(progress());
        if (is_met()) return {};
        return fail(Code::fault, what, ": a rank of the context is gone");
      }
      SPL_TRY(pause(what, Time::never()));
    }
  }
  [[nodiscard]] Status pause(const char* what, Time deadline);
  [[nodiscard]] Time now() { return interface_.port().now(); }
  [[nodiscard]] bool is_anyone_gone() const;
  // Has the NIC report ranks that are gone.
  [[nodiscard]] Status watch_all();
  // True if all messages that add_one() and allgather() have sent have ended.
  [[nodiscard]] bool is_control_quiet() const;

 private:
  // A message of the emulation that has not been answered.
  struct PendingMessage {
    bool is_open = false;
    uint64_t number = 0;
    Operation::Kind kind = Operation::Kind::put;
    uint8_t* to = nullptr;
    nic::DescriptorRef list;
    uint64_t list_offset = 0;
    uint64_t bytes = 0;
    Request* request = nullptr;
  };
  // A get whose notice leaves when its data are here.
  struct NotifiedGet {
    nic::CounterId counter;
    Request* request = nullptr;
    uint64_t base = 0;  // the counter's value before the get
  };
  struct Target {
    nic::CounterId counter;
    uint64_t native_begun = 0;
    uint64_t reported_failures = 0;  // the number of failures that flushes have reported
    uint64_t emulated_begun = 0;
    uint64_t emulated_ended = 0;
    uint64_t emulated_failed = 0;
    std::vector<PendingMessage> slots;
    nic::CounterId emulation_counter;  // counts failures of the emulation's messages, and the loss of the target
    nic::EntryId watch_entry;  // takes no message: counts the loss of the target in emulation_counter
    std::vector<NotifiedGet> notified_gets;
    uint32_t open_requests = 0;  // Requests for this target that have not been retired
  };
  // The emulation's messages from one rank.
  struct EmulationSource {
    uint64_t next_number = 0;  // the number of the message to execute next
    std::vector<uint64_t> received;  // one for each slot: number + 1 of the message that is there
  };
  // The first bytes of a message of the emulation.
  struct RequestHeader {
    uint64_t bits = 0;
    uint64_t offset = 0;
    uint64_t bytes = 0;
    uint64_t operation_offset = 0;  // the offset of the whole operation, of which this message may be a part
    uint64_t operation_bytes = 0;
    uint64_t notice = 0;
    uint32_t kind = 0;
    uint32_t op = 0;
    uint32_t type = 0;
    uint32_t notifies = 0;
    uint64_t pieces = 0;  // the number of Pieces that follow, in place of `offset`
    spin::AtomicOperand operand{};
  };

  Context(portals::Interface& interface, const Options& options);
  Status set_up();
  void tear_down();
  void spend_call_time() const {
    if (options_.spend_call_time) options_.spend_call_time();
  }
  [[nodiscard]] Result<nic::EntryId> link(nic::PortalIndex portal, nic::Entry entry);
  // Takes an entry back. Returns when no message works on it any more, or an Error if pause() fails.
  Status unlink(nic::EntryId entry);
  Status unlink(Memory::SharedKey& shared);
  [[nodiscard]] Status barrier(bool is_last);
  [[nodiscard]] Status disseminate(bool is_last);
  [[nodiscard]] nic::Entry entry_of(const Memory& memory) const;

  [[nodiscard]] Result<Target*> ensure_target(uint32_t rank);
  [[nodiscard]] Status check(const Operation& operation) const;
  [[nodiscard]] bool is_emulated(const Operation& operation, const ElementPlan& plan) const;
  [[nodiscard]] bool is_native_quiet(uint32_t rank) const;
  [[nodiscard]] Status report_failures(uint32_t rank);
  struct Tally {
    nic::CounterId counter;
    uint64_t* begun = nullptr;
  };
  [[nodiscard]] Result<Tally> tally_of(const Operation& operation);
  [[nodiscard]] Status issue(const Operation& operation, const Tally& tally, nic::Rank target);
  [[nodiscard]] Status issue_elements(const Operation& operation, const Tally& tally, nic::Rank target);
  [[nodiscard]] nic::Put put_of(const Operation& operation, const Tally& tally, nic::Rank target) const;
  [[nodiscard]] nic::ReplyTo reply_of(const Tally& tally, uint8_t* to) const;
  [[nodiscard]] Status begin_notified_get(const Operation& operation);
  void settle_notified_gets(uint32_t rank);
  [[nodiscard]] Result<nic::CounterId> take_counter();

  [[nodiscard]] Status emulate(const Operation& operation);
  [[nodiscard]] Status emulate_pieces(const Operation& operation, std::span<const Piece> pieces);
  struct Chunk {
    uint64_t at = 0;  // its first byte in the operation's memory
    uint64_t bytes = 0;
    bool is_last = false;
    std::span<const Piece> pieces;
  };
  [[nodiscard]] Status send(const Operation& operation, const Chunk& chunk);
  [[nodiscard]] Status prepare_emulation(Target& peer, uint32_t rank);
  void fail_pending(uint32_t rank);
  void on_request(const nic::Event& event);
  void execute(uint32_t rank, uint32_t slot);
  [[nodiscard]] bool perform(uint32_t rank, const RequestHeader& header, const uint8_t* data, uint8_t* out);
  [[nodiscard]] bool copy_pieces(const Memory& memory, const RequestHeader& header, const uint8_t* data, uint8_t* out);
  [[nodiscard]] bool change_elements(const RequestHeader& header, const uint8_t* data, uint8_t* out);
  void on_answer(const nic::Event& event);
  void take_notice_events();
  void note_failure(nic::Fail reason);
  // Waits until a counter of this context has counted `begun` operations; a second at most.
  void wait_for_end(nic::CounterId counter, uint64_t begun);
  [[nodiscard]] uint64_t slot_bytes() const { return sizeof(RequestHeader) + options_.message_bytes; }
  [[nodiscard]] uint64_t slot_at(uint32_t rank, uint32_t slot) const {
    return (uint64_t{rank} * options_.messages + slot) * slot_bytes();
  }

  portals::Interface& interface_;
  Options options_;
  nic::PortalIndex portal_;
  nic::PortalIndex notice_portal_;
  nic::QueueId queue_;  // messages of the emulation
  nic::QueueId failure_queue_;  // events of failed operations
  nic::QueueId notice_queue_;
  std::vector<nic::EntryId> entries_;
  std::vector<nic::CounterId> barrier_counters_;  // one for each round of barriers: counts its messages
  uint64_t barriers_ = 0;  // the number of barriers that have ended
  bool has_failed_barrier_ = false;
  nic::CounterId loss_counter_;  // counts ranks that are gone as failures
  bool watches_losses_ = false;
  nic::CounterId control_counter_;  // counts the messages of add_one() and allgather()
  uint64_t control_begun_ = 0;
  std::unique_ptr<uint8_t[]> allgather_in_;
  std::unique_ptr<uint8_t[]> allgather_out_;
  uint64_t allgathers_ = 0;  // the number of allgathers that have begun
  std::unique_ptr<uint8_t[]> requests_in_;  // slots of the emulation
  std::unique_ptr<uint8_t[]> requests_out_;
  std::unique_ptr<uint8_t[]> answers_in_;
  std::unique_ptr<uint8_t[]> answers_out_;
  std::map<uint32_t, EmulationSource> sources_;
  nic::CounterId own_atomics_;  // counts atomics of this NIC on its own memory, for emulated operations of others
  uint64_t own_atomics_begun_ = 0;
  nic::CounterId answers_sent_;
  uint64_t answers_begun_ = 0;
  std::map<uint32_t, Target> targets_;
  std::list<Request> requests_;
  std::vector<nic::CounterId> idle_counters_;
  std::list<Memory> memories_;
  std::map<uint64_t, Memory*> memory_by_bits_;
  uint32_t next_memory_ = 0;
  std::map<uint32_t, Memory*> memory_by_number_;
  uint64_t notices_waiting_ = 0;
  bool notices_closed_ = false;
  // The key is the type of elements; spin::datatypes means zeros for all integers.
  std::map<uint32_t, std::vector<uint8_t>> neutral_elements_;
  std::vector<uint8_t> discarded_elements_;  // memory for elements that a NIC sends back and nobody wants
  std::string first_failure_;  // the first failure since the last report
  bool is_closed_ = false;
};

}  // namespace spinloom::rma
