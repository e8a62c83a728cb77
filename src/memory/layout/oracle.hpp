// Oracle - the specification: the plain type map, walked primitive by primitive.
//
// Contract: the visitors walk the constructors as the MPI standard defines them, in type map order, and
//   share nothing with normalisation, blobs or walkers; every fast path is compared with them.
//   Displacements are bytes from the buffer address given to MPI; element k of a message lies k extents
//   further on.
// Invariants: (1) a visitor sees exactly count * size bytes, in packed order; (2) compare() looks at the
//   whole destination: covered bytes, gaps and guards.
// Threads: pure. Time: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "memory/layout/type.hpp"

namespace spinloom::layout::oracle {

// Calls visit(displacement, bytes) for each primitive of one element placed at `displacement`.
template <class Visit>
void for_each_primitive(const Type& type, int64_t displacement, Visit&& visit);
// Calls visit(displacement, bytes) for each primitive of `count` elements; the first is placed at displacement 0.
template <class Visit>
void for_each_primitive_of(const Type& type, int64_t count, Visit&& visit) {
  for (int64_t k = 0; k < count; ++k) for_each_primitive(type, k * type.extent(), visit);
}

// A contiguous run of bytes, after merging neighbours that are adjacent in type map order.
struct Block {
  int64_t offset = 0;
  int64_t bytes = 0;
};

template <class Visit>  // visit(const Block&)
void for_each_block(const Type& type, int64_t count, Visit&& visit);

struct BlockSummary {
  int64_t blocks = 0;
  int64_t bytes = 0;
  int64_t bytes_min = 0;  // bytes of the shortest block
  int64_t bytes_max = 0;
};
BlockSummary summarise(const Type& type, int64_t count);

// The result of cutting the packed stream every `packet_bytes`: `regions` counts the blocks, and once more each cut
// that falls inside a block.
struct Regions {
  int64_t regions = 0;
  int64_t packets = 0;
};
Regions regions_per_packet(const Type& type, int64_t count, int64_t packet_bytes);

// Checks that count elements fit: that count is not negative, that sizes and displacements fit in 64 bits, and that the
// message is no longer than oracle_bytes_max.
Status check_count(const Type& type, int64_t count);

// base is the buffer address given to MPI. out and in hold exactly count * size bytes.
Status pack(const Type& type, int64_t count, const std::byte* base, std::span<std::byte> out);
Status unpack(const Type& type, int64_t count, std::span<const std::byte> in, std::byte* base);

// The bytes that count elements may touch: [first, last), empty for an empty message.
struct Reach {
  int64_t first = 0;
  int64_t last = 0;
};
Reach reach(const Type& type, int64_t count);

// Compares a whole destination after a receive with what the type map demands.
//   packed: the message; destination: the memory with its guards; base: index in it of the buffer address;
//   before: the same memory before the receive. Code::mismatch names the first differing byte and whether
//   it belongs to a block (which one, which byte of it), a gap or a guard. Where a type overlaps itself the
//   last writer in packed order wins.
Status compare(const Type& type, int64_t count, std::span<const std::byte> packed,
               std::span<const std::byte> destination, int64_t base, std::span<const std::byte> before);
// Like compare(), but without a copy: `before` becomes the expected memory.
Status compare_over(const Type& type, int64_t count, std::span<const std::byte> packed,
                    std::span<const std::byte> destination, int64_t base, std::span<std::byte> before);

// Returns true if some byte is written twice: such a receive has no defined result in MPI. The answer is exact.
Result<bool> overlaps(const Type& type, int64_t count);

// ---- the walk ----

template <class Visit>
void for_each_distributed(const TypeNode& node, int64_t open_dimensions, int64_t at, Visit& visit);

template <class Visit>
void for_each_primitive(const Type& type, int64_t displacement, Visit&& visit) {
  const TypeNode& node = type.node();
  if (node.size == 0) return;
  const auto row = [&](const Type& child, int64_t at, int64_t length) {
    for (int64_t i = 0; i < length; ++i) for_each_primitive(child, at + i * child.extent(), visit);
  };
  switch (node.combiner) {
    case Combiner::primitive: visit(displacement, node.size); break;
    case Combiner::contiguous: row(node.children[0], displacement, node.count); break;
    case Combiner::vector:
    case Combiner::hvector: {
      const int64_t stride = node.combiner == Combiner::vector ? node.stride * node.children[0].extent() : node.stride;
      for (int64_t i = 0; i < node.count; ++i) {
        row(node.children[0], displacement + i * stride, node.block_length);
      }
      break;
    }
    case Combiner::indexed:
    case Combiner::hindexed:
    case Combiner::indexed_block:
    case Combiner::hindexed_block: {
      const bool in_extents = node.combiner == Combiner::indexed || node.combiner == Combiner::indexed_block;
      const int64_t unit = in_extents ? node.children[0].extent() : 1;
      for (int64_t i = 0; i < node.displacements.size(); ++i) {
        row(node.children[0], displacement + node.displacements[i] * unit,
            node.block_lengths.empty() ? node.block_length : node.block_lengths[static_cast<size_t>(i)]);
      }
      break;
    }
    case Combiner::structure:
      for (size_t i = 0; i < node.children.size(); ++i) {
        row(node.children[i], displacement + node.displacements[static_cast<int64_t>(i)], node.block_lengths[i]);
      }
      break;
    case Combiner::resized:
    case Combiner::dup: for_each_primitive(node.children[0], displacement, visit); break;
    case Combiner::subarray: {
      // Counts through the chosen part like an odometer, the fastest dimension first.
      const int64_t dimensions = node.sizes.size();
      std::vector<int64_t> index(static_cast<size_t>(dimensions), 0);
      for (;;) {
        int64_t element = 0;
        int64_t pitch = 1;
        for (int64_t step = 0; step < dimensions; ++step) {
          const int64_t d = node.order == Order::c ? dimensions - 1 - step : step;
          element += (node.starts[d] + index[static_cast<size_t>(d)]) * pitch;
          pitch *= node.sizes[d];
        }
        for_each_primitive(node.children[0], displacement + element * node.children[0].extent(), visit);
        int64_t step = 0;
        for (; step < dimensions; ++step) {
          const int64_t d = node.order == Order::c ? dimensions - 1 - step : step;
          if (++index[static_cast<size_t>(d)] < node.subsizes[d]) break;
          index[static_cast<size_t>(d)] = 0;
        }
        if (step == dimensions) return;
      }
    }
    case Combiner::darray: for_each_distributed(node, node.sizes.size(), displacement, visit); break;
  }
}

// Visits the elements of a darray whose `open_dimensions` slowest dimensions are still to be walked; `at` is the
// displacement that the other dimensions add up to.
template <class Visit>
void for_each_distributed(const TypeNode& node, int64_t open_dimensions, int64_t at, Visit& visit) {
  if (open_dimensions == 0) return for_each_primitive(node.children[0], at, visit);
  const int64_t dimensions = node.sizes.size();
  const auto dimension_at = [&](int64_t step) { return node.order == Order::c ? dimensions - 1 - step : step; };
  int64_t pitch = node.children[0].extent();
  for (int64_t step = 0; step < open_dimensions - 1; ++step) pitch *= node.sizes[dimension_at(step)];
  const int64_t d = dimension_at(open_dimensions - 1);
  const DarrayDimension& dimension = node.dimensions[static_cast<size_t>(d)];
  for (int64_t i = 0; i < node.sizes[d]; ++i) {
    if (i / dimension.block % dimension.processes == dimension.coordinate)
      for_each_distributed(node, open_dimensions - 1, at + i * pitch, visit);
  }
}

template <class Visit>
void for_each_block(const Type& type, int64_t count, Visit&& visit) {
  Block block;
  for_each_primitive_of(type, count, [&](int64_t offset, int64_t bytes) {
    if (block.bytes > 0 && block.offset + block.bytes == offset) {
      block.bytes += bytes;
      return;
    }
    if (block.bytes > 0) visit(block);
    block = {offset, bytes};
  });
  if (block.bytes > 0) visit(block);
}

}  // namespace spinloom::layout::oracle
