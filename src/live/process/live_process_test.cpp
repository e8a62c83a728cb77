// Several NICs in one process, over one launcher: each works, and the last to close leaves.
#include "live/process/live_process.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace spinloom::process {
namespace {

// A job of one process.
class CountingLauncher final : public live::Launcher {
 public:
  [[nodiscard]] const char* name() const override { return "counting"; }
  [[nodiscard]] uint32_t rank() const override { return 0; }
  [[nodiscard]] uint32_t size() const override { return 1; }
  [[nodiscard]] Result<std::vector<std::string>> exchange(const std::string& mine, const live::StartWait&) override {
    ++exchanges;
    return std::vector<std::string>{mine};
  }
  void finish() override { ++finished; }
  int exchanges = 0;
  int finished = 0;
};

TEST(LiveProcess, two_nics_of_a_rank_share_its_launcher) {
  const auto launcher = std::make_shared<CountingLauncher>();
  auto first = LiveProcess::join({}, launcher);
  ASSERT_TRUE(first.ok()) << first.error().message;
  auto second = LiveProcess::join({}, launcher);
  ASSERT_TRUE(second.ok()) << second.error().message;
  EXPECT_EQ(launcher->exchanges, 2);
  EXPECT_TRUE((*first)->close());
  EXPECT_EQ(launcher->finished, 0) << "the other NIC still needs the launcher";
  EXPECT_TRUE((*second)->close());
  EXPECT_EQ(launcher->finished, 1);
}

TEST(LiveProcess, a_nic_that_cannot_start_keeps_no_other_from_leaving) {
  const auto launcher = std::make_shared<CountingLauncher>();
  auto first = LiveProcess::join({}, launcher);
  ASSERT_TRUE(first.ok()) << first.error().message;
  Settings bad;
  bad.trace = "/no/such/folder/trace";
  const auto second = LiveProcess::join(bad, launcher);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().message.find("SPINLOOM_TRACE"), std::string::npos) << second.error().message;
  EXPECT_TRUE((*first)->close());
  EXPECT_EQ(launcher->finished, 1);
}

}  // namespace
}  // namespace spinloom::process
