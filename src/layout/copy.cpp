#include "layout/copy.hpp"

#include <algorithm>
#include <cstring>

#include "base/checked.hpp"

namespace spinloom::layout {
namespace {

// Pieces of a few words are the common case, and a library call costs more than they do: two words that may overlap
// cover every length between one word and two.
template <class Word>
void copy_words(std::byte* to, const std::byte* from, uint64_t bytes) {
  Word head;
  Word tail;
  std::memcpy(&head, from, sizeof head);
  std::memcpy(&tail, from + bytes - sizeof tail, sizeof tail);
  std::memcpy(to, &head, sizeof head);
  std::memcpy(to + bytes - sizeof tail, &tail, sizeof tail);
}

struct TwoWords {
  uint64_t words[2];
};

void copy_piece(std::byte* to, const std::byte* from, uint64_t bytes) {
  if (bytes > 32) {
    std::memcpy(to, from, bytes);
  } else if (bytes > 16) {
    copy_words<TwoWords>(to, from, bytes);
  } else if (bytes >= 8) {
    copy_words<uint64_t>(to, from, bytes);
  } else if (bytes >= 4) {
    copy_words<uint32_t>(to, from, bytes);
  } else {
    for (uint64_t at = 0; at < bytes; ++at) to[at] = from[at];
  }
}

struct Gather {
  const std::byte* memory;
  std::byte* packed;
  void copy(int64_t offset, uint64_t at, uint64_t bytes) const { copy_piece(packed + at, memory + offset, bytes); }
};

struct Scatter {
  std::byte* memory;
  const std::byte* packed;
  void copy(int64_t offset, uint64_t at, uint64_t bytes) const { copy_piece(memory + offset, packed + at, bytes); }
};

template <class Job>
void emit_narrow(void* context, int32_t offset, uint32_t packed, uint32_t bytes) {
  static_cast<const Job*>(context)->copy(offset, packed, bytes);
}

template <class Job>
void emit_wide(void* context, int64_t offset, uint64_t packed, uint64_t bytes) {
  static_cast<const Job*>(context)->copy(offset, packed, bytes);
}

Status check(const Blob& blob, int64_t count, int64_t first, int64_t last, size_t packed_bytes) {
  if (count < 0) return fail(Code::invalid, "count is ", count, ", it must not be negative");
  SPL_ASSIGN(const int64_t total, checked::mul(count, blob.size()));
  if (first < 0 || first > last || last > total) {
    return fail(Code::invalid, "packed bytes ", first, " to ", last, " of a message of ", total, " bytes");
  }
  if (packed_bytes != static_cast<uint64_t>(last - first)) {
    return fail(Code::invalid, "a packed buffer of ", packed_bytes, " bytes for ", last - first, " bytes");
  }
  return {};
}

// A narrow blob reaches only so many elements in 32 bits; the rest is walked from moved bases.
int64_t stretch_elements(const Blob& blob) {
  constexpr int64_t room = int64_t{1} << 30;
  const int64_t step = std::max(blob.size(), std::max(blob.extent(), -blob.extent()));
  const int64_t span = std::max(blob.size(), blob.true_extent());
  if (span > room || step == 0) return 1;
  return std::max<int64_t>(1, (room - 1) / step);
}

template <class Job>
void walk(const Blob& blob, Job job, int64_t first, int64_t last) {
  if (first == last) return;
  job.memory += blob.true_lb();
  if (!blob.narrow()) {
    spl_walk_wide(blob.data(), static_cast<uint64_t>(first), static_cast<uint64_t>(last - first), emit_wide<Job>, &job);
    return;
  }
  const int64_t stretch = stretch_elements(blob);
  while (first < last) {
    const int64_t element = first / blob.size();
    const int64_t start = element * blob.size();
    const int64_t bytes = std::min(last - first, stretch * blob.size() - (first - start));
    Job part = job;
    part.memory += element * blob.extent();
    spl_walk_narrow(blob.data(), static_cast<uint32_t>(first - start), static_cast<uint32_t>(bytes), emit_narrow<Job>,
                    &part);
    job.packed += bytes;
    first += bytes;
  }
}

}  // namespace

Status pack(const Blob& blob, int64_t count, const std::byte* base, int64_t first, int64_t last,
            std::span<std::byte> packed) {
  SPL_TRY(check(blob, count, first, last, packed.size()));
  walk(blob, Gather{base, packed.data()}, first, last);
  return {};
}

Status unpack(const Blob& blob, int64_t count, std::byte* base, int64_t first, int64_t last,
              std::span<const std::byte> packed) {
  SPL_TRY(check(blob, count, first, last, packed.size()));
  walk(blob, Scatter{base, packed.data()}, first, last);
  return {};
}

}  // namespace spinloom::layout
