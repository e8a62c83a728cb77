// BridgeRoutes - who reaches whom directly in a job with gateways, and the way between two ranks that do not.
//
// Contract: direct() says whether two ranks reach each other: each has marked the other. path() is the way between two
//   ranks, both included; it goes through gateways only, is one of the shortest, and the same rule chooses it on every
//   rank. Where several gateways would do, pairs of ranks are spread over them. An empty path: there is no way. Of the
//   ranks that would forward, those count as gateways whose neighbours do not all reach each other.
// Invariants: (1) path(a, b) is path(b, a) backwards, so that both directions meet the same gateways; (2) the same
//   marks give the same paths on all ranks.
// Threads: one owner; paths are remembered. Time: the first path() of a pair looks at all pairs of gateways.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "nic/portals/ids.hpp"

namespace spinloom::live {

class BridgeRoutes {
 public:
  using Path = std::vector<uint32_t>;

  // marks[a][b]: rank a can send to rank b. gateways[a]: rank a would forward.
  BridgeRoutes(const std::vector<std::vector<bool>>& marks, const std::vector<bool>& gateways);

  [[nodiscard]] uint32_t ranks() const { return static_cast<uint32_t>(direct_.size()); }
  [[nodiscard]] bool direct(uint32_t a, uint32_t b) const { return (direct_[a][b / 64] >> b % 64 & 1) != 0; }
  [[nodiscard]] const std::vector<uint32_t>& gateways() const { return gateways_; }
  [[nodiscard]] bool is_gateway(uint32_t rank) const;
  [[nodiscard]] const Path& path(uint32_t a, uint32_t b) const;
  // The ranks before and behind `rank` on the way from `source` to `target`; nothing if it is not on that way, or at
  // that end of it.
  [[nodiscard]] std::optional<uint32_t> before(uint32_t rank, uint32_t source, uint32_t target) const;
  [[nodiscard]] std::optional<uint32_t> behind(uint32_t rank, uint32_t source, uint32_t target) const;
  // An Error that names two of the first `members` ranks between which there is no way.
  [[nodiscard]] Status check(uint32_t members) const;

 private:
  [[nodiscard]] Path search(uint32_t low, uint32_t high) const;
  [[nodiscard]] bool joins_others(uint32_t rank) const;

  std::vector<std::vector<uint64_t>> direct_;  // a bit for each pair
  std::vector<uint32_t> gateways_;
  mutable std::unordered_map<uint64_t, Path> known_;  // by both ranks; each way round
};

}  // namespace spinloom::live
