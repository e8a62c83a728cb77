// Tests with the messages of shim_test.cpp, and of staging, peers and errors of the driver. They run on a GPU where
// there is one, or on the driver of tests/gpu/driver (its test is OnDevice.WithoutAGpu).
#include "memory/gpu/device.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "memory/gpu/naive.hpp"
#include "memory/gpu/peer.hpp"
#include "memory/gpu/plan.hpp"
#include "memory/gpu/staging.hpp"
#include "memory/gpu/testing/moves.hpp"
#include "memory/layout/testing/random_types.hpp"

namespace spinloom::gpu {
namespace {

using layout::Type;
using layout::test::must_parse;

Memory must(Result<Memory> made) { return std::move(made.value()); }

// Puts the buffers on the device, with the same places modulo 64, launches, and brings them back.
Status on_device(const Program& program, std::span<const Ends> ends, test::Memory& memory) {
  SPL_ASSIGN(const Device device, Device::at(0));
  SPL_ASSIGN(const Plan plan, Plan::make(device, program));
  std::vector<Memory> there;
  for (const auto& buffer : memory.buffers) {
    SPL_ASSIGN(Memory copy, Memory::device(device, buffer.bytes + 64));
    SPL_TRY(copy_bytes(device, copy.data(), buffer.data, buffer.bytes, nullptr));
    there.push_back(std::move(copy));
  }
  // A base as MPI defines it may lie outside the buffer: ends go by the pair of buffers.
  const auto moved = [&](const void* pointer, size_t buffer) {
    return there[buffer].data() + (static_cast<const std::byte*>(pointer) - memory.buffers[buffer].data);
  };
  std::vector<Ends> ours;
  for (size_t i = 0; i < ends.size(); ++i) {
    ours.push_back({moved(ends[i].from, 2 * i), moved(ends[i].to, 2 * i + 1)});
  }
  const int64_t before = launch_count();
  SPL_TRY(plan.launch(ours));
  EXPECT_EQ(launch_count() - before, program.launches());
  SPL_TRY(device.synchronise());
  for (size_t i = 0; i < there.size(); ++i) {
    SPL_TRY(copy_bytes(device, memory.buffers[i].data, there[i].data(), memory.buffers[i].bytes, nullptr));
  }
  return device.synchronise();
}

class OnDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!available()) GTEST_SKIP() << unavailable_reason();
  }
};

// One copy of the driver for each block.
class NaiveMover final : public layout::test::Mover {
 public:
  explicit NaiveMover(Message message) : message_(std::move(message)) {}
  Status move(const layout::test::Buffer& from, const layout::test::Buffer& to, const layout::test::Cut&) override {
    SPL_ASSIGN(const Device device, Device::at(0));
    SPL_ASSIGN(const Memory source, Memory::device(device, from.memory.size()));
    SPL_ASSIGN(const Memory target, Memory::device(device, to.memory.size()));
    SPL_TRY(copy_bytes(device, source.data(), from.memory.data(), from.memory.size(), nullptr));
    SPL_TRY(copy_bytes(device, target.data(), to.memory.data(), to.memory.size(), nullptr));
    const Ends ends{source.data() + (from.base - from.memory.data()), target.data() + (to.base - to.memory.data())};
    SPL_TRY(naive_move(device, message_, ends, nullptr));
    SPL_TRY(copy_bytes(device, from.memory.data(), source.data(), from.memory.size(), nullptr));
    SPL_TRY(copy_bytes(device, to.memory.data(), target.data(), to.memory.size(), nullptr));
    return device.synchronise();
  }

 private:
  Message message_;
};

std::vector<layout::test::LayoutWay> ways() {
  std::vector<layout::test::LayoutWay> all = test::layout_ways(on_device, 8);
  const auto naive = [](const Type& type, int64_t count, bool packs, Random&) -> Result<layout::test::MoverPointer> {
    SPL_ASSIGN(const layout::Blob blob, layout::Blob::build(type, {layout::Width::automatic, count}));
    const Side side = Side::of(blob, count);
    return layout::test::MoverPointer(
        std::make_unique<NaiveMover>(packs ? Message{side, Side::packed()} : Message{Side::packed(), side}));
  };
  all.push_back(layout::test::packing_way("naive", naive, 8));
  all.back().cuts = false;
  all.back().bytes_max = 16 << 10;  // a copy of the driver for each block
  all.back().refuses = 44;
  for (layout::test::LayoutWay& way : all) {
    way.missing = [] { return available() ? std::string() : unavailable_reason(); };
  }
  return all;
}

