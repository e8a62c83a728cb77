#include "mpi/messages/message.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>

#include "memory/layout/blocks.hpp"
#include "memory/layout/copy.hpp"
#include "memory/layout/oracle.hpp"
#include "mpi/messages/record.hpp"

namespace spinloom::mpi {
namespace {

struct EndFound {
  int64_t bytes;
};

// Returns the first number of packed bytes, from Record::least on, at which a basic element ends; 0 if that is beyond
// Record::most, or if the type has no bytes.
int64_t first_end(const layout::Type& type) {
  int64_t bytes = 0;
  if (type.size() <= 0) return 0;
  const int64_t elements = Record::least / type.size() + 1;
  try {
    layout::oracle::for_each_primitive_of(type, elements, [&](int64_t, int64_t length) {
      bytes += length;
      if (bytes >= Record::least) throw EndFound{bytes};
    });
  } catch (const EndFound& end) {
    return end.bytes <= Record::most ? end.bytes : 0;
  }
  return 0;
}

// True if an element is one run. Blocks that fill their true extent need not follow each other: they may step back.
bool is_one_run(const layout::Blob& blob) {
  if (blob.size() == 0 || blob.root_kind() != SPL_LEAF_VECTOR || blob.true_extent() != blob.size()) return false;
  int64_t first_bytes = 0;
  const auto look = [&first_bytes](const layout::Piece& block) {
    first_bytes = block.bytes;
    return false;
  };
  return layout::for_each_block(blob, 1, look).ok() && first_bytes == blob.size();
}

}  // namespace

namespace {

struct Density {
  double spread;
  double jumps;
  double block_bytes;
};

// Returns the number of lines that the blocks touch in packed order, divided by the number that their bytes fill; the
// share of the touched lines that a prefetcher does not expect; and the blocks' mean length. A line that two blocks
// touch one after the other counts once. Large types are judged by their beginning.
Density density_of(const layout::Blob& blob) {
  constexpr int64_t line_bytes = 64;
  constexpr int64_t step_lines = 2;  // prefetchers keep up with such steps forwards
  constexpr int64_t bytes_min = 4'096;
  constexpr int64_t blocks_max = 256;
  int64_t lines = 0;
  int64_t jumps = 0;
  int64_t bytes = 0;
  int64_t blocks = 0;
  int64_t last = INT64_MIN / 2;
  const auto count = [&](const layout::Piece& block) {
    const int64_t first = block.offset >> 6;
    const int64_t end = (block.offset + block.bytes - 1) >> 6;
    lines += end - first + (first == last ? 0 : 1);
    jumps += first >= last && first - last <= step_lines ? 0 : 1;
    last = end;
    bytes += block.bytes;
    return ++blocks < blocks_max;
  };
  const int64_t elements = blob.size() == 0 ? 0 : std::max<int64_t>(1, bytes_min / blob.size());
  if (!layout::for_each_block(blob, elements, count).ok() || bytes == 0) return {line_bytes, 1, 1};
  return {static_cast<double>(lines * line_bytes) / static_cast<double>(bytes),
          static_cast<double>(jumps) / static_cast<double>(lines),
          static_cast<double>(bytes) / static_cast<double>(blocks)};
}

uint64_t next_number() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

}  // namespace

FormPointer basic_form(int64_t size, int64_t extent) {
  auto form = std::make_shared<Form>();
  form->is_known = size == extent;
  form->size = size;
  form->extent = extent;
  form->true_extent = size;
  const int64_t record = size <= 0 ? 0 : (Record::least + size - 1) / size * size;
  if (form->is_known && record <= Record::most) form->record_bytes = record;
  return form;
}

FormPointer unknown_form(int64_t size) {
  auto form = std::make_shared<Form>();
  form->is_known = false;
  form->is_one_run = false;
  form->size = size;
  return form;
}

FormPointer make_form(const layout::Type& type) {
  auto committed = layout::Committed::commit(type);
  if (!committed) return unknown_form(type.size());
  auto form = std::make_shared<Form>();
  form->size = type.size();
  form->extent = type.extent();
  form->true_lb = type.true_lb();
  form->true_extent = type.true_extent();
  form->is_one_run = is_one_run(committed->blob());
  form->record_bytes = first_end(type);
  form->layout = std::move(*committed);
  const Density density = density_of(form->layout->blob());
  form->spread = density.spread;
  form->jumps = density.jumps;
  form->block_bytes = density.block_bytes;
  form->number = next_number();
  return form;
}

bool Message::reach(const std::byte*& first, int64_t& bytes) const {
  if (count_ <= 0) return false;
  const int64_t lb = form_.true_lb;
  int64_t steps = 0;
  if (__builtin_mul_overflow(count_ - 1, form_.extent, &steps)) return false;
  int64_t low = 0;
  int64_t high = 0;
  if (__builtin_add_overflow(lb, std::min<int64_t>(steps, 0), &low) ||
      __builtin_add_overflow(lb + form_.true_extent, std::max<int64_t>(steps, 0), &high)) {
    return false;
  }
  first = base_ + low;
  bytes = high - low;
  return bytes > 0;
}

void Message::pack(Range range, uint8_t* to) const {
  const auto bytes = static_cast<size_t>(range.last - range.first);
  if (form_.is_contiguous(count_)) {
    std::memcpy(to, base_ + form_.true_lb + range.first, bytes);
    return;
  }
  auto* const packed = reinterpret_cast<std::byte*>(to);
  const layout::Blob& blob = form_.layout->blob();
  if (range.first == 0 && range.last == this->bytes() && layout::pack_at_once(blob, count_, base_, packed)) return;
  const Status done = layout::pack(blob, count_, base_, range.first, range.last, {packed, bytes});
  SPL_ASSERT(done.ok(), done.error().message);
}

void Message::unpack(Range range, const uint8_t* from) const {
  const auto bytes = static_cast<size_t>(range.last - range.first);
  if (form_.is_contiguous(count_)) {
    std::memcpy(base_ + form_.true_lb + range.first, from, bytes);
    return;
  }
  const auto* const packed = reinterpret_cast<const std::byte*>(from);
  const layout::Blob& blob = form_.layout->blob();
  if (range.first == 0 && range.last == this->bytes() && layout::unpack_at_once(blob, count_, base_, packed)) return;
  const Status done = layout::unpack(blob, count_, base_, range.first, range.last, {packed, bytes});
  SPL_ASSERT(done.ok(), done.error().message);
}

}  // namespace spinloom::mpi
