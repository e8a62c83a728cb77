#include "simulated/network/dragonfly.hpp"

#include <algorithm>

namespace spinloom::network {

Result<DragonflyRoutes> DragonflyRoutes::make(const Dragonfly& dragonfly, uint32_t hosts) {
  const auto& [hosts_per_router, routers, globals, groups] = dragonfly;
  constexpr uint32_t most = 1 << 16;
  if (hosts_per_router == 0 || routers == 0 || globals == 0 ||
      std::max({hosts_per_router, routers, globals, groups}) > most) {
    return fail(Code::invalid, "a dragonfly has 1 to ", most, " hosts, routers, globals and groups, not ",
                hosts_per_router, ", ", routers, ", ", globals, " and ", groups);
  }
  DragonflyRoutes routes;
  routes.shape_ = dragonfly;
  const uint64_t in_group = uint64_t{hosts_per_router} * routers;
  const uint64_t ports = uint64_t{routers} * globals;
  if (groups == 0) {
    const uint64_t needed = std::max<uint64_t>((hosts + in_group - 1) / in_group, 2);
    routes.shape_.groups = static_cast<uint32_t>(std::min<uint64_t>(needed, ports + 1));
  }
  if (routes.shape_.groups - 1 > ports) {
    return fail(Code::invalid, "a dragonfly of ", routers, " routers with ", globals, " globals each has links to ",
                ports, " other groups, and there are ", groups, " groups; give it more globals or routers");
  }
  if (in_group * routes.shape_.groups < hosts) {
    return fail(Code::invalid, "a dragonfly of ", routes.shape_.groups, " groups with ", in_group, " hosts each has ",
                in_group * routes.shape_.groups, " hosts, and there are ", hosts,
                " ranks; give it more groups, routers, globals or hosts");
  }
  const uint64_t links = uint64_t{routes.shape_.groups} * routers * (uint64_t{routers} + globals);
  if (links > UINT32_MAX) return fail(Code::invalid, "a dragonfly of this size has more than 2^32 links");
  routes.links_per_pair_ = routes.shape_.groups == 1 ? 0 : static_cast<uint32_t>(ports / (routes.shape_.groups - 1));
  return routes;
}

Link DragonflyRoutes::towards(uint32_t at_switch, uint32_t group, uint32_t which) const {
  const uint32_t own = at_switch / shape_.routers;
  const uint32_t others = shape_.groups - 1;
  const uint32_t further = (group + others - own) % shape_.groups;  // one less than the distance to the group
  const uint32_t port = which * others + further;
  const uint32_t router = own * shape_.routers + port / shape_.globals;
  if (router != at_switch) return local(at_switch, router);
  const uint32_t back = which * others + (others - 1 - further);
  return {at_switch * (shape_.routers + shape_.globals) + shape_.routers + port % shape_.globals,
          group * shape_.routers + back / shape_.globals};
}

Link DragonflyRoutes::next(uint32_t at_switch, uint32_t destination) const {
  const uint32_t to = switch_of(destination);
  const uint32_t group = to / shape_.routers;
  if (group == at_switch / shape_.routers) return local(at_switch, to);
  return towards(at_switch, group, destination % links_per_pair_);
}

// Gives the links to the group if this router has some, else the links to routers that have some.
void DragonflyRoutes::choices(uint32_t at_switch, uint32_t destination, std::vector<Link>& out) const {
  const uint32_t to = switch_of(destination);
  const uint32_t group = to / shape_.routers;
  if (group == at_switch / shape_.routers) {
    out.push_back(local(at_switch, to));
    return;
  }
  const size_t first = out.size();
  bool leaves = false;
  for (uint32_t which = 0; which < links_per_pair_; ++which) {
    const Link link = towards(at_switch, group, which);
    const bool is_global = link.to / shape_.routers == group;
    if (is_global && !leaves) out.resize(first);
    leaves |= is_global;
    if (is_global == leaves) out.push_back(link);
  }
}

// Draws a detour over another group; the link by which the packet enters the group decides which of its routers it
// meets.
std::optional<uint32_t> DragonflyRoutes::detour(uint32_t at_switch, uint32_t to, Random& random) const {
  const uint32_t own = at_switch / shape_.routers;
  const uint32_t end = to / shape_.routers;
  if (own == end || shape_.groups < 3) return {};
  auto group = static_cast<uint32_t>(random.below(shape_.groups - 2));
  if (group >= std::min(own, end)) ++group;
  if (group >= std::max(own, end)) ++group;
  return group * shape_.routers + static_cast<uint32_t>(random.below(shape_.routers));
}

bool DragonflyRoutes::turns(uint32_t at_switch, uint32_t detour) const {
  return at_switch / shape_.routers == detour / shape_.routers;
}

void DragonflyRoutes::links_of(uint32_t at_switch, std::vector<Link>& out) const {
  const uint32_t own = at_switch / shape_.routers;
  for (uint32_t router = own * shape_.routers; router < (own + 1) * shape_.routers; ++router) {
    if (router != at_switch) out.push_back(local(at_switch, router));
  }
  for (uint32_t group = 0; group < shape_.groups; ++group) {
    for (uint32_t which = 0; group != own && which < links_per_pair_; ++which) {
      const Link link = towards(at_switch, group, which);
      if (link.to / shape_.routers == group) out.push_back(link);
    }
  }
}

}  // namespace spinloom::network
