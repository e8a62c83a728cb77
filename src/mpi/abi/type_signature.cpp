// The basic types that a datatype is made of.
#include "mpi/abi/type_contents.hpp"
#include "mpi/abi/types.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

// Returns the one basic type that a type is made of; nothing if there are several or none.
std::optional<Datatype> element(Datatype type, int depth) {
  TypeContents contents;
  if (depth > type_depth_max || !contents.read(type)) return std::nullopt;
  if (contents.combiner == combiners.named || contents.is_f90()) return type;
  std::optional<Datatype> element_of_all;
  for (const Datatype child : contents.types) {
    const auto child_element = element(child, depth + 1);
    if (!child_element || (element_of_all && *element_of_all != *child_element)) return std::nullopt;
    element_of_all = child_element;
  }
  return element_of_all;
}

// Returns the basic types in their order: each constructor but a struct repeats its one child.
trace::Sequence sequence(Datatype type, int depth) {
  Count size = 0;
  if (depth > type_depth_max || real.Type_size_x(type, &size) != success || size < 0) return trace::Sequence::unknown();
  TypeContents contents;
  if (!contents.read(type)) return trace::Sequence::unknown();
  if (contents.combiner == combiners.named || contents.is_f90()) {
    // Names are at most 128 bytes long in every MPI so far; an MPI whose names are longer would not be one of these.
    char name[1024] = {};
    int length = 0;
    if (real.Type_get_name(type, name, &length) != success || length <= 0) return trace::Sequence::unknown();
    return trace::Sequence::basic({name, static_cast<size_t>(length)}, size);
  }
  if (contents.combiner == combiners.structure) {
    TypeArguments arguments(contents);
    const std::vector<int64_t> lengths = arguments.numbers(arguments.number());
    trace::Sequence parts;
    for (size_t i = 0; i < contents.types.size() && i < lengths.size(); ++i) {
      if (lengths[i] > 0) parts = parts + sequence(contents.types[i], depth + 1).repeated(lengths[i]);
    }
    return parts;
  }
  Count child_size = 0;
  if (contents.types.size() != 1 || real.Type_size_x(contents.types[0], &child_size) != success || child_size < 0) {
    return trace::Sequence::unknown();
  }
  return child_size == 0 ? trace::Sequence() : sequence(contents.types[0], depth + 1).repeated(size / child_size);
}

}  // namespace

std::optional<Datatype> element_of_type(Datatype type) { return element(type, 0); }
trace::Sequence sequence_of_type(Datatype type) { return sequence(type, 0); }

}  // namespace spinloom::mpi::SPINLOOM_ABI
