// Interface - the host's side of the Portals calls, over one driver port.
//
// Contract: checks arguments, picks ids, hands commands to the port. Most calls wait for the NIC's answer: those that
//   allocate, free, append, unlink or write NIC memory, and those that register a triggered command outside a bundle.
//   Without a trigger put, get, atomic, process_put, ct_inc and ct_set do not wait; neither do the stream calls and
//   table_setup. Names and meaning follow Portals 4 (PtlEQAlloc is eq_alloc, ...). Objects that only a sPIN NIC has
//   (NIC memory, execution contexts) follow the SC'17 sPIN paper, appendix B.
// Invariants: (1) an id of a queue, a counter or an entry is given out once: an old id, for example of an entry's
//   counter or of a message's queue, never means a new object; an index serves again after the NIC has forgotten its
//   object; (2) events of a queue come in the order in which the NIC posted them; (3) trouble is a returned Error.
// Threads: the owner of the port. Time: that of the port; a call that waits lets time go on.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/limits.hpp"
#include "base/result.hpp"
#include "nic/portals/command.hpp"
#include "nic/portals/event.hpp"
#include "nic/portals/nic.hpp"
#include "portals/interface/id_pool.hpp"
#include "portals/interface/port.hpp"

namespace spinloom::portals {

// A put: the bytes of a memory descriptor (MD), their target, and where events and counts go.
using PutArguments = nic::Put;
using GetArguments = nic::Get;
using AtomicArguments = nic::Atomic;

struct PortalOptions {
  bool flow_control = false;
  nic::PortalIndex index;  // none: any free index
};

enum class Unlinked : uint8_t { done, in_use };

class Interface {
 public:
  struct Limits {
    uint32_t queues = limits::queue_count_max;
    uint32_t counters = limits::counter_count_max;
    uint32_t entries = limits::entry_count_max;
    uint32_t contexts = limits::context_count_max;
    uint32_t streams = limits::stream_count_max;
    uint32_t atomic_bytes = nic::NicLimits{}.atomic_bytes;
    uint32_t fetch_atomic_bytes = nic::NicLimits{}.fetch_atomic_bytes;
  };

  explicit Interface(Port& port) : Interface(port, Limits{}) {}
  Interface(Port& port, const Limits& limits);

  [[nodiscard]] nic::Rank rank() const { return port_.rank(); }
  [[nodiscard]] Port& port() { return port_; }

  // A full queue overwrites its oldest event; the next event taken reports that (after_gap). Reserved slots are kept
  // for events which report that flow control has disabled a portal table entry: they come when all other slots are in
  // use.
  [[nodiscard]] Result<nic::QueueId> eq_alloc(uint32_t slots, uint32_t reserved = 0);
  // Frees a queue even while portal table entries, descriptors or messages under way name it. Events for the queue
  // are dropped from then on, and flow control of such a portal table entry ends.
  [[nodiscard]] Status eq_free(nic::QueueId queue);
  // Takes the oldest event; nothing if the queue is empty.
  [[nodiscard]] std::optional<nic::Event> eq_get(nic::QueueId queue);
  [[nodiscard]] Result<nic::Event> eq_wait(nic::QueueId queue);

  // At most `triggered_max` operations may wait for the counter at a time. `only_successes`: failures are counted but
  // start no waiting operation, unlike in Portals.
  [[nodiscard]] Result<nic::CounterId> ct_alloc(uint32_t triggered_max = UINT32_MAX, bool only_successes = false);
  [[nodiscard]] Status ct_free(nic::CounterId counter);
  // Drops the operations that wait for the counter.
  [[nodiscard]] Status ct_cancel(nic::CounterId counter);
  // From now on the counter is set to 0 whenever it reaches the threshold; threshold 0 ends that. No command may wait
  // for the counter yet.
  [[nodiscard]] Status ct_auto_reset(nic::CounterId counter, uint64_t threshold);
  [[nodiscard]] Status ct_inc(nic::CounterId counter, nic::CounterValue by,
                              const std::optional<nic::Trigger>& trigger = {});
  [[nodiscard]] Status ct_set(nic::CounterId counter, nic::CounterValue to,
                              const std::optional<nic::Trigger>& trigger = {});
  // Takes one success back, and returns the number of successes that are left. Operations whose threshold had been
  // reached before have started all the same.
  [[nodiscard]] Result<uint64_t> ct_take_back(nic::CounterId counter);
  [[nodiscard]] nic::CounterValue ct_get(nic::CounterId counter) const { return port_.counter(counter); }
  // Returns when success >= test, or when the counter has counted a failure.
  [[nodiscard]] Result<nic::CounterValue> ct_wait(nic::CounterId counter, uint64_t test);

