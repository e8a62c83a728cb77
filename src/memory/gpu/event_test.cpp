// Tests of work that is begun and not waited for: marks behind launches, and bytes between host and device by pieces.
// They run on a GPU or on the driver of tests/gpu/driver.
#include "memory/gpu/event.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>
#include <vector>

#include "memory/gpu/plan.hpp"
#include "memory/gpu/staging.hpp"
#include "memory/layout/testing/random_types.hpp"

namespace spinloom::gpu {
namespace {

using layout::test::must_parse;

Memory begun_memory(Result<Memory> made) { return std::move(made.value()); }

class OnDeviceBegun : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!available()) GTEST_SKIP() << unavailable_reason();
  }
};

// Asks until it is so; how often "not yet" was the answer.
template <class Test>
int asked(const Test& test) {
  for (int times = 0;; ++times) {
    const Result<bool> answer = test();
    EXPECT_TRUE(answer.ok()) << answer.error().message;
    if (!answer.ok() || *answer) return times;
  }
}

TEST_F(OnDeviceBegun, ALaunchIsAskedAndWaitedFor) {
  const Device device = *Device::at(0);
  const Message pack{Side::of(*layout::Blob::build(must_parse("hvector(200000, 24, 40B, byte)"))), Side::packed()};
  const Plan plan = *Plan::make(device, {&pack, 1});
  const Memory source = begun_memory(Memory::pinned(device, 8'000'000));
  const Memory target = begun_memory(Memory::pinned(device, 4'800'000));
  const auto expect_packed = [&] {
    for (size_t i = 0; i < 4'800'000; ++i) ASSERT_EQ(target.data()[i], source.data()[i / 24 * 40 + i % 24]) << i;
  };
  for (size_t i = 0; i < 8'000'000; ++i) source.data()[i] = static_cast<std::byte>(i * 13 % 255);
  const Ends ends{source.data(), target.data()};
  const auto first = plan.begin({&ends, 1});
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_GT(asked([&] { return first->is_reached(); }), 0) << "a launch of 5 MB over PCIe takes longer than a question";
  expect_packed();
  std::memset(target.data(), 0, target.bytes());
  const auto second = plan.begin({&ends, 1});
  ASSERT_TRUE(second->synchronise().ok());
  EXPECT_TRUE(*second->is_reached());
  expect_packed();
}

// Another stream waits for the launch; the host does not.
TEST_F(OnDeviceBegun, AStreamWaitsForALaunch) {
  const Device device = *Device::at(0);
  const Message pack{Side::of(*layout::Blob::build(must_parse("hvector(1000, 24, 40B, byte)"))), Side::packed()};
  const Plan plan = *Plan::make(device, {&pack, 1});
  const Memory source = begun_memory(Memory::device(device, 40'000));
  const Memory target = begun_memory(Memory::device(device, 24'000));
  std::vector<std::byte> data(40'000);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 7 % 251);
  ASSERT_TRUE(copy_bytes(device, source.data(), data.data(), data.size(), nullptr).ok());
  constexpr uintptr_t thread_stream = 2;
  auto* const other = reinterpret_cast<Stream>(thread_stream);  // NOLINT(performance-no-int-to-ptr): the driver's name
  const Ends ends{source.data(), target.data()};
  const auto begun = plan.begin({&ends, 1});
  ASSERT_TRUE(begun.ok()) << begun.error().message;
  ASSERT_TRUE(begun->make_wait(other).ok());
  std::vector<std::byte> out(24'000);
  ASSERT_TRUE(copy_bytes(device, out.data(), target.data(), out.size(), other).ok());
  ASSERT_TRUE(device.synchronise(other).ok());
  for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], data[i / 24 * 40 + i % 24]) << i;
}

TEST_F(OnDeviceBegun, BytesBetweenHostAndDeviceGoOnWhileTheyAreAsked) {
  const Device device = *Device::at(0);
  StagingOptions options;
  options.piece_bytes = 7000;
  const Side there = Side::of(*layout::Blob::build(must_parse("hvector(5000, 24, 40B, byte)")), 1, 16);
  const Side here = Side::of(*layout::Blob::build(must_parse("hvector(10000, 12, 20B, byte)")), 1, 8);
  Staging down = *Staging::make(device, there, here, options);
  Staging up = *Staging::make(device, there, here, options);
  const Memory memory = begun_memory(Memory::device(device, 200'100));
  std::vector<std::byte> out(200'100);
  std::vector<std::byte> in(200'100);
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>(i * 31 % 253);
  {
    auto going = up.begin_to_device(out.data(), memory.data());
    ASSERT_TRUE(going.ok()) << going.error().message;
    EXPECT_NE(up.begin_to_device(out.data(), memory.data()).error().message.find("still at its last move"),
              std::string::npos);
    EXPECT_GE(asked([&] { return going->test(); }), 120'000 / 7000);
    EXPECT_TRUE(*going->test());
    auto coming = down.begin_to_host(memory.data(), in.data());
    ASSERT_TRUE(coming.ok()) << coming.error().message;
    EXPECT_GE(asked([&] { return coming->test(); }), 120'000 / 7000);
  }
  for (size_t i = 0; i < 120'000; ++i) ASSERT_EQ(in[8 + i / 12 * 20 + i % 12], out[8 + i / 12 * 20 + i % 12]) << i;
  // Dropped half-way: the area is free again, and the next move is whole.
  {
    auto dropped = down.begin_to_host(memory.data(), in.data());
    ASSERT_TRUE(dropped->test().ok());
  }
  std::vector<std::byte> again(200'100);
  ASSERT_TRUE(down.to_host(memory.data(), again.data()).ok());
  for (size_t i = 0; i < 120'000; ++i) ASSERT_EQ(again[8 + i / 12 * 20 + i % 12], out[8 + i / 12 * 20 + i % 12]) << i;
}

}  // namespace
}  // namespace spinloom::gpu
