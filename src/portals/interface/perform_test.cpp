// Actions reach a driver as what they are and in their order; transfers move bytes.
#include "portals/interface/perform.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace spinloom::portals {
namespace {

// Takes every kind of action that drivers must perform, and no other.
struct Driver {
  std::vector<std::string> heard;
  uint32_t answered = 0;

  void operator()(const nic::Send&) { heard.emplace_back("send"); }
  void operator()(const nic::BufferPacket&) { heard.emplace_back("buffer"); }
  void operator()(const nic::RunHandler&) { heard.emplace_back("run"); }
  void operator()(const nic::Resume& resume) {
    heard.emplace_back("resume");
    answered = resume.value;
  }
  void operator()(const nic::DebugLine&) { heard.emplace_back("debug"); }
  void operator()(const nic::PostEvent&) { heard.emplace_back("event"); }
  void operator()(const nic::PostCounter&) { heard.emplace_back("counter"); }
  void operator()(const nic::Answer&) { heard.emplace_back("answer"); }
  void operator()(const nic::Continue&) { heard.emplace_back("continue"); }
  template <Transfer Kind>
  void operator()(const Kind& transfer) {
    heard.emplace_back("transfer " + std::to_string(transfer.dma.value));
  }
};

struct Deaf {  // it hears one kind only
  void operator()(const nic::Send&) {}
};
struct AlmostDriver : Driver {
  using Driver::operator();
  void operator()(const nic::Resume&) = delete;
};

static_assert(PerformsActions<Driver>);
static_assert(!PerformsActions<Deaf>);
static_assert(!PerformsActions<AlmostDriver>, "a driver that misses one kind is refused");

TEST(Perform, ActionsComeInTheirOrderAsWhatTheyAre) {
  nic::Actions actions;
  actions.add<nic::Answer>();
  actions.add<nic::Send>();
  actions.add<nic::DmaRead>(nic::DmaId{1});
  actions.add<nic::PostCounter>();
  actions.add<nic::DmaWrite>(nic::DmaId{2});
  actions.add<nic::Continue>();
  actions.add<nic::PostEvent>();
  actions.add<nic::StorePacket>(nic::DmaId{3});
  actions.add<nic::DmaAtomic>(nic::DmaId{4});
  actions.add<nic::ApplyAtomic>(nic::DmaId{5});
  actions.add<nic::BufferPacket>();
  actions.add<nic::RunHandler>();
  actions.add<nic::DebugLine>();
  actions.add<nic::Resume>();
  Driver driver;
  perform_each(actions, {}, driver);
  const std::vector<std::string> expected{"answer",   "send",  "transfer 1", "counter",    "transfer 2",
                                          "continue", "event", "transfer 3", "transfer 4", "transfer 5",
                                          "buffer",   "run",   "debug",      "resume"};
  EXPECT_EQ(driver.heard, expected);
}

TEST(Perform, WhatIsTheSameEverywhereIsDoneHere) {
  std::vector<uint8_t> nic_memory(64, 0xee);
  std::array<uint64_t, 3> local{1, 2, 3};
  uint64_t before = 0;
  alignas(8) std::array<uint8_t, 8> word{10};
  nic::Actions actions;
  actions.add<nic::WriteNicMemory>(uint64_t{60}, std::vector<uint8_t>{1, 2, 3, 4});
  actions.add<nic::WriteNicMemory>(uint64_t{64}, std::vector<uint8_t>{});
  actions.add<nic::StoreLocal>(reinterpret_cast<uint8_t*>(local.data()), std::array<uint64_t, 2>{7, 8});
  actions.add<nic::LocalAtomic>(nic::AtomicKind::compare_swap, word.data(), uint64_t{10}, uint64_t{11},
                                reinterpret_cast<uint8_t*>(&before), nic::HerId{5});
  Driver driver;
  perform_each(actions, nic_memory, driver);
  EXPECT_EQ(driver.heard, std::vector<std::string>{"resume"});
  EXPECT_EQ(driver.answered, 1u) << "it has swapped";
  EXPECT_EQ(word[0], 11);
  EXPECT_EQ(before, 10u);
  EXPECT_EQ(local, (std::array<uint64_t, 3>{7, 8, 3}));
  EXPECT_EQ(nic_memory[59], 0xee);
  EXPECT_EQ(nic_memory[60], 1);
  EXPECT_EQ(nic_memory[63], 4);
}

TEST(Perform, ATransferMovesItsBytes) {
  const std::array<uint8_t, 4> from{1, 2, 3, 4};
  std::array<uint8_t, 4> to{};
  nic::DmaWrite write;
  write.dma = nic::DmaId{9};
  write.host = to.data();
  write.source = {nic::PayloadRef::Space::local, from.data(), 3};
  EXPECT_EQ(perform(write), nic::DmaId{9});
  EXPECT_EQ(to, (std::array<uint8_t, 4>{1, 2, 3, 0}));
  const nic::DmaWrite nothing{.dma = nic::DmaId{10}, .host = nullptr, .source = {}, .her = {}};
  EXPECT_EQ(perform(nothing), nic::DmaId{10});
}

}  // namespace
}  // namespace spinloom::portals