  // Sets the owner and the limits of a part of the portal table, for the commands that follow.
  void table_setup(const nic::TableSetup& setup) { port_.submit(nic::Command{setup, {}, 0}); }
  // The number of refused messages for a part of the portal table.
  [[nodiscard]] Result<uint64_t> refusals(uint32_t table, nic::Refusal which) {
    return submit_and_wait(nic::RefusalsRead{table, which});
  }
  [[nodiscard]] Result<nic::PortalIndex> pt_alloc(nic::QueueId queue, const PortalOptions& options = {});
  [[nodiscard]] Status pt_free(nic::PortalIndex portal);
  [[nodiscard]] Status pt_enable(nic::PortalIndex portal);
  // Returns whether the portal table entry was enabled before.
  [[nodiscard]] Result<bool> pt_disable(nic::PortalIndex portal);

  [[nodiscard]] Result<nic::EntryId> me_append(nic::PortalIndex portal, const nic::Entry& entry,
                                               nic::ListKind list = nic::ListKind::priority,
                                               const std::optional<nic::Trigger>& trigger = {});
  // Appends to the priority list, like me_append(). In a bundle it does not wait for the answer unless ids have run
  // out: bundle_end() then returns the Error of a failed append.
  [[nodiscard]] Result<nic::EntryId> me_post(nic::PortalIndex portal, const nic::Entry& entry);
  // Returns an Error if the entry has left its list by itself and no message works on it; the entry's event, if there
  // is one, then gives the id back.
  [[nodiscard]] Result<Unlinked> me_unlink(nic::EntryId entry);
  // Unlinks the entry when the trigger fires, unless the entry is in use then.
  [[nodiscard]] Status me_unlink(nic::EntryId entry, const nic::Trigger& trigger);

  // Finds messages that wait in overflow entries and that an entry like this matches, and reports them by events and
  // counts. With `remove`, the messages leave. Returns their number.
  [[nodiscard]] Result<uint64_t> me_search(nic::PortalIndex portal, const nic::Entry& entry, bool remove);

  // The buffer must not change before the put's send event (or its acknowledgement).
  [[nodiscard]] Status put(const PutArguments& arguments, const std::optional<nic::Trigger>& trigger = {});

  // The memory belongs to the NIC until the reply event or count.
  [[nodiscard]] Status get(const GetArguments& arguments, const std::optional<nic::Trigger>& trigger = {});
  // Atomic, FetchAtomic and Swap of Portals 4. The buffer is used as by put(), and that of `fetch` as by get().
  [[nodiscard]] Status atomic(const AtomicArguments& arguments, const std::optional<nic::Trigger>& trigger = {});

  // A streaming put (SC'19 datatypes paper, section 3.1.1: PtlSPutStart, PtlSPutStream): one message at the target,
  // made of the bytes of regions of arguments.local, memory of memory_bytes. arguments.length is the length of the
  // whole message. The call with `end` gives the stream back; a refused call changes nothing. The memory must not
  // change, as with put().
  [[nodiscard]] Result<nic::StreamId> stream_start(const PutArguments& arguments, uint64_t memory_bytes,
                                                   const nic::PutRegion& first);
  [[nodiscard]] Status stream_append(nic::StreamId stream, const nic::PutRegion& region, bool end);

  // A put whose packets the context's payload handler fills on this NIC from arguments.local, memory of memory_bytes
  // (SC'19 datatypes paper, section 3.1.2: PtlProcessPut). arguments.length is the length of the message that the
  // handlers make. An Error if the context has another handler than a payload handler, or a user header.
  [[nodiscard]] Status process_put(const PutArguments& arguments, uint64_t memory_bytes, nic::ContextId context,
                                   const std::optional<nic::Trigger>& trigger = {});

  // Between bundle_begin() and bundle_end(), triggered puts, process-puts, gets, atomics, counts and unlinks are
  // registered without a wait for each answer, and so are the entries of me_post(). So a schedule of n operations costs
  // one round trip to the NIC and not n. Their order stays. Bundles may be nested. The end of the outermost waits for
  // the answers and returns the first error.
  void bundle_begin() { ++bundle_.depth; }
  [[nodiscard]] Status bundle_end();

  // Spends the host's time on work of the code above Portals.
  [[nodiscard]] Status host_work(const HostWork& work) { return port_.host_work(work); }

  // Allocates NIC memory for handlers. An address in it is an offset.
  [[nodiscard]] Result<uint64_t> memory_alloc(uint64_t bytes, uint64_t align = 64);
  [[nodiscard]] Status memory_free(uint64_t offset);
  [[nodiscard]] Status memory_write(uint64_t offset, std::span<const uint8_t> bytes);

  [[nodiscard]] Result<nic::ContextId> context_create(const nic::Context& context);
  [[nodiscard]] Status context_free(nic::ContextId context);
  // Activates a context that was created with active = false: its entries match from now on.
  [[nodiscard]] Status context_activate(nic::ContextId context);
  // Runs an entry's handlers on bytes of the host itself, at most one packet. The entry may match nothing
  // (host_activated), or belong to a context that is not active yet.
  [[nodiscard]] Status invoke(nic::EntryId entry, std::span<const uint8_t> bytes, uint64_t hdr_data,
                              const std::optional<nic::Trigger>& trigger = {});
  // Reads a count of the NIC, or of one of its contexts.
  [[nodiscard]] Result<uint64_t> telemetry(nic::Telemetry which, nic::ContextId context = {});

