// Ranks that run ahead of others, limits, and what fails, on the loopback driver.
#include <gtest/gtest.h>

#include <numeric>

#include "base/testing/seeds.hpp"
#include "portals/collective/offloaded.hpp"
#include "portals/testbed/loopback.hpp"

namespace spinloom::collective {
namespace {

using Bytes = std::vector<uint8_t>;

// A few ranks, one team of all of them.
class Ranks {
 public:
  explicit Ranks(uint32_t count, const EndpointOptions& options = {}, std::optional<uint64_t> racy_seed = {}) {
    testbed::LoopbackOptions driver;
    driver.ranks = count;
    driver.racy_seed = racy_seed;
    driver.headers_in_order = true;
    driver.nic.unexpected_headers = options.unexpected_headers;
    auto made = testbed::Loopback::create(driver);
    EXPECT_TRUE(made.ok());
    loopback = std::move(*made);
    for (uint32_t rank = 0; rank < count; ++rank) {
      interfaces.push_back(std::make_unique<portals::Interface>(loopback->port(rank)));
    }
    open(options);
  }
  void open(const EndpointOptions& options) {
    for (const auto& interface : interfaces) {
      auto endpoint = Endpoint::open(*interface, options);
      EXPECT_TRUE(endpoint.ok()) << endpoint.error().message;
      endpoints.push_back(std::move(*endpoint));
      Endpoint::Team& team = teams.emplace_back();
      team.id = 3;
      team.ranks.resize(interfaces.size());
      std::iota(team.ranks.begin(), team.ranks.end(), 0);
      EXPECT_TRUE(endpoints.back()->join(team).ok());
    }
  }
  void open_again(const EndpointOptions& options) {
    for (const auto& endpoint : endpoints) EXPECT_TRUE(endpoint->close().ok());
    endpoints.clear();
    teams.clear();
    open(options);
  }
  ~Ranks() {
    for (const auto& endpoint : endpoints) {
      const Status closed = endpoint->close();
      if (killed < endpoints.size() && endpoint == endpoints[killed]) continue;  // its NIC answers nothing
      EXPECT_TRUE(closed.ok()) << closed.error().message;
    }
  }
  std::unique_ptr<Offloaded> make(uint32_t rank, std::vector<Vertex> operations, bool cached = true) {
    auto made = endpoints[rank]->make(teams[rank], {std::move(operations), 0, {}}, cached);
    EXPECT_TRUE(made.ok());
    return std::move(*made);
  }
  void run() { EXPECT_TRUE(loopback->run().ok()); }
  void kill(uint32_t rank) {
    killed = rank;
    loopback->kill(rank);
  }
  // True if all of them end when all ranks go on.
  bool all_end(const std::vector<Offloaded*>& schedules) {
    for (int looks = 0; looks < 100; ++looks) {
      bool all = true;
      for (Offloaded* const one : schedules) {
        const auto ended = one->test();
        EXPECT_TRUE(ended.ok()) << ended.error().message;
        all = all && ended.ok() && *ended;
      }
      if (all) return true;
      run();
    }
    return false;
  }

  // The error of one that never ends well.
  std::string error_of(Offloaded& one) {
    for (int looks = 0; looks < 1000; ++looks) {
      run();
      const auto ended = one.test();
      if (!ended.ok()) return ended.error().message;
      EXPECT_FALSE(*ended);
    }
    return "none";
  }

