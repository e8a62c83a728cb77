#include "simulated/network/dragonfly.hpp"

#include <algorithm>

namespace spinloom::network {

Result<DragonflyRoutes> DragonflyRoutes::make(const Dragonfly& dragonfly, uint32_t hosts) {
  const auto& [each, routers, globals, groups] = dragonfly;
  constexpr uint32_t most = 1 << 16;
  if (each == 0 || routers == 0 || globals == 0 || std::max({each, routers, globals, groups}) > most) {
    return fail(Code::invalid, "a dragonfly has 1 to ", most, " hosts, routers, globals and groups, not ", each, ", ",
                routers, ", ", globals, " and ", groups);
  }
  DragonflyRoutes routes;
  routes.is_ = dragonfly;
  const uint64_t in_group = uint64_t{each} * routers;
  const uint64_t ports = uint64_t{routers} * globals;
  if (groups == 0) {
    const uint64_t needed = std::max<uint64_t>((hosts + in_group - 1) / in_group, 2);
    routes.is_.groups = static_cast<uint32_t>(std::min<uint64_t>(needed, ports + 1));
  }
  if (routes.is_.groups - 1 > ports) {
    return fail(Code::invalid, "a dragonfly of ", routers, " routers with ", globals, " globals each has links to ",
                ports, " other groups, and there are ", groups, " groups; give it more globals or routers");
  }
  if (in_group * routes.is_.groups < hosts) {
    return fail(Code::invalid, "a dragonfly of ", routes.is_.groups, " groups with ", in_group, " hosts each has ",
                in_group * routes.is_.groups, " hosts, and there are ", hosts,
                " ranks; give it more groups, routers, globals or hosts");
  }
  const uint64_t links = uint64_t{routes.is_.groups} * routers * (uint64_t{routers} + globals);
  if (links > UINT32_MAX) return fail(Code::invalid, "a dragonfly of this size has more than 2^32 links");
  routes.each_ = routes.is_.groups == 1 ? 0 : static_cast<uint32_t>(ports / (routes.is_.groups - 1));
  return routes;
}

Link DragonflyRoutes::towards(uint32_t at, uint32_t group, uint32_t which) const {
  const uint32_t own = at / is_.routers;
  const uint32_t others = is_.groups - 1;
  const uint32_t further = (group + others - own) % is_.groups;  // one less than the distance to the group
  const uint32_t port = which * others + further;
  const uint32_t router = own * is_.routers + port / is_.globals;
  if (router != at) return local(at, router);
  const uint32_t back = which * others + (others - 1 - further);
  return {at * (is_.routers + is_.globals) + is_.routers + port % is_.globals,
          group * is_.routers + back / is_.globals};
}

Link DragonflyRoutes::next(uint32_t at, uint32_t destination) const {
  const uint32_t to = switch_of(destination);
  const uint32_t group = to / is_.routers;
  if (group == at / is_.routers) return local(at, to);
  return towards(at, group, destination % each_);
}

// Gives the links to the group if this router has some, else the links to routers that have some.
void DragonflyRoutes::choices(uint32_t at, uint32_t destination, std::vector<Link>& out) const {
  const uint32_t to = switch_of(destination);
  const uint32_t group = to / is_.routers;
  if (group == at / is_.routers) {
    out.push_back(local(at, to));
    return;
  }
  const size_t first = out.size();
  bool leaves = false;
  for (uint32_t which = 0; which < each_; ++which) {
    const Link link = towards(at, group, which);
    const bool is_global = link.to / is_.routers == group;
    if (is_global && !leaves) out.resize(first);
    leaves |= is_global;
    if (is_global == leaves) out.push_back(link);
  }
}

// Draws a detour over another group; the link by which the packet enters the group decides which of its routers it
// meets.
std::optional<uint32_t> DragonflyRoutes::detour(uint32_t at, uint32_t to, Random& random) const {
  const uint32_t own = at / is_.routers;
  const uint32_t end = to / is_.routers;
  if (own == end || is_.groups < 3) return {};
  auto group = static_cast<uint32_t>(random.below(is_.groups - 2));
  if (group >= std::min(own, end)) ++group;
  if (group >= std::max(own, end)) ++group;
  return group * is_.routers + static_cast<uint32_t>(random.below(is_.routers));
}

bool DragonflyRoutes::turns(uint32_t at, uint32_t detour) const { return at / is_.routers == detour / is_.routers; }

void DragonflyRoutes::links_of(uint32_t at, std::vector<Link>& out) const {
  const uint32_t own = at / is_.routers;
  for (uint32_t router = own * is_.routers; router < (own + 1) * is_.routers; ++router) {
    if (router != at) out.push_back(local(at, router));
  }
  for (uint32_t group = 0; group < is_.groups; ++group) {
    for (uint32_t which = 0; group != own && which < each_; ++which) {
      const Link link = towards(at, group, which);
      if (link.to / is_.routers == group) out.push_back(link);
    }
  }
}

}  // namespace spinloom::network
