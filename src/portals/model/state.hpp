// State - a moment of a program's run: every rank, and every operation that moves data and is not over.
//
// Contract: plain values; equal states have equal keys, and equal futures.
// Threads: plain values. Time: none.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "portals/model/outcome.hpp"
#include "portals/model/program.hpp"

namespace spinloom::model {

// An operation's name: its rank and its place in that rank's program.
struct OperationName {
  uint16_t rank = 0;
  uint16_t place = 0;
  auto operator<=>(const OperationName&) const = default;
};

// Bytes move in elements of 8 bytes, counted from the message's beginning. No message has more of them.
inline constexpr uint16_t elements_max = 4;

// The target's side of a message. Each stage is one step.
enum class Stage : uint8_t {
  unmatched,  // every message of the pair before it is matched before it
  matched,    // its entry is in use; its bytes have not moved
  moved,      // its bytes are there
  reported,   // its full event is in the queue, and it uses its entry no more
  ended,      // it is counted; what is left is the answer
  lost        // the target is dead
};
// The answer: an acknowledgement or a reply.
enum class Answer : uint8_t { to_come, seen, ended };

struct Message {
  OperationName name;
  uint16_t target = 0;
  Stage stage = Stage::unmatched;
  uint8_t elements_read = 0;   // those of the source that are captured, a bit each
  uint8_t elements_moved = 0;  // those that are at the target, a bit each
  bool is_read = false;  // the source bytes are captured
  bool is_sent = false;  // the send event is posted
  bool is_send_counted = false;
  bool is_loss_sent = false;  // a send event has said that the target is dead
  Answer answer = Answer::to_come;
  Fail fail = Fail::ok;
  List list = List::priority;
  uint16_t entry = 0;   // the operation that appended the entry
  uint16_t offset = 0;  // the place in the entry
  uint16_t moved = 0;   // bytes
  std::vector<uint8_t> bytes;  // the source bytes; when they have moved, those of the reply
};

struct ListedEntry {
  uint16_t appended_by = 0;
  List list = List::priority;
  bool is_linked = true;       // false: it has unlinked itself
  bool is_link_reported = true;
  bool is_unlink_reported = false;
  uint16_t local_offset = 0;
};

// An unexpected header.
struct Header {
  OperationName name;
  uint16_t entry = 0;
  uint16_t offset = 0;
  uint16_t moved = 0;
};

// An unexpected header that an append, or a search that removes, has taken, while its data is still arriving.
struct Claim {
  uint16_t taken_by = 0;  // the operation
  Header header;
};

struct Counter {
  Count value;
  std::vector<uint16_t> waiting;  // triggered operations, in the order of their calls
};

// True if an event says that a message has come: flow control keeps room for it.
[[nodiscard]] inline bool tells_of_message(EventKind kind) {
  return kind == EventKind::put || kind == EventKind::get || kind == EventKind::atomic ||
         kind == EventKind::fetch_atomic;
}

struct Queue {
  uint16_t posted = 0;
  uint16_t taken = 0;
  std::vector<Event> events;  // empty while an observed outcome is followed
};

struct Process {
  bool is_alive = true;
  uint16_t next = 0;  // place of the next call
  bool is_disabling = false;
  bool is_enabled = true;
  bool reports_disabled = false;  // flow control owes an event
  std::vector<ListedEntry> entries;  // both lists, in the order of their appends
  std::vector<Header> headers;       // the first to arrive first
  std::vector<Claim> claims;         // the first to be reported first
  std::vector<Counter> counters;
  uint16_t bundles = 0;  // number of bundles that have begun and not ended
  std::vector<uint16_t> deferred;  // triggered operations that a bundle keeps back, the first first
  Code bundle_result = Code::ok;   // the first that a deferred operation would have returned, other than ok
  std::vector<uint16_t> cancelled;  // appends that a counter was told to forget
  std::vector<uint16_t> fired;  // triggered operations that are to start, the first first
  std::array<Queue, 2> queues;  // arrivals, departures
  std::vector<uint8_t> memory;
  std::vector<Returned> returned;  // empty while an observed outcome is followed
  uint16_t dropped = 0;
  uint16_t permission_violations = 0;
  uint16_t operation_violations = 0;
};

struct State {
  std::vector<Process> processes;
  std::vector<Message> messages;  // the first to be issued first

  // Bytes that two states have in common if and only if they are equal.
  [[nodiscard]] std::string key() const;
};

}  // namespace spinloom::model
