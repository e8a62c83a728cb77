#include "simulated/network/network.hpp"

#include <algorithm>
#include <numeric>

#include "base/random.hpp"

namespace spinloom::network {
namespace {

template <class Routes, class Form>
Result<std::variant<FatTreeRoutes, DragonflyRoutes, TorusRoutes>> make_routes(const Form& topology, uint32_t hosts) {
  SPL_ASSIGN(Routes routes, Routes::make(topology, hosts));
  return std::variant<FatTreeRoutes, DragonflyRoutes, TorusRoutes>(std::move(routes));
}

struct RoutesMaker {
  uint32_t hosts;
  auto operator()(const FatTree& topology) const { return make_routes<FatTreeRoutes>(topology, hosts); }
  auto operator()(const Dragonfly& topology) const { return make_routes<DragonflyRoutes>(topology, hosts); }
  auto operator()(const Torus& topology) const { return make_routes<TorusRoutes>(topology, hosts); }
};

}  // namespace

Result<Network> Network::make(const Config& config, Rate G, uint32_t ranks, uint32_t planes) {
  SPL_ASSIGN(Routes routes, std::visit(RoutesMaker{ranks}, config.topology));
  const bool detours = config.routing == Routing::valiant || config.routing == Routing::ugal;
  if (detours && std::holds_alternative<FatTree>(config.topology)) {
    return fail(Code::unsupported,
                "a fat tree has minimal paths only, over all of its tops; choose fixed or adaptive routing");
  }
  Network network(std::move(routes), config, G, ranks);
  const uint64_t links = uint64_t{network.links()} * planes;
  if (links > links_max) {
    return fail(Code::exhausted, "a network of this form has ", links, " links for its ", planes,
                " NICs a rank, more than ", links_max, "; make it smaller");
  }
  network.free_ps_.resize(links);
  if (config.shuffle_seed.has_value()) {
    network.hosts_.resize(ranks);
    std::iota(network.hosts_.begin(), network.hosts_.end(), 0);
    Random random(*config.shuffle_seed, "network.hosts");
    random.shuffle(network.hosts_);
  }
  return network;
}

uint32_t Network::switches() const {
  return std::visit([](const auto& routes) { return routes.switches(); }, routes_);
}

uint32_t Network::links() const {
  return std::visit([](const auto& routes) { return routes.links(); }, routes_);
}

uint32_t Network::switch_of(uint32_t rank) const {
  return std::visit([&](const auto& routes) { return routes.switch_of(host_of(rank)); }, routes_);
}

uint32_t Network::hops(uint32_t from, uint32_t to) const {
  uint32_t count = 0;
  const uint32_t end = switch_of(to);
  for (uint32_t at_switch = switch_of(from); at_switch != end; ++count) at_switch = next(at_switch, to);
  return count;
}

uint32_t Network::next(uint32_t at_switch, uint32_t to) const { return fixed_link(at_switch, host_of(to)).to; }

Link Network::fixed_link(uint32_t at_switch, uint32_t host) const {
  return std::visit([&](const auto& routes) { return routes.next(at_switch, host); }, routes_);
}

uint32_t Network::host_of(uint32_t address) const {
  if (address < ranks_) return hosts_.empty() ? address : hosts_[address];
  const auto of_switch = [&](const auto& routes) -> uint32_t {
    if constexpr (requires { routes.host_of_switch(0); }) return routes.host_of_switch(address - ranks_);
    SPL_ASSERT(false, "switch ", address - ranks_, " of a fat tree");
    return 0;
  };
  return std::visit(of_switch, routes_);
}

uint32_t Network::heading(uint64_t now_ps, uint32_t at_switch, uint32_t to, uint32_t plane) {
  if (config_.routing != Routing::valiant && config_.routing != Routing::ugal) return to;
  const auto draw_detour = [&](const auto& routes) -> std::optional<uint32_t> {
    if constexpr (requires { routes.detour(0, 0, detours_); }) return routes.detour(at_switch, switch_of(to), detours_);
    return {};
  };
  const std::optional<uint32_t> detour = std::visit(draw_detour, routes_);
  if (!detour.has_value()) return to;
  const uint32_t detour_address = ranks_ + *detour;
  if (config_.routing == Routing::valiant) return detour_address;
  const auto wait_ps = [&](uint32_t address) {
    const uint64_t free_ps = free_ps_[size_t{plane} * links() + fixed_link(at_switch, host_of(address)).number];
    return free_ps - std::min(free_ps, now_ps);
  };
  return wait_ps(to) > 2 * wait_ps(detour_address) ? detour_address : to;
}

bool Network::turns(uint32_t at_switch, uint32_t heading) const {
  if (heading < ranks_) return false;
  const auto here = [&](const auto& routes) {
    if constexpr (requires { routes.turns(0, 0); }) return routes.turns(at_switch, heading - ranks_);
    return false;
  };
  return std::visit(here, routes_);
}

std::optional<Link> Network::link_between(uint32_t at_switch, uint32_t neighbour) const {
  std::vector<Link> links;
  std::visit([&](const auto& routes) { routes.links_of(at_switch, links); }, routes_);
  const auto found = std::ranges::find(links, neighbour, &Link::to);
  return found == links.end() ? std::nullopt : std::optional(*found);
}

Network::Move Network::move(uint64_t now_ps, uint32_t at_switch, uint32_t to, uint64_t bytes, uint32_t plane) {
  const uint64_t* const free_ps = free_ps_.data() + size_t{plane} * links();
  const uint32_t host = host_of(to);
  Link link{};
  if (config_.routing != Routing::adaptive) {
    link = fixed_link(at_switch, host);
  } else {
    choices_.clear();
    std::visit([&](const auto& routes) { routes.choices(at_switch, host, choices_); }, routes_);
    link = *std::ranges::min_element(choices_, {},
                                     [&](const Link& choice) { return std::max(now_ps, free_ps[choice.number]); });
  }
  return cross(now_ps, link, bytes, plane);
}

Network::Move Network::cross(uint64_t now_ps, const Link& link, uint64_t bytes, uint32_t plane) {
  uint64_t& free_ps = free_ps_[size_t{plane} * links() + link.number];
  const uint64_t begin_ps = std::max(now_ps, free_ps);
  free_ps = begin_ps + static_cast<uint64_t>(G_.ps_down(bytes));
  return {begin_ps + config_.hop_ps, link.to, link.number, begin_ps};
}

}  // namespace spinloom::network
