// Command - a request of the host to its NIC.
//
// Contract: every command may wait for a counter (Trigger): triggering is one mechanism. A command with a
//   token is answered by action Answer{token, ...}; token 0 asks for no answer. A command with a trigger is
//   answered when it is registered. So MemoryAlloc, TelemetryRead and RefusalsRead cannot have a trigger: their answer
//   is their result.
// Threads: plain values. Time: none.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <variant>
#include <vector>

#include "nic/portals/descriptor.hpp"
#include "nic/portals/entry.hpp"
#include "nic/portals/event.hpp"
#include "nic/portals/ids.hpp"
#include "nic/portals/packet.hpp"
#include "nic/portals/queue_index.hpp"
#include "nic/spin/context.hpp"
#include "nic/spin/telemetry.hpp"

namespace spinloom::nic {

// Makes an event queue. When all slots but the reserved ones are taken, portal table entries with flow control that
// post here are disabled; the reserved slots are for the events that say so. Without an index the queue never fills,
// because nobody tells the NIC which events have been taken.
struct QueueAlloc {
  QueueId queue;
  uint32_t slots = 0;
  uint32_t reserved = 0;
  std::shared_ptr<QueueIndex> index = {};
};
// Events for the queue are dropped from now on. A portal table entry that posts to the queue loses it, and flow
// control.
struct QueueFree {
  QueueId queue;
};
// The host gets the counter's value, 0, before the answer.
struct CounterAlloc {
  CounterId counter;
  uint32_t triggered_max = UINT32_MAX;  // the most operations that may wait for the counter
  bool only_successes = false;  // waiting commands start by the successes alone, not by the sum with the failures
};
struct CounterFree {
  CounterId counter;
};
// Forgets the commands that wait for the counter. A persistent command that has fired already runs once more.
struct CounterCancel {
  CounterId counter;
};
// The answer is the number of successes afterwards.
struct CounterInc {
  CounterId counter;
  CounterValue by;
};
struct CounterSet {
  CounterId counter;
  CounterValue to;
};
// Makes a counter reset itself. When the sum of its successes and failures (with only_successes: its successes) has
// reached the threshold, the commands that wait for that value are fired, the counter is set to 0, and a new round
// begins. Threshold 0: no resets. A persistent command starts once a round, even if it starts late. The command is
// refused while commands wait for the counter, fired persistent ones included.
struct CounterAutoReset {
  CounterId counter;
  uint64_t threshold = 0;
};
// Sets up the part of the portal table that belongs to one network interface of the host: its user, and how much it
// may hold. The counts of refused messages start anew.
struct TableSetup {
  uint32_t table = 0;
  uint32_t user = 0;  // the user ID in messages that leave for this part of other tables
  uint32_t entries_max = UINT32_MAX;
  uint32_t list_max = UINT32_MAX;     // entries of one list of one portal table entry
  uint32_t headers_max = UINT32_MAX;  // unexpected headers of one portal table entry
};
// Asks how many messages for this part of the table were refused.
enum class Refusal : uint8_t { dropped, permission, operation };
struct RefusalsRead {
  uint32_t table = 0;
  Refusal count = Refusal::dropped;
};
struct PortalAlloc {
  PortalIndex portal;
  QueueId queue;
  bool flow_control = false;
};
struct PortalFree {
  PortalIndex portal;
};
// The answer to disabling comes when the messages that were matched before have ended.
struct PortalEnable {
  PortalIndex portal;
  bool enabled = true;
};

// The state of an append that may wait for a counter. The NIC writes it; the host looks when it wants to reuse ids.
enum class AppendState : uint8_t { not_yet, done, never };
using SharedAppendState = std::shared_ptr<std::atomic<AppendState>>;

struct Append {
  EntryId id;
  PortalIndex portal;
  ListKind list = ListKind::priority;
  Entry entry;
  SharedAppendState state = {};  // optional
};
// The answer is an UnlinkResult, or Code::invalid if the entry has left its list by itself and all its messages have
// ended.
struct Unlink {
  EntryId id;
};
enum class UnlinkResult : uint64_t { done, in_use };  // in_use: messages or kept headers refer to the entry

// Posts events for the messages that wait unclaimed in overflow entries and that an entry like this matches, in the
// order of their headers. A use-once entry finds the first message, other entries find all. With `remove`, the messages
// leave as if the entry had been appended: one whose data is still to come is reported when it is there, and those
// behind it wait for it. The answer is the number of messages found.
struct Search {
  PortalIndex portal;
  Entry entry;
  bool remove = false;
};

// Allocates NIC memory for handlers. The answer is its offset; Code::exhausted without room, Code::invalid for 0 bytes
// or an alignment that is no power of two.
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
// Links the entries of a context that was created inactive, in the order of their appends.
struct ContextActivate {
  ContextId id;
};
// The answer is the count of the context, or of the whole NIC if no context is named.
struct TelemetryRead {
  Telemetry count = Telemetry::messages;
  ContextId context;
};
// Runs an entry's handlers on a message of the host itself: at most one packet, with remote offset 0, from this rank.
// The entry must have a context. It need not match the message, and may still wait for its context to become active.
// Entries of an overflow list, and entries that have left their list by themselves, are refused.
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
  bool ct_bytes = false;  // counts bytes instead of operations
  bool event_send_disable = false;  // no send event, not even of a failure; a lost acknowledgement's event reports it
  bool event_success_disable = false;  // sends and acknowledgements make events only if they report a failure
  // Parts of the memory may not be there: a put or an atomic leaves only if HostMemory says that all of it is there.
  bool sparse = false;
  uint64_t user_ptr = 0;
  DescriptorRef descriptor;  // optional
  uint64_t descriptor_offset = 0;
};

