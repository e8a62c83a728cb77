// The shared-memory transport between ranks of one process: what arrives, who is lost, what a peer may write.
#include "live/shm/shm_transport.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/log.hpp"
#include "live/testing/shm_rig.hpp"

namespace spinloom::live {
namespace {

TEST(ShmTransport, CarriesAllLengthsInOrderHoweverTheyAreCopied) {
  for (const CopyMode copy : {CopyMode::single, CopyMode::twice}) {
    Rig rig({copy, 20'000});
    rig.start(0);
    rig.start(1);
    EXPECT_TRUE(rig.put(1, 99, some(4, 1)));  // now both ends have met, and know how they read
    rig.poll();
    const uint64_t lengths[] = {0, 1, 16, 17, 4096, 19'999, 20'000, 32 << 10, (32 << 10) + 1, 1 << 20, 5};
    std::vector<std::vector<uint8_t>> sent;
    for (const uint64_t length : lengths) sent.push_back(some(length, length));
    uint64_t told = 0;
    for (size_t i = 0; i < sent.size(); ++i) told += rig.put(0, i, sent[i]) ? 1 : 0;
    rig.poll();
    EXPECT_TRUE(rig.ends[0]->drained());
    EXPECT_EQ(told + rig.heard[0].read.size(), sent.size());
    std::vector<std::vector<uint8_t>> got(sent.size());
    uint64_t newest = 0;
    for (size_t i = 0; i < rig.heard[1].packets.size(); ++i) {
      const nic::Packet& packet = rig.heard[1].packets[i];
      EXPECT_EQ(packet.source.value, 0u);
      EXPECT_EQ(packet.fields.user, 70u) << "the sender's, of a message of " << packet.message_length;
      EXPECT_GE(packet.message, newest);
      newest = packet.message;
      auto& whole = got.at(packet.message);
      EXPECT_EQ(packet.offset, whole.size());
      whole.insert(whole.end(), rig.heard[1].payloads[i].begin(), rig.heard[1].payloads[i].end());
    }
    EXPECT_TRUE(got == sent);
    EXPECT_EQ(rig.heard[1].readable.empty(), copy == CopyMode::twice);
    EXPECT_EQ(rig.ends[0]->refused_cells() + rig.ends[1]->refused_cells(), 0u);
  }
}

TEST(ShmTransport, AChannelThatIsFullHoldsBackAndGoesOn) {
  Rig rig({CopyMode::single, 1000});
  rig.start(0);
  rig.start(1);
  const std::vector<uint8_t> small = some(8, 1), medium = some(900, 2), lent = some(5000, 3);
  constexpr uint64_t messages = 3000;
  uint64_t told[2] = {};
  for (uint64_t i = 0; i < messages; ++i) {
    for (uint32_t from = 0; from < 2; ++from)
      told[from] += rig.put(from, i, i % 3 == 0 ? small : i % 3 == 1 ? medium : lent);
  }
  EXPECT_LT(told[0], messages);
  EXPECT_NE(rig.ends[0]->timer(), Time::never()) << "somebody must look for room";
  for (int i = 0; i < 1000 && !(rig.ends[0]->drained() && rig.ends[1]->drained()); ++i) rig.poll();
  for (uint32_t rank = 0; rank < 2; ++rank) {
    EXPECT_TRUE(rig.ends[rank]->drained());
    EXPECT_EQ(rig.ends[rank]->timer(), Time::never());
    EXPECT_EQ(told[rank] + rig.heard[rank].read.size(), messages);
    ASSERT_EQ(rig.heard[rank].packets.size(), messages);
    for (uint64_t i = 0; i < messages; ++i) {
      ASSERT_EQ(rig.heard[rank].packets[i].message, i);
      ASSERT_EQ(rig.heard[rank].payloads[i], i % 3 == 0 ? small : i % 3 == 1 ? medium : lent) << i;
    }
  }
}

TEST(ShmTransport, WhatWasLentToAPeerThatLeavesIsTold) {
  Rig rig({CopyMode::single, 1000});
  rig.start(0);
  rig.start(1);
  const std::vector<uint8_t> lent = some(5000, 3);
  EXPECT_TRUE(rig.put(1, 99, some(4, 1)));  // now both ends have met
  rig.poll();
  for (uint64_t i = 0; i < 700; ++i) EXPECT_FALSE(rig.put(0, i, lent)) << "read, or waiting for room";
  EXPECT_FALSE(rig.ends[0]->drained());
  Outstanding all;
  all.packets = 700;
  all.bytes = 700 * 5000;
  EXPECT_EQ(rig.ends[0]->outstanding(nic::Rank{1}), all);
  rig.ends[1]->note_resumed(nic::Rank{0});
  EXPECT_NE(rig.ends[0]->outstanding(nic::Rank{1}).progress, all.progress);
  rig.ends[1]->say_goodbye();
  rig.ends[0]->poll();
  const Outstanding then = rig.ends[0]->outstanding(nic::Rank{1});
  EXPECT_TRUE(then.is_lost && then.packets == all.packets && then.bytes == all.bytes) << then.packets;
  EXPECT_EQ(rig.heard[0].gone, std::vector<uint32_t>{1});
  EXPECT_EQ(rig.heard[0].read.size(), 700u);
  EXPECT_TRUE(rig.ends[0]->drained());
  EXPECT_TRUE(rig.put(0, 1000, lent)) << "nobody reads it: it is the sender's again";
  rig.ends[0]->process_ended(nic::Rank{1});
  EXPECT_EQ(rig.heard[0].gone.size(), 1u) << "told once";
}

TEST(ShmTransport, WhatAPeerSaidBeforeItsEndIsHeardFirst) {
  Rig rig;
  rig.start(0);
  rig.start(1);
  EXPECT_TRUE(rig.put(0, 0, some(8, 0)));  // now both ends have met, and we watch the peer's process
  for (uint64_t i = 0; i < 100; ++i) EXPECT_TRUE(rig.put(1, i, some(8, i)));
  rig.ends[0]->process_ended(nic::Rank{1});
  EXPECT_EQ(rig.heard[0].packets.size(), 100u);
  EXPECT_EQ(rig.heard[0].gone, std::vector<uint32_t>{1});
}

// A peer ends before we look: its messages lie in our own memory, whether we first hear of it or write to it.
TEST(ShmTransport, WhatAPeerSaidThatWeNeverMetIsHeard) {
  for (const bool we_write_first : {false, true}) {
    Rig rig;
    const pid_t child = fork();
    if (child == 0) _exit(0);
    waitpid(child, nullptr, 0);
    rig.start(1);
    for (uint64_t i = 0; i < 50; ++i) EXPECT_TRUE(rig.put(1, i, some(i, i)));
    rig.job.cards[1].pid = child;
    rig.start(0);
    EXPECT_TRUE(rig.ends[0]->has_news());
    if (we_write_first) {
      EXPECT_TRUE(rig.put(0, 1, some(8, 1))) << "nobody will read it";
      EXPECT_TRUE(rig.heard[0].gone.empty()) << "the engine is in the middle of its actions";
      EXPECT_LE(rig.ends[0]->timer(), monotonic_now());
    }
    rig.ends[0]->poll();
    ASSERT_EQ(rig.heard[0].packets.size(), 50u);
    for (uint64_t i = 0; i < 50; ++i) EXPECT_EQ(rig.heard[0].payloads[i], some(i, i));
    EXPECT_EQ(rig.heard[0].gone, std::vector<uint32_t>{1});
    rig.ends[0]->poll();
    EXPECT_EQ(rig.heard[0].gone.size(), 1u);
    EXPECT_FALSE(rig.ends[0]->has_news());
  }
}

// Ranks that come after a goodbye: one has never met the leaving rank, one has attached while that did not look.
TEST(ShmTransport, ARankThatHasSaidGoodbyeIsGoneForThoseThatComeLater) {
  for (const bool attached_before : {false, true}) {
    Rig rig;
    rig.start(0);
    rig.start(1);
    if (attached_before) {
      EXPECT_TRUE(rig.put(0, 1, some(8, 1)));
    }
    rig.ends[1]->say_goodbye();
    EXPECT_TRUE(rig.put(0, 2, some(8, 2))) << "nobody will read it";
    EXPECT_TRUE(attached_before || rig.ends[0]->has_news()) << "that it is gone is to be told";
    rig.ends[0]->poll();
    EXPECT_EQ(rig.heard[0].gone, std::vector<uint32_t>{1});
    EXPECT_EQ(rig.ends[0]->describe(nic::Rank{1}), "gone");
    EXPECT_TRUE(rig.put(0, 3, some(8, 3)));
    rig.ends[0]->poll();
    EXPECT_EQ(rig.heard[0].gone.size(), 1u);
  }
}

TEST(ShmTransport, WhyAPeerThatLivesCannotBeReachedIsToldOnce) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "sanitizers open a pipe to look at an object, and here is no descriptor left";
#endif
  std::vector<std::string> said;
  log::install([&](log::Level, std::string_view, std::string_view message) { said.emplace_back(message); },
               log::Level::warning);
  Rig rig;
  rig.start(0);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = dup(0);
  close(next);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(next);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_TRUE(rig.put(0, 1, some(8, 1)));
  rig.ends[0]->poll();
  setrlimit(RLIMIT_NOFILE, &before);
  log::install({}, log::Level::error);
  EXPECT_EQ(rig.heard[0].gone, std::vector<uint32_t>{1});
  ASSERT_EQ(said.size(), 1u);
  for (const char* part : {"rank 1 cannot be reached", "Too many open files", "ulimit -n"}) {
    EXPECT_NE(said[0].find(part), std::string::npos) << said[0];
  }
  EXPECT_NE(rig.ends[0]->describe(nic::Rank{1}).find("not reached: the shared memory of rank 1"), std::string::npos);
}

// A client whose peer sends once more whenever something comes.
class Spurred final : public TransportClient {
 public:
  [[nodiscard]] bool arrived(Transport&, const nic::Packet&, uint64_t) override {
    if (++heard < 100'000) rig->put(1, heard, some(8, 1));
    return true;
  }
  void sent(const SendCompletion&) override {}
  void fetched(uint64_t, bool) override {}
  void lost(nic::Rank) override { gone = true; }
  Rig* rig = nullptr;
  uint64_t heard = 0;
  bool gone = false;
};

TEST(ShmTransport, APeerOutOfReachThatSendsForEverIsLeft) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "sanitizers open a pipe to look at an object, and here is no descriptor left";
#endif
  Rig rig;
  rig.start(1);
  Spurred spurred;
  spurred.rig = &rig;
  EXPECT_TRUE(rig.put(1, 0, some(8, 1)));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = dup(0);
  close(next);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(next);
  ShmTransport end(spurred, rig.job.segments[0], 0, rig.job.cards, {}, [](int, nic::Rank) {});
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  end.poll();
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(spurred.gone);
  EXPECT_LT(spurred.heard, 100'000u);
}

// A reply that found no room must carry the bytes of its get's time, not those of a later put to the same memory.
void expect_read_when_sent(std::vector<uint8_t>& memory, const nic::PayloadRef& payload,
                           const std::vector<nic::PayloadRef>& pieces) {
  Rig rig;
  rig.start(0);
  rig.start(1);
  const std::vector<uint8_t> small = some(8, 1);
  const std::vector<uint8_t> before = memory;
  uint64_t puts = 0;
  while (rig.put(0, puts, small)) ++puts;
  nic::Send reply;
  reply.packet.operation = nic::Operation::reply;
  reply.packet.target = nic::Rank{1};
  reply.packet.message_length = memory.size();
  reply.packet.payload = payload;
  reply.pieces = pieces;
  reply.last = true;
  EXPECT_FALSE(rig.ends[0]->send(reply)) << "there is no room";
  memory.assign(memory.size(), 0xee);
  rig.poll();
  EXPECT_EQ(rig.heard[0].read.size(), 2u) << "the put that found no room, and the reply";
  ASSERT_EQ(rig.heard[1].packets.size(), puts + 2);
  for (size_t i = 0; i < rig.heard[1].packets.size(); ++i) {
    if (rig.heard[1].packets[i].operation == nic::Operation::reply) {
      EXPECT_EQ(rig.heard[1].payloads[i], before);
    }
  }
}

TEST(ShmTransport, AShortReplyThatWaitsIsReadWhenItIsSent) {
  std::vector<uint8_t> memory = some(1024, 2);
  expect_read_when_sent(memory, {nic::PayloadRef::Space::local, memory.data(), memory.size()}, {});
}

TEST(ShmTransport, AShortReplyInPiecesThatWaitsIsReadWhenItIsSent) {
  std::vector<uint8_t> memory = some(1000, 2);
  expect_read_when_sent(
      memory, {nic::PayloadRef::Space::local, nullptr, memory.size()},
      {{nic::PayloadRef::Space::local, memory.data(), 400}, {nic::PayloadRef::Space::local, memory.data() + 400, 600}});
}

// A program is slowed down to the pace of the peer to whom it puts, but not for a peer that has stopped.
TEST(ShmTransport, AFullChannelIsLookedAtMoreAndMoreSeldom) {
  Rig rig;
  rig.start(0);
  rig.start(1);
  const std::vector<uint8_t> small = some(8, 1);
  for (uint64_t i = 0; i < 600; ++i) std::ignore = rig.put(0, i, small);
  const ShmTransport& end = *rig.ends[0];
  uint32_t looks = 0;
  for (const Time begun = monotonic_now(); monotonic_now() < begun + 60000_us;) {
    if (monotonic_now() < end.timer()) continue;
    ++looks;
    EXPECT_FALSE(rig.ends[0]->poll());
  }
  EXPECT_GE(looks, 2u);
  EXPECT_LT(looks, 30u) << "in 60 ms";
  rig.ends[1]->poll();
  EXPECT_TRUE(rig.ends[0]->poll());
  EXPECT_LT(end.timer(), monotonic_now() + 1000_us) << "it moves: soon again";
  rig.poll();
  EXPECT_EQ(end.timer(), Time::never());
}

TEST(ShmTransport, OnePeersFullChannelIsNobodyElses) {
  auto job = LocalJob::create(3);
  ASSERT_TRUE(job.ok());
  Listener heard;
  ShmTransport end(heard, job->segments[0], 0, job->cards, {}, [](int, nic::Rank) {});
  const std::vector<uint8_t> small = some(8, 1);
  nic::Send send;
  send.packet.message_length = small.size();
  send.packet.payload = {nic::PayloadRef::Space::local, small.data(), small.size()};
  send.last = true;
  for (bool full = false; !full;) {
    nic::Send one = send;
    one.packet.target = nic::Rank{1};
    full = !end.send(one);
  }
  send.packet.target = nic::Rank{2};
  EXPECT_TRUE(end.send(send));
  EXPECT_TRUE(end.congested(nic::Rank{1}));
  EXPECT_FALSE(end.congested(nic::Rank{2}));
}

// Packets to a peer that has said stop wait, except for answers.
TEST(ShmTransport, AnswersPassAPeerThatHasSaidStop) {
  Rig rig;
  rig.start(0);
  rig.start(1);
  EXPECT_TRUE(rig.put(0, 1, some(8, 1)));
  rig.poll();
  rig.ends[1]->set_stopped(nic::Rank{0}, true);
  const std::vector<uint8_t> late = some(8, 2);  // read when the packet may leave
  EXPECT_FALSE(rig.put(0, 2, late));
  nic::Send ack;
  ack.packet.operation = nic::Operation::ack;
  ack.packet.target = nic::Rank{1};
  ack.packet.message = 77;
  EXPECT_TRUE(rig.ends[0]->send(ack));
  rig.poll();
  ASSERT_EQ(rig.heard[1].packets.size(), 2u);
  EXPECT_EQ(rig.heard[1].packets[1].message, 77u);
  rig.ends[1]->set_stopped(nic::Rank{0}, false);
  rig.poll();
  ASSERT_EQ(rig.heard[1].packets.size(), 3u);
  EXPECT_EQ(rig.heard[1].packets[2].message, 2u);
}

TEST(ShmTransport, CellsThatMeanNothingAreRefusedAndTheNextOnesHeard) {
  Rig rig;
  rig.start(0);
  ChannelWriter writer(rig.job.segments[0].channel_of(1));
  rig.job.segments[0].header().attached_peers[0] |= 2;
  uint64_t bad = 0;
  const auto publish = [&](Cell cell, bool counts = true) {
    ChannelWriter::Room room = writer.reserve(256);
    ASSERT_NE(room.cell, nullptr);
    std::memset(room.bulk, 0xff, 256);
    writer.publish(room, cell);
    bad += counts ? 1 : 0;
    rig.ends[0]->poll();
    EXPECT_EQ(rig.ends[0]->refused_cells(), bad);
  };
  for (const int kind : {0, 7, 100, 255}) {
    Cell cell;
    cell.kind = static_cast<CellKind>(kind);
    publish(cell);
  }
  Cell small;
  small.kind = CellKind::small;
  small.length = small_bytes + 1;
  publish(small);
  small.length = 4;
  small.ack_request = 4;
  publish(small);
  Cell taken;
  taken.kind = CellKind::loan_return;
  for (const uint64_t loan : {uint64_t{0}, uint64_t{1} << 40, UINT64_MAX}) {
    taken.message = loan;
    publish(taken);
  }
  for (const CellKind kind : {CellKind::packet, CellKind::lent}) {
    Cell cell;
    cell.kind = kind;
    cell.match_bits = ChannelMemory::bulk_bytes - 8;  // the record would end outside
    publish(cell);
    cell.match_bits = UINT64_MAX;
    publish(cell);
    cell.match_bits = 0;  // 0xff in every byte of the record
    publish(cell);
  }
  Cell cell;
  cell.kind = CellKind::packet;
  cell.remote_offset = UINT64_MAX;
  publish(cell);
  EXPECT_TRUE(rig.heard[0].packets.empty());
  small.ack_request = 0;
  publish(small, false);
  EXPECT_EQ(rig.heard[0].packets.size(), 1u);
  EXPECT_TRUE(rig.heard[0].gone.empty());
}

}  // namespace
}  // namespace spinloom::live
