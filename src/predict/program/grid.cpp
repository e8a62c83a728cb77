#include "predict/program/grid.hpp"

#include <algorithm>
#include <functional>

namespace spinloom::predict {
namespace {

// All ways to write a number as an ordered product of `factors` numbers.
void products(uint32_t number, size_t factors, std::vector<uint32_t>& begun,
              const std::function<void(const std::vector<uint32_t>&)>& visit) {
  if (factors == 1) {
    begun.push_back(number);
    visit(begun);
    begun.pop_back();
    return;
  }
  for (uint32_t factor = 1; factor <= number; ++factor) {
    if (number % factor != 0) continue;
    begun.push_back(factor);
    products(number / factor, factors - 1, begun, visit);
    begun.pop_back();
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

Grid::Place Grid::place_of(uint32_t rank) const {
  Place place{};
  for (size_t i = dims.size(); i-- > 0;) {
    place[i] = rank % dims[i];
    rank /= dims[i];
  }
  return place;
}

uint32_t Grid::rank_at(const Place& place) const {
  uint32_t rank = 0;
  for (size_t i = 0; i < dims.size(); ++i) rank = rank * dims[i] + place[i];
  return rank;
}

Grid::Shifted Grid::shifted(uint32_t rank, const Steps& steps) const {
  Place place = place_of(rank);
  Shifted found;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t moved = int64_t{place[i]} + steps[i];
    const bool passes = moved < 0 || moved >= dims[i];
    if (passes) found.edges |= static_cast<uint8_t>(1U << i);
    place[i] = static_cast<uint32_t>((moved + dims[i]) % dims[i]);
  }
  found.rank = rank_at(place);
  return found;
}

std::vector<Grid::Steps> Grid::neighbours() const {
  std::vector<Steps> found;
  uint32_t all = 1;
  for (size_t i = 0; i < dims.size(); ++i) all *= 3;
  for (uint32_t number = 0; number < all; ++number) {
    Steps steps{};
    uint32_t rest = number;
    for (size_t i = 0; i < dims.size(); ++i, rest /= 3) steps[i] = static_cast<int8_t>(rest % 3 == 2 ? -1 : rest % 3);
    found.push_back(steps);
  }
  return found;
}

uint32_t Grid::edge_class(uint32_t rank) const {
  const Place place = place_of(rank);
  uint32_t found = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    const uint32_t one = place[i] == 0 ? 0 : place[i] + 1 == dims[i] ? 2 : 1;
    found = found * 3 + one;
  }
  return found;
}

std::vector<uint32_t> Grid::slice(uint32_t rank, uint32_t mask) const {
  const Place own = place_of(rank);
  std::vector<uint32_t> found;
  const std::function<void(size_t, Place)> visit = [&](size_t i, Place place) {
    if (i == dims.size()) {
      found.push_back(rank_at(place));
      return;
    }
    if ((mask >> i & 1) == 0) {
      place[i] = own[i];
      visit(i + 1, place);
      return;
    }
    for (place[i] = 0; place[i] < dims[i]; ++place[i]) visit(i + 1, place);
  };
  visit(0, {});
  return found;
}

std::string Grid::text() const {
  std::string said;
  for (const uint32_t size : dims) said += (said.empty() ? "" : " x ") + std::to_string(size);
  return said;
}

std::vector<Grid> grids_of(uint32_t ranks) {
  std::vector<Grid> found;
  for (size_t factors = 1; factors <= Grid::dimensions_most; ++factors) {
    std::vector<uint32_t> begun;
    products(ranks, factors, begun, [&](const std::vector<uint32_t>& dims) {
      if (factors == 1 || std::ranges::find(dims, 1U) == dims.end()) found.push_back({dims});
    });
  }
  return found;
}

std::optional<Grid> grown(const Grid& grid, uint32_t ranks) {
  std::optional<Grid> best;
  std::vector<uint32_t> begun;
  products(ranks, grid.dims.size(), begun, [&](const std::vector<uint32_t>& dims) {
    for (size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] < grid.dims[i]) return;
    }
    if (!best || spread_of(grid.dims, dims) < spread_of(grid.dims, best->dims)) best = Grid{dims};
  });
  return best;
}

}  // namespace spinloom::predict
