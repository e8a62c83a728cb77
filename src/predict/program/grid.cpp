#include "predict/program/grid.hpp"

#include <algorithm>
#include <functional>

namespace spinloom::predict {
namespace {

// Visits all ways to write a number as an ordered product of `factors` numbers, each behind `factors_so_far`.
void for_each_factorisation(uint32_t number, size_t factors, std::vector<uint32_t>& factors_so_far,
                            const std::function<void(const std::vector<uint32_t>&)>& visit) {
  if (factors == 1) {
    factors_so_far.push_back(number);
    visit(factors_so_far);
    factors_so_far.pop_back();
    return;
  }
  for (uint32_t factor = 1; factor <= number; ++factor) {
    if (number % factor != 0) continue;
    factors_so_far.push_back(factor);
    for_each_factorisation(number / factor, factors - 1, factors_so_far, visit);
    factors_so_far.pop_back();
  }
}

// The inequality of growth among dimensions: the largest of new / old over the smallest, as a fraction.
struct Spread {
  unsigned __int128 numerator = 1;
  unsigned __int128 denominator = 1;
  bool operator<(const Spread& other) const { return numerator * other.denominator < other.numerator * denominator; }
};

Spread spread_of(const std::vector<uint32_t>& before, const std::vector<uint32_t>& after) {
  const auto less = [&](size_t a, size_t b) { return uint64_t{after[a]} * before[b] < uint64_t{after[b]} * before[a]; };
  size_t least = 0;
  size_t most = 0;
  for (size_t i = 1; i < before.size(); ++i) {
    if (less(i, least)) least = i;
    if (less(most, i)) most = i;
  }
  return {uint64_t{after[most]} * before[least], uint64_t{after[least]} * before[most]};
}

}  // namespace

uint32_t Grid::ranks() const {
  uint32_t product = 1;
  for (const uint32_t size : dims) product *= size;
  return product;
}

Grid::Coordinates Grid::coordinates_of(uint32_t rank) const {
  Coordinates coordinates{};
  for (size_t i = dims.size(); i-- > 0;) {
    coordinates[i] = rank % dims[i];
    rank /= dims[i];
  }
  return coordinates;
}

uint32_t Grid::rank_at(const Coordinates& coordinates) const {
  uint32_t rank = 0;
  for (size_t i = 0; i < dims.size(); ++i) rank = rank * dims[i] + coordinates[i];
  return rank;
}

Grid::Shifted Grid::shifted(uint32_t rank, const Steps& steps) const {
  Coordinates coordinates = coordinates_of(rank);
  Shifted target;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t moved = int64_t{coordinates[i]} + steps[i];
    const bool crosses_edge = moved < 0 || moved >= dims[i];
    if (crosses_edge) target.crossed_edges |= static_cast<uint8_t>(1U << i);
    coordinates[i] = static_cast<uint32_t>((moved + dims[i]) % dims[i]);
  }
  target.rank = rank_at(coordinates);
  return target;
}

std::vector<Grid::Steps> Grid::neighbour_steps() const {
  std::vector<Steps> neighbours;
  uint32_t count = 1;
  for (size_t i = 0; i < dims.size(); ++i) count *= 3;
  for (uint32_t number = 0; number < count; ++number) {
    Steps steps{};
    uint32_t rest = number;
    for (size_t i = 0; i < dims.size(); ++i, rest /= 3) steps[i] = static_cast<int8_t>(rest % 3 == 2 ? -1 : rest % 3);
    neighbours.push_back(steps);
  }
  return neighbours;
}

uint32_t Grid::edge_class(uint32_t rank) const {
  const Coordinates coordinates = coordinates_of(rank);
  uint32_t digits = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    const uint32_t digit = coordinates[i] == 0 ? 0 : coordinates[i] + 1 == dims[i] ? 2 : 1;
    digits = digits * 3 + digit;
  }
  return digits;
}

std::vector<uint32_t> Grid::slice(uint32_t rank, uint32_t mask) const {
  const Coordinates own = coordinates_of(rank);
  std::vector<uint32_t> ranks_of_slice;
  const std::function<void(size_t, Coordinates)> visit = [&](size_t i, Coordinates coordinates) {
    if (i == dims.size()) {
      ranks_of_slice.push_back(rank_at(coordinates));
      return;
    }
    if ((mask >> i & 1) == 0) {
      coordinates[i] = own[i];
      visit(i + 1, coordinates);
      return;
    }
    for (coordinates[i] = 0; coordinates[i] < dims[i]; ++coordinates[i]) visit(i + 1, coordinates);
  };
  visit(0, {});
  return ranks_of_slice;
}

std::string Grid::text() const {
  std::string joined;
  for (const uint32_t size : dims) joined += (joined.empty() ? "" : " x ") + std::to_string(size);
  return joined;
}

std::vector<Grid> grids_of(uint32_t ranks) {
  std::vector<Grid> grids;
  for (size_t factors = 1; factors <= Grid::dimensions_max; ++factors) {
    std::vector<uint32_t> factors_so_far;
    for_each_factorisation(ranks, factors, factors_so_far, [&](const std::vector<uint32_t>& dims) {
      if (factors == 1 || std::ranges::find(dims, 1U) == dims.end()) grids.push_back({dims});
    });
  }
  return grids;
}

std::optional<Grid> larger_grid(const Grid& grid, uint32_t ranks) {
  std::optional<Grid> best;
  std::vector<uint32_t> factors_so_far;
  for_each_factorisation(ranks, grid.dims.size(), factors_so_far, [&](const std::vector<uint32_t>& dims) {
    for (size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] < grid.dims[i]) return;
    }
    if (!best || spread_of(grid.dims, dims) < spread_of(grid.dims, best->dims)) best = Grid{dims};
  });
  return best;
}

}  // namespace spinloom::predict