  std::unique_ptr<testbed::Loopback> loopback;
  uint32_t killed = UINT32_MAX;
  std::vector<std::unique_ptr<portals::Interface>> interfaces;
  std::vector<std::unique_ptr<Endpoint>> endpoints;
  std::vector<Endpoint::Team> teams;
};

Vertex message(VertexKind kind, uint32_t peer, Bytes& bytes, uint32_t number = 0) {
  Vertex made{.kind = kind, .peer = peer, .name = {.message = number}};
  Pieces pieces;
  if (!bytes.empty()) pieces.push_back({bytes.data(), bytes.size()});
  (kind == VertexKind::send ? made.from : made.to) = std::move(pieces);
  return made;
}

TEST(Ahead, ARankThreeStartsAheadOverwritesNothing) {
  Ranks ranks(2);
  Bytes out(100);
  Bytes in(100, 0xee);
  const auto sends = ranks.make(0, {message(VertexKind::send, 1, out)});
  const auto receives = ranks.make(1, {message(VertexKind::receive, 0, in)});
  // Rank 1 starts, and then has not looked for three more starts of rank 0.
  for (uint8_t start = 1; start <= 4; ++start) {
    std::fill(out.begin(), out.end(), start);
    ASSERT_TRUE(sends->start().ok());
    if (start == 1) {
      ASSERT_TRUE(receives->start().ok());
    }
    ASSERT_TRUE(ranks.all_end({sends.get()}));
    EXPECT_EQ(in, Bytes(100, 1));
  }
  EXPECT_EQ(ranks.endpoints[1]->copied_messages(), 0u);
  for (uint8_t start = 2; start <= 4; ++start) {
    ASSERT_TRUE(ranks.all_end({receives.get()}));
    EXPECT_EQ(in, Bytes(100, static_cast<uint8_t>(start - 1))) << "until the next start the memory is the program's";
    ASSERT_TRUE(receives->start().ok());
    ASSERT_TRUE(ranks.all_end({receives.get()}));
    EXPECT_EQ(in, Bytes(100, start));
    EXPECT_EQ(ranks.endpoints[1]->copied_messages(), start - 1u);
  }
}

// W = early_messages = 4, of which a start has one: starts 1 to 4 go, start 5 waits until W / 2 have been taken.
void start_beyond_window(size_t bytes) {
  EndpointOptions options;
  options.early_messages = 4;
  Ranks ranks(2, options);
  Bytes out(bytes);
  Bytes in(bytes);
  const auto sends = ranks.make(0, {message(VertexKind::send, 1, out)});
  const auto receives = ranks.make(1, {message(VertexKind::receive, 0, in)});
  uint8_t taken = 0;
  const auto take_one = [&] {
    ++taken;
    ASSERT_TRUE(receives->start().ok());
    ASSERT_TRUE(ranks.all_end({receives.get()}));
    EXPECT_EQ(in, Bytes(bytes, taken));
  };
  for (uint8_t start = 1; start <= 4; ++start) {
    std::fill(out.begin(), out.end(), start);
    ASSERT_TRUE(sends->start().ok());
    ASSERT_TRUE(ranks.all_end({sends.get()}));
  }
  for (uint8_t start = 5; start <= 40; start = static_cast<uint8_t>(start + 2)) {
    std::fill(out.begin(), out.end(), start);
    ASSERT_TRUE(sends->start().ok()) << "it waits, and says nothing";
    EXPECT_FALSE(ranks.all_end({sends.get()})) << "start " << int{start} << " has to wait";
    take_one();
    EXPECT_FALSE(ranks.all_end({sends.get()})) << "one credit is for two messages";
    take_one();
    ASSERT_TRUE(ranks.all_end({sends.get()}));
    std::fill(out.begin(), out.end(), static_cast<uint8_t>(start + 1));
    ASSERT_TRUE(sends->start().ok());
    ASSERT_TRUE(ranks.all_end({sends.get()}));
  }
  for (int left = 0; left < 4; ++left) take_one();
}

TEST(Ahead, BeyondTheWindowStartsWait) { start_beyond_window(48); }
TEST(Ahead, MessagesWithoutBytesCountToo) { start_beyond_window(0); }

// Rank 1's NIC keeps H = 3 headers, rank 0 sends W = 4 messages ahead, in 4 starts: starts 1 to 3 come, 4 is refused
// and brings nothing to any start. Rank 1 and rank 2, whose messages have not been lost, hear of it. New engines work.
TEST(Ahead, ARankWhoseHeadersRunOutSaysSoToAll) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    EndpointOptions options;
    options.early_messages = 4;
    options.unexpected_headers = 3;
    options.ranks = 3;
    Ranks ranks(3, options, seed);
    constexpr const char* names =
        "rank 1 was sent more messages before their receives than its NIC keeps unexpected headers";
    const auto names_headers = [&](const Status& status) {
      return !status.ok() && status.error().code == Code::exhausted && status.error().message.starts_with(names);
    };
    const auto end_of = [&](Offloaded& one) -> Status {
      for (int looks = 0; looks < 1000; ++looks) {
        ranks.run();
        const auto ended = one.test();
        if (!ended) return ended.error();
        if (*ended) return {};
      }
      return fail(Code::stalled, "it never ends");
    };
    Bytes out(100);
    Bytes in(100);
    Bytes other(8);
    {
      const auto sends = ranks.make(0, {message(VertexKind::send, 1, out)});
      const auto receives = ranks.make(1, {message(VertexKind::receive, 0, in)});
      const auto waits = ranks.make(2, {message(VertexKind::receive, 0, other)});
      ASSERT_TRUE(waits->start().ok());
      for (uint8_t start = 1; start <= 4; ++start) {
        std::fill(out.begin(), out.end(), start);
        ASSERT_TRUE(sends->start().ok());
        ASSERT_TRUE(ranks.all_end({sends.get()}));
      }
      EXPECT_EQ(ranks.loopback->nic(1).state().dropped_messages, 1u);
      Status received;
      for (uint8_t start = 1; received; ++start) {
        ASSERT_LE(start, 4);
        std::fill(in.begin(), in.end(), 0);
        received = receives->start();
        if (received) received = end_of(*receives);
        EXPECT_TRUE(!received || in == Bytes(100, start)) << "start " << int{start};
      }
      EXPECT_TRUE(names_headers(received));
      EXPECT_TRUE(names_headers(end_of(*waits)));
      ASSERT_TRUE(ranks.endpoints[0]->progress().ok());
      EXPECT_TRUE(names_headers(sends->start()));
    }
    ranks.open_again(options);
    const auto sends = ranks.make(0, {message(VertexKind::send, 1, out)});
    const auto receives = ranks.make(1, {message(VertexKind::receive, 0, in)});
    ASSERT_TRUE(sends->start().ok());
    ASSERT_TRUE(receives->start().ok());
    ASSERT_TRUE(ranks.all_end({sends.get(), receives.get()}));
    EXPECT_EQ(in, Bytes(100, 4));
  }
}

