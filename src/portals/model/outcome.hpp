// Outcome - what a program can see of a run: what its calls returned, events, counters, memory, counts of refusals.
//
// Contract: plain values. An event's field that Portals 4 leaves undefined is 0.
// Threads: plain values. Time: none.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "portals/model/program.hpp"

namespace spinloom::model {

enum class EventKind : uint8_t {
  get,
  get_overflow,
  put,
  put_overflow,
  atomic,
  atomic_overflow,
  fetch_atomic,
  fetch_atomic_overflow,
  reply,
  send,
  ack,
  pt_disabled,
  link,
  auto_unlink,
  auto_free,
  search,
};
enum class Fail : uint8_t { ok, undeliverable, dropped, pt_disabled, perm_violation, op_violation, no_match };

struct Event {
  EventKind kind = EventKind::put;
  Fail fail = Fail::ok;
  List list = List::priority;
  AtomicKind atomic = AtomicKind::min;
  uint16_t initiator = 0;
  uint16_t user = 0;
  uint16_t match_bits = 0;  // undefined without matching
  uint16_t requested = 0;  // rlength
  uint16_t moved = 0;      // mlength
  uint16_t remote_offset = 0;
  uint16_t start = 0;  // offset in the rank's memory
  uint16_t hdr_data = 0;
  uint16_t user_ptr = 0;
  auto operator<=>(const Event&) const = default;
};

struct Count {
  uint16_t success = 0;
  uint16_t failure = 0;
  auto operator<=>(const Count&) const = default;
};

enum class Code : uint8_t { ok, empty, in_use, invalid, no_space };
// The result of a call.
struct Returned {
  Code code = Code::ok;
  Count count;  // ct_get, ct_wait
  std::optional<Event> event;  // eq_get, eq_wait
  auto operator<=>(const Returned&) const = default;
};

struct RankOutcome {
  std::vector<Returned> returned;  // shorter than the program if the rank waits for ever
  std::vector<Event> arrivals;     // those that the program did not take
  std::vector<Event> departures;
  std::vector<Count> counters;
  std::vector<uint8_t> memory;
  uint16_t dropped = 0;
  uint16_t permission_violations = 0;
  uint16_t operation_violations = 0;
  auto operator<=>(const RankOutcome&) const = default;
};

struct Outcome {
  std::vector<RankOutcome> ranks;
  auto operator<=>(const Outcome&) const = default;
};

}  // namespace spinloom::model
