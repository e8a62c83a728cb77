// Finds out where the MPI takes the bytes of a datatype from, whatever it says of the type's bounds.
#include <algorithm>
#include <cstdint>
#include <memory>

#include "mpi/abi/layer.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

struct Bounds {
  Count size = 0;
  Count lb = 0, extent = 0;
  Count true_lb = 0, true_extent = 0;
};

std::optional<Bounds> bounds_of(Datatype type) {
  Bounds bounds;
  if (real.Type_size_x(type, &bounds.size) != success ||
      real.Type_get_extent_x(type, &bounds.lb, &bounds.extent) != success ||
      real.Type_get_true_extent_x(type, &bounds.true_lb, &bounds.true_extent) != success) {
    return std::nullopt;
  }
  return bounds;
}

// Returns the offset, in `span` bytes of memory, that each packed byte comes from; `origin` is the offset of the
// buffer. Packs memory that holds the numbers of its own bytes, one digit of them at a time.
std::vector<int64_t> offsets_of(Datatype type, int64_t size, int64_t span, int64_t origin) {
  std::vector<int64_t> offsets(static_cast<size_t>(size));
  std::vector<uint8_t> packed(offsets.size());
  const auto memory = std::make_unique_for_overwrite<uint8_t[]>(static_cast<size_t>(span));
  const auto buffer = reinterpret_cast<void*>(reinterpret_cast<intptr_t>(memory.get()) + origin);
  constexpr int digit_bits = 8;
  for (int shift = 0; (span - 1) >> shift != 0; shift += digit_bits) {
    for (int64_t i = 0; i < span; ++i) memory[static_cast<size_t>(i)] = static_cast<uint8_t>(i >> shift);
    int position = 0;
    const int code = real.Pack(buffer, 1, type, packed.data(), static_cast<int>(size), &position, layer.teams.comm());
    if (code != success || position != size) return {};
    for (size_t i = 0; i < offsets.size(); ++i) offsets[i] |= int64_t{packed[i]} << shift;
  }
  return offsets;
}

}  // namespace

std::optional<layout::Type> type_as_packed(Datatype type) {
  const auto bounds = bounds_of(type);
  if (!bounds || bounds->size <= 0) return std::nullopt;
  // The bounds that the MPI says may be wrong, but by no more than the largest of them.
  constexpr Count span_max = Count{256} << 20;
  constexpr Count least = 4096;
  const Count reach = std::max({bounds->true_extent, bounds->size, bounds->extent, -bounds->extent, least});
  if (bounds->true_extent < 0 || reach > span_max / 4) return std::nullopt;
  const Count span = 2 * reach + bounds->true_extent;
  const Count origin = reach - bounds->true_lb;
  const std::vector<int64_t> offsets = offsets_of(type, bounds->size, span, origin);
  std::vector<int64_t> displs;
  std::vector<int64_t> lengths;
  for (const int64_t offset : offsets) {
    const int64_t displ = offset - origin;
    if (!displs.empty() && displs.back() + lengths.back() == displ) {
      ++lengths.back();
    } else {
      displs.push_back(displ);
      lengths.push_back(1);
    }
  }
  const auto byte = layout::primitive("byte");
  if (displs.empty() || !byte) return std::nullopt;
  auto made = layout::hindexed(std::move(displs), std::move(lengths), *byte);
  if (made) made = layout::resized(bounds->lb, bounds->extent, *made);
  return made ? std::optional(std::move(*made)) : std::nullopt;
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
