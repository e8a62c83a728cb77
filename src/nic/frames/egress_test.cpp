// The order in which frames of handlers and of the host leave.
#include "nic/frames/egress.hpp"

#include <gtest/gtest.h>

#include <string>

namespace spinloom::frames {
namespace {

// The order in which three frames of handlers and three of the host leave, one at a time.
std::string order(Arbitration arbitration) {
  Egress egress(arbitration, 1, 8);
  for (uint32_t i = 0; i < 3; ++i) {
    egress.add_handler({spin::DmaId{i}, 0, {}});
    EXPECT_TRUE(egress.add_host({{}, i, {}}));
  }
  std::string left;
  while (const auto frame = egress.next()) {
    left += frame->dma.exists() ? 'n' : 'h';
    EXPECT_FALSE(egress.next().has_value());  // one under way
    egress.finish();
  }
  EXPECT_EQ(egress.waiting(), 0u);
  return left;
}

// Rules: FPS-53.
TEST(Egress, HandlersFirst) { EXPECT_EQ(order(Arbitration::handlers_first), "nnnhhh"); }
// Rules: FPS-54.
TEST(Egress, RoundRobin) { EXPECT_EQ(order(Arbitration::round_robin), "hnhnhn"); }

TEST(Egress, TheHostIsHeldBack) {
  Egress egress(Arbitration::handlers_first, 1, 2);
  EXPECT_TRUE(egress.add_host({}));
  EXPECT_TRUE(egress.add_host({}));
  EXPECT_FALSE(egress.add_host({}));
  EXPECT_TRUE(egress.next().has_value());
  EXPECT_TRUE(egress.add_host({}));
}

}  // namespace
}  // namespace spinloom::frames
