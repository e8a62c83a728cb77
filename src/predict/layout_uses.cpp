#include "predict/layout_uses.hpp"

#include <map>
#include <tuple>

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

}  // namespace

std::vector<LayoutUse> layout_uses(const Script& script) {
  Uses uses;
  for (const RankScript& one : script.ranks) {
    for (const Action& action : one.actions) {
      if (action.event >= one.cut_event) continue;
      for (uint32_t number = action.first_round; number < action.rounds_end; ++number) {
        const ScriptRound& round = one.rounds[number];
        for (uint32_t leg = round.first_leg; leg < round.legs_end; ++leg) uses.end(one.legs[leg]);
        for (uint32_t copy = round.first_copy; copy < round.copies_end; ++copy) {
          uses.own(one.copies[copy].from, Side::send);
          uses.own(one.copies[copy].to, Side::receive);
        }
      }
    }
  }
  return uses.all();
}

}  // namespace spinloom::predict
