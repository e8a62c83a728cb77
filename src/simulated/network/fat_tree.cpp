#include "simulated/network/fat_tree.hpp"

#include <algorithm>

namespace spinloom::network {

Result<FatTreeRoutes> FatTreeRoutes::make(const FatTree& tree, uint32_t hosts) {
  const uint32_t half = tree.radix / 2;
  if (tree.radix < 4 || tree.radix % 2 != 0 || tree.radix > 1 << 16) {
    return fail(Code::invalid, "a fat tree has an even radix of 4 to 65536, and ", tree.radix, " is none");
  }
  if (tree.oversubscription == 0 || half % tree.oversubscription != 0) {
    return fail(Code::invalid, "an oversubscription of ", tree.oversubscription, " does not divide the ", half,
                " links up of a switch with radix ", tree.radix);
  }
  if (tree.levels > levels_max) {
    return fail(Code::invalid, "a fat tree has 1 to ", levels_max, " levels, and ", tree.levels, " are given");
  }
  FatTreeRoutes routes;
  uint64_t below = 1;  // hosts under a switch of the level below this one
  for (uint32_t level = 0;; ++level) {
    const bool is_top =
        tree.levels > 0 ? level + 1 == tree.levels : below * tree.radix >= hosts || level + 1 == levels_max;
    if (is_top && below * tree.radix < hosts) {
      return fail(Code::invalid, "a fat tree of ", level + 1, " levels and radix ", tree.radix, " has ",
                  below * tree.radix, " hosts, and there are ", hosts, " ranks; give it a larger radix or more levels");
    }
    // The top has no more subtrees than there are hosts for.
    const auto downs = static_cast<uint32_t>(is_top ? std::max<uint64_t>((hosts + below - 1) / below, 1) : half);
    const uint32_t ups = is_top ? 0 : level == 0 ? half / tree.oversubscription : half;
    below *= downs;
    if (below > UINT32_MAX) return fail(Code::invalid, "a fat tree of this size has more than 2^32 hosts");
    routes.levels_[level] = {static_cast<uint32_t>(below), downs, ups, 1, 0, 0, 0};
    ++routes.level_count_;
    if (is_top) break;
  }
  uint64_t copies = 1;
  uint64_t switches = 0;
  uint64_t links = 0;
  for (uint32_t number = 0; number < routes.level_count_; ++number) {
    Level& level = routes.levels_[number];
    const uint64_t here = (below / level.below) * copies;
    level.copies = static_cast<uint32_t>(copies);
    level.first_switch = static_cast<uint32_t>(switches);
    level.first_up = static_cast<uint32_t>(links);
    level.first_down = static_cast<uint32_t>(links + here * level.ups);
    switches += here;
    links += here * (uint64_t{level.ups} + (number == 0 ? 0 : level.downs));
    copies *= std::max(level.ups, 1U);
    if (links > UINT32_MAX || copies > UINT32_MAX) {
      return fail(Code::invalid, "a fat tree of ", routes.level_count_, " levels and radix ", tree.radix,
                  " has more than 2^32 links; give it fewer levels");
    }
  }
  routes.switches_ = static_cast<uint32_t>(switches);
  routes.links_ = static_cast<uint32_t>(links);
  return routes;
}

FatTreeRoutes::Place FatTreeRoutes::place_of(uint32_t at_switch) const {
  uint32_t level = level_count_ - 1;
  while (at_switch < levels_[level].first_switch) --level;
  const uint32_t number = at_switch - levels_[level].first_switch;
  return {level, number / levels_[level].copies, number % levels_[level].copies};
}

Link FatTreeRoutes::up(const Place& place, uint32_t which) const {
  const Level& here = levels_[place.level];
  const Level& above = levels_[place.level + 1];
  const uint32_t number = place.subtree * here.copies + place.copy;
  return {here.first_up + number * here.ups + which,
          above.first_switch + place.subtree / above.downs * above.copies + place.copy * here.ups + which};
}

Link FatTreeRoutes::down(const Place& place, uint32_t destination) const {
  const Level& here = levels_[place.level];
  const Level& under = levels_[place.level - 1];
  const uint32_t number = place.subtree * here.copies + place.copy;
  const uint32_t subtree = destination / under.below;
  return {here.first_down + number * here.downs + subtree % here.downs,
          under.first_switch + subtree * under.copies + place.copy / under.ups};
}

Link FatTreeRoutes::next(uint32_t at_switch, uint32_t destination) const {
  const Place place = place_of(at_switch);
  const Level& here = levels_[place.level];
  if (destination / here.below == place.subtree) return down(place, destination);
  return up(place, destination / here.copies % here.ups);
}

void FatTreeRoutes::choices(uint32_t at_switch, uint32_t destination, std::vector<Link>& out) const {
  const Place place = place_of(at_switch);
  const Level& here = levels_[place.level];
  if (destination / here.below == place.subtree) {
    out.push_back(down(place, destination));
    return;
  }
  for (uint32_t which = 0; which < here.ups; ++which) out.push_back(up(place, which));
}

void FatTreeRoutes::links_of(uint32_t at_switch, std::vector<Link>& out) const {
  const Place place = place_of(at_switch);
  const Level& here = levels_[place.level];
  for (uint32_t which = 0; which < here.ups; ++which) out.push_back(up(place, which));
  if (place.level == 0) return;
  const uint32_t under = levels_[place.level - 1].below;
  for (uint32_t which = 0; which < here.downs; ++which)
    out.push_back(down(place, place.subtree * here.below + which * under));
}

}  // namespace spinloom::network
