#include "memory/layout/transfer.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/checked.hpp"
#include "memory/layout/copy.hpp"
#include "memory/layout/kernel.hpp"
#include "memory/layout/transfer_pair.hpp"
#include "memory/layout/width.hpp"

namespace spinloom::layout {
namespace {

// The size of the buffer between two sides that have no loop in common: it stays in the first-level cache.
constexpr int64_t stage_bytes = 16 << 10;

Status copy_staged(const Source& from, const Target& to, int64_t begin, int64_t end) {
  std::array<std::byte, stage_bytes> stage;
  for (int64_t first = begin; first < end; first += stage_bytes) {
    const int64_t last = std::min(end, first + stage_bytes);
    const std::span<std::byte> part(stage.data(), static_cast<size_t>(last - first));
    SPL_TRY(pack(from.blob, from.count, from.base, first, last, part));
    SPL_TRY(unpack(to.blob, to.count, to.base, first, last, part));
  }
  return {};
}

// Calls work(pair, to, target, from, source) with the roots of both sides and their places, and returns its answer:
// true if it has copied. False without a call if the sides have different counts.
template <class W, class Work>
bool with_pair(const KernelSet& set, const Source& from, const Target& to, const Work& work) {
  using P = BlobPair<W>;
  if (to.count != from.count) return false;
  return work(P(to.blob, from.blob, set), P::root(to.blob), to.base + to.blob.true_lb() + to.blob.header().origin,
              P::root(from.blob), from.base + from.blob.true_lb() + from.blob.header().origin);
}

// Copies element by element in one walk, where the nodes of both sides agree. False: they do not, and nothing has been
// done.
template <class W>
bool copy_together(const KernelSet& set, const Source& from, const Target& to) {
  return with_pair<W>(set, from, to,
                      [&](const auto& pair, const auto& a, std::byte* target, const auto& b, const std::byte* source) {
                        if (to.count == 1) {
                          if (pair.copy_grids(a, target, b, source)) return true;
                          if (!pair.can_copy(a, b)) return false;
                          pair.copy(a, target, b, source);
                          return true;
                        }
                        if (!pair.can_copy_repeated(a, to.blob.extent(), b)) return false;
                        pair.copy_repeated(a, target, to.blob.extent(), b, source, from.blob.extent(), to.count);
                        return true;
                      });
}

// Like copy_together(), but moves only the packed bytes [first, last).
template <class W>
bool copy_part_together(const KernelSet& set, const Source& from, const Target& to, int64_t first, int64_t last,
                        Status& status) {
  const auto rest = [&](int64_t begin, int64_t end) {
    if (status.ok()) status = copy_staged(from, to, begin, end);
  };
  return with_pair<W>(
      set, from, to, [&](const auto& pair, const auto& a, std::byte* target, const auto& b, const std::byte* source) {
        if (to.count == 1) {
          if (!pair.can_copy(a, b)) return false;
          pair.copy_part(a, target, b, source, 0, first, last, rest);
          return true;
        }
        if (!pair.can_copy_repeated(a, to.blob.extent(), b)) return false;
        pair.copy_rows(a, target, to.blob.extent(), b, source, from.blob.extent(), 0, first, last, rest);
        return true;
      });
}

// Copies in the commonest cases, which are tried first: one run to another, or one vector to another of the same
// blocks. False: nothing has been done.
template <class W>
bool copy_single(const KernelSet& set, const Source& from, const Target& to) {
  const auto& a = BlobPair<W>::root(to.blob);
  const auto& b = BlobPair<W>::root(from.blob);
  if (a.kind != SPL_LEAF_VECTOR || b.kind != SPL_LEAF_VECTOR || a.block != b.block) return false;
  const auto block = static_cast<int64_t>(a.block);
  std::byte* const target = to.base + to.blob.true_lb() + to.blob.header().origin;
  const std::byte* const source = from.base + from.blob.true_lb() + from.blob.header().origin;
  const auto count = static_cast<int64_t>(a.count);
  const auto size = static_cast<int64_t>(a.size);
  if (a.count == 1) {
    if (size >= stream_bytes_min) return false;
    std::memcpy(target, source, static_cast<size_t>(size));
  } else if (is_streamed(Mode::copy, target, block, size)) {
    set.stream_grid(target, source, {1, count, block, {0, a.stride}, {0, b.stride}});
  } else if (is_paced(Mode::copy, block, size, a.stride)) {
    set.paced_row(target, source, count, block, a.stride, b.stride);
  } else {
    set.row[static_cast<size_t>(Mode::copy)][block_class(block)](target, source, count, block, a.stride, b.stride);
  }
  return true;
}

template <class W>
bool is_one_run(const Blob& blob) {
  const auto& root = BlobPair<W>::root(blob);
  return root.kind == SPL_LEAF_VECTOR && root.count == 1;
}

bool is_contiguous(const Blob& blob, int64_t count) {
  return (blob.is_narrow() ? is_one_run<Narrow>(blob) : is_one_run<Wide>(blob)) &&
         (count == 1 || blob.extent() == blob.size());
}

// Returns the packed bytes of both sides; below zero where they differ, a count is negative, or 64 bits are too few.
int64_t common_bytes(const Source& from, const Target& to) {
  int64_t bytes = 0;
  int64_t to_bytes = 0;
  const bool fits = from.count >= 0 && to.count >= 0 && !__builtin_mul_overflow(from.count, from.blob.size(), &bytes) &&
                    !__builtin_mul_overflow(to.count, to.blob.size(), &to_bytes);
  return fits && bytes == to_bytes ? bytes : -1;
}

[[gnu::cold, gnu::noinline]] Status size_error(const Source& from, const Target& to) {
  if (from.count < 0 || to.count < 0) return fail(Code::invalid, "a copy of a negative count");
  SPL_ASSIGN(const int64_t total, checked::mul(from.count, from.blob.size()));
  SPL_ASSIGN(const int64_t to_bytes, checked::mul(to.count, to.blob.size()));
  return fail(Code::invalid, "a copy from ", total, " bytes to ", to_bytes, " bytes");
}

}  // namespace

Status copy(const Source& from, const Target& to) {
  const int64_t total = common_bytes(from, to);
  if (total < 0) return size_error(from, to);
  if (total == 0) return {};
  const KernelSet* const set = kernels_if_any();
  const bool are_single = set != nullptr && from.count == 1 && to.count == 1;
  const bool are_narrow = from.blob.is_narrow() && to.blob.is_narrow();
  if (are_single && are_narrow && copy_single<Narrow>(*set, from, to)) return {};
  const auto size = static_cast<size_t>(total);
  if (is_contiguous(from.blob, from.count)) {
    return unpack(to.blob, to.count, to.base, 0, total, {from.base + from.blob.true_lb(), size});
  }
  if (is_contiguous(to.blob, to.count)) {
    return pack(from.blob, from.count, from.base, 0, total, {to.base + to.blob.true_lb(), size});
  }
  if (set != nullptr && are_narrow && copy_together<Narrow>(*set, from, to)) return {};
  if (set != nullptr && !from.blob.is_narrow() && !to.blob.is_narrow() && copy_together<Wide>(*set, from, to))
    return {};
  return copy_staged(from, to, 0, total);
}

Status copy(const Source& from, const Target& to, int64_t first, int64_t last) {
  const int64_t total = common_bytes(from, to);
  if (total < 0) return size_error(from, to);
  if (first < 0 || first > last || last > total) {
    return fail(Code::invalid, "a copy of the bytes ", first, " to ", last, " of ", total);
  }
  if (first == last) return {};
  const auto size = static_cast<size_t>(last - first);
  if (is_contiguous(from.blob, from.count)) {
    return unpack(to.blob, to.count, to.base, first, last, {from.base + from.blob.true_lb() + first, size});
  }
  if (is_contiguous(to.blob, to.count)) {
    return pack(from.blob, from.count, from.base, first, last, {to.base + to.blob.true_lb() + first, size});
  }
  const KernelSet* const set = kernels_if_any();
  Status status;
  if (set != nullptr && from.blob.is_narrow() && to.blob.is_narrow() &&
      copy_part_together<Narrow>(*set, from, to, first, last, status)) {
    return status;
  }
  if (set != nullptr && !from.blob.is_narrow() && !to.blob.is_narrow() &&
      copy_part_together<Wide>(*set, from, to, first, last, status)) {
    return status;
  }
  return copy_staged(from, to, first, last);
}

}  // namespace spinloom::layout
