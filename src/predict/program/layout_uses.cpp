#include "predict/program/layout_uses.hpp"

#include <map>
#include <tuple>

#include "predict/program/costs.hpp"

namespace spinloom::predict {
namespace {

class Uses {
 public:
  LayoutUse* of(const Part& part, Side side) {
    if (part.type == trace::none || part.bytes == 0) return nullptr;
    LayoutUse& found = uses_[{part.type, part.count, side}];
    found = {part.type, part.count, side, part.bytes, found.messages, found.copies};
    return &found;
  }
  void end(const Leg& leg) {
    if (leg.tag == dropped) return;
    if (LayoutUse* const found = of(leg.part, leg.side)) ++found->messages;
  }
  void own(const Part& part, Side side) {
    if (LayoutUse* const found = of(part, side)) ++found->copies;
  }
  [[nodiscard]] std::vector<LayoutUse> all() const {
    std::vector<LayoutUse> found;
    for (const auto& [key, use] : uses_) found.push_back(use);
    return found;
  }

 private:
  std::map<std::tuple<uint32_t, int64_t, Side>, LayoutUse> uses_;
};

// Calls `body` with each round that is replayed, and its rank.
template <class Body>
void for_rounds(const Script& script, Body&& body) {
  for (const RankScript& one : script.ranks) {
    for (const Action& action : one.actions) {
      if (action.event >= one.cut_event) continue;
      for (uint32_t number = action.first_round; number < action.rounds_end; ++number) body(one, one.rounds[number]);
    }
  }
}

}  // namespace

std::vector<LayoutUse> layout_uses(const Script& script) {
  Uses uses;
  for_rounds(script, [&uses](const RankScript& one, const ScriptRound& round) {
    for (uint32_t leg = round.first_leg; leg < round.legs_end; ++leg) uses.end(one.legs[leg]);
    for (uint32_t copy = round.first_copy; copy < round.copies_end; ++copy) {
      uses.own(one.copies[copy].from, Side::send);
      uses.own(one.copies[copy].to, Side::receive);
    }
  });
  return uses.all();
}

std::vector<PairUse> pair_uses(const Script& script) {
  std::map<Costs::PairKey, PairUse> uses;
  const auto use_of = [&uses](const Costs::PairKey& key) -> PairUse& {
    const auto& [bytes, sent, received] = key;
    return uses.try_emplace(key, PairUse{.bytes = bytes, .sent = sent, .received = received}).first->second;
  };
  for_rounds(script, [&use_of](const RankScript& one, const ScriptRound& round) {
    for (uint32_t number = round.first_leg; number < round.legs_end; ++number) {
      const Leg& leg = one.legs[number];
      if (leg.side != Side::send || leg.tag == dropped || leg.part.bytes == 0) continue;
      if (leg.own() != Lie{} || leg.partner != Lie{}) ++use_of(pair_of(leg)).messages;
    }
    for (uint32_t number = round.first_copy; number < round.copies_end; ++number) {
      const auto& [from, to] = one.copies[number];
      if (lie_of(from) != Lie{} || lie_of(to) != Lie{}) ++use_of({to.bytes, lie_of(from), lie_of(to)}).copies;
    }
  });
  std::vector<PairUse> found;
  for (const auto& [key, use] : uses) found.push_back(use);
  return found;
}

}  // namespace spinloom::predict