// Schedule A sends 1 message, three times: 3 of W = 4 are on their way. B has two and waits. When A has been taken, C,
// D and E, of one message each, could go at once, with the credits that B waits for. Rank 1 does not start them before
// B has ended, so no schedule would get more credits.
TEST(Ahead, LaterStartsDoNotTakeTheCreditsOfEarlierOnes) {
  EndpointOptions options;
  options.early_messages = 4;
  Ranks ranks(2, options);
  Bytes out(8, 1);
  Bytes in[2] = {Bytes(8), Bytes(8)};
  const auto sends_a = ranks.make(0, {message(VertexKind::send, 1, out)});
  const auto receives_a = ranks.make(1, {message(VertexKind::receive, 0, in[0])});
  std::vector<std::unique_ptr<Offloaded>> sends;
  std::vector<std::unique_ptr<Offloaded>> receives;
  for (size_t one = 0; one < 4; ++one) {
    std::vector<Vertex> to = {message(VertexKind::send, 1, out, 0)};
    std::vector<Vertex> from = {message(VertexKind::receive, 0, in[0], 0)};
    if (one == 0) to.push_back(message(VertexKind::send, 1, out, 1));
    if (one == 0) from.push_back(message(VertexKind::receive, 0, in[1], 1));
    sends.push_back(ranks.make(0, std::move(to), false));
    receives.push_back(ranks.make(1, std::move(from), false));
  }
  for (int start = 0; start < 3; ++start) {
    ASSERT_TRUE(sends_a->start().ok());
    ASSERT_TRUE(ranks.all_end({sends_a.get()}));
  }
  ASSERT_TRUE(sends[0]->start().ok());
  EXPECT_FALSE(ranks.all_end({sends[0].get()}));
  for (int start = 0; start < 3; ++start) {
    ASSERT_TRUE(receives_a->start().ok());
    ranks.run();
    const auto ended = receives_a->test();
    ASSERT_TRUE(ended.ok() && *ended);
  }
  for (size_t one = 1; one < 4; ++one) ASSERT_TRUE(sends[one]->start().ok());
  for (size_t one = 0; one < 4; ++one) {
    ASSERT_TRUE(receives[one]->start().ok());
    ASSERT_TRUE(ranks.all_end({sends[one].get(), receives[one].get()})) << "schedule " << one;
  }
}

