#include "mpi/abi/types.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "mpi/abi/layer.hpp"
#include "mpi/abi/type_contents.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

using layout::Type;

std::optional<Type> value_of(Result<Type> result) {
  if (!result) return std::nullopt;
  return std::move(*result);
}

// Returns a type of our own in place of a basic type of the same size: only the bytes matter. Nothing for pairs with
// gaps and for sizes that we have no type of.
std::optional<Type> basic(Datatype type) {
  Count size = 0;
  Count lb = 0;
  Count extent = 0;
  if (real.Type_size_x(type, &size) != success || real.Type_get_extent_x(type, &lb, &extent) != success) return {};
  if (size != extent || lb != 0) return std::nullopt;  // a pair with a gap
  switch (size) {
    case 1: return value_of(layout::primitive("byte"));
    case 2: return value_of(layout::primitive("int16_t"));
    case 4: return value_of(layout::primitive("int32_t"));
    case 8: return value_of(layout::primitive("int64_t"));
    case 16: return value_of(layout::primitive("double_complex"));
    default: return std::nullopt;
  }
}

std::optional<Type> decode_darray(TypeArguments& arguments, const Type& child) {
  layout::DarrayArguments darray;
  darray.processes = arguments.plain();
  darray.rank = arguments.plain();
  const int64_t dimensions = arguments.plain();
  darray.sizes = arguments.numbers(dimensions);
  for (int64_t i = 0; i < dimensions; ++i) {
    const int64_t distribution = arguments.plain();
    darray.distributions.push_back(distribution == combiners.distribute_block    ? layout::Distribution::block
                                   : distribution == combiners.distribute_cyclic ? layout::Distribution::cyclic
                                                                                 : layout::Distribution::none);
  }
  for (int64_t i = 0; i < dimensions; ++i) {
    const int64_t argument = arguments.plain();
    darray.distribution_arguments.push_back(argument == combiners.distribute_default ? layout::darray_default
                                                                                     : argument);
  }
  darray.grid = arguments.plains(dimensions);
  darray.order = arguments.plain() == combiners.order_c ? layout::Order::c : layout::Order::fortran;
  return value_of(layout::darray(darray, child));
}

std::optional<Type> build(const TypeContents& contents, const std::vector<Type>& children) {
  TypeArguments arguments(contents);
  const int combiner = contents.combiner;
  if (children.empty() && combiner != combiners.structure) return std::nullopt;
  const auto& child = children.empty() ? Type(nullptr) : children[0];
  if (combiner == combiners.dup) return value_of(layout::dup(child));
  if (combiner == combiners.contiguous) return value_of(layout::contiguous(arguments.number(), child));
  if (combiner == combiners.vector || combiner == combiners.hvector) {
    const int64_t count = arguments.number();
    const int64_t length = arguments.number();
    if (combiner == combiners.vector) return value_of(layout::vector(count, length, arguments.number(), child));
    return value_of(layout::hvector(count, length, arguments.displacement(), child));
  }
  if (combiner == combiners.indexed || combiner == combiners.hindexed) {
    const int64_t count = arguments.number();
    std::vector<int64_t> lengths = arguments.numbers(count);
    if (combiner == combiners.indexed)
      return value_of(layout::indexed(arguments.numbers(count), std::move(lengths), child));
    return value_of(layout::hindexed(arguments.displacements(count), std::move(lengths), child));
  }
  if (combiner == combiners.indexed_block || combiner == combiners.hindexed_block) {
    const int64_t count = arguments.number();
    const int64_t length = arguments.number();
    if (combiner == combiners.indexed_block)
      return value_of(layout::indexed_block(length, arguments.numbers(count), child));
    return value_of(layout::hindexed_block(length, arguments.displacements(count), child));
  }
  if (combiner == combiners.structure) {
    const int64_t count = arguments.number();
    std::vector<int64_t> lengths = arguments.numbers(count);
    return value_of(layout::structure(arguments.displacements(count), std::move(lengths), children));
  }
  if (combiner == combiners.subarray) {
    const int64_t dimensions = arguments.plain();
    const std::vector<int64_t> sizes = arguments.numbers(dimensions);
    const std::vector<int64_t> subsizes = arguments.numbers(dimensions);
    const std::vector<int64_t> starts = arguments.numbers(dimensions);
    const layout::Order order = arguments.plain() == combiners.order_c ? layout::Order::c : layout::Order::fortran;
    return value_of(layout::subarray(sizes, subsizes, starts, order, child));
  }
  if (combiner == combiners.darray) return decode_darray(arguments, child);
  if (combiner == combiners.resized) {
    const int64_t lb = arguments.displacement();
    return value_of(layout::resized(lb, arguments.displacement(), child));
  }
  return std::nullopt;
}

