// Tests of faults of a device: each gives a sentence, nothing crashes, and the caller's context stays current. Faults
// that need the driver of tests/gpu/driver happen in a second process, because a lost device stays lost.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "memory/gpu/event.hpp"
#include "memory/gpu/peer.hpp"
#include "memory/gpu/plan.hpp"
#include "memory/gpu/staging.hpp"
#include "memory/layout/testing/random_types.hpp"

namespace spinloom::gpu {
namespace {

using layout::test::must_parse;

const Message& fault_message() {
  static const Message message{Side::of(*layout::Blob::build(must_parse("hvector(1000, 24, 40B, byte)"))),
                               Side::packed()};
  return message;
}

Memory fault_memory(const Device& device, size_t bytes) { return std::move(Memory::device(device, bytes).value()); }

void expect_told(const Status& status, std::string_view words) {
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find(words), std::string::npos) << status.error().message;
}

template <class T>
void expect_told(const Result<T>& result, std::string_view words) {
  expect_told(result.ok() ? Status{} : Status(result.error()), words);
}

class OnDeviceFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!available()) GTEST_SKIP() << unavailable_reason();
  }
  // This program again, for one test of DeviceFaults; only the driver of the tests takes settings.
  static void run_apart(const char* test, std::vector<std::pair<const char*, const char*>> settings) {
    if (Device::at(0)->name() != "a GPU of the tests") GTEST_SKIP() << "a GPU does not fail when it is told to";
    const std::string filter = std::string("--gtest_filter=DeviceFaults.") + test;
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      setenv("SPINLOOM_TEST_FAULT", "1", 1);
      for (const auto& [name, value] : settings) setenv(name, value, 1);
      execl("/proc/self/exe", "spinloom_gpu_test", filter.c_str(), "--gtest_brief=1", nullptr);
      _exit(127);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the second process failed";
  }
};

class DeviceFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("SPINLOOM_TEST_FAULT") == nullptr) GTEST_SKIP() << "a part of a test of OnDeviceFaults";
  }
};