// 10 messages of a start go beyond W / 2 = 2, so 8 of them go when both ends are ready: the same 8 at both.
TEST(Ahead, EndsThatNameTheirMessagesInOtherOrdersAgree) {
  for (const Initiator initiator : {Initiator::receiver, Initiator::sender}) {
    EndpointOptions options;
    options.early_messages = 4;
    options.initiator = initiator;
    Ranks ranks(2, options);
    std::vector<Bytes> out;
    std::vector<Bytes> in(10, Bytes(16));
    for (uint8_t tag = 0; tag < 10; ++tag) out.emplace_back(16, tag + 1);
    std::vector<Vertex> sends;
    std::vector<Vertex> receives;
    for (uint32_t tag = 0; tag < 10; ++tag) {
      sends.push_back(message(VertexKind::send, 1, out[tag], tag * MessageName::number_count));
      receives.push_back(message(VertexKind::receive, 0, in[9 - tag], (9 - tag) * MessageName::number_count));
    }
    const auto from = ranks.make(0, std::move(sends));
    const auto to = ranks.make(1, std::move(receives));
    for (int start = 0; start < 3; ++start) {
      for (Bytes& one : in) std::fill(one.begin(), one.end(), 0);
      ASSERT_TRUE(from->start().ok());
      ASSERT_TRUE(to->start().ok());
      ASSERT_TRUE(ranks.all_end({from.get(), to.get()}));
      EXPECT_EQ(in, out);
    }
  }
}

// Longer than the memory for early messages.
TEST(Ahead, LongMessagesWaitForTheirReceivers) {
  for (const Initiator initiator : {Initiator::receiver, Initiator::sender}) {
    EndpointOptions options;
    options.initiator = initiator;
    Ranks ranks(2, options);
    Bytes out(3'000'000, 7);
    Bytes in(out.size());
    const auto sends = ranks.make(0, {message(VertexKind::send, 1, out)});
    const auto receives = ranks.make(1, {message(VertexKind::receive, 0, in)});
    ASSERT_TRUE(sends->start().ok());
    EXPECT_FALSE(ranks.all_end({sends.get()}));
    ASSERT_TRUE(receives->start().ok());
    ASSERT_TRUE(ranks.all_end({sends.get(), receives.get()}));
    EXPECT_EQ(in, out);
  }
}

// The append of rank 0's receive finds a message without bytes, which its NIC counts at once; so the signal that memory
// is exposed goes at once, and rank 1 gets it. The memory must have an entry then.
TEST(Ahead, MemoryIsExposedBeforeAnEarlyMessageSaysSo) {
  EndpointOptions options;
  options.initiator = Initiator::sender;
  options.eager_bytes = 16;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Ranks ranks(2, options, seed);
    Bytes nothing;
    Bytes out(100, 7);
    Bytes in(100);
    Vertex send = message(VertexKind::send, 1, out);
    send.all = {0};
    const auto exposes = ranks.make(0, {message(VertexKind::receive, 1, nothing), send}, false);
    const auto fetches =
        ranks.make(1, {message(VertexKind::send, 0, nothing), message(VertexKind::receive, 0, in)}, false);
    ASSERT_TRUE(fetches->start().ok());
    ranks.run();
    ASSERT_TRUE(exposes->start().ok());
    ASSERT_TRUE(ranks.all_end({exposes.get(), fetches.get()})) << "seed " << seed;
    EXPECT_EQ(in, out);
  }
}

// A late rank has to keep what all others may send: (P - 1) W messages.
TEST(Ahead, EverythingThatMayComeEarlyHasRoom) {
  constexpr uint32_t count = 24;
  EndpointOptions options;
  options.ranks = count;
  Ranks ranks(count, options);
  std::vector<Bytes> out(count, Bytes(options.eager_bytes));
  std::vector<Bytes> in(count, Bytes(options.eager_bytes));
  std::vector<std::unique_ptr<Offloaded>> senders;
  std::vector<Vertex> all;
  for (uint32_t rank = 1; rank < count; ++rank) {
    senders.push_back(ranks.make(rank, {message(VertexKind::send, 0, out[rank])}));
    all.push_back(message(VertexKind::receive, rank, in[rank]));
  }
  const auto root = ranks.make(0, std::move(all));
  for (uint8_t start = 1; start <= options.early_messages; ++start) {
    for (uint32_t rank = 1; rank < count; ++rank) {
      std::fill(out[rank].begin(), out[rank].end(), static_cast<uint8_t>(start * 8 + rank));
      ASSERT_TRUE(senders[rank - 1]->start().ok());
      ASSERT_TRUE(ranks.all_end({senders[rank - 1].get()}));
    }
  }
  for (uint8_t start = 1; start <= options.early_messages; ++start) {
    ASSERT_TRUE(root->start().ok());
    ASSERT_TRUE(ranks.all_end({root.get()})) << "start " << int{start};
    for (uint32_t rank = 1; rank < count; ++rank) {
      ASSERT_EQ(in[rank], Bytes(options.eager_bytes, static_cast<uint8_t>(start * 8 + rank))) << "rank " << rank;
    }
  }
}

