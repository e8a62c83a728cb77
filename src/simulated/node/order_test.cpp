// The order of bytes at one address of host memory, among messages of one initiator.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "portals/interface/interface.hpp"
#include "simulated/node/testing/profile.hpp"
#include "simulated/node/world.hpp"

namespace spinloom::simulated {
namespace {

enum class Kind : uint8_t { put, sum, fetch_sum, get };

// Rank 0 sends to a word of rank 1, and waits for nothing in between.
class DataOrder : public testing::TestWithParam<std::array<Kind, 2>> {
 protected:
  void SetUp() override {
    auto world = World::create(profile_, images_, {});
    ASSERT_TRUE(world.ok());
    world_ = std::move(*world);
    target_ = std::make_unique<portals::Interface>(world_->node(1));
    const auto portal = target_->pt_alloc({}, {});
    ASSERT_TRUE(portal.ok());
    nic::Entry entry;
    entry.start = reinterpret_cast<uint8_t*>(&word_);
    entry.length = sizeof word_;
    entry.options.op_get = true;
    ASSERT_TRUE(target_->me_append(*portal, entry).ok());
    host_ = std::make_unique<portals::Interface>(world_->node(0));
  }

  void send(Kind kind, size_t place) {
    nic::Put put;
    put.local = reinterpret_cast<const uint8_t*>(&sources_[place]);
    put.length = sizeof(uint64_t);
    put.target = nic::Rank{1};
    put.portal = nic::PortalIndex{0};
    nic::ReplyTo reply;
    reply.local = reinterpret_cast<uint8_t*>(&replies_[place]);
    if (kind == Kind::put) {
      ASSERT_TRUE(host_->put(put).ok());
    }
    if (kind == Kind::get) {
      ASSERT_TRUE(host_->get({reply, sizeof(uint64_t), nic::Rank{1}, nic::PortalIndex{0}}).ok());
    }
    if (kind != Kind::sum && kind != Kind::fetch_sum) return;
    nic::Atomic atomic;
    atomic.put = put;
    atomic.datatype = nic::Datatype::uint64;
    if (kind == Kind::fetch_sum) atomic.fetch = reply;
    ASSERT_TRUE(host_->atomic(atomic).ok());
  }

  Profile profile_ = test_profile();
  std::vector<hpu::Image> images_;
  std::unique_ptr<World> world_;
  std::unique_ptr<portals::Interface> host_;
  std::unique_ptr<portals::Interface> target_;
  uint64_t word_ = 1;
  std::array<uint64_t, 2> sources_{10, 100};
  std::array<uint64_t, 2> replies_{};
};

// Rules: P4F-18.3, P4F-18.4.
TEST_P(DataOrder, TheSecondMessageFindsWhatTheFirstHasDone) {
  uint64_t expected = word_;
  std::array<uint64_t, 2> expected_replies{};
  for (size_t place = 0; place < 2; ++place) {
    const Kind kind = GetParam()[place];
    send(kind, place);
    if (kind == Kind::get || kind == Kind::fetch_sum) expected_replies[place] = expected;
    if (kind == Kind::put) expected = sources_[place];
    if (kind == Kind::sum || kind == Kind::fetch_sum) expected += sources_[place];
  }
  world_->drain();
  EXPECT_EQ(word_, expected);
  EXPECT_EQ(replies_, expected_replies);
}

std::vector<std::array<Kind, 2>> pairs() {
  std::vector<std::array<Kind, 2>> all;
  for (const Kind first : {Kind::put, Kind::sum, Kind::fetch_sum, Kind::get}) {
    for (const Kind second : {Kind::put, Kind::sum, Kind::fetch_sum, Kind::get}) all.push_back({first, second});
  }
  return all;
}

std::string name_of_pair(const testing::TestParamInfo<std::array<Kind, 2>>& pair) {
  constexpr const char* names[] = {"Put", "Sum", "FetchSum", "Get"};
  return std::string(names[static_cast<size_t>(pair.param[0])]) + names[static_cast<size_t>(pair.param[1])];
}

INSTANTIATE_TEST_SUITE_P(Pairs, DataOrder, testing::ValuesIn(pairs()), name_of_pair);

}  // namespace
}  // namespace spinloom::simulated
