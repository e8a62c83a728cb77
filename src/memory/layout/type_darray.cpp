// The distributed array (MPI_Type_create_darray).
#include "memory/layout/type_build.hpp"

namespace spinloom::layout {
namespace {

// The elements of one dimension that a process owns.
struct Owned {
  int64_t count = 0;
  int64_t first = 0;
  int64_t last = 0;
};

Owned owned_of(const DarrayDimension& dimension, int64_t size) {
  const int64_t block = dimension.block;
  const int64_t start = dimension.coordinate * block;
  if (start >= size) return {};
  const int64_t round = block * dimension.processes;
  const int64_t rounds = (size - start - 1) / round;  // whole rounds before the one of the last block
  const int64_t last_start = start + rounds * round;
  const int64_t last_length = std::min(block, size - last_start);
  return {rounds * block + last_length, start, last_start + last_length - 1};
}

// Returns the block length that the argument stands for (MPI standard, distributed array datatype constructor).
Result<int64_t> block_of(const DarrayDimension& given, int64_t size, int64_t d) {
  const int64_t argument = given.argument;
  if (argument != darray_default && argument < 1) {
    return fail(Code::invalid, "darray dimension ", d, ": the distribution's argument is ", argument,
                ", it must be at least 1 or default");
  }
  switch (given.distribution) {
    case Distribution::none:
      if (given.processes != 1) {
        return fail(Code::invalid, "darray dimension ", d, " is not distributed (none) and has ", given.processes,
                    " processes; it must have 1");
      }
      return size;
    case Distribution::cyclic: return argument == darray_default ? 1 : argument;
    case Distribution::block: break;
  }
  // One round must hold the whole dimension: shorter blocks would leave elements without an owner.
  const int64_t needed = (size - 1) / given.processes + 1;
  if (argument == darray_default) return needed;
  if (argument < needed) {
    return fail(Code::invalid, "darray dimension ", d, ": blocks of ", argument, " for ", given.processes,
                " processes hold less than ", size, " elements; they need at least ", needed);
  }
  return argument;
}

Status check_counts(const DarrayArguments& given) {
  const int64_t dimensions = given.sizes.size();
  if (dimensions < 1 || static_cast<int64_t>(given.distributions.size()) != dimensions ||
      static_cast<int64_t>(given.arguments.size()) != dimensions || given.grid.size() != dimensions) {
    return fail(Code::invalid, "a darray with ", dimensions, " sizes, ", given.distributions.size(), " distributions, ",
                given.arguments.size(), " arguments and a grid of ", given.grid.size(),
                ": there must be as many of each, at least one");
  }
  int64_t product = 1;
  for (int64_t d = 0; d < dimensions; ++d) {
    if (given.sizes[d] < 1 || given.grid[d] < 1) {
      return fail(Code::invalid, "darray dimension ", d, ": size ", given.sizes[d], ", ", given.grid[d],
                  " processes; both must be at least 1");
    }
    SPL_ASSIGN(product, checked::mul(product, given.grid[d]));
  }
  if (product != given.processes) {
    return fail(Code::invalid, "a darray of ", given.processes, " processes on a grid of ", product);
  }
  if (given.rank < 0 || given.rank >= given.processes) {
    return fail(Code::invalid, "darray rank ", given.rank, " of ", given.processes, " processes");
  }
  return {};
}

}  // namespace

Result<Type> darray(const DarrayArguments& given, const Type& child) {
  SPL_TRY(check_counts(given));
  const int64_t dimensions = given.sizes.size();
  TypeNode node;
  node.combiner = Combiner::darray;
  node.order = given.order;
  node.processes = given.processes;
  node.rank = given.rank;
  SPL_TRY(adopt(node, {child}, 3 * dimensions));
  node.dimensions.resize(static_cast<size_t>(dimensions));
  int64_t below = given.rank;  // the last dimension of the grid is the fastest, whatever the order of the array
  for (int64_t d = dimensions - 1; d >= 0; --d) {
    DarrayDimension& dimension = node.dimensions[static_cast<size_t>(d)];
    dimension.distribution = given.distributions[static_cast<size_t>(d)];
    dimension.argument = given.arguments[static_cast<size_t>(d)];
    dimension.processes = given.grid[d];
    dimension.coordinate = below % given.grid[d];
    below /= given.grid[d];
    SPL_ASSIGN(dimension.block, block_of(dimension, given.sizes[d], d));
    // The results of coordinate * block and block * processes must be exact.
    SPL_ASSIGN([[maybe_unused]] const int64_t round, checked::mul(dimension.block, dimension.processes));
  }
  node.size = child.size();
  Rectangle part;
  for (int64_t step = 0; step < dimensions; ++step) {  // from the fastest dimension to the slowest
    const int64_t d = given.order == Order::c ? dimensions - 1 - step : step;
    const Owned owned = owned_of(node.dimensions[static_cast<size_t>(d)], given.sizes[d]);
    SPL_TRY(part.add(node, given.sizes[d], owned.count, owned.first, owned.last));
  }
  SPL_TRY(part.finish(node, child));
  node.sizes = given.sizes;
  return Type(std::make_shared<const TypeNode>(std::move(node)));
}

}  // namespace spinloom::layout