TEST(Ahead, ByTheCpuCountersOfScheduleThatHaveLeftServeOthers) {
  EndpointOptions options;
  options.by_cpu = true;
  Ranks ranks(1, options);
  for (int time = 0; time < 5; ++time) {
    Bytes from(8, static_cast<uint8_t>(time + 1));
    Bytes between(8);
    Bytes to(8);
    const auto copies =
        ranks.make(0, {{.kind = VertexKind::copy, .from = {{from.data(), 8}}, .to = {{between.data(), 8}}},
                       {.kind = VertexKind::copy, .from = {{between.data(), 8}}, .to = {{to.data(), 8}}, .all = {0}}});
    for (int start = 0; start < 3; ++start) {
      std::fill(to.begin(), to.end(), 0);
      ASSERT_TRUE(copies->start().ok());
      ASSERT_TRUE(ranks.all_end({copies.get()})) << "schedule " << time << ", start " << start;
      EXPECT_EQ(to, from);
    }
  }
}

TEST(Limits, WhatIsBeyondTheLimitIsNamed) {
  EndpointOptions options;
  options.limits.triggered = 5;
  options.limits.counters = 7;
  Ranks ranks(1, options);
  Bytes bytes(8);
  const Vertex copy{.kind = VertexKind::copy, .from = {{bytes.data(), 8}}, .to = {{bytes.data(), 8}}};
  const auto large = ranks.make(0, std::vector<Vertex>(6, copy));
  const Status refused = large->post();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::exhausted);
  EXPECT_NE(refused.error().message.find("6 more triggered operations beside 0 in use (limit 5)"), std::string::npos)
      << refused.error().message;
  EXPECT_EQ(refused.error().message.find("counters"), std::string::npos) << refused.error().message;
  // Three of the five are in use by one that is under way; the idle one leaves, that one stays.
  Vertex held = copy;
  held.cpu_dependent = true;
  const auto busy = ranks.make(0, {held, copy, copy});
  const auto idle = ranks.make(0, {copy, copy});
  ASSERT_TRUE(idle->start().ok());
  ASSERT_TRUE(ranks.all_end({idle.get()}));
  ASSERT_TRUE(busy->start().ok());
  const auto third = ranks.make(0, {copy, copy});
  ASSERT_TRUE(third->start().ok());
  EXPECT_FALSE(idle->is_posted());
  EXPECT_EQ(ranks.endpoints[0]->replaced_schedules(), 1u);
  EXPECT_EQ(idle->start().error().code, Code::exhausted) << "both are under way";
  ASSERT_TRUE(busy->enable(0).ok());
  ASSERT_TRUE(ranks.all_end({busy.get(), third.get()}));
  ASSERT_TRUE(idle->start().ok());
  ASSERT_TRUE(ranks.all_end({idle.get()}));
}

TEST(Failing, WhatWaitsForAnOperationThatFailedDoesNotGo) {
  for (const bool by_cpu : {false, true}) {
    EndpointOptions options;
    options.by_cpu = by_cpu;
    Ranks ranks(2, options);
    Bytes bytes(8, 1);
    Bytes in(8, 0);
    // Nobody has an entry for the put.
    const auto fails =
        ranks.make(0, {{.kind = VertexKind::put, .peer = 1, .from = {{bytes.data(), 8}}, .target = {{0}, 5, 0}},
                       {.kind = VertexKind::send, .peer = 1, .from = {{bytes.data(), 8}}, .all = {0}}});
    const auto waits = ranks.make(1, {message(VertexKind::receive, 0, in)});
    ASSERT_TRUE(fails->start().ok());
    ASSERT_TRUE(waits->start().ok());
    Result<bool> ended = false;
    for (int looks = 0; looks < 1000 && ended.ok(); ++looks) {
      ranks.run();
      ended = fails->test();
      ASSERT_TRUE(!ended.ok() || !*ended);
    }
    ASSERT_FALSE(ended.ok());
    EXPECT_NE(ended.error().message.find("1 operations of the schedule have failed"), std::string::npos);
    EXPECT_FALSE(fails->test().ok()) << "it stays so";
    EXPECT_FALSE(fails->start().ok());
    EXPECT_FALSE(fails->is_under_way());
    EXPECT_EQ(in, Bytes(8, 0)) << "the send waits for the put";
    const auto sends = ranks.make(0, {message(VertexKind::send, 1, bytes)});
    const auto receives = ranks.make(1, {message(VertexKind::receive, 0, in)});
    ASSERT_TRUE(sends->start().ok());
    ASSERT_TRUE(receives->start().ok());
    EXPECT_TRUE(ranks.all_end({sends.get(), receives.get()})) << "others go on";
    EXPECT_EQ(in, bytes);
  }
}

