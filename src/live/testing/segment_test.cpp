// Segments and the cards by which peers find them.
#include "live/node/segment.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <set>

#include "base/random.hpp"
#include "live/launch/business_card.hpp"
#include "live/launch/launcher.hpp"
#include "live/launch/reach.hpp"

namespace spinloom::live {
namespace {

constexpr Secret nonce{11, 22};

TEST(BusinessCard, IsReadAsItWasWritten) {
  Random random(1, "cards");
  for (int i = 0; i < 1000; ++i) {
    BusinessCard card;
    card.machine = random.next() >> random.below(64);
    card.pid = static_cast<int64_t>(random.below(1 << 22));
    card.file = static_cast<int>(random.below(5000));
    card.nonce = {random.next(), random.next()};
    card.user = static_cast<uint32_t>(random.next());
    card.address = static_cast<uint32_t>(random.next());
    card.port = static_cast<uint16_t>(random.next());
    card.traits = random.next();
    card.gateway = static_cast<Gateway>(random.below(3));
    for (uint64_t left = random.below(BusinessCard::networks_max + 1); left > 0; --left) {
      card.networks.push_back({{static_cast<uint32_t>(random.next()), static_cast<uint32_t>(random.below(33))},
                               static_cast<uint16_t>(random.next())});
    }
    const std::string text = write(card);
    ASSERT_LE(text.size(), exchange_bytes_max);
    for (const char letter : text) ASSERT_TRUE(letter > ' ' && letter < 127 && letter != '=') << text;
    const auto again = read_card(text);
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(*again, card);
  }
}

TEST(BusinessCard, WhoCannotStartSaysWhy) {
  const std::string text = write(fail(Code::environment, "no = file; for 'rank 3'\n", std::string(500, 'x')));
  for (const char letter : text) ASSERT_TRUE(letter > ' ' && letter < 127 && letter != '=' && letter != ';') << text;
  EXPECT_LE(text.size(), exchange_bytes_max);
  const auto read = read_card(text);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().message.rfind("no = file; for 'rank 3'\nxxx", 0), 0u) << read.error().message;
}

TEST(BusinessCard, WhatIsNoCardIsAnError) {
  const std::string good = write(BusinessCard{});
  ASSERT_TRUE(read_card(good).ok());
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(read_card(good.substr(0, length)).ok()) << good.substr(0, length);
  }
  EXPECT_FALSE(read_card(good + "-0").ok());
  EXPECT_FALSE(read_card(good + " ").ok());
  EXPECT_FALSE(read_card("spl1" + good.substr(4)).ok());
  Random random(2, "bytes");
  for (int i = 0; i < 2000; ++i) {
    std::string spoiled = good;
    spoiled[random.below(spoiled.size())] = static_cast<char>(1 + random.below(255));
    const auto read = read_card(spoiled);
    if (read.ok()) {
      EXPECT_EQ(write(*read), spoiled);
    } else {
      EXPECT_NE(read.error().message.find("version"), std::string::npos);
    }
  }
}

TEST(BusinessCard, SecretsDifferAndTheMachineIsTheSame) {
  std::set<Secret> secrets;
  for (int i = 0; i < 100; ++i) secrets.insert(random_secret());
  EXPECT_EQ(secrets.size(), 100u);
  const auto once = machine_id(), again = machine_id();
  ASSERT_TRUE(once.ok() && again.ok());
  EXPECT_EQ(*once, *again);
}

TEST(BusinessCard, AMachineThatALimitHidesIsNotOneWithoutProc) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "sanitizers open a pipe to look at an object, and here is no descriptor left";
#endif
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{3, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto machine = machine_id();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(machine.ok());
  EXPECT_EQ(machine.error().code, Code::environment);
  EXPECT_NE(machine.error().message.find("ulimit -n"), std::string::npos) << machine.error().message;
}

TEST(Reach, ARankThatCannotBeReachedMakesAllAgree) {
  const auto job = [](std::vector<std::pair<uint64_t, uint64_t>> machines_and_traits) {
    std::vector<BusinessCard> cards;
    for (const auto& [machine, traits] : machines_and_traits) {
      cards.emplace_back();
      cards.back().machine = machine;
      cards.back().traits = traits;
    }
    return cards;
  };
  EXPECT_FALSE(must_agree(job({{1, 7}})));
  EXPECT_FALSE(must_agree(job({{1, 0}}))) << "alone";
  EXPECT_FALSE(must_agree(job({{1, 7}, {1, 7}, {2, 9}, {2, 9}, {3, 0}})));
  EXPECT_TRUE(must_agree(job({{1, 7}, {2, 9}, {1, 8}})));
  EXPECT_TRUE(must_agree(job({{2, 9}, {1, 7}, {1, 7}, {1, 8}})));
  EXPECT_TRUE(must_agree(job({{1, 0}, {1, 0}})));
  EXPECT_NE(traits_of_self(), 0u);
  EXPECT_EQ(traits_of_self(), traits_of_self());
}

TEST(Reach, IsReadAsItWasWritten) {
  Random random(3, "reach");
  for (uint32_t ranks = 1; ranks < 40; ++ranks) {
    UnreachedReasons unreached(ranks);
    for (std::string& why : unreached) why = random.below(2) == 0 ? "" : "forbidden";
    const std::string text = write(unreached);
    ASSERT_LE(text.size(), exchange_bytes_max);
    const auto read = read_unreached(text, ranks);
    ASSERT_TRUE(read.ok()) << read.error().message;
    for (uint32_t rank = 0; rank < ranks; ++rank) EXPECT_EQ((*read)[rank], !unreached[rank].empty());
    EXPECT_FALSE(read_unreached(text + "0", ranks).ok());
    EXPECT_FALSE(read_unreached(text.substr(0, text.size() - 1) + "g", ranks).ok());
  }
  EXPECT_LE(write(UnreachedReasons(local_ranks_max)).size(), exchange_bytes_max);
}

