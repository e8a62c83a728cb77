#include "memory/layout/copy_walker.hpp"

#include <algorithm>
#include <cstring>

namespace spinloom::layout {
namespace {

struct Gather {
  std::byte* memory;
  std::byte* packed;
  void copy(int64_t offset, uint64_t at, uint64_t bytes) const { std::memcpy(packed + at, memory + offset, bytes); }
};

struct Scatter {
  std::byte* memory;
  std::byte* packed;
  void copy(int64_t offset, uint64_t at, uint64_t bytes) const { std::memcpy(memory + offset, packed + at, bytes); }
};

template <class Job>
void emit_narrow(void* context, int32_t offset, uint32_t packed, uint32_t bytes) {
  static_cast<const Job*>(context)->copy(offset, packed, bytes);
}

template <class Job>
void emit_wide(void* context, int64_t offset, uint64_t packed, uint64_t bytes) {
  static_cast<const Job*>(context)->copy(offset, packed, bytes);
}

// Returns the number of elements that a narrow blob reaches in 32 bits; the others are walked from moved bases.
int64_t stretch_elements(const Blob& blob) {
  constexpr int64_t room = int64_t{1} << 30;
  const int64_t step = std::max(blob.size(), std::max(blob.extent(), -blob.extent()));
  const int64_t span = std::max(blob.size(), blob.true_extent());
  if (span > room || step == 0) return 1;
  return std::max<int64_t>(1, (room - 1) / step);
}

template <class Job>
void walk_job(const Blob& blob, Job job, int64_t first, int64_t last) {
  if (first == last) return;
  if (!blob.is_narrow()) {
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

void walk(const Blob& blob, bool is_pack, std::byte* memory, std::byte* packed, int64_t first, int64_t last) {
  if (is_pack) {
    walk_job(blob, Gather{memory, packed}, first, last);
  } else {
    walk_job(blob, Scatter{memory, packed}, first, last);
  }
}

}  // namespace spinloom::layout
