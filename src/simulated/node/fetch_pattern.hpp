// FetchPattern - classifies fetched lines by how early a processor can ask for them.
//
// Contract: classify() takes the fetches of one direction (lines read, lines written) in order.
//   streamed: the next line, one whose neighbour below is in the cache, or the same stride again, short enough for a
//     prefetcher (stride_bytes_max);
//   strided: the same longer stride again, or again the last step that did not go to the next line. The addresses are
//     known early, and as many fetches are in flight as the core can hold;
//   scattered: all others; pages change as well.
//   Steps are the same if they differ by at most one line.
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace spinloom::simulated {

enum class FetchKind : uint8_t { streamed, strided, scattered };

class FetchPattern {
 public:
  explicit FetchPattern(int64_t line_bytes) : stride_lines_max_(stride_bytes_max / line_bytes) {}

  FetchKind classify(uint64_t line, bool holds_neighbour) {
    const auto step = static_cast<int64_t>(line - last_line_);
    const bool repeats_step = is_same_stride(step, last_step_);
    const bool repeats_jump = is_same_stride(step, last_jump_);
    last_line_ = line;
    last_step_ = step;
    if (step != 1) last_jump_ = step;
    if (step == 1 || (repeats_step && std::abs(step) <= stride_lines_max_)) return FetchKind::streamed;
    if (repeats_step || repeats_jump) return FetchKind::strided;
    return holds_neighbour ? FetchKind::streamed : FetchKind::scattered;
  }

 private:
  // True if two steps belong to the same stride: a stride in bytes need not be a whole number of lines.
  static bool is_same_stride(int64_t step, int64_t other) { return std::abs(step - other) <= 1; }

  // Strides that prefetchers follow (Intel 64 and IA-32 architectures optimization manual: "up to 2K bytes").
  static constexpr int64_t stride_bytes_max = 2048;

  int64_t stride_lines_max_;
  // The line of the last fetch. The first value is far from every line, and differences with it do not overflow.
  uint64_t last_line_ = uint64_t{1} << 60;
  int64_t last_step_ = 0;                // the step between the last two fetches
  int64_t last_jump_ = 0;                // the last step that did not go to the next line
};

}  // namespace spinloom::simulated
