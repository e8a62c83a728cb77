#include "predict/program/layout_uses.hpp"

#include <map>
#include <tuple>

#include "predict/program/costs.hpp"

namespace spinloom::predict {
namespace {

class LayoutUseTable {
 public:
  // Returns the entry of a layout at one side, new or not; null for data that lie in one block.
  LayoutUse* use_of(const Part& part, Side side) {
    if (part.type == trace::none || part.bytes == 0) return nullptr;
    LayoutUse& use = uses_[{part.type, part.count, side}];
    use = {part.type, part.count, side, part.bytes, use.messages, use.copies};
    return &use;
  }
  void count_message_end(const Leg& leg) {
    if (leg.tag == dropped) return;
    if (LayoutUse* const use = use_of(leg.part, leg.side)) ++use->messages;
  }
  void count_own_block(const Part& part, Side side) {
    if (LayoutUse* const use = use_of(part, side)) ++use->copies;
  }
  [[nodiscard]] std::vector<LayoutUse> all() const {
    std::vector<LayoutUse> list;
    for (const auto& [key, use] : uses_) list.push_back(use);
    return list;
  }

 private:
  std::map<std::tuple<uint32_t, int64_t, Side>, LayoutUse> uses_;
};

// Calls `body` with each round that is replayed, and its rank.
template <class Body>
void for_each_round(const Script& script, Body&& body) {
  for (const RankScript& rank : script.ranks) {
    for (const Action& action : rank.actions) {
      if (action.event >= rank.cut_event) continue;
      for (uint32_t number = action.first_round; number < action.rounds_end; ++number) body(rank, rank.rounds[number]);
    }
  }
}

}  // namespace

std::vector<LayoutUse> layout_uses(const Script& script) {
  LayoutUseTable uses;
  for_each_round(script, [&uses](const RankScript& rank, const ScriptRound& round) {
    for (uint32_t leg = round.first_leg; leg < round.legs_end; ++leg) uses.count_message_end(rank.legs[leg]);
    for (uint32_t copy = round.first_copy; copy < round.copies_end; ++copy) {
      uses.count_own_block(rank.copies[copy].from, Side::send);
      uses.count_own_block(rank.copies[copy].to, Side::receive);
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
  for_each_round(script, [&use_of](const RankScript& rank, const ScriptRound& round) {
    for (uint32_t number = round.first_leg; number < round.legs_end; ++number) {
      const Leg& leg = rank.legs[number];
      if (leg.side != Side::send || leg.tag == dropped || leg.part.bytes == 0) continue;
      if (leg.own_layout() != DataLayout{} || leg.partner_layout != DataLayout{}) ++use_of(pair_key(leg)).messages;
    }
    for (uint32_t number = round.first_copy; number < round.copies_end; ++number) {
      const auto& [from, to] = rank.copies[number];
      if (layout_of(from) != DataLayout{} || layout_of(to) != DataLayout{})
        ++use_of({to.bytes, layout_of(from), layout_of(to)}).copies;
    }
  });
  std::vector<PairUse> list;
  for (const auto& [key, use] : uses) list.push_back(use);
  return list;
}

}  // namespace spinloom::predict
