// What a block costs the host: the numbers behind host.mpitypes_block_cycles and host.best_block_cycles of the NIC
// profiles.
//
// Method: a segment (mpitypes) and our copy path (best) unpack a vector of n blocks of b bytes at stride 2 b with warm
// data (the whole working set in the first-level cache), repeated; the median time of a block is printed, in ns and
// in cycles at the profile's clock. Cold lines are priced separately by the host model, so the warm cost is the cost of
// finding and copying a block. Host time, not modelled time.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

#include "layout/copy.hpp"
#include "offload/unpack.hpp"

namespace {

using namespace spinloom;

constexpr double profile_clock_ghz = 3.4;
constexpr int repetitions = 2001;

void unpack_mpitypes(const offload::Message& message, const std::vector<uint8_t>& packed, std::vector<uint8_t>& array) {
  offload::unpack(message, packed.data(), array.data());
}

void unpack_best(const offload::Message& message, const std::vector<uint8_t>& packed, std::vector<uint8_t>& array) {
  const Status done = layout::unpack(message.blob, 1, reinterpret_cast<std::byte*>(array.data()), 0, message.bytes,
                                     std::as_bytes(std::span(packed)));
  if (!done) std::printf("%s\n", done.error().message.c_str());
}

using Unpack = void (*)(const offload::Message&, const std::vector<uint8_t>&, std::vector<uint8_t>&);

double median_ns_per_block(Unpack unpack, int64_t blocks, int64_t block_bytes) {
  const layout::Type byte = layout::primitive("byte").value();
  const layout::Type type = layout::hvector(blocks, block_bytes, 2 * block_bytes, byte).value();
  const offload::Message message = offload::make_message(type, 1).value();
  std::vector<uint8_t> packed(static_cast<size_t>(message.bytes), 1);
  std::vector<uint8_t> array(static_cast<size_t>(2 * message.bytes));
  std::vector<double> times;
  for (int i = 0; i < repetitions; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    for (int inner = 0; inner < 16; ++inner) {
      unpack(message, packed, array);
      asm volatile("" ::"r"(array.data()) : "memory");
    }
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - begin;
    times.push_back(spent.count() / 16 / static_cast<double>(blocks));
  }
  std::nth_element(times.begin(), times.begin() + repetitions / 2, times.end());
  return times[repetitions / 2];
}

}  // namespace

int main() {
  std::printf("block_bytes,blocks,mpitypes_ns,mpitypes_cycles,best_ns,best_cycles  (a block; cycles at %.1f GHz)\n",
              profile_clock_ghz);
  for (const int64_t block : {4, 8, 12, 16, 24, 32, 64, 128}) {
    const int64_t blocks = 8192 / block;
    const double mpitypes = median_ns_per_block(unpack_mpitypes, blocks, block);
    const double best = median_ns_per_block(unpack_best, blocks, block);
    std::printf("%ld,%ld,%.2f,%.1f,%.2f,%.1f\n", block, blocks, mpitypes, mpitypes * profile_clock_ghz, best,
                best * profile_clock_ghz);
  }
}
