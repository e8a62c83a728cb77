// The host's cost of a block: the numbers behind host.*_cycles of the NIC profiles.
//
// Method: MPITypes' memory-to-memory copy (mpitypes) and our copy path (best) unpack n blocks of b bytes with warm data
// (the whole working set in the first-level cache): a vector at stride 2 b, and a list of the same blocks in
// shuffled order. A segment (segment) walks the same blocks without copying, as checkpoints are built. The median time
// of a block is printed, in ns and in cycles at the profile's clock. Cold lines are priced separately by the host
// model, so the warm cost is the cost of finding and copying a block. Host time, not modelled time.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <vector>

#include "base/random.hpp"
#include "memory/layout/copy.hpp"
#include "portals/strategies/pieces.hpp"
#include "portals/strategies/unpack.hpp"

namespace {

using namespace spinloom;

constexpr double profile_clock_ghz = 3.4;
constexpr int repetitions = 1001;
constexpr int runs_per_sample = 16;

layout::Type vector_of(int64_t blocks, int64_t block_bytes) {
  return layout::hvector(blocks, block_bytes, 2 * block_bytes, layout::primitive("byte").value()).value();
}

layout::Type list_of(int64_t blocks, int64_t block_bytes) {
  std::vector<int64_t> displacements(static_cast<size_t>(blocks));
  for (size_t i = 0; i < displacements.size(); ++i) displacements[i] = static_cast<int64_t>(i) * 2 * block_bytes;
  Random(1).shuffle(displacements);
  return layout::hindexed_block(block_bytes, displacements, layout::primitive("byte").value()).value();
}

double median_ns_per_block(int64_t blocks, const std::function<void()>& run) {
  std::vector<double> times;
  for (int i = 0; i < repetitions; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    for (int j = 0; j < runs_per_sample; ++j) run();
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - begin;
    times.push_back(spent.count() / runs_per_sample / static_cast<double>(blocks));
  }
  std::nth_element(times.begin(), times.begin() + repetitions / 2, times.end());
  return times[repetitions / 2];
}

void print_row(const char* shape, const layout::Type& type, int64_t blocks, int64_t block_bytes) {
  const strategies::Message message = strategies::make_message(type, 1).value();
  const std::vector<uint8_t> packed(static_cast<size_t>(message.bytes), 1);
  std::vector<uint8_t> array(static_cast<size_t>(2 * message.bytes));
  const auto keep_result = [&] { asm volatile("" ::"r"(array.data()) : "memory"); };
  const double mpitypes = median_ns_per_block(blocks, [&] {
    strategies::unpack(message, packed.data(), array.data());
    keep_result();
  });
  const double best = median_ns_per_block(blocks, [&] {
    const Status done = layout::unpack(message.blob, 1, reinterpret_cast<std::byte*>(array.data()), 0, message.bytes,
                                       std::as_bytes(std::span(packed)));
    if (!done) std::printf("%s\n", done.error().message.c_str());
    keep_result();
  });
  const double segment = median_ns_per_block(blocks, [&] {
    uint64_t sum = 0;
    strategies::for_each_piece(message.blob, message.bytes, [&](int64_t offset, uint64_t at, uint64_t bytes) {
      sum += static_cast<uint64_t>(offset) ^ at ^ bytes;
    });
    asm volatile("" ::"r"(sum));
  });
  std::printf("%s,%ld,%ld,%.2f,%.1f,%.2f,%.1f,%.2f,%.1f\n", shape, block_bytes, blocks, mpitypes,
              mpitypes * profile_clock_ghz, best, best * profile_clock_ghz, segment, segment * profile_clock_ghz);
}

}  // namespace

int main() {
  std::printf(
      "shape,block_bytes,blocks,mpitypes_ns,mpitypes_cycles,best_ns,best_cycles,segment_ns,segment_cycles  "
      "(a block; cycles at %.1f GHz)\n",
      profile_clock_ghz);
  for (const int64_t block : {4, 8, 12, 16, 24, 32, 64, 128}) {
    const int64_t blocks = 8192 / block;
    print_row("vector", vector_of(blocks, block), blocks, block);
    print_row("list", list_of(blocks, block), blocks, block);
  }
}