// Returns `made`, with the MPI's bounds where the MPI pads a struct. Nothing where the size or the true bounds differ.
std::optional<Type> with_bounds_of_mpi(Type made, Datatype type) {
  Count size = 0;
  Count lb = 0;
  Count extent = 0;
  Count true_lb = 0;
  Count true_extent = 0;
  if (real.Type_size_x(type, &size) != success || real.Type_get_extent_x(type, &lb, &extent) != success ||
      real.Type_get_true_extent_x(type, &true_lb, &true_extent) != success) {
    return std::nullopt;
  }
  if (size != made.size()) return std::nullopt;
  if (size > 0 && (true_lb != made.true_lb() || true_extent != made.true_extent())) return std::nullopt;
  if (lb == made.lb() && extent == made.extent()) return made;
  return value_of(layout::resized(lb, extent, made));
}

// Returns any basic type by the bytes that belong to it. One whose extent is larger than its size is a pair with a gap:
// something, and an int.
std::optional<Type> any_basic(Datatype type) {
  if (auto made = basic(type)) return made;
  Count size = 0;
  Count lb = 0;
  Count extent = 0;
  if (real.Type_size_x(type, &size) != success || real.Type_get_extent_x(type, &lb, &extent) != success) return {};
  const auto byte = layout::primitive("byte");
  const auto integer = layout::primitive("int32_t");
  constexpr Count integer_bytes = sizeof(int);
  if (!byte || !integer || size <= 0 || lb != 0) return std::nullopt;
  if (size == extent || size <= integer_bytes) return value_of(layout::contiguous(size, *byte));
  const Count first = size - integer_bytes;
  const Count second = (first + integer_bytes - 1) / integer_bytes * integer_bytes;
  auto pair = layout::structure(std::vector<int64_t>{0, second}, std::vector<int64_t>{first, 1}, {*byte, *integer});
  return pair ? with_bounds_of_mpi(std::move(*pair), type) : std::nullopt;
}

using BasicType = std::optional<Type>(Datatype);

std::optional<Type> decode(Datatype type, int depth, BasicType* basic_type = &basic) {
  if (depth > type_depth_max) return std::nullopt;
  TypeContents contents;
  if (!contents.read(type)) return std::nullopt;
  if (contents.combiner == combiners.named || contents.is_f90()) return basic_type(type);
  std::vector<Type> children;
  for (const Datatype child : contents.types) {
    auto made = decode(child, depth + 1, basic_type);
    if (!made) return std::nullopt;
    children.push_back(std::move(*made));
  }
  auto made = build(contents, children);
  if (!made) return std::nullopt;
  return with_bounds_of_mpi(std::move(*made), type);
}

int forget_type(Datatype type, int, void*, void*) {
  layer.types.forget(type);
  return success;
}

int copies_no_type(Datatype, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return success;
}

