// Cards on demand: ranks that come in any order, leave, or were never there; and others that send whatever they like.
#include "live/launch/rendezvous.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/random.hpp"
#include "live/launch/launcher.hpp"

namespace spinloom::live {
namespace {

constexpr uint32_t ranks = 4;
constexpr uid_t nobody = 65534;

// The ranks of a job in this process, under a name that no other test has.
struct Job {
  Job() : name(text("test-", getpid(), "-", ++jobs)) {}

  [[nodiscard]] std::unique_ptr<Rendezvous> open(uint32_t rank) const {
    auto made = Rendezvous::open(name, rank, ranks);
    EXPECT_TRUE(made.ok()) << made.error().message;
    (*made)->set_card(card_of(rank));
    return std::move(*made);
  }
  [[nodiscard]] static BusinessCard card_of(uint32_t rank) {
    BusinessCard card;
    card.pid = getpid();
    card.file = static_cast<int>(100 + rank);
    return card;
  }
  [[nodiscard]] std::string address(uint32_t rank) const {
    return text("spinloom-", getuid(), "-", std::hex, std::hash<std::string>{}(name), std::dec, "-", rank);
  }
  // Sends bytes to a rank from a socket without a name, maybe with a descriptor.
  void send(uint32_t rank, const std::string& bytes, int descriptor = -1) const {
    const int from = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    const std::string peer = address(rank);
    std::memcpy(to.sun_path + 1, peer.data(), peer.size());
    iovec what{const_cast<char*>(bytes.data()), bytes.size()};
    alignas(cmsghdr) char beside[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_name = &to;
    message.msg_namelen = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + peer.size());
    message.msg_iov = &what;
    message.msg_iovlen = 1;
    if (descriptor >= 0) {
      message.msg_control = beside;
      message.msg_controllen = sizeof beside;
      cmsghdr* const control = CMSG_FIRSTHDR(&message);
      control->cmsg_level = SOL_SOCKET;
      control->cmsg_type = SCM_RIGHTS;
      control->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(control), &descriptor, sizeof descriptor);
    }
    EXPECT_EQ(sendmsg(from, &message, 0), static_cast<ssize_t>(bytes.size()));
    close(from);
  }

  static inline int jobs = 0;
  std::string name;
};

// Lets both serve until nothing comes any more; what each has heard.
std::vector<std::vector<Rendezvous::News>> serve_all(const std::vector<Rendezvous*>& all) {
  std::vector<std::vector<Rendezvous::News>> heard(all.size());
  for (int round = 0; round < 8; ++round) {
    for (size_t i = 0; i < all.size(); ++i) {
      for (auto& news : all[i]->serve()) heard[i].push_back(std::move(news));
    }
  }
  return heard;
}

size_t open_files() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

TEST(Rendezvous, WhoGreetsLaterFindsWhoCameBefore) {
  const Job job;
  for (const bool again : {false, true}) {
    const auto first = job.open(0);
    first->greet();
    EXPECT_TRUE(first->serve().empty());
    const auto second = job.open(3);
    second->greet();
    if (again) first->greet();
    const auto heard = serve_all({first.get(), second.get()});
    ASSERT_EQ(heard[0].size(), 1u);
    ASSERT_EQ(heard[1].size(), 1u);
    EXPECT_EQ(heard[0][0].rank, 3u);
    EXPECT_EQ(heard[0][0].card, Job::card_of(3));
    EXPECT_EQ(heard[1][0].rank, 0u);
    EXPECT_EQ(heard[1][0].card, Job::card_of(0));
    EXPECT_EQ(first->rejected_messages() + second->rejected_messages(), 0u);
  }
}

TEST(Rendezvous, AQuestionSaysWhatIsKnownAtOnce) {
  const Job job;
  const auto asker = job.open(0);
  EXPECT_EQ(asker->ask(1), Rendezvous::AskResult::absent);
  auto peer = job.open(1);
  EXPECT_EQ(asker->ask(1), Rendezvous::AskResult::delivered);
  EXPECT_EQ(serve_all({peer.get(), asker.get()})[1].size(), 1u);
  peer->stop_answering();
  EXPECT_EQ(asker->ask(1), Rendezvous::AskResult::gone);
  peer.reset();
  EXPECT_EQ(asker->ask(1), Rendezvous::AskResult::absent) << "nothing is left of it";
}

TEST(Rendezvous, WhoPartsSaysSoNowAndLater) {
  const Job job;
  const auto one = job.open(0), other = job.open(1);
  one->send_gone(1, "no memory; 100 %");
  one->send_gone(1, "something else");
  auto heard = serve_all({one.get(), other.get()})[1];
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_FALSE(heard[0].card);
  EXPECT_EQ(heard[0].why, "no memory; 100 %");
  EXPECT_EQ(other->ask(0), Rendezvous::AskResult::delivered);
  heard = serve_all({one.get(), other.get()})[1];
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_EQ(heard[0].why, "no memory; 100 %");
  const auto third = job.open(2);
  one->send_gone_to_all(std::string(5000, 'x'));
  heard = serve_all({third.get()})[0];
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_EQ(heard[0].why, std::string(exchange_bytes_max, 'x'));
}

TEST(Rendezvous, ANameThatIsTakenIsAnError) {
  const Job job;
  const auto one = job.open(0);
  const auto again = Rendezvous::open(job.name, 0, ranks);
  ASSERT_FALSE(again.ok());
  EXPECT_NE(again.error().message.find("another process has its name; set SPINLOOM_MEET=start"), std::string::npos)
      << again.error().message;
}

TEST(Rendezvous, WhoMeetsAllAtOnceAndWhoDoesNotFindEachOther) {
  const Job job;
  auto refuses = Rendezvous::refuse(job.name, 0, ranks);
  ASSERT_TRUE(refuses.ok()) << refuses.error().message;
  const auto another = Rendezvous::refuse(job.name, 1, ranks);
  ASSERT_TRUE(another.ok()) << another.error().message;
  const auto late = Rendezvous::open(job.name, 2, ranks);
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().message, "rank 0 meets all others in PtlInit: set SPINLOOM_MEET=start for all ranks");
  refuses->reset();
  const Job other;
  const auto waiting = other.open(2);
  const auto refused = Rendezvous::refuse(other.name, 0, ranks);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("rank 2 meets others at their first contact"), std::string::npos)
      << refused.error().message;
  const auto heard = waiting->serve();
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_EQ(heard[0].why.rfind("it cannot start: rank 2 meets", 0), 0u) << heard[0].why;
}

