#include "predict/goal/patterns/pattern_program.hpp"

#include <algorithm>

namespace spinloom::goal {

using schedule::Awaits;
using schedule::Kind;
using schedule::Peer;
using schedule::Shape;

// Adds round after round of all strands, so that operations that can begin at once alternate between strands.
void PatternProgram::add(uint32_t rank, const std::vector<std::vector<Round>>& strands, bool is_relative) {
  rank_ = rank;
  is_relative_ = is_relative;
  std::vector<std::vector<uint32_t>> awaited(strands.size());
  size_t longest = 0;
  for (const std::vector<Round>& rounds : strands) longest = std::max(longest, rounds.size());
  for (size_t round = 0; round < longest; ++round) {
    for (uint32_t strand = 0; strand < strands.size(); ++strand) {
      if (round < strands[strand].size()) add(strands[strand][round], strand, awaited[strand]);
    }
  }
}

void PatternProgram::add(const Round& round, uint32_t tag, std::vector<uint32_t>& awaited) {
  // m operations that wait for n: m n edges, or m + n and an operation.
  const size_t legs = round.legs.size();
  if (awaited.size() * legs > 2 * (awaited.size() + legs)) {
    const uint32_t join = builder_.add(schedule_.intern_shape(Shape{}), 0);
    for (const uint32_t before : awaited) builder_.require(join, before, Awaits::end);
    awaited = {join};
  }
  std::vector<uint32_t> added;
  for (const Leg& leg : round.legs) {
    Shape shape;
    shape.size = leg.part.bytes;
    shape.tag = tag;
    shape.kind = leg.side == Side::send ? Kind::send : Kind::receive;
    shape.peer = is_relative_ ? Peer::relative : Peer::absolute;
    const uint32_t ranks = schedule_.ranks();
    const uint32_t peer = is_relative_ ? (leg.peer + ranks - rank_) % ranks : leg.peer;
    const uint32_t number = builder_.add(schedule_.intern_shape(shape), peer);
    for (const uint32_t before : awaited) builder_.require(number, before, Awaits::end);
    if (awaits_sends_ || leg.side == Side::receive) added.push_back(number);
  }
  if (!added.empty()) awaited = std::move(added);
}

}  // namespace spinloom::goal
