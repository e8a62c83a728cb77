// Command - what the host asks of its NIC.
//
// Contract: every command may wait for a counter (Trigger): triggering is one mechanism. A command with a
//   token is answered by action Answer{token, ...}; token 0 asks for no answer. A command with a trigger is
//   answered when it is registered, so MemoryAlloc, whose answer is its result, cannot have one.
// Threads: plain values. Time: none.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <variant>
#include <vector>

#include "nic/context.hpp"
#include "nic/descriptor.hpp"
#include "nic/entry.hpp"
#include "nic/event.hpp"
#include "nic/ids.hpp"
#include "nic/packet.hpp"
#include "nic/queue_index.hpp"
#include "nic/telemetry.hpp"

namespace spinloom::nic {

// When all slots but the reserved ones are taken, portal table entries with flow control that post here are disabled;
// the reserved ones are for the news of it. Without an index, nobody says what has been taken: the queue never fills.
struct QueueAlloc {
  QueueId queue;
  uint32_t slots = 0;
  uint32_t reserved = 0;
  std::shared_ptr<QueueIndex> index = {};
};
// Events for it are dropped from now on; a portal table entry that posts to it has no queue, and no flow control, any
// more.
struct QueueFree {
  QueueId queue;
};
struct CounterAlloc {
  CounterId counter;
  uint32_t triggered_max = UINT32_MAX;  // operations that wait for it
};
struct CounterFree {
  CounterId counter;
};
// Forgets the commands that wait for the counter.
struct CounterCancel {
  CounterId counter;
};
struct CounterInc {
  CounterId counter;
  CounterValue by;
};
struct CounterSet {
  CounterId counter;
  CounterValue to;
};
// When its successes and failures have reached the threshold and what waits for them has started, the counter is set to
// 0 and a new round begins; threshold 0: it is not. What is persistent starts once a round, also where it starts late.
// Refused while commands wait for the counter; a persistent one that is fired does.
struct CounterAutoReset {
  CounterId counter;
  uint64_t threshold = 0;
};
// A part of the portal table, that of one network interface of the host: whose it is, and how much it may hold. Its
// refusals are counted from here on.
struct TableSetup {
  uint32_t table = 0;
  uint32_t user = 0;  // on what leaves for this part of other tables
  uint32_t entries_max = UINT32_MAX;
  uint32_t list_max = UINT32_MAX;     // entries of one list of one portal table entry
  uint32_t headers_max = UINT32_MAX;  // unexpected ones of one portal table entry
};
// Answered by the messages for this part of the table that were refused.
enum class Refusal : uint8_t { dropped, permission, operation };
struct RefusalsRead {
  uint32_t table = 0;
  Refusal which = Refusal::dropped;
};
struct PortalAlloc {
  PortalIndex portal;
  QueueId queue;
  bool flow_control = false;
};
struct PortalFree {
  PortalIndex portal;
};
// Disabling is answered when the messages that were matched before have ended.
struct PortalEnable {
  PortalIndex portal;
  bool enabled = true;
};

// What has become of an append that waits for a counter: the NIC writes it, the host looks when it wants ids back.
enum class Appended : uint8_t { not_yet, done, never };
using AppendNews = std::shared_ptr<std::atomic<Appended>>;

struct Append {
  EntryId id;
  PortalIndex portal;
  ListKind list = ListKind::priority;
  Entry entry;
  AppendNews news = {};  // optional
};
// Answered by an UnlinkResult; Code::invalid when the entry has already left its list by itself.
struct Unlink {
  EntryId id;
};
enum class UnlinkResult : uint64_t { done, in_use };  // in use: messages or kept headers refer to it

// Tells of messages that wait in overflow entries and that an entry like this matches, in the order of their headers: a
// use-once one of the first, others of all. With `remove` they leave as if it had been appended; then one whose data is
// still to come counts as not there yet, and those behind it do, too. Answered by how many.
struct Search {
  PortalIndex portal;
  Entry entry;
  bool remove = false;
};

// NIC memory for handlers: answered by its offset, or Code::exhausted.
struct MemoryAlloc {
  uint64_t bytes = 0;
  uint64_t align = 64;
};
struct MemoryFree {
  uint64_t offset = 0;
};
struct MemoryWrite {
  uint64_t offset = 0;
  std::vector<uint8_t> bytes;
};

struct ContextCreate {
  ContextId id;
  Context context;
};
struct ContextFree {
  ContextId id;
};
// Entries of a context that was created inactive are in their lists from now on, in the order of their appends.
struct ContextActivate {
  ContextId id;
};
// Answered by the count; no context: the NIC's.
struct TelemetryRead {
  Telemetry which = Telemetry::messages;
  ContextId context;
};
// Runs an entry's handlers on a message of the host's own: at most one packet, at offset 0, from this rank. The entry
// may be in no list yet, or match nothing.
struct Invoke {
  EntryId entry;
  std::vector<uint8_t> bytes;
  uint64_t hdr_data = 0;
};

struct Put {
  const uint8_t* local = nullptr;  // null: the bytes are in the descriptor's list, from descriptor_offset on
  uint64_t length = 0;
  Rank target;
  PortalIndex portal;
  uint64_t match_bits = 0;
  uint64_t remote_offset = 0;
  uint64_t hdr_data = 0;
  AckRequest ack_request = AckRequest::none;
  QueueId queue;  // send and ack events of the memory descriptor
  CounterId counter;  // counts acks (ack_request) and, with ct_send, sends
  bool ct_send = false;
  bool ct_ack = true;  // acknowledgements that were asked for are counted
  bool ct_bytes = false;  // bytes, not operations
  bool event_send_disable = false;
  bool event_success_disable = false;  // of acknowledgements: only failures are told
  uint64_t user_ptr = 0;
  DescriptorRef descriptor;  // optional
  uint64_t descriptor_offset = 0;
  // Of requests and replies that travel as puts do; those who put leave them alone.
  Operation operation = Operation::put;
  Request request;
  bool on_nic = false;  // `local` lies on the NIC
  bool by_handler = false;  // of this NIC
  Outcome result;  // reply
};

// Where a reply goes, and who hears of it.
struct ReplyTo {
  uint8_t* local = nullptr;  // null: to the descriptor's list, from descriptor_offset on
  QueueId queue;  // reply event of the memory descriptor
  CounterId counter;  // counts replies with ct_reply
  bool ct_reply = false;
  bool ct_bytes = false;  // bytes, not replies
  bool event_success_disable = false;
  uint64_t user_ptr = 0;
  DescriptorRef descriptor;  // optional
  uint64_t descriptor_offset = 0;
};
struct Get {
  ReplyTo reply;
  uint64_t length = 0;
  Rank target;
  PortalIndex portal;
  uint64_t match_bits = 0;
  uint64_t remote_offset = 0;
};
// `put` brings the source elements; `fetch` takes the target's before the operation.
struct Atomic {
  Put put;
  AtomicOperation operation = AtomicOperation::sum;
  Datatype datatype = Datatype::int64;
  AtomicOperand operand{};
  std::optional<ReplyTo> fetch;
};

// A contiguous part of a put's memory.
struct PutRegion {
  uint64_t offset = 0;
  uint64_t length = 0;
};
// A put whose bytes the host names region by region (SC'19 datatypes paper, section 3.1.1). `put.length` is the whole
// message's, which its header carries; `put.local` is memory of memory_bytes, in which all regions lie. The message's
// bytes are those of the regions, in the order given.
struct StreamStart {
  StreamId id;
  Put put;
  uint64_t memory_bytes = 0;
  PutRegion first;
};
// `end`: the message is complete, and its bytes must be as many as were declared. A refused region changes nothing.
struct StreamAppend {
  StreamId id;
  PutRegion region;
  bool end = false;
};
// A put whose packets are filled by payload handlers on this NIC (SC'19 datatypes paper, section 3.1.2): they read
// `put.local`, memory of memory_bytes. `put.length` is the length of what they make of it.
struct ProcessPut {
  Put put;
  uint64_t memory_bytes = 0;
  ContextId context;
};

using CommandBody =
    std::variant<QueueAlloc, QueueFree, CounterAlloc, CounterFree, CounterInc, CounterSet, PortalAlloc, PortalFree,
                 PortalEnable, Append, Unlink, MemoryAlloc, MemoryFree, MemoryWrite, ContextCreate, ContextFree, Put,
                 StreamStart, StreamAppend, ProcessPut, Get, Atomic, ContextActivate, TelemetryRead, Invoke,
                 CounterCancel, Search, TableSetup, RefusalsRead, CounterAutoReset>;

// The descriptors whose operations a command begins.
template <class Body, class Visit>
void for_each_descriptor_of(const Body& body, Visit visit) {
  const auto show = [&](const DescriptorRef& descriptor) {
    if (descriptor) visit(*descriptor);
  };
  if constexpr (std::is_same_v<Body, Put>) {
    show(body.descriptor);
  } else if constexpr (std::is_same_v<Body, Get>) {
    show(body.reply.descriptor);
  } else if constexpr (std::is_same_v<Body, Atomic>) {
    show(body.put.descriptor);
    if (body.fetch) show(body.fetch->descriptor);
  } else if constexpr (std::is_same_v<Body, StreamStart> || std::is_same_v<Body, ProcessPut>) {
    show(body.put.descriptor);
  }
}
template <class Visit>
void for_each_descriptor(const CommandBody& body, Visit visit) {
  std::visit([&](const auto& one) { for_each_descriptor_of(one, visit); }, body);
}

// The command will not be performed: its operations end, and whoever waits for the news of an append hears of it.
void abandon(const CommandBody& body);

// Runs once the counter's successes and failures have reached the threshold; with `every`, again each time that their
// sum has grown by that much, or, where the counter resets itself, once in each of its rounds. Freeing the counter
// forgets its commands.
struct Trigger {
  CounterId counter;
  uint64_t threshold = 0;
  uint64_t every = 0;
  uint64_t round = 0;  // the NIC's own: in which one it runs next
  uint64_t sequence = 0;  // the NIC's own: since when it waits
};

struct Command {
  CommandBody body;
  std::optional<Trigger> trigger;
  uint64_t token = 0;
};

}  // namespace spinloom::nic
