// Ranks on threads: one exchange of all out of exchanges of their processes, and ranks that do not come.
#include "live/launch/thread_launchers.hpp"

#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "base/log.hpp"
#include "base/testing/patience.hpp"

namespace spinloom::live {
namespace {

// The launcher of one of two processes, both in this one.
class Meeting {
 public:
  explicit Meeting(uint32_t processes) : texts_(processes), all_(processes) {}

  class Of final : public Launcher {
   public:
    Of(Meeting& meeting, uint32_t rank) : meeting_(meeting), rank_(rank) {}
    [[nodiscard]] const char* name() const override { return "meeting"; }
    [[nodiscard]] uint32_t rank() const override { return rank_; }
    [[nodiscard]] uint32_t size() const override { return static_cast<uint32_t>(meeting_.texts_.size()); }
    [[nodiscard]] Result<std::vector<std::string>> exchange(const std::string& mine, const StartWait&) override {
      EXPECT_LE(mine.size(), exchange_bytes_max);
      for (const char letter : mine) EXPECT_TRUE(letter > ' ' && letter < 127) << mine;
      meeting_.texts_[rank_] = mine;
      meeting_.all_.arrive_and_wait();
      std::vector<std::string> out = meeting_.texts_;
      meeting_.all_.arrive_and_wait();
      ++exchanges;
      return out;
    }
    int exchanges = 0;

   private:
    Meeting& meeting_;
    uint32_t rank_;
  };

 private:
  std::vector<std::string> texts_;
  std::barrier<> all_;
};

using Texts = std::vector<std::string>;

TEST(ThreadLaunchers, ranks_of_all_processes_get_the_texts_of_all_ranks) {
  constexpr uint32_t processes = 2, count = 3;
  Meeting meeting(processes);
  std::vector<std::thread> threads;
  std::array<std::shared_ptr<Meeting::Of>, processes> launchers;
  for (uint32_t process = 0; process < processes; ++process) {
    launchers[process] = std::make_shared<Meeting::Of>(meeting, process);
    const auto all = ThreadLaunchers::create(launchers[process], count);
    for (uint32_t number = 0; number < count; ++number) {
      threads.emplace_back([launcher = all->launcher_of(number), rank = process * count + number] {
        EXPECT_EQ(launcher->rank(), rank);
        EXPECT_EQ(launcher->size(), processes * count);
        for (uint32_t round = 0; round < 20; ++round) {
          // Rank r has a text of r * round * 17 letters, at most the longest.
          const auto text_of = [round](uint32_t of) {
            return std::string(std::min<size_t>(size_t{of} * round * 17, exchange_bytes_max),
                               static_cast<char>('a' + of));
          };
          const auto got = launcher->exchange(text_of(rank), {});
          ASSERT_TRUE(got.ok()) << got.error().message;
          Texts expected;
          for (uint32_t of = 0; of < processes * count; ++of) expected.push_back(text_of(of));
          EXPECT_EQ(*got, expected) << round;
        }
      });
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(launchers[0]->exchanges, launchers[1]->exchanges);
  EXPECT_GT(launchers[0]->exchanges, 20);
}

TEST(ThreadLaunchers, a_rank_that_has_ended_is_an_error_for_those_that_wait) {
  Meeting meeting(1);
  const auto all = ThreadLaunchers::create(std::make_shared<Meeting::Of>(meeting, 0), 2);
  Result<Texts> got = Texts{};
  std::thread waits([&] { got = all->launcher_of(0)->exchange("mine", {}); });
  all->quit(1);
  waits.join();
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().message, "rank 1 has ended");
  EXPECT_FALSE(all->launcher_of(0)->exchange("mine", {}).ok()) << "and later exchanges fail, too";
}

TEST(ThreadLaunchers, a_rank_that_does_not_come_is_an_error_in_time) {
  Meeting meeting(1);
  const auto all = ThreadLaunchers::create(std::make_shared<Meeting::Of>(meeting, 0), 2);
  const auto got = all->launcher_of(0)->exchange("mine", {.report_after_s = 2, .limit_s = 1});
  ASSERT_FALSE(got.ok());
  EXPECT_NE(got.error().message.find("SPINLOOM_START_S"), std::string::npos) << got.error().message;
}

// The third rank comes when the line has been printed.
TEST(ThreadLaunchers, ranks_that_wait_together_print_one_line) {
  std::mutex mutex;
  std::condition_variable printed;
  std::vector<std::string> lines;
  log::install(
      [&](log::Level, std::string_view, std::string_view line) {
        const std::lock_guard lock(mutex);
        lines.emplace_back(line);
        printed.notify_all();
      },
      log::Level::warning);
  Meeting meeting(1);
  const auto all = ThreadLaunchers::create(std::make_shared<Meeting::Of>(meeting, 0), 3);
  std::vector<std::thread> threads;
  const auto exchange = [](const auto& launcher) {
    EXPECT_TRUE(launcher->exchange("mine", {.report_after_s = 1, .limit_s = 0}).ok());
  };
  for (uint32_t number = 0; number < 2; ++number) {
    threads.emplace_back([&exchange, launcher = all->launcher_of(number)] { exchange(launcher); });
  }
  {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(printed.wait_for(lock, patient(std::chrono::seconds(60)), [&lines] { return !lines.empty(); }));
  }
  exchange(all->launcher_of(2));
  for (std::thread& thread : threads) thread.join();
  log::install({}, log::Level::error);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("has waited 1 s"), std::string::npos) << lines[0];
}

TEST(ThreadLaunchers, processes_that_have_other_ranks_are_told) {
  Meeting meeting(2);
  const auto one = ThreadLaunchers::create(std::make_shared<Meeting::Of>(meeting, 0), 1);
  const auto other = std::make_shared<Meeting::Of>(meeting, 1);
  std::thread plain([&] { EXPECT_TRUE(other->exchange("spl2-a-card", {}).ok()); });
  const auto got = one->launcher_of(0)->exchange("mine", {});
  plain.join();
  ASSERT_FALSE(got.ok());
  EXPECT_NE(got.error().message.find("process 1 of the job does not have its ranks on threads"), std::string::npos)
      << got.error().message;
}

TEST(ThreadLaunchers, what_is_packed_comes_out_again) {
  for (const Texts& texts : {Texts{}, Texts{""}, Texts{"a", "", "5-b"}, Texts(40, std::string(500, 'x'))}) {
    const auto again = unpack(pack(texts));
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(*again, texts);
  }
  for (const char* const wrong : {"x", "5-abc", "1a-", "-", "3-abc1"}) EXPECT_FALSE(unpack(wrong).ok()) << wrong;
}

}  // namespace
}  // namespace spinloom::live
