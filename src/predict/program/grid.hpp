// Grid - ranks in a box of up to three dimensions, the last one fastest.
//
// Contract: shifted() gives the rank that lies `steps` further along each dimension, around the edges, and the edges
//   that were passed. grids_of() lists the boxes of a number of ranks, without dimensions of one rank: one dimension
//   first. larger_grid() is the box of more ranks whose dimensions have grown most alike.
// Threads: plain values. Time: none.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spinloom::predict {

struct Grid {
  static constexpr size_t dimensions_max = 3;
  using Steps = std::array<int8_t, dimensions_max>;
  using Coordinates = std::array<uint32_t, dimensions_max>;

  std::vector<uint32_t> dims;

  [[nodiscard]] uint32_t ranks() const;
  [[nodiscard]] Coordinates coordinates_of(uint32_t rank) const;
  [[nodiscard]] uint32_t rank_at(const Coordinates& coordinates) const;
  // The rank at which some Steps end.
  struct Shifted {
    uint32_t rank = 0;
    uint8_t crossed_edges = 0;  // a bit for each dimension whose edge was passed
  };
  [[nodiscard]] Shifted shifted(uint32_t rank, const Steps& steps) const;
  // Returns the Steps to all neighbours: at most one step along each dimension, including none.
  [[nodiscard]] std::vector<Steps> neighbour_steps() const;
  // Returns a digit for each dimension: 0 at its beginning, 1 within, 2 at its end.
  [[nodiscard]] uint32_t edge_class(uint32_t rank) const;
  // Returns the ranks that differ from `rank` in the dimensions of the mask only, ascending.
  [[nodiscard]] std::vector<uint32_t> slice(uint32_t rank, uint32_t mask) const;
  [[nodiscard]] std::string text() const;  // "4 x 8"
};

[[nodiscard]] std::vector<Grid> grids_of(uint32_t ranks);
[[nodiscard]] std::optional<Grid> larger_grid(const Grid& grid, uint32_t ranks);

}  // namespace spinloom::predict
