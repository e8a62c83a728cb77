// Tests which ranks are founders of a board; the ranks are threads of this process.
#include "mpi/meeting/board.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace spinloom::mpi {
namespace {

using Clock = std::chrono::steady_clock;
using Ranks = std::vector<int>;

template <size_t ranks>
struct World {
  World() {
    static int worlds = 0;
    name = text("spinloom-mpi-board-", getpid(), "-", ++worlds);
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World() {
    for (Board& board : boards) board.leave();
  }
  // `size`: of the world, of which some ranks may be elsewhere.
  void join(uint32_t rank, uint32_t size, uint32_t local_ranks) {
    const Status joined = boards[rank].join(name, rank, size, local_ranks);
    EXPECT_TRUE(joined.ok()) << joined.error().message;
  }

  std::string name;
  std::array<Board, ranks> boards;
};

// Longer than a test may take: a rank that waits for so long does not come back.
constexpr std::chrono::hours forever(24);

// Files that another user of the machine, or another program of this user, may have put in the place of a board.
TEST(Board, IsNotWhatSomebodyElseHasMade) {
  const auto refusal = [](const std::string& name) {
    Board board;
    const Status joined = board.join(name, 0, 2, 1);
    return joined.ok() ? std::string("joined") : joined.error().message;
  };
  const std::string name = text("spinloom-mpi-board-", getpid(), "-other");
  const std::string path = "/dev/shm/" + name;
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  ASSERT_GE(file, 0) << std::strerror(errno);
  ASSERT_EQ(write(file, "kept", 4), 4);
  ASSERT_EQ(link(path.c_str(), (path + "-again").c_str()), 0);
  EXPECT_NE(refusal(name).find("is not what a rank of this job has made"), std::string::npos) << refusal(name);
  unlink((path + "-again").c_str());
  ASSERT_EQ(fchmod(file, 0644), 0);
  EXPECT_NE(refusal(name).find("is not what a rank of this job has made"), std::string::npos) << refusal(name);
  ASSERT_EQ(fchmod(file, 0600), 0);
  if (fchown(file, 12345, 12345) == 0) {  // only root can; the kernel may keep even root from opening it
    const std::string said = refusal(name);
    EXPECT_TRUE(said.ends_with("belongs to another user") || said.ends_with("Permission denied")) << said;
  }
  struct stat found{};
  ASSERT_EQ(fstat(file, &found), 0);
  EXPECT_EQ(found.st_size, 4);
  close(file);
  unlink(path.c_str());
}

TEST(Board, HasNoFoundersBeforeItIsSettled) {
  World<1> world;
  world.join(0, 2, 1);
  EXPECT_TRUE(world.boards[0].founders().empty());
  EXPECT_FALSE(world.boards[0].is_founder(0));
}

TEST(Board, TheRanksOfThisMachineAreItsFoundersAtOnce) {
  World<3> world;
  for (const uint32_t rank : {0, 2}) world.join(rank, 5, 2);
  for (const uint32_t rank : {0, 2}) {
    const Board& board = world.boards[rank];
    world.boards[rank].settle(forever);
    EXPECT_EQ(board.founders(), Ranks({0, 2}));
    EXPECT_TRUE(board.is_founder(0));
    EXPECT_TRUE(board.is_founder(2));
    for (const int other : {-1, 1, 3, 4, 5}) EXPECT_FALSE(board.is_founder(other)) << other;
  }
}

TEST(Board, WhoSettlesWaitsForTheOthersOfThisMachine) {
  World<2> world;
  world.join(0, 4, 2);
  std::thread other([&world] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    world.join(1, 4, 2);
    world.boards[1].settle(forever);
  });
  world.boards[0].settle(forever);
  other.join();
  for (const Board& board : world.boards) EXPECT_EQ(board.founders(), Ranks({0, 1}));
}

TEST(Board, WhoComesLateIsNoFounderAndNobodyWaitsForItAgain) {
  World<3> world;
  for (const uint32_t rank : {0, 1}) world.join(rank, 4, 0);
  constexpr std::chrono::milliseconds patience(20);
  const auto begun = Clock::now();
  world.boards[1].settle(patience);
  EXPECT_GE(Clock::now() - begun, patience);
  world.boards[0].settle(forever);
  world.join(2, 4, 0);
  world.boards[2].settle(forever);
  for (const Board& board : world.boards) EXPECT_EQ(board.founders(), Ranks({0, 1}));
}

TEST(Board, FoundersStayWhenTheyHaveLeft) {
  World<2> world;
  for (const uint32_t rank : {0, 1}) world.join(rank, 2, 2);
  world.boards[0].settle();
  world.boards[0].leave();
  world.boards[1].settle();
  EXPECT_EQ(world.boards[1].founders(), Ranks({0, 1}));
}

// Ranks that join while others lose their patience.
TEST(Board, AllRanksFindTheSameFounders) {
  constexpr int worlds = 16;
  constexpr uint32_t ranks = 4;
  std::array<World<ranks>, worlds> all;
  const auto patience_ends = Clock::now() + std::chrono::milliseconds(1'050);
  std::vector<std::thread> threads;
  for (int i = 0; i < worlds; ++i) {
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&world = all[static_cast<size_t>(i)], rank, i, patience_ends] {
        const auto before =
            std::chrono::microseconds(rank < 2 ? 1'000'000 : 300 * (i - worlds / 2 + static_cast<int>(rank)));
        std::this_thread::sleep_until(patience_ends - before);
        world.join(rank, ranks + 1, 0);
        world.boards[rank].settle();
      });
    }
  }
  for (std::thread& thread : threads) thread.join();
  for (const World<ranks>& world : all) {
    EXPECT_GE(world.boards[0].founders().size(), 1U);
    for (const Board& board : world.boards) EXPECT_EQ(board.founders(), world.boards[0].founders());
  }
}

}  // namespace
}  // namespace spinloom::mpi