TEST(Rendezvous, AFullQueueKeepsNobodyWaiting) {
  const Job job;
  const auto busy = job.open(0);
  auto asker = job.open(1);
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(asker->ask(0), Rendezvous::AskResult::delivered);
  asker->greet();
  auto heard = serve_all({busy.get(), asker.get()});
  ASSERT_EQ(heard[0].size(), 1u);
  EXPECT_EQ(heard[0][0].card, Job::card_of(1));
  ASSERT_EQ(heard[1].size(), 1u);
  EXPECT_EQ(heard[1][0].card, Job::card_of(0));
}

TEST(Rendezvous, ACardMustNameItsSender) {
  const Job job;
  const auto one = job.open(0);
  BusinessCard false_card = Job::card_of(2);
  false_card.pid = getppid();
  job.send(0, "spl1-meet-c2 " + write(false_card));
  EXPECT_TRUE(one->serve().empty());
  EXPECT_EQ(one->rejected_messages(), 1u);
  job.send(0, "spl1-meet-c2 " + write(Job::card_of(2)));
  EXPECT_EQ(one->serve().size(), 1u);
  EXPECT_EQ(one->rejected_messages(), 1u);
}

TEST(Rendezvous, AnotherProcessSpeaksForNoRankThatIsKnown) {
  const Job job;
  const auto one = job.open(0), other = job.open(1);
  one->greet();
  ASSERT_EQ(serve_all({one.get(), other.get()})[0].size(), 1u);
  const pid_t child = fork();
  if (child == 0) {
    job.send(0, "spl1-meet-g1 because");
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(one->serve().empty());
  EXPECT_EQ(one->rejected_messages(), 1u);
}

TEST(Rendezvous, OtherUsersAreNotHeard) {
  if (getuid() != 0) GTEST_SKIP() << "only root can become another user";
  const Job job;
  const auto one = job.open(0);
  std::vector<std::string> said;
  log::install([&said](log::Level, std::string_view, std::string_view line) { said.emplace_back(line); },
               log::Level::warning);
  const pid_t child = fork();
  if (child == 0) {
    const std::string name = job.address(1);
    if (setresuid(nobody, nobody, nobody) != 0) _exit(1);
    BusinessCard card = Job::card_of(1);
    card.pid = getpid();
    for (const char* kind : {"a", "c", "g"}) {
      const int from = socket(AF_UNIX, SOCK_DGRAM, 0);
      sockaddr_un to{};
      to.sun_family = AF_UNIX;
      const std::string peer = name.substr(0, name.size() - 1) + "0";
      std::memcpy(to.sun_path + 1, peer.data(), peer.size());
      const std::string word = text("spl1-meet-", kind, "1 ", write(card));
      if (sendto(from, word.data(), word.size(), 0, reinterpret_cast<const sockaddr*>(&to),
                 static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + peer.size())) < 0) {
        _exit(2);
      }
    }
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(one->serve().empty());
  log::install(nullptr, log::Level::error);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(one->rejected_messages(), 3u);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("user 65534"), std::string::npos) << said[0];
}

TEST(Rendezvous, WhatIsNoMessageIsNotTaken) {
  const Job job;
  const auto one = job.open(0);
  const size_t files = open_files();
  const std::string good = "spl1-meet-c2 " + write(Job::card_of(2));
  std::vector<std::string> bad{
      "",  "spl1-meet-",    "spl1-meet-c", "spl1-meet-c2",   "spl1-meet-c2 ",  "spl1-meet-c4 x",
      " ", "spl1-meet-a0 ", "spl1-meet-a", "spl1-meet-a-1 ", "spl1-meet-x2 x", "spl2-meet-a2 "};
  bad.push_back("spl1-meet-a99999999999999999999 ");
  bad.push_back("spl1-meet-g2 " + std::string(2000, 'x'));
  for (size_t length = 0; length < good.size(); ++length) bad.push_back(good.substr(0, length));
  Random random(3, "words");
  for (int i = 0; i < 2000; ++i) {
    std::string spoiled = good;
    spoiled.resize(14 + random.below(good.size()), 'f');
    for (int j = 0; j < 3; ++j) spoiled[random.below(spoiled.size())] = static_cast<char>(random.below(256));
    bad.push_back(spoiled);
  }
  size_t heard = 0;
  for (const std::string& word : bad) {
    job.send(0, word, STDERR_FILENO);
    for (const auto& news : one->serve()) {
      EXPECT_TRUE(news.rank > 0 && news.rank < ranks && !news.card && !news.why.empty()) << word;
      ++heard;
    }
  }
  EXPECT_GT(heard + one->rejected_messages(), bad.size() - 20) << "a few are good questions by chance";
  EXPECT_GT(one->rejected_messages(), 500u);
  EXPECT_EQ(open_files(), files) << "descriptors that came with messages are closed";
}

}  // namespace
}  // namespace spinloom::live
