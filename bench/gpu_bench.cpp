// Layouts on a GPU: pack and unpack by one kernel, against a plain copy of the same bytes on the device.
//
//   spinloom_gpu_bench [--quick] prints CSV: the host time of many launches behind each other, divided by their number;
//   up to 4 MiB, the time of a graph of launches, which is the device's time.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "gpu_graph.hpp"
#include "memory/gpu/device.hpp"
#include "memory/gpu/naive.hpp"
#include "memory/gpu/plan.hpp"
#include "memory/layout/copy.hpp"
#include "memory/layout/text.hpp"

namespace {

using namespace spinloom;
using namespace spinloom::gpu;

Memory value_of(Result<Memory> made) { return std::move(made.value()); }

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class Body>
double time_us(const Device& device, double least_us, Body&& body) {
  for (int i = 0; i < 3; ++i) body();
  (void)device.synchronise();
  for (int64_t rounds = 4;; rounds *= 2) {
    const double start = now_us();
    for (int64_t i = 0; i < rounds; ++i) body();
    (void)device.synchronise();
    const double spent = now_us() - start;
    if (spent > least_us) return spent / static_cast<double>(rounds);
  }
}

struct Row {
  std::string name;
  std::string type;
  int64_t count;
  const char* kernel;
};

std::string blocks(int64_t count, int64_t block, int64_t stride) {
  return text("hvector(", count, ", ", block, ", ", stride, "B, byte)");
}

// Packs known bytes, compares with the host's copy, and unpacks them into memory that was cleared.
std::string mismatch_of(const Device& device, const Message& pack, const Plan& packs, const Plan& unpacks,
                        std::byte* base, const Memory& packed, size_t reach) {
  const layout::Blob& blob = *pack.from.blob;
  const auto packed_bytes = static_cast<size_t>(packs.program().bytes());
  std::byte* const start = base + blob.true_lb();
  std::vector<std::byte> memory(reach);
  std::vector<std::byte> expected(packed_bytes);
  std::vector<std::byte> found(packed_bytes);
  Random random(1, "gpu_bench");
  for (size_t i = 0; i + 8 <= reach; i += 8) {
    const uint64_t word = random.next();
    std::memcpy(memory.data() + i, &word, 8);
  }
  const auto error_of = [&](const Status& status) { return status ? std::string() : status.error().message; };
  std::string error = error_of(layout::pack(blob, pack.from.count, memory.data() - blob.true_lb(), 0,
                                            static_cast<int64_t>(packed_bytes), expected));
  if (error.empty()) error = error_of(copy_bytes(device, start, memory.data(), reach, nullptr));
  if (error.empty()) error = error_of(packs.launch(base, packed.data()));
  if (error.empty()) error = error_of(copy_bytes(device, found.data(), packed.data(), packed_bytes, nullptr));
  if (error.empty()) error = error_of(device.synchronise());
  if (error.empty() && found != expected) return "packed other bytes than the host";
  const std::vector<std::byte> before(reach);
  if (error.empty()) error = error_of(copy_bytes(device, start, before.data(), reach, nullptr));
  if (error.empty()) error = error_of(unpacks.launch(packed.data(), base));
  if (error.empty()) error = error_of(copy_bytes(device, memory.data(), start, reach, nullptr));
  if (error.empty()) error = error_of(device.synchronise());
  std::vector<std::byte> placed(reach);
  if (error.empty()) {
    error = error_of(layout::unpack(blob, pack.from.count, placed.data() - blob.true_lb(), 0,
                                    static_cast<int64_t>(packed_bytes), expected));
  }
  if (error.empty() && memory != placed) return "unpacked other bytes than the host, or elsewhere";
  return error;
}

int run(bool quick) {
  if (!available()) {
    std::printf("no GPU: %s\n", unavailable_reason().c_str());
    return 0;
  }
  const Device device = *Device::at(0);
  const double start = now_us();
  const auto origin = device.kernel_origin();
  if (!origin) {
    std::printf("%s\n", origin.error().message.c_str());
    return 1;
  }
  std::printf("# %s, compute %d, driver CUDA %s, kernels from %s in %.0f ms\n", device.name().c_str(),
              device.compute_capability(), device.driver_version().c_str(), origin->c_str(), (now_us() - start) / 1000);
  const char* const specfem =
      "struct([(0B, idxblock(1, rand(1, 834917, 11797), contig(3, float))), (10019072B, idxblock(1, rand(101, 51153, "
      "3009), contig(3, float)))])";
  const double least_us = quick ? 2e3 : 2e4;
  const int64_t bytes = int64_t{64} << 20;
  std::vector<Row> rows;
  // Short messages, whose time is mostly that of a launch. The chosen kernel is the small one for short messages;
  // `word` by name is the full one, for comparison.
  for (const int64_t message_bytes : {4 << 10, 64 << 10, 1 << 20}) {
    for (const int64_t block : {8, 64}) {
      for (const char* const kernel : {"", "word"}) {
        rows.push_back({text(message_bytes >> 10, " KiB, vector ", block, " B, half"),
                        blocks(message_bytes / block, block, 2 * block), 1, kernel});
      }
    }
  }
  // The chosen way is a list of blocks, `pieces` a table of them.
  for (const int64_t count : {100, 1000, 20000}) {
    for (const char* const kernel : {"", "pieces"}) {
      rows.push_back({text(count, " structs 4+8 B"), "struct([(0B, int), (8B, double)])", count, kernel});
    }
  }
  for (const char* const kernel : {"", "pieces"}) {
    rows.push_back(
        {"2000 runs", "hindexed([0B x 3, 40B x 1, 100B x 7, 180B x 2, 300B x 9, 400B x 1], int)", 333, kernel});
  }
  rows.push_back({"8 B", "double", 1, ""});
  rows.push_back({"256 KiB, 16 B turned", "hvector(128, 16, 16B, hvector(128, 16, 2048B, byte))", 1, ""});
  rows.push_back({"256 KiB, 16 B turned", "hvector(128, 16, 16B, hvector(128, 16, 2048B, byte))", 1, "tile"});
  rows.push_back({"256 KiB, 4 B turned", "hvector(256, 1, 4B, hvector(256, 1, 1024B, float))", 1, ""});
  rows.push_back({"256 KiB, 4 B turned", "hvector(256, 1, 4B, hvector(256, 1, 1024B, float))", 1, "tile"});
  for (const int64_t block : {4, 8, 16, 32, 64, 128, 256, 1024, 4096}) {
    rows.push_back({text("vector ", block, " B, half"), blocks(bytes / block, block, 2 * block), 1, ""});
  }
  for (const int64_t block : {4, 8, 16, 64}) {
    rows.push_back({text("vector ", block, " B, stride 256"), blocks((bytes / 8) / block, block, 256), 1, ""});
  }
  rows.push_back({"vector 12 B, stride 16", blocks(bytes / 12, 12, 16), 1, ""});
  rows.push_back({"vector 1000 B, stride 1024", blocks(bytes / 1000, 1000, 1024), 1, ""});
  rows.push_back({"vector 1001 B, stride 1201", blocks(bytes / 1001, 1001, 1201), 1, ""});
  rows.push_back({"vector 33 B, stride 50", blocks(bytes / 33, 33, 50), 1, ""});
  rows.push_back({"transpose 8 B", "hvector(2896, 1, 8B, hvector(2896, 1, 23168B, double))", 1, ""});
  rows.push_back({"transpose 8 B", "hvector(2896, 1, 8B, hvector(2896, 1, 23168B, double))", 1, "word"});
  rows.push_back({"transpose 4 B", "hvector(4096, 1, 4B, hvector(4096, 1, 16384B, float))", 1, ""});
  rows.push_back({"transpose 4 B", "hvector(4096, 1, 4B, hvector(4096, 1, 16384B, float))", 1, "word"});
  rows.push_back({"list 8 B", "idxblock(1, rand(5, 8000000, 4000000), double)", 1, ""});
  rows.push_back({"list 8 B", "idxblock(1, rand(5, 8000000, 4000000), double)", 1, "pieces"});
  rows.push_back({"list 24 B", "idxblock(3, range(0, 5, 2000000), double)", 1, ""});
  rows.push_back({"SPECFEM3D_cm, workloads c=4", specfem, 1, ""});
  rows.push_back(
      {"struct 4+8+6 B", "resized(0B, 24B, struct([(0B, int), (8B, double), (16B, 3, short)]))", 3000000, ""});
  rows.push_back({"struct 4+8 B", "struct([(0B, int), (8B, double)])", 5000000, ""});
  rows.push_back({"face x", "subarray([400, 400, 400], [400, 400, 1], [0, 0, 1], C, double)", 1, ""});
  rows.push_back({"face y", "subarray([400, 400, 400], [400, 1, 400], [0, 1, 0], C, double)", 1, ""});
  rows.push_back({"face z", "subarray([400, 400, 400], [1, 400, 400], [1, 0, 0], C, double)", 1, ""});
  for (const int64_t block : {16, 32, 64, 128}) {
    rows.push_back({text("vector ", block, " B, half, streaming"), blocks(bytes / block, block, 2 * block), 1, ""});
  }
  // Beyond the cache of the device.
  if (!quick) {
    const int64_t large_bytes = int64_t{512} << 20;
    for (const int64_t block : {16, 32, 64, 256}) {
      rows.push_back(
          {text("512 MiB, vector ", block, " B, half"), blocks(large_bytes / block, block, 2 * block), 1, ""});
    }
    for (const int64_t block : {32, 64}) {
      rows.push_back({text("512 MiB, vector ", block, " B, half, streaming"),
                      blocks(large_bytes / block, block, 2 * block), 1, ""});
    }
    rows.push_back({"512 MiB, transpose 8 B", "hvector(8192, 1, 8B, hvector(8192, 1, 65536B, double))", 1, ""});
    rows.push_back({"1 GiB, contiguous", "contig(1073741824, byte)", 1, ""});
  }
  for (const char* kernel : {"word", "warp", "pieces", "walk"}) {
    rows.push_back({"vector 64 B, half", blocks(bytes / 64, 64, 128), 1, kernel});
  }
  // A plain copy reads as many bytes as it writes.
  std::printf(
      "name,kernel,asked,bytes,copy_GBps,pack_GBps,unpack_GBps,pack_ratio,unpack_ratio,touched_GBps,copy_us,pack_us,"
      "unpack_us\n");
  for (const Row& row : rows) {
    const auto type = layout::parse(row.type);
    if (!type) {
      std::printf("%s: %s\n", row.name.c_str(), type.error().message.c_str());
      return 1;
    }
    const layout::Blob blob = *layout::Blob::build(*type, {layout::Width::automatic, row.count, true});
    const Message pack{Side::of(blob, row.count), Side::packed()};
    const Message unpack{Side::packed(), Side::of(blob, row.count)};
    ProgramOptions options;
    options.kernel = row.kernel;
    options.streaming = row.name.find("streaming") != std::string::npos;
    const auto packs = Plan::make(device, {&pack, 1}, options);
    const auto unpacks = Plan::make(device, {&unpack, 1}, options);
    if (!packs || !unpacks) {
      std::printf("%s: %s\n", row.name.c_str(), (packs ? unpacks : packs).error().message.c_str());
      return 1;
    }
    const int64_t packed_bytes = packs->program().bytes();
    const auto reach = static_cast<size_t>(blob.true_extent() + (row.count - 1) * blob.extent());
    const auto memory = Memory::device(device, reach);
    const auto packed = Memory::device(device, static_cast<size_t>(packed_bytes));
    const auto other = Memory::device(device, static_cast<size_t>(packed_bytes));
    if (!memory || !packed || !other) {
      std::printf("%s: %s\n", row.name.c_str(), "out of memory");
      continue;
    }
    std::byte* const base = memory->data() - blob.true_lb();
    // A launch takes the host longer than a short message takes the device: graphs tell the device's part.
    const auto timed = [&](auto&& launch) {
      constexpr int64_t short_bytes = 4 << 20;
      const double graph_us = packed_bytes <= short_bytes ? device_us(device, 400, launch) : 0;
      return graph_us > 0 ? graph_us : time_us(device, least_us, [&] { (void)launch(nullptr); });
    };
    const double copied = timed([&](Stream stream) {
      return copy_bytes(device, other->data(), packed->data(), static_cast<size_t>(packed_bytes), stream);
    });
    const double out = timed([&](Stream stream) { return packs->launch(base, packed->data(), stream); });
    const double in = timed([&](Stream stream) { return unpacks->launch(packed->data(), base, stream); });
    if (const std::string mismatch = mismatch_of(device, pack, *packs, *unpacks, base, *packed, reach);
        !mismatch.empty()) {
      std::printf("%s: %s\n", row.name.c_str(), mismatch.c_str());
      return 1;
    }
    const double moved = 2e-3 * static_cast<double>(packed_bytes);
    std::printf("%s,%s,%s,%lld,%.0f,%.0f,%.0f,%.2f,%.2f,%.0f,%.2f,%.2f,%.2f\n", row.name.c_str(),
                packs->program().kernel_name().c_str(), row.kernel, static_cast<long long>(packed_bytes),
                moved / copied, moved / out, moved / in, copied / out, copied / in,
                1e-3 * static_cast<double>(packs->program().bytes_touched()) / out, copied, out, in);
    std::fflush(stdout);
  }
  // The host time of a launch, and the time of the naive way.
  for (const char* const type : {specfem, "hvector(100000, 8, 64B, byte)"}) {
    const layout::Blob blob = *layout::Blob::build(*layout::parse(type));
    const Message pack{Side::of(blob), Side::packed()};
    const Plan plan = *Plan::make(device, {&pack, 1});
    const Memory memory = value_of(Memory::device(device, static_cast<size_t>(blob.true_extent())));
    const Memory packed = value_of(Memory::device(device, static_cast<size_t>(blob.size())));
    const auto launch = [&] { (void)plan.launch(memory.data() - blob.true_lb(), packed.data()); };
    launch();
    (void)device.synchronise();
    constexpr int launches = 200;
    const double before = now_us();
    for (int i = 0; i < launches; ++i) launch();
    const double issued = now_us() - before;
    (void)device.synchronise();
    const double launch_us = time_us(device, least_us, launch);
    const double alone_start = now_us();
    for (int i = 0; i < launches; ++i) {
      launch();
      (void)device.synchronise();
    }
    const double alone = (now_us() - alone_start) / launches;
    const double first = now_us();
    const auto copies = naive_move(device, pack, {memory.data() - blob.true_lb(), packed.data()}, nullptr);
    (void)device.synchronise();
    const double naive = now_us() - first;
    if (!copies) {
      std::printf("%s\n", copies.error().message.c_str());
      return 1;
    }
    std::printf(
        "# %lld blocks, %lld B: launch %.2f us of the host; kernel %.1f us, with a wait for each %.1f us; one copy a "
        "block %.0f us: %.0f times\n",
        static_cast<long long>(*copies), static_cast<long long>(blob.size()), issued / launches, launch_us, alone,
        naive, naive / alone);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return run(argc > 1 && std::strcmp(argv[1], "--quick") == 0); }