SPINLOOM_LAYOUT_SUITE(OnDeviceLayouts, ways());

TEST_F(OnDevice, LongMessages) {
  for (const auto& [type, count] : {std::pair("hvector(60000, 16, 48B, byte)", 1),
                                    {"resized(0B, 8B, vector(1000, 1, 1100, double))", 900},
                                    {"idxblock(1, rand(5, 300000, 100000), double)", 1},
                                    {"struct([(0B, int), (8B, double), (16B, 3, short)])", 70000},
                                    {"hvector(700, 1001, 1200B, byte)", 1}}) {
    SCOPED_TRACE(type);
    const layout::test::Side side{must_parse(type), count};
    for (const std::string_view kernel : {"", "walk"}) {
      EXPECT_EQ(layout::test::hold_move(test::layout_way(kernel, on_device), side, {}), "");
      EXPECT_EQ(layout::test::hold_move(test::layout_way(kernel, on_device), {}, side), "");
    }
  }
}

TEST_F(OnDevice, Sets) {
  for (const std::string_view kernel : {"", "word", "warp", "tile", "pieces", "walk"}) {
    test::check_halo(30, kernel, on_device);
  }
  test::check_pairs(40, on_device);
}

TEST_F(OnDevice, OneCopyABlockMovesTheSameBytes) {
  const Device device = *Device::at(0);
  const layout::Type type = must_parse("hvector(300, 24, 40B, byte)");
  const layout::Blob blob = *layout::Blob::build(type);
  const auto extent = static_cast<size_t>(type.extent());
  const auto moved = [&](const Message& message, const std::vector<std::byte>& from, size_t to_bytes) {
    std::vector<std::byte> to(to_bytes, std::byte{0xee});
    const Memory source = must(Memory::device(device, from.size()));
    const Memory target = must(Memory::device(device, to_bytes));
    EXPECT_TRUE(copy_bytes(device, source.data(), from.data(), from.size(), nullptr).ok());
    EXPECT_TRUE(copy_bytes(device, target.data(), to.data(), to_bytes, nullptr).ok());
    const auto copies = naive_move(device, message, {source.data(), target.data()}, nullptr);
    EXPECT_TRUE(copies.ok()) << copies.error().message;
    EXPECT_EQ(*copies, 300);
    EXPECT_TRUE(copy_bytes(device, to.data(), target.data(), to_bytes, nullptr).ok());
    EXPECT_TRUE(device.synchronise().ok());
    return to;
  };
  for (const auto& [at, packed_at] : {std::pair<size_t, size_t>{0, 0}, {16, 48}}) {
    SCOPED_TRACE(text("at ", at, ", packed at ", packed_at));
    const Side scattered = Side::of(blob, 1, static_cast<int64_t>(at));
    const Side packed = Side::packed(static_cast<int64_t>(packed_at));
    std::vector<std::byte> data(at + extent);
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 7 % 251);
    std::vector<std::byte> wanted(packed_at + 7200, std::byte{0xee});
    std::vector<std::byte> unpacked(at + extent, std::byte{0xee});
    for (size_t i = 0; i < 7200; ++i) {
      const size_t place = at + i / 24 * 40 + i % 24;
      wanted[packed_at + i] = unpacked[place] = data[place];
    }
    EXPECT_EQ(moved({scattered, packed}, data, wanted.size()), wanted);
    EXPECT_EQ(moved({packed, scattered}, wanted, unpacked.size()), unpacked);
  }
}

