// Message bits - the match bits of messages of schedules.
//
// Contract: from the highest bit: kind (3 bits), whether its schedule is cached (1), team (16), the schedule's number
//   in the team (16), the message's name in the schedule (28). A message that equals `may_wait` under its mask may come
//   before its entry: it then waits in the overflow list. Other early messages are dropped.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>

#include "portals/collective/graph.hpp"

namespace spinloom::collective::bits {

inline constexpr uint32_t schedule_count = 1 << 16;  // numbers begin again then
inline constexpr uint64_t kind(uint64_t number) { return number << 61; }
inline constexpr uint64_t kind_mask = kind(7);
inline constexpr uint64_t data = kind(0);
inline constexpr uint64_t signal = kind(1);
inline constexpr uint64_t exposed = kind(2);
inline constexpr uint64_t credit = kind(3);
inline constexpr uint64_t self = kind(4);
inline constexpr uint64_t meeting = kind(5);
inline constexpr uint64_t failed = kind(6);  // the sender's schedule has failed; with the name of an overrun rank
inline constexpr uint64_t fence = kind(7);  // its answer says that all messages before it have come

inline constexpr uint64_t message_mask = (uint64_t{1} << 28) - 1;

inline constexpr uint64_t may_wait = kind(0);  // a value of may_wait_mask's bits
inline constexpr uint64_t may_wait_mask = kind(4);

[[nodiscard]] constexpr uint64_t team_bits(uint32_t team) { return uint64_t{team} << 44; }
[[nodiscard]] constexpr uint32_t team_of(uint64_t bits) { return static_cast<uint32_t>(bits >> 44 & 0xffff); }
[[nodiscard]] constexpr uint64_t schedule_bits(uint32_t team, uint32_t number, bool cached) {
  return uint64_t{cached} << 60 | team_bits(team) | uint64_t{number} << 28;
}
[[nodiscard]] constexpr uint64_t message_bits(const MessageName& name) {
  return (name.is_signal ? signal : name.is_exposed ? exposed : data) | name.message;
}

}  // namespace spinloom::collective::bits