  // Throws InternalError if an invariant is broken. For tests: looks at all ids.
  void check_invariants() const;

 private:
  enum class IdReturn : uint8_t {
    explicit_unlink,  // leaves its list only by me_unlink
    by_unlink_event,  // the auto_unlink (priority) or auto_free (overflow) event gives the id back
    by_message_event,  // use-once without unlink event: the event of its put, get or atomic gives the id back
    silent,           // no event gives the id back: the id is tried again when ids run out
  };
  struct EntryRecord {
    nic::ListKind list = nic::ListKind::priority;
    IdReturn id_return = IdReturn::explicit_unlink;
    nic::EntryId id = {};  // the entry that the record describes
    nic::PortalIndex portal = {};
    nic::SharedAppendState append_state = {};  // the state of an append that waits for a counter
  };

  struct QueueRecord {
    uint32_t slots = 0;
    bool has_gap = false;  // events have been overwritten since the last one taken
    std::shared_ptr<nic::QueueIndex> index;
  };
  struct StreamRecord {
    uint64_t memory_bytes = 0;
    uint64_t length = 0;  // declared length of the message
    uint64_t named_bytes = 0;  // bytes of the regions so far
  };

  [[nodiscard]] Status check(const char* call, const PutArguments& arguments) const;
  [[nodiscard]] Status check(const char* call, const nic::ReplyTo& reply, uint64_t length) const;
  [[nodiscard]] Result<uint64_t> submit_and_wait(const nic::CommandBody& body,
                                                 const std::optional<nic::Trigger>& trigger = {});
  [[nodiscard]] uint64_t submit(const nic::CommandBody& body, const std::optional<nic::Trigger>& trigger);
  [[nodiscard]] Result<uint64_t> wait_for_answer(uint64_t token);
  // Gives a command to the NIC without waiting for it. A command with a trigger is registered (register_triggered()).
  // The body is built in the command itself, so it is copied once. The command's descriptors count an operation under
  // way from here on, until the NIC ends the operation.
  template <class Body>
  [[nodiscard]] Status send_command(const Body& body, const std::optional<nic::Trigger>& trigger) {
    if (trigger) SPL_TRY(counters_.check(trigger->counter));
    nic::for_each_descriptor_of(body, [](nic::Descriptor& descriptor) { descriptor.begin(); });
    if (trigger) return register_triggered(body, trigger);
    port_.submit(nic::Command{nic::CommandBody(body), {}, 0});
    return {};
  }
  [[nodiscard]] Status register_triggered(const nic::CommandBody& body, const std::optional<nic::Trigger>& trigger);
  void bundle(const nic::CommandBody& body, const std::optional<nic::Trigger>& trigger);
  void wait_for_bundle(size_t unanswered_max);
  [[nodiscard]] IdReturn id_return_of(nic::PortalIndex portal, const nic::Entry& entry, nic::ListKind list) const;
  [[nodiscard]] Result<nic::EntryId> append_under_silent_id(nic::Append append,
                                                            const std::optional<nic::Trigger>& trigger);
  [[nodiscard]] Result<uint64_t> submit_append(nic::Append append, const std::optional<nic::Trigger>& trigger);
  void reclaim_failed_appends();
  void forget_queue_of(nic::PortalIndex portal);
  [[nodiscard]] std::optional<nic::Event> take_event(nic::QueueId queue);
  void reclaim_id(const nic::Event& event);

  struct Bundle {
    uint32_t depth = 0;
    std::deque<uint64_t> unanswered;  // tokens, oldest first
    Status result;                    // the first error of the answers so far
  };
  // A bundle may hold more operations than this; then bundle() waits for the oldest answers.
  static constexpr size_t bundle_unanswered_max = 1024;

  Port& port_;
  Limits limits_;
  IdPool<nic::QueueId> queues_;
  IdPool<nic::CounterId> counters_;
  IdPool<nic::EntryId> entries_;
  IdPool<nic::ContextId> contexts_;
  IdPool<nic::PortalIndex> portals_;
  IdPool<nic::StreamId> streams_;
  std::vector<nic::QueueId> portal_queues_;  // one for each portal table entry
  std::vector<QueueRecord> queue_records_;
  std::vector<EntryRecord> entry_records_;
  std::deque<nic::EntryId> silent_entries_;  // entries whose ids no event gives back
  std::vector<nic::EntryId> triggered_appends_;  // entries whose appends wait for counters, or have waited
  // When triggered_appends_ has this size, entries whose appends have been performed are dropped from it.
  size_t triggered_appends_max_ = 64;
  std::vector<StreamRecord> stream_records_;
  std::vector<bool> context_fills_packets_;  // those that process-puts may name, by number
  Bundle bundle_;
  uint64_t next_token_ = 1;
};

}  // namespace spinloom::portals
