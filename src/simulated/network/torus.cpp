#include "simulated/network/torus.hpp"

namespace spinloom::network {

Result<TorusRoutes> TorusRoutes::make(const Torus& torus, uint32_t hosts) {
  constexpr size_t dimensions_max = 8;
  if (torus.sizes.empty() || torus.sizes.size() > dimensions_max) {
    return fail(Code::invalid, "a torus has 1 to ", dimensions_max, " dimensions, and ", torus.sizes.size(),
                " are given, as in torus:8x8x8");
  }
  if (torus.hosts == 0) return fail(Code::invalid, "a switch of a torus has at least 1 host");
  uint64_t switches = 1;
  std::string sizes;
  for (const uint32_t size : torus.sizes) {
    if (size == 0) return fail(Code::invalid, "each dimension of a torus has at least 1 switch");
    switches *= size;
    sizes += text(sizes.empty() ? "" : "x", size);
    if (switches > UINT32_MAX / (2 * dimensions_max)) {
      return fail(Code::invalid, "a torus has at most ", UINT32_MAX / (2 * dimensions_max), " switches");
    }
  }
  if (switches * torus.hosts < hosts) {
    return fail(Code::invalid, "a torus of ", sizes, " with ", torus.hosts, " at each switch has ",
                switches * torus.hosts, " hosts, and there are ", hosts, " ranks; make it larger");
  }
  TorusRoutes routes;
  routes.torus_ = torus;
  routes.switches_ = static_cast<uint32_t>(switches);
  return routes;
}

template <class Visit>
void TorusRoutes::for_each_minimal_link(uint32_t at_switch, uint32_t destination, Visit&& visit) const {
  const uint32_t goal = switch_of(destination);
  uint32_t stride = 1;
  for (uint32_t dimension = 0; dimension < torus_.sizes.size(); ++dimension) {
    const uint32_t size = torus_.sizes[dimension];
    const uint32_t here = at_switch / stride % size;
    const uint32_t up = (goal / stride % size + size - here) % size;  // steps upwards to the goal
    const uint32_t first = (at_switch * static_cast<uint32_t>(torus_.sizes.size()) + dimension) * 2;
    const uint32_t row = at_switch - here * stride;
    if (up != 0 && up <= size - up && !visit(Link{first, row + (here + 1) % size * stride})) return;
    if (up != 0 && size - up <= up && !visit(Link{first + 1, row + (here + size - 1) % size * stride})) return;
    stride *= size;
  }
}

Link TorusRoutes::next(uint32_t at_switch, uint32_t destination) const {
  Link first{};
  for_each_minimal_link(at_switch, destination, [&](const Link& link) {
    first = link;
    return false;
  });
  return first;
}

void TorusRoutes::choices(uint32_t at_switch, uint32_t destination, std::vector<Link>& out) const {
  for_each_minimal_link(at_switch, destination, [&](const Link& link) {
    out.push_back(link);
    return true;
  });
}

std::optional<uint32_t> TorusRoutes::detour(uint32_t at_switch, uint32_t to, Random& random) const {
  const auto over = static_cast<uint32_t>(random.below(switches_));
  if (over == at_switch || over == to) return {};
  return over;
}

bool TorusRoutes::turns(uint32_t at_switch, uint32_t detour) const { return at_switch == detour; }

void TorusRoutes::links_of(uint32_t at_switch, std::vector<Link>& out) const {
  uint32_t stride = 1;
  uint32_t number = at_switch * static_cast<uint32_t>(torus_.sizes.size()) * 2;
  for (const uint32_t size : torus_.sizes) {
    const uint32_t here = at_switch / stride % size;
    const uint32_t row = at_switch - here * stride;
    if (size > 1) {
      out.push_back({number, row + (here + 1) % size * stride});
      out.push_back({number + 1, row + (here + size - 1) % size * stride});
    }
    number += 2;
    stride *= size;
  }
}

}  // namespace spinloom::network
