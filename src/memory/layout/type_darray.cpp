// The distributed array (MPI_Type_create_darray).
#include "memory/layout/type_build.hpp"

namespace spinloom::layout {
namespace {

// The elements of one dimension that a process owns.
struct OwnedElements {
  int64_t count = 0;
  int64_t first = 0;
  int64_t last = 0;
};

OwnedElements owned_elements(const DarrayDimension& dimension, int64_t size) {
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
Result<int64_t> block_of(const DarrayDimension& dimension, int64_t size, int64_t d) {
  const int64_t argument = dimension.argument;
  if (argument != darray_default && argument < 1) {
    return fail(Code::invalid, "darray dimension ", d, ": the distribution's argument is ", argument,
                ", it must be at least 1 or default");
  }
  switch (dimension.distribution) {
    case Distribution::none:
      if (dimension.processes != 1) {
        return fail(Code::invalid, "darray dimension ", d, " is not distributed (none) and has ", dimension.processes,
                    " processes; it must have 1");
      }
      return size;
    case Distribution::cyclic: return argument == darray_default ? 1 : argument;
    case Distribution::block: break;
  }
  // One round must hold the whole dimension: shorter blocks would leave elements without an owner.
  const int64_t needed = (size - 1) / dimension.processes + 1;
  if (argument == darray_default) return needed;
  if (argument < needed) {
    return fail(Code::invalid, "darray dimension ", d, ": blocks of ", argument, " for ", dimension.processes,
                " processes hold less than ", size, " elements; they need at least ", needed);
  }
  return argument;
}

Status check_counts(const DarrayArguments& arguments) {
  const int64_t dimensions = arguments.sizes.size();
  if (dimensions < 1 || static_cast<int64_t>(arguments.distributions.size()) != dimensions ||
      static_cast<int64_t>(arguments.distribution_arguments.size()) != dimensions ||
      arguments.grid.size() != dimensions) {
    return fail(Code::invalid, "a darray with ", dimensions, " sizes, ", arguments.distributions.size(),
                " distributions, ", arguments.distribution_arguments.size(), " arguments and a grid of ",
                arguments.grid.size(), ": there must be as many of each, at least one");
  }
  int64_t product = 1;
  for (int64_t d = 0; d < dimensions; ++d) {
    if (arguments.sizes[d] < 1 || arguments.grid[d] < 1) {
      return fail(Code::invalid, "darray dimension ", d, ": size ", arguments.sizes[d], ", ", arguments.grid[d],
                  " processes; both must be at least 1");
    }
    SPL_ASSIGN(product, checked::mul(product, arguments.grid[d]));
  }
  if (product != arguments.processes) {
    return fail(Code::invalid, "a darray of ", arguments.processes, " processes on a grid of ", product);
  }
  if (arguments.rank < 0 || arguments.rank >= arguments.processes) {
    return fail(Code::invalid, "darray rank ", arguments.rank, " of ", arguments.processes, " processes");
  }
  return {};
}

}  // namespace

Result<Type> darray(const DarrayArguments& arguments, const Type& child) {
  SPL_TRY(check_counts(arguments));
  const int64_t dimensions = arguments.sizes.size();
  TypeNode node;
  node.combiner = Combiner::darray;
  node.order = arguments.order;
  node.processes = arguments.processes;
  node.rank = arguments.rank;
  SPL_TRY(set_children(node, {child}, 3 * dimensions));
  node.dimensions.resize(static_cast<size_t>(dimensions));
  int64_t rank_rest = arguments.rank;  // the last dimension of the grid is the fastest, whatever the order of the array
  for (int64_t d = dimensions - 1; d >= 0; --d) {
    DarrayDimension& dimension = node.dimensions[static_cast<size_t>(d)];
    dimension.distribution = arguments.distributions[static_cast<size_t>(d)];
    dimension.argument = arguments.distribution_arguments[static_cast<size_t>(d)];
    dimension.processes = arguments.grid[d];
    dimension.coordinate = rank_rest % arguments.grid[d];
    rank_rest /= arguments.grid[d];
    SPL_ASSIGN(dimension.block, block_of(dimension, arguments.sizes[d], d));
    // The results of coordinate * block and block * processes must be exact.
    SPL_ASSIGN([[maybe_unused]] const int64_t round, checked::mul(dimension.block, dimension.processes));
  }
  node.size = child.size();
  Rectangle part;
  for (int64_t step = 0; step < dimensions; ++step) {  // the fastest dimension is first, the slowest last
    const int64_t d = arguments.order == Order::c ? dimensions - 1 - step : step;
    const OwnedElements owned = owned_elements(node.dimensions[static_cast<size_t>(d)], arguments.sizes[d]);
    SPL_TRY(part.add(node, arguments.sizes[d], owned.count, owned.first, owned.last));
  }
  SPL_TRY(part.finish(node, child));
  node.sizes = arguments.sizes;
  return Type(std::make_shared<const TypeNode>(std::move(node)));
}

}  // namespace spinloom::layout