TEST_F(OnDevice, StagingJoinsLayoutsOfHostAndDevice) {
  const Device device = *Device::at(0);
  const layout::Type there = must_parse("hvector(5000, 24, 40B, byte)");
  const layout::Type here = must_parse("hvector(10000, 12, 20B, byte)");
  StagingOptions options;
  options.piece_bytes = 7000;
  for (const bool packed_here : {false, true}) {
    const Side host = packed_here ? Side::packed(5) : Side::of(*layout::Blob::build(here), 1, 8);
    auto staging = Staging::make(device, Side::of(*layout::Blob::build(there), 1, 16), host, options);
    ASSERT_TRUE(staging.ok()) << staging.error().message;
    const Memory memory = must(Memory::device(device, 200100));
    std::vector<std::byte> out(200100);
    std::vector<std::byte> in(200100);
    std::vector<std::byte> back(200100);
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>(i * 31 % 253);
    ASSERT_TRUE(copy_bytes(device, memory.data(), back.data(), back.size(), nullptr).ok());
    const Status sent = staging->to_device(out.data(), memory.data());
    ASSERT_TRUE(sent.ok()) << sent.error().message;
    const Status received = staging->to_host(memory.data(), in.data());
    ASSERT_TRUE(received.ok()) << received.error().message;
    ASSERT_TRUE(copy_bytes(device, back.data(), memory.data(), back.size(), nullptr).ok());
    ASSERT_TRUE(device.synchronise().ok());
    for (size_t i = 0; i < 120000; ++i) {
      const size_t at_host = packed_here ? 5 + i : 8 + i / 12 * 20 + i % 12;
      ASSERT_EQ(back[16 + i / 24 * 40 + i % 24], out[at_host]) << i;
      ASSERT_EQ(in[at_host], out[at_host]) << i;
    }
  }
}

// A vector of 1,000 blocks in pinned memory, and the plan that packs it.
struct PinnedVector {
  static Plan make_plan(const Device& device) {
    const layout::Type type = must_parse("hvector(1000, 24, 40B, byte)");
    const Message pack{Side::of(*layout::Blob::build(type)), Side::packed()};
    return *Plan::make(device, {&pack, 1});
  }
  Device device = *Device::at(0);
  Plan plan = make_plan(device);
  Memory source = must(Memory::pinned(device, 40000));
  Memory target = must(Memory::pinned(device, 24000));

  void expect_packed() const {
    for (size_t i = 0; i < 24000; ++i) ASSERT_EQ(target.data()[i], source.data()[i / 24 * 40 + i % 24]) << i;
  }
};

// A graph holds the launch; what it launches later moves what memory holds then.
TEST_F(OnDevice, LaunchesArePartsOfGraphs) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  ASSERT_NE(library, nullptr);
  const auto call = [&](const char* name, auto... arguments) {
    using Call = int (*)(decltype(arguments)...);
    const auto found = reinterpret_cast<Call>(dlsym(library, name));
    return found == nullptr ? -1 : found(arguments...);
  };
  const PinnedVector vector;
  const auto& [device, plan, source, target] = vector;
  void* context = nullptr;
  ASSERT_EQ(call("cuDevicePrimaryCtxRetain", &context, 0), 0);
  ASSERT_EQ(call("cuCtxPushCurrent_v2", context), 0);
  void* stream = nullptr;
  void* graph = nullptr;
  void* ready = nullptr;
  ASSERT_EQ(call("cuStreamCreate", &stream, 0U), 0);
  ASSERT_EQ(call("cuStreamBeginCapture_v2", stream, 2), 0);
  const Status captured = plan.launch(source.data(), target.data(), stream);
  ASSERT_TRUE(captured.ok()) << captured.error().message;
  ASSERT_EQ(call("cuStreamEndCapture", stream, &graph), 0);
  ASSERT_EQ(call("cuGraphInstantiateWithFlags", &ready, graph, 0ULL), 0);
  for (const int round : {1, 2}) {
    for (size_t i = 0; i < 40000; ++i)
      source.data()[i] = static_cast<std::byte>(i * 13 * static_cast<size_t>(round) % 255);
    ASSERT_EQ(call("cuGraphLaunch", ready, stream), 0);
    ASSERT_TRUE(device.synchronise(stream).ok());
    vector.expect_packed();
  }
  (void)call("cuGraphExecDestroy", ready);
  (void)call("cuGraphDestroy", graph);
  (void)call("cuStreamDestroy_v2", stream);
  void* popped = nullptr;
  (void)call("cuCtxPopCurrent_v2", &popped);
}

// The kernel reads and writes pinned host memory in place.
TEST_F(OnDevice, PlansReachPinnedMemory) {
  const PinnedVector vector;
  const auto& [device, plan, source, target] = vector;
  for (size_t i = 0; i < 40000; ++i) source.data()[i] = static_cast<std::byte>(i * 13 % 255);
  ASSERT_TRUE(plan.launch(source.data(), target.data()).ok());
  ASSERT_TRUE(device.synchronise().ok());
  vector.expect_packed();
}