std::string failed_at(uint32_t rank) {
  return text("rank ", rank,
              "'s part of the schedule has failed: a peer is gone or has run out of unexpected headers, ",
              "or an entry does not allow an operation");
}

// Rank 0's put fails. Rank 1 waits for rank 0, rank 2 for rank 1, and rank 3 has not made its schedule yet.
TEST(Failing, WhoWaitsForAFailedScheduleIsTold) {
  for (const bool cached : {false, true}) {
    Ranks ranks(5);
    Bytes bytes(8, 1);
    std::vector<std::unique_ptr<Offloaded>> chain;
    chain.push_back(
        ranks.make(0,
                   {{.kind = VertexKind::put, .peer = 4, .from = {{bytes.data(), 8}}, .target = {{0}, 5, 0}},
                    {.kind = VertexKind::send, .peer = 1, .from = {{bytes.data(), 8}}, .all = {0}}},
                   cached));
    const auto link = [&](uint32_t rank) {
      Vertex on = message(VertexKind::send, rank + 1, bytes);
      on.all = {0};
      chain.push_back(ranks.make(rank, {message(VertexKind::receive, rank - 1, bytes), on}, cached));
    };
    link(1);
    link(2);
    for (const auto& one : chain) ASSERT_TRUE(one->start().ok());
    EXPECT_NE(ranks.error_of(*chain[0]).find("1 operations of the schedule have failed"), std::string::npos);
    for (uint32_t rank = 1; rank < 4; ++rank) {
      if (rank == 3) {
        link(3);
        ASSERT_TRUE(chain[3]->start().ok());
      }
      EXPECT_EQ(ranks.error_of(*chain[rank]), failed_at(rank - 1));
      EXPECT_FALSE(chain[rank]->start().ok());
    }
    for (const auto& one : chain) EXPECT_TRUE(one->withdraw().ok());
  }
}

// Rank 0's put fails. Rank 1 receives from rank 0, or sends to it later, and waits for rank 2, which never starts.
TEST(Failing, BothEndsOfAMessageAreTold) {
  for (const VertexKind kind : {VertexKind::send, VertexKind::receive}) {
    for (const size_t length : {size_t{8}, size_t{1} << 17}) {
      for (const Initiator initiator : {Initiator::receiver, Initiator::sender}) {
        SCOPED_TRACE(text(kind == VertexKind::send ? "sends " : "receives ", length, " B, initiator ",
                          initiator == Initiator::sender ? "sender" : "receiver"));
        EndpointOptions options;
        options.initiator = initiator;
        Ranks ranks(4, options);
        Bytes bytes(8, 1);
        Bytes here(length, 2);
        Bytes there(length, 3);
        const auto fails =
            ranks.make(0, {{.kind = VertexKind::put, .peer = 3, .from = {{bytes.data(), 8}}, .target = {{0}, 5, 0}},
                           message(kind, 1, here)});
        Vertex later = message(kind == VertexKind::send ? VertexKind::receive : VertexKind::send, 0, there);
        if (later.kind == VertexKind::send) later.all = {0};
        const auto waits = ranks.make(1, {message(VertexKind::receive, 2, bytes), later});
        ASSERT_TRUE(fails->start().ok());
        ASSERT_TRUE(waits->start().ok());
        EXPECT_NE(ranks.error_of(*fails).find("1 operations of the schedule have failed"), std::string::npos);
        EXPECT_EQ(ranks.error_of(*waits), failed_at(0));
        EXPECT_TRUE(waits->withdraw().ok());
        EXPECT_TRUE(fails->withdraw().ok());
      }
    }
  }
}

