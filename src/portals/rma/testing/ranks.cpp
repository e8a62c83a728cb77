#include "portals/rma/testing/ranks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace spinloom::rma::test {
namespace {

constexpr Time moment{10'000'000};
constexpr Time long_time{10'000'000'000};  // the time that passes where nothing is under way

}  // namespace

TestRanks::TestRanks(uint32_t ranks, const Options& options, uint64_t seed, bool emulate_odd, bool racy)
    : options_(options), emulate_odd_(emulate_odd), random_(seed, "rma/ranks") {
  testbed::LoopbackOptions driver;
  driver.ranks = ranks;
  if (racy) driver.racy_seed = seed;
  driver.headers_in_order = true;
  auto loopback = testbed::Loopback::create(driver);
  SPL_ASSERT(loopback.ok(), "no loopback driver");
  loopback_ = std::move(*loopback);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    Member& member = members_.emplace_back();
    member.port = std::make_unique<PausedPort>(loopback_->port(rank));
    member.interface = std::make_unique<portals::Interface>(*member.port);
  }
}

TestRanks::~TestRanks() = default;

void TestRanks::pass_baton(std::unique_lock<std::mutex>& held, uint32_t rank, bool is_over) {
  bool works = true;
  for (uint64_t steps = random_.below(8); steps > 0; --steps) works = loopback_->step();
  members_[rank].port->pass(works ? moment : long_time);
  members_[rank].is_over = is_over;
  ++pauses_;
  do {
    turn_ = static_cast<uint32_t>(random_.below(members_.size()));
  } while (members_[turn_].is_over &&
           std::ranges::any_of(members_, [](const Member& member) { return !member.is_over; }));
  changed_.notify_all();
  if (!is_over) changed_.wait(held, [&] { return turn_ == rank; });
}

void TestRanks::kill(uint32_t rank) {
  loopback_->kill(rank);
  for (uint32_t other = 0; other < members_.size(); ++other) {
    if (other != rank) loopback_->tell_lost(other, {rank});
  }
}

// The thread has the mutex while its rank goes on.
void TestRanks::play(uint32_t rank, const Program& program) {
  std::unique_lock held(mutex_);
  changed_.wait(held, [&] { return turn_ == rank; });
  Options options = options_;
  options.ranks = static_cast<uint32_t>(members_.size());
  options.emulated = options.emulated || (emulate_odd_ && rank % 2 == 1);
  options.random = [this] { return random_.next(); };
  options.pause = [&](const char*, Time) {
    pass_baton(held, rank, false);
    return !is_stuck();
  };
  options.meet = [&](portals::Interface&, nic::PortalIndex) -> Status {
    ++open_;
    while (open_ < members_.size()) pass_baton(held, rank, false);
    return {};
  };
  auto context = Context::open(*members_[rank].interface, options);
  EXPECT_TRUE(context.ok()) << context.error().message;
  if (context) program(rank, **context);
  if (context) context->reset();
  pass_baton(held, rank, true);
}

void TestRanks::run(const Program& program) {
  std::vector<std::thread> threads;
  threads.reserve(members_.size());
  for (uint32_t rank = 0; rank < members_.size(); ++rank) {
    threads.emplace_back([this, rank, &program] { play(rank, program); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(is_stuck()) << "it never ends";
}

}  // namespace spinloom::rma::test