TEST_F(OnDevice, WrongPointersAreSentences) {
  const Device device = *Device::at(0);
  const Message pack{Side::of(*layout::Blob::build(must_parse("vector(9, 1, 2, int)"))), Side::packed()};
  const Plan plan = *Plan::make(device, {&pack, 1});
  std::vector<int> host(100);
  const Memory memory = must(Memory::device(device, 400));
  const Ends wrong{host.data(), memory.data()};
  EXPECT_NE(plan.check({&wrong, 1}).error().message.find("host memory"), std::string::npos);
  EXPECT_FALSE(Device::of(host.data()).ok());
  EXPECT_EQ(Device::of(memory.data())->ordinal(), 0);
  const void* freed = nullptr;
  {
    const Memory gone = must(Memory::device(device, size_t{64} << 20));
    freed = gone.data();
  }
  EXPECT_NE(Device::of(freed).error().message.find("freed"), std::string::npos);
  EXPECT_EQ(Memory::device(device, size_t{1} << 44).error().code, Code::exhausted);
  EXPECT_EQ(Device::at(99).error().code, Code::invalid);
  EXPECT_FALSE(plan.launch(nullptr, memory.data()).ok());
}

// Two processes on one device: the second copies from the first one's memory by load and store. It is this program
// again, because a process that forks keeps no driver.
TEST(DevicePeers, Second) {
  const char* const given = std::getenv("SPINLOOM_TEST_PEER");
  if (given == nullptr) GTEST_SKIP() << "a part of OnDevice.ReadsAnotherProcessesMemory";
  PeerHandle handle;
  ASSERT_EQ(read(static_cast<int>(std::strtol(given, nullptr, 10)), &handle, sizeof handle),
            static_cast<ssize_t>(sizeof handle));
  const Device device = *Device::at(0);
  PeerHandle earlier = handle;  // a handle of an allocation that was freed
  --earlier.allocation_id;
  ASSERT_TRUE(PeerMemory::open(device, earlier).ok());
  const auto peer = PeerMemory::open(device, handle);
  ASSERT_TRUE(peer.ok()) << peer.error().message;
  EXPECT_EQ(PeerMemory::open(device, handle)->data(), peer->data());
  const Message copy{Side::of(*layout::Blob::build(must_parse("hvector(1000, 8, 24B, byte)"))),
                     Side::of(*layout::Blob::build(must_parse("hvector(500, 16, 40B, byte)")))};
  const Plan plan = *Plan::make(device, {&copy, 1});
  const Memory target = must(Memory::device(device, 20000));
  ASSERT_TRUE(plan.launch(peer->data(), target.data()).ok());
  std::vector<std::byte> out(20000);
  ASSERT_TRUE(copy_bytes(device, out.data(), target.data(), out.size(), nullptr).ok());
  const Status ended = device.synchronise();
  ASSERT_TRUE(ended.ok()) << ended.error().message;
  for (size_t i = 0; i < 8000; ++i) {
    const size_t from = i / 8 * 24 + i % 8;
    ASSERT_EQ(out[i / 16 * 40 + i % 16], static_cast<std::byte>(from * 11 % 249)) << i;
  }
}

TEST_F(OnDevice, ReadsAnotherProcessesMemory) {
  const Device device = *Device::at(0);
  const Memory memory = must(Memory::device(device, 24000 + 64));
  std::vector<std::byte> data(24000);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 11 % 249);
  ASSERT_TRUE(copy_bytes(device, memory.data() + 64, data.data(), data.size(), nullptr).ok());
  ASSERT_TRUE(device.synchronise().ok());
  const auto handle = export_memory(memory.data() + 64);
  ASSERT_TRUE(handle.ok()) << handle.error().message;
  EXPECT_EQ(handle->offset, 64U);
  EXPECT_FALSE(PeerMemory::open(device, *handle).ok());
  int channel[2];
  ASSERT_EQ(pipe(channel), 0);
  ASSERT_EQ(write(channel[1], &*handle, sizeof *handle), static_cast<ssize_t>(sizeof *handle));
  const std::string number = std::to_string(channel[0]);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    setenv("SPINLOOM_TEST_PEER", number.c_str(), 1);
    execl("/proc/self/exe", "spinloom_gpu_test", "--gtest_filter=DevicePeers.Second", "--gtest_brief=1", nullptr);
    _exit(127);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  close(channel[0]);
  close(channel[1]);
}

}  // namespace
}  // namespace spinloom::gpu
