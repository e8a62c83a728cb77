// PatternProgram - the rounds of ranks, as Programs of a schedule.
//
// Contract: add() appends strands of Rounds of `rank`: messages of strand n have tag n, and strands do not wait for
//   each other. The operations of a round wait for the receives of the last round that had some, with `awaits_sends`
//   for all operations of the last round. intern_for() and intern() end the Program and give it to ranks.
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "portals/collective/rounds.hpp"
#include "predict/schedule/schedule.hpp"

namespace spinloom::goal {

using collective::Leg, collective::Round, collective::Rounds, collective::Side;

class PatternProgram {
 public:
  PatternProgram(uint32_t ranks, bool awaits_sends) : schedule_(ranks), awaits_sends_(awaits_sends) {}

  // Peers are kept as distances to the own rank if `is_relative` is set.
  void add(uint32_t rank, const std::vector<std::vector<Round>>& strands, bool is_relative);
  // Gives the Program to ranks whose peers are at the same distances, or to one rank.
  void intern_for(std::span<const uint32_t> ranks) { schedule_.intern_for(ranks, builder_.take()); }
  void intern(uint32_t rank) { schedule_.intern(rank, builder_.take()); }
  [[nodiscard]] schedule::Schedule take() { return std::move(schedule_); }

 private:
  void add(const Round& round, uint32_t tag, std::vector<uint32_t>& awaited);

  schedule::Schedule schedule_;
  schedule::Builder builder_;
  const bool awaits_sends_;
  uint32_t rank_ = 0;
  bool is_relative_ = false;
};

}  // namespace spinloom::goal