FormPointer make(Datatype type, bool& is_basic) {
  Count size = 0;
  Count lb = 0;
  Count extent = 0;
  is_basic = TypeContents::is_basic(type);
  if (real.Type_size_x(type, &size) != success || real.Type_get_extent_x(type, &lb, &extent) != success) {
    return unknown_form(0);
  }
  if (is_basic) return basic_form(size, lb == 0 ? extent : -1);
  try {
    if (const auto made = decode(type, 0)) {
      FormPointer form = make_form(*made);
      if (layer.tally && form->is_known) form->tally = layer.tally->tally_of(*made, *form);
      return form;
    }
  } catch (const std::exception&) {  // lists that are shorter than the standard says, no memory
  }
  return unknown_form(size);
}

// Sets the entry under which the report counts messages of a type that is not known, is contiguous, or has no entry of
// its own.
void find_tally(const Form& form) {
  if (!layer.tally) return;
  if (!form.is_known) {
    form.tally = layer.tally->unknown();
  } else if (form.tally == nullptr || form.is_contiguous(2)) {
    form.tally = layer.tally->contiguous();
  }
}

}  // namespace

bool is_basic_type(Datatype type) { return TypeContents::is_basic(type); }
std::optional<Type> decode_type(Datatype type) { return decode(type, 0); }
std::optional<Type> decode_whole_type(Datatype type) { return decode(type, 0, &any_basic); }

bool Types::begin() { return real.Type_create_keyval(&copies_no_type, &forget_type, &keyval_, nullptr) == success; }

void Types::note_bypass(Datatype type, const Form& form) {
  if (layer.is_threaded || layer.tally || is_bypass_disabled_) return;
  constexpr int64_t all = INT64_MAX;
  // The least count of which a message has `bytes` bytes.
  const auto count_of = [&form](int64_t bytes) {
    return form.size <= 0 ? all : bytes / form.size + (bytes % form.size != 0 ? 1 : 0);
  };
  Bypass& entry = bypass(type);
  entry = {key_of(type), all, all, 1};
  if (layer.is_on) {
    entry.sends = count_of(layer.settings.min_bytes);
    entry.receives = count_of(Record::least);
    if (!layer.settings.offers_contiguous()) entry.sends = std::max(entry.sends, form.contiguous_below());
  }
  entry.packs = !form.is_known || form.size <= 0 || layer.settings.path == Path::pass ? all : form.contiguous_below();
}

void Types::disable_bypass() {
  if (is_bypass_disabled_) return;
  is_bypass_disabled_ = true;
  // Among threads it is empty, and is read without the lock.
  if (!layer.is_threaded) bypass_ = {};
}

void Types::drop_attribute(Datatype type) {
  if (freed_.any()) take_freed();
  // Basic types, and types that are not known, do not have the attribute: to delete it would be an error.
  if (forms_.find(key_of(type)) != nullptr && !TypeContents::is_basic(type)) real.Type_delete_attr(type, keyval_);
}

void Types::take_freed() {
  ++changes_;
  last_key_ = no_key;
  layer.spare_requests.clear();  // they keep forms of freed types
  freed_.take_each([this](uint64_t key) {
    forms_.erase(key);
    tried_.erase(key);
  });
}

const FormPointer& Types::find(Datatype type) {
  static const FormPointer unusable = unknown_form(0);
  // A question about MPI_DATATYPE_NULL would raise an error in the MPI; programs may name it if they send nothing.
  if (type == handles().type_null) return unusable;
  if (freed_.any()) take_freed();
  const uint64_t key = key_of(type);
  const FormPointer* found = forms_.find(key);
  if (found == nullptr) {
    bool is_basic = false;
    FormPointer made = make(type, is_basic);
    find_tally(*made);
    // Basic types are never freed. Without the attribute the handle must not be remembered.
    if (!is_basic && real.Type_set_attr(type, keyval_, nullptr) != success) return unusable;
    found = &forms_.put(key, std::move(made));
  }
  last_key_ = key;
  last_ = found;
  note_bypass(type, **found);
  return *found;
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
