// BridgeRoutes - direct connections in a job with gateways, and paths between ranks that have none.
//
// Contract: direct() is true if two ranks reach each other, which each has marked of the other. path() lists the ranks
//   between two ranks, including both ends. All ranks between the ends are gateways, no path is shorter, and every rank
//   computes the same path. Where several gateways would do, pairs of ranks are spread over them. The path is empty if
//   there is none, and for one rank twice. A rank that offers to forward counts as a gateway only if some two of its
//   neighbours do not reach each other.
// Invariants: (1) path(a, b) is the reverse of path(b, a), so both directions use the same gateways; (2) the same marks
//   give the same paths on all ranks.
// Threads: one owner; paths are cached. Time: the first path() of a pair looks at all pairs of gateways.
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

  // marks[a][b]: rank a can send to rank b. gateways[a]: rank a offers to forward.
  BridgeRoutes(const std::vector<std::vector<bool>>& marks, const std::vector<bool>& gateways);

  [[nodiscard]] uint32_t ranks() const { return static_cast<uint32_t>(direct_.size()); }
  [[nodiscard]] bool direct(uint32_t a, uint32_t b) const { return (direct_[a][b / 64] >> b % 64 & 1) != 0; }
  [[nodiscard]] const std::vector<uint32_t>& gateways() const { return gateways_; }
  [[nodiscard]] bool is_gateway(uint32_t rank) const;
  [[nodiscard]] const Path& path(uint32_t a, uint32_t b) const;
  // The ranks before and after `rank` on the path from `source` to `target`. Nothing if `rank` is not on the path, or
  // is that end of it.
  [[nodiscard]] std::optional<uint32_t> previous_hop(uint32_t rank, uint32_t source, uint32_t target) const;
  [[nodiscard]] std::optional<uint32_t> next_hop(uint32_t rank, uint32_t source, uint32_t target) const;
  // Returns an Error that names two of the first `program_count` ranks between which there is no path.
  [[nodiscard]] Status check(uint32_t program_count) const;

 private:
  [[nodiscard]] Path search(uint32_t low, uint32_t high) const;
  [[nodiscard]] bool joins_others(uint32_t rank) const;

  std::vector<std::vector<uint64_t>> direct_;  // one bit for each pair of ranks
  std::vector<uint32_t> gateways_;
  // The key has both ranks; each direction has an entry of its own.
  mutable std::unordered_map<uint64_t, Path> cached_paths_;
};

}  // namespace spinloom::live