// Launches are accepted. The first call that waits reports that the device is lost, and so do all calls from then on.
TEST_F(DeviceFaults, LostDevice) {
  const Device device = *Device::at(0);
  const Plan plan = *Plan::make(device, {&fault_message(), 1});
  const Memory source = fault_memory(device, 40'000);
  const Memory target = fault_memory(device, 24'000);
  Staging staging = *Staging::make(device, fault_message().from, Side::packed());
  const Event mark = std::move(Event::make(device).value());
  std::vector<std::byte> host(40'000);
  ASSERT_TRUE(plan.launch(source.data(), target.data()).ok());
  constexpr std::string_view lost = "a kernel failed: it was given memory that was freed";
  expect_told(device.synchronise(), lost);
  const Ends ends{source.data(), target.data()};
  expect_told(plan.launch(source.data(), target.data()), lost);
  expect_told(plan.begin({&ends, 1}), lost);
  expect_told(Plan::make(device, {&fault_message(), 1}), lost);
  expect_told(Memory::device(device, 8), lost);
  expect_told(Memory::pinned(device, 8), lost);
  expect_told(copy_bytes(device, target.data(), source.data(), 8, nullptr), lost);
  expect_told(staging.to_host(source.data(), host.data()), lost);
  expect_told(staging.to_device(host.data(), target.data()), lost);
  expect_told(Staging::make(device, fault_message().from, Side::packed()), lost);
  expect_told(export_memory(source.data()), lost);
  expect_told(mark.record(nullptr), lost);
  expect_told(mark.is_reached(), lost);
  expect_told(mark.synchronise(), lost);
  expect_told(mark.make_wait(nullptr), lost);
  expect_told(device.bytes_free(), lost);
  expect_told(device.synchronise(), "start the process again");
}

TEST_F(OnDeviceFaults, ALostDeviceIsASentenceEverywhere) { run_apart("LostDevice", {{"FAKE_GPU_LOST_AFTER", "0"}}); }

// The bytes that a move had begun before are not there; it says so.
TEST_F(DeviceFaults, LostWhileBytesMove) {
  const Device device = *Device::at(0);
  const Memory source = fault_memory(device, 40'000);
  StagingOptions options;
  options.piece_bytes = 1000;
  Staging staging = *Staging::make(device, fault_message().from, Side::packed(), options);
  std::vector<std::byte> host(24'000);
  const Plan plan = *Plan::make(device, {&fault_message(), 1});
  const Memory target = fault_memory(device, 24'000);
  auto move = staging.begin_to_host(source.data(), host.data());
  ASSERT_TRUE(move.ok()) << move.error().message;
  ASSERT_TRUE(move->test().ok());
  ASSERT_TRUE(plan.launch(source.data(), target.data()).ok());  // the one that fails
  expect_told(move->wait(), "a kernel failed");
  expect_told(move->test(), "a kernel failed");
}

TEST_F(OnDeviceFaults, ADeviceThatIsLostInAMoveIsASentence) {
  run_apart("LostWhileBytesMove", {{"FAKE_GPU_LOST_AFTER", "1"}});
}

TEST_F(DeviceFaults, OutOfMemory) {
  const Device device = *Device::at(0);
  const Memory source = fault_memory(device, 40'000);
  constexpr std::string_view full = "free memory of the device, or move less at once";
  expect_told(Memory::device(device, 100'000), full);
  EXPECT_EQ(Memory::device(device, 100'000).error().code, Code::exhausted);
  expect_told(Staging::make(device, Side::of(*fault_message().from.blob, 10), Side::packed()), full);
  const Message long_list{Side::of(*layout::Blob::build(must_parse("idxblock(1, rand(5, 300000, 100000), double)"))),
                          Side::packed()};
  expect_told(Plan::make(device, {&long_list, 1}), full);
  // A device that was full once still takes what fits.
  const Plan plan = *Plan::make(device, {&fault_message(), 1});
  const Memory target = fault_memory(device, 24'000);
  ASSERT_TRUE(plan.launch(source.data(), target.data()).ok());
  EXPECT_TRUE(device.synchronise().ok());
}

TEST_F(OnDeviceFaults, AFullDeviceIsASentence) { run_apart("OutOfMemory", {{"FAKE_GPU_BYTES", "100000"}}); }

// The context that the driver names as current.
void* current_context() {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  const auto ask = reinterpret_cast<int (*)(void**)>(dlsym(library, "cuCtxGetCurrent"));
  void* context = nullptr;
  EXPECT_EQ(ask(&context), 0);
  return context;
}

void make_current(void* context) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  const auto set = reinterpret_cast<int (*)(void*)>(dlsym(library, "cuCtxSetCurrent"));
  EXPECT_EQ(set(context), 0);
}

// Everything that a program does with a device, while `context` is current.
void use_device(const Device& device, void* context) {
  make_current(context);
  const Plan plan = *Plan::make(device, {&fault_message(), 1});
  const Memory source = fault_memory(device, 40'000);
  const Memory target = fault_memory(device, 24'000);
  std::vector<std::byte> data(40'000);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 7 % 251);
  ASSERT_TRUE(copy_bytes(device, source.data(), data.data(), data.size(), nullptr).ok());
  const Ends ends{source.data(), target.data()};
  const auto mark = plan.begin({&ends, 1});
  ASSERT_TRUE(mark.ok()) << mark.error().message;
  EXPECT_EQ(current_context(), context);
  ASSERT_TRUE(mark->synchronise().ok());
  std::vector<std::byte> out(24'000);
  Staging staging = *Staging::make(device, fault_message().from, Side::packed());
  const Status came = staging.to_host(source.data(), out.data());
  ASSERT_TRUE(came.ok()) << came.error().message;
  for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], data[i / 24 * 40 + i % 24]) << i;
  EXPECT_TRUE(export_memory(source.data()).ok());
  EXPECT_EQ(Device::of(source.data())->ordinal(), device.ordinal());
  EXPECT_EQ(current_context(), context);
}

TEST_F(OnDeviceFaults, AThreadWithoutADeviceStaysWithout) {
  const Device device = *Device::at(0);
  std::thread([&] {
    EXPECT_EQ(current_context(), nullptr);
    use_device(device, nullptr);
    EXPECT_EQ(current_context(), nullptr);
  }).join();
}

TEST_F(DeviceFaults, AnotherDeviceIsCurrent) {
  const Device first = *Device::at(0);
  const Device second = *Device::at(1);
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  const auto retain = reinterpret_cast<int (*)(void**, int)>(dlsym(library, "cuDevicePrimaryCtxRetain"));
  void* contexts[2] = {};
  for (int ordinal = 0; ordinal < 2; ++ordinal) ASSERT_EQ(retain(&contexts[ordinal], ordinal), 0);
  for (void* const context : contexts) {
    use_device(first, context);
    use_device(second, context);
  }
  // Memory of one device for a plan of the other.
  const Plan plan = *Plan::make(first, {&fault_message(), 1});
  const Memory there = fault_memory(second, 40'000);
  const Memory here = fault_memory(first, 24'000);
  const Ends ends{there.data(), here.data()};
  expect_told(plan.check({&ends, 1}), "is memory of device 1, the plan is for device 0: make a plan there");
}

TEST_F(OnDeviceFaults, TheCurrentDeviceStaysCurrent) {
  run_apart("AnotherDeviceIsCurrent", {{"FAKE_GPU_DEVICES", "2"}});
}

TEST_F(OnDeviceFaults, FreedMemoryAndHostPointersAreSentences) {
  const Device device = *Device::at(0);
  const Plan plan = *Plan::make(device, {&fault_message(), 1});
  const Memory target = fault_memory(device, 24'000);
  const void* freed = nullptr;
  {
    const Memory gone = fault_memory(device, size_t{64} << 20);
    freed = gone.data();
  }
  const std::vector<std::byte> host(40'000);
  for (const void* const wrong : {freed, static_cast<const void*>(host.data())}) {
    const Ends ends{wrong, target.data()};
    expect_told(plan.check({&ends, 1}),
                "is host memory that the device cannot reach, or memory of a device that was freed");
    expect_told(Device::of(wrong), "is host memory, or memory of a device that was freed: no device owns it");
    expect_told(export_memory(wrong), "cannot be given to another process: it is not memory that a device allocated");
  }
}

}  // namespace
}  // namespace spinloom::gpu
