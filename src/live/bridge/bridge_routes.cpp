#include "live/bridge/bridge_routes.hpp"

#include <algorithm>

namespace spinloom::live {
namespace {

// A hash of a pair of ranks, which spreads pairs over gateways.
uint64_t spread(uint32_t low, uint32_t high) {
  uint64_t mixed = (uint64_t{low} << 32 | high) * 0x9e3779b97f4a7c15u;
  mixed = (mixed ^ mixed >> 32) * 0xbf58476d1ce4e5b9u;
  return mixed ^ mixed >> 29;
}

}  // namespace

BridgeRoutes::BridgeRoutes(const std::vector<std::vector<bool>>& marks, const std::vector<bool>& gateways)
    : direct_(marks.size(), std::vector<uint64_t>((marks.size() + 63) / 64)) {
  for (uint32_t a = 0; a < marks.size(); ++a) {
    for (uint32_t b = 0; b < marks.size(); ++b) {
      if (a != b && marks[a][b] && marks[b][a]) direct_[a][b / 64] |= uint64_t{1} << b % 64;
    }
  }
  for (uint32_t rank = 0; rank < gateways.size(); ++rank) {
    if (gateways[rank] && joins_others(rank)) gateways_.push_back(rank);
  }
}

// True if two neighbours of this rank do not reach each other.
bool BridgeRoutes::joins_others(uint32_t rank) const {
  for (uint32_t near = 0; near < ranks(); ++near) {
    if (!direct(rank, near)) continue;
    for (size_t word = 0; word < direct_[rank].size(); ++word) {
      const uint64_t itself = near / 64 == word ? uint64_t{1} << near % 64 : 0;
      if ((direct_[rank][word] & ~direct_[near][word] & ~itself) != 0) return true;
    }
  }
  return false;
}

bool BridgeRoutes::is_gateway(uint32_t rank) const {
  return std::binary_search(gateways_.begin(), gateways_.end(), rank);
}

const BridgeRoutes::Path& BridgeRoutes::path(uint32_t a, uint32_t b) const {
  const auto [found, is_new] = cached_paths_.try_emplace(uint64_t{a} << 32 | b);
  Path& path = found->second;
  if (!is_new || a == b) return path;
  path = search(std::min(a, b), std::max(a, b));
  if (a > b) std::reverse(path.begin(), path.end());
  return path;
}

// Finds each gateway's distance from `high`, then goes from `low` to a nearer gateway in each step.
BridgeRoutes::Path BridgeRoutes::search(uint32_t low, uint32_t high) const {
  if (direct(low, high)) return {low, high};
  constexpr uint32_t unknown = UINT32_MAX;
  std::vector<uint32_t> distance(gateways_.size(), unknown);
  std::vector<uint32_t> front{high};
  uint32_t steps = 0;
  bool reached = false;
  while (!front.empty() && !reached) {
    ++steps;
    std::vector<uint32_t> next;
    for (size_t i = 0; i < gateways_.size(); ++i) {
      const uint32_t gateway = gateways_[i];
      const bool near = distance[i] == unknown && gateway != high && gateway != low &&
                        std::any_of(front.begin(), front.end(), [&](uint32_t one) { return direct(one, gateway); });
      if (!near) continue;
      distance[i] = steps;
      next.push_back(gateway);
    }
    reached = std::any_of(next.begin(), next.end(), [&](uint32_t one) { return direct(one, low); });
    front = std::move(next);
  }
  if (!reached) return {};
  Path path{low};
  for (; steps > 0; --steps) {
    std::vector<uint32_t> candidates;
    for (size_t i = 0; i < gateways_.size(); ++i) {
      if (distance[i] == steps && direct(path.back(), gateways_[i])) candidates.push_back(gateways_[i]);
    }
    path.push_back(candidates[spread(low, high) % candidates.size()]);
  }
  path.push_back(high);
  return path;
}

std::optional<uint32_t> BridgeRoutes::next_hop(uint32_t rank, uint32_t source, uint32_t target) const {
  const Path& hops = path(source, target);
  const auto found = std::find(hops.begin(), hops.end(), rank);
  if (found == hops.end() || found + 1 == hops.end()) return std::nullopt;
  return *(found + 1);
}

std::optional<uint32_t> BridgeRoutes::previous_hop(uint32_t rank, uint32_t source, uint32_t target) const {
  return next_hop(rank, target, source);
}

Status BridgeRoutes::check(uint32_t program_count) const {
  for (uint32_t a = 0; a < program_count; ++a) {
    for (uint32_t b = a + 1; b < program_count; ++b) {
      if (direct(a, b) || !search(a, b).empty()) continue;  // search() does not cache: there may be very many pairs
      return fail(Code::environment, "rank ", a, " and rank ", b,
                  " do not reach each other: they share no network, and no gateway joins theirs");
    }
  }
  return {};
}

}  // namespace spinloom::live