// The destination of a reply, and the queue and counter that report it.
struct ReplyTo {
  uint8_t* local = nullptr;  // null: to the descriptor's list, from descriptor_offset on
  QueueId queue;  // reply event of the memory descriptor
  CounterId counter;  // counts replies with ct_reply
  bool ct_reply = false;
  bool ct_bytes = false;  // counts bytes instead of replies
  bool event_success_disable = false;
  bool sparse = false;  // the request leaves only if HostMemory says that all of the memory is there
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
// `put` carries the source elements; `fetch` says where the target's elements before the operation go.
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
// Starts a put whose bytes the host names region by region (SC'19 datatypes paper, section 3.1.1). `put.length` is
// the length of the whole message, for its header; `put.local` is memory of memory_bytes that contains all regions.
// The message consists of the bytes of the regions, in the order given.
struct StreamStart {
  StreamId id;
  Put put;
  uint64_t memory_bytes = 0;
  PutRegion first;
};
// `end`: the message is complete, and must have its declared length. A refused region changes nothing.
struct StreamAppend {
  StreamId id;
  PutRegion region;
  bool end = false;
};
// A put whose packets are filled by payload handlers on this NIC (SC'19 datatypes paper, section 3.1.2). The handlers
// read `put.local`, memory of memory_bytes; `put.length` is the length of the message that they make.
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

// Visits the descriptors whose operations a command begins.
template <class Body, class Visit>
void for_each_descriptor_of(const Body& body, Visit visit) {
  const auto visit_if_any = [&](const DescriptorRef& descriptor) {
    if (descriptor) visit(*descriptor);
  };
  if constexpr (std::is_same_v<Body, Put>) {
    visit_if_any(body.descriptor);
  } else if constexpr (std::is_same_v<Body, Get>) {
    visit_if_any(body.reply.descriptor);
  } else if constexpr (std::is_same_v<Body, Atomic>) {
    visit_if_any(body.put.descriptor);
    if (body.fetch) visit_if_any(body.fetch->descriptor);
  } else if constexpr (std::is_same_v<Body, StreamStart> || std::is_same_v<Body, ProcessPut>) {
    visit_if_any(body.put.descriptor);
  }
}
template <class Visit>
void for_each_descriptor(const CommandBody& body, Visit visit) {
  std::visit([&](const auto& one) { for_each_descriptor_of(one, visit); }, body);
}

// Ends the operations of a command that will not be performed. An append that has not been done gets
// AppendState::never.
void abandon(const CommandBody& body);

// Runs a command once the sum of the counter's successes and failures (with only_successes: its successes) has reached
// the threshold. With `every`, the command runs again each time that this value has grown by `every`, or once a round
// if the counter resets itself. Freeing the counter forgets its commands.
struct Trigger {
  CounterId counter;
  uint64_t threshold = 0;
  uint64_t every = 0;
  uint64_t round = 0;  // used by the NIC: the round in which the command runs next
  uint64_t sequence = 0;  // used by the NIC: orders commands by the time when they began to wait
};

struct Command {
  CommandBody body;
  std::optional<Trigger> trigger;
  uint64_t token = 0;
};

}  // namespace spinloom::nic