TEST(Reach, ANamespaceOfItsOwnIsSeen) {
  EXPECT_TRUE(shares_namespaces(getpid()));
  EXPECT_TRUE(shares_namespaces(getppid()));
  EXPECT_FALSE(shares_namespaces(0));
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWNET) != 0) _exit(2);
    _exit(shares_namespaces(getppid()) ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) != 1);
}

TEST(Segment, IsTheSameMemoryForBoth) {
  auto own = Segment::create(1, 3, nonce);
  ASSERT_TRUE(own.ok()) << own.error().message;
  auto seen = Segment::attach(getpid(), own->file(), 1, 3, nonce);
  ASSERT_TRUE(seen.ok()) << seen.error().message;
  for (uint32_t sender = 0; sender < 3; ++sender) {
    ChannelWriter writer(seen->channel_of(sender));
    Cell cell;
    cell.kind = CellKind::small;
    cell.message = 100 + sender;
    const ChannelWriter::Room room = writer.reserve(ChannelWriter::bulk_max());
    ASSERT_NE(room.cell, nullptr);
    room.bulk[ChannelWriter::bulk_max() - 1] = static_cast<uint8_t>(sender);
    writer.publish(room, cell);
  }
  for (uint32_t sender = 0; sender < 3; ++sender) {
    const ChannelReader reader(own->channel_of(sender));
    ASSERT_FALSE(reader.empty());
    EXPECT_EQ(reader.front().message, 100 + sender);
    EXPECT_EQ(reader.bulk(0, ChannelWriter::bulk_max())[ChannelWriter::bulk_max() - 1], sender);
  }
}

TEST(Segment, OfAnotherJobRankSizeOrBuildIsRefused) {
  auto own = Segment::create(1, 3, nonce);
  ASSERT_TRUE(own.ok());
  const auto refusal = [&](int64_t pid, int file, uint32_t rank, uint32_t ranks, const Secret& secret) {
    const auto got = Segment::attach(pid, file, rank, ranks, secret);
    return got.ok() ? std::string() : got.error().message;
  };
  EXPECT_EQ(refusal(getpid(), own->file(), 1, 3, nonce), "");
  EXPECT_NE(refusal(getpid(), own->file(), 1, 3, {11, 23}).find("another program"), std::string::npos);
  EXPECT_NE(refusal(getpid(), own->file(), 1, 3, {12, 22}).find("another program"), std::string::npos);
  EXPECT_NE(refusal(getpid(), own->file(), 2, 3, nonce).find("another program"), std::string::npos);
  EXPECT_NE(refusal(getpid(), own->file(), 1, 2, nonce).find("another program"), std::string::npos);
  EXPECT_NE(refusal(getpid(), own->file(), 1, 1000, nonce).find("another program"), std::string::npos) << "too short";
  EXPECT_NE(refusal(getpid(), 999, 1, 3, nonce), "");
  EXPECT_NE(refusal(getpid(), -1, 1, 3, nonce), "");
  own->header().build ^= 1;
  EXPECT_NE(refusal(getpid(), own->file(), 1, 3, nonce).find("version"), std::string::npos);
  own->header().build ^= 1;
  own->header().magic = 0;
  EXPECT_NE(refusal(getpid(), own->file(), 1, 3, nonce), "");

  std::FILE* const other = std::tmpfile();  // a file of the process that now has the pid
  ASSERT_NE(other, nullptr);
  EXPECT_NE(refusal(getpid(), fileno(other), 1, 3, nonce), "");
  std::fclose(other);
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  EXPECT_NE(refusal(getpid(), pipe_ends[1], 1, 3, nonce), "");
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

TEST(Segment, NobodyMakesItShorter) {
  auto own = Segment::create(1, 3, nonce);
  ASSERT_TRUE(own.ok()) << own.error().message;
  EXPECT_NE(ftruncate(own->file(), 0), 0);
  EXPECT_NE(ftruncate(own->file(), 1 << 30), 0);
  EXPECT_NE(fcntl(own->file(), F_ADD_SEALS, F_SEAL_WRITE), 0) << "nor read-only for its own process";
  ASSERT_TRUE(Segment::attach(getpid(), own->file(), 1, 3, nonce).ok());

  // Equal bytes in memory that its process could make shorter.
  const int other = memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  struct stat status{};
  ASSERT_EQ(fstat(own->file(), &status), 0);
  ASSERT_EQ(ftruncate(other, status.st_size), 0);
  ASSERT_EQ(pwrite(other, &own->header(), sizeof(SegmentHeader), 0), static_cast<ssize_t>(sizeof(SegmentHeader)));
  const auto refused = Segment::attach(getpid(), other, 1, 3, nonce);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("not sealed"), std::string::npos) << refused.error().message;
  ASSERT_EQ(fcntl(other, F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_TRUE(Segment::attach(getpid(), other, 1, 3, nonce).ok()) << "sealed, it is as good";
  close(other);
}

TEST(Segment, OfAProcessThatHasEndedIsRefused) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_FALSE(Segment::attach(child, 3, 0, 2, nonce).ok());
}

TEST(Segment, AJobOfTooManyRanksIsAnError) {
  const auto made = Segment::create(0, local_ranks_max + 1, nonce);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, Code::exhausted);
}

}  // namespace
}  // namespace spinloom::live