// Freed schedules leave memory alone, wherever they are in their course.
TEST(Freeing, NothingIsReadOrWrittenAfterIt) {
  uint64_t under_way = 0;
  for_seeds(400, [&](Random& random) {
    testbed::LoopbackOptions driver;
    driver.ranks = 2;
    driver.racy_seed = random.next();
    driver.headers_in_order = true;
    auto loopback = testbed::Loopback::create(driver);
    ASSERT_TRUE(loopback.ok());
    EndpointOptions options;
    options.initiator = random.chance(1, 2) ? Initiator::receiver : Initiator::sender;
    std::vector<std::unique_ptr<portals::Interface>> interfaces;
    std::vector<std::unique_ptr<Endpoint>> endpoints;
    std::vector<std::unique_ptr<Offloaded>> schedules;
    std::vector<Bytes> memory(6);
    const auto bytes = static_cast<size_t>(8 * (1 + random.below(4000)));
    for (Bytes& one : memory) one.assign(bytes, 1);
    const bool cached = random.chance(1, 2);
    for (uint32_t rank = 0; rank < 2; ++rank) {
      interfaces.push_back(std::make_unique<portals::Interface>((*loopback)->port(rank)));
      auto endpoint = Endpoint::open(*interfaces.back(), options);
      ASSERT_TRUE(endpoint.ok());
      endpoints.push_back(std::move(*endpoint));
      Endpoint::Team team{.id = 1, .ranks = {0, 1}};
      Bytes* const own = &memory[3 * rank];
      Graph graph;
      graph.operations = {
          message(VertexKind::receive, 1 - rank, own[0]),
          message(VertexKind::send, 1 - rank, own[1]),
          {.kind = VertexKind::combine,
           .from = {{own[0].data(), bytes}},
           .to = {{own[2].data(), bytes}},
           .type = nic::Datatype::int64,
           .all = {0}},
          {.kind = VertexKind::copy, .from = {{own[2].data(), bytes}}, .to = {{own[1].data(), bytes}}, .all = {1, 2}}};
      auto made = endpoints[rank]->make(team, std::move(graph), cached);
      ASSERT_TRUE(made.ok());
      schedules.push_back(std::move(*made));
      ASSERT_TRUE(schedules[rank]->start().ok());
    }
    for (uint64_t steps = random.below(200); steps > 0; --steps) (*loopback)->step();
    under_way += schedules[0]->is_under_way() && !*schedules[0]->test() ? 1 : 0;
    schedules[0].reset();
    for (size_t own = 0; own < 3; ++own) memory[own].assign(bytes, 0x5a);
    while ((*loopback)->step()) {
    }
    for (size_t own = 0; own < 3; ++own) ASSERT_EQ(memory[own], Bytes(bytes, 0x5a)) << "memory " << own;
    // The data that came to the other rank were sent before the schedule was freed.
    ASSERT_EQ(std::ranges::count(memory[3], 0x5a), 0);
    schedules.clear();
    for (const auto& endpoint : endpoints) {
      const Status closed = endpoint->close();
      ASSERT_TRUE(closed.ok()) << closed.error().message;
    }
  });
  EXPECT_TRUE(std::getenv("SPINLOOM_TEST_SEED") != nullptr || under_way > 50) << under_way << " were under way";
}

TEST(Failing, AnEndpointIsGivenUpWhileItsSchedulesAreUnderWay) {
  Ranks ranks(2);
  Bytes bytes(10'000);
  for (const bool cached : {false, true}) {
    const auto receives = ranks.make(0, {message(VertexKind::receive, 1, bytes)}, cached);
    const auto sends = ranks.make(1, {message(VertexKind::send, 0, bytes)}, cached);
    ASSERT_TRUE(receives->start().ok());
    EXPECT_FALSE(receives->start().ok()) << "is under way";
    EXPECT_FALSE(ranks.endpoints[0]->close().ok());
    if (cached) ranks.kill(1);  // nobody hears of it
    EXPECT_FALSE(ranks.all_end({receives.get()}));
  }
  EXPECT_EQ(ranks.endpoints[0]->resources_in_use().entries, 0u);
}

}  // namespace
}  // namespace spinloom::collective
