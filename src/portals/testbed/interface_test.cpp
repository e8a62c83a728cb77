// The host's interface and the loopback driver: ids, checks, waiting, stalls.
#include "portals/interface/interface.hpp"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "portals/testbed/loopback_testbed.hpp"
#include "spinloom/handler.h"

namespace spinloom::testbed {
namespace {

std::unique_ptr<LoopbackTestbed> make_bed(uint32_t ranks = 2) {
  nic::NicLimits limits;
  limits.payload_bytes = 64;
  limits.packet_buffer_bytes = 1024;
  limits.nic_memory_bytes = 4096;
  auto bed = LoopbackTestbed::create(ranks, limits, {});
  EXPECT_TRUE(bed.ok());
  return std::move(*bed);
}

template <class T>
T good(Result<T> result) {
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
  return result.ok() ? *result : T{};
}
void good(const Status& status) { EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message); }

TEST(Interface, IdsComeBack) {
  const auto bed = make_bed();
  portals::Interface& host = bed->rank(0);
  const auto queue = good(host.eq_alloc(4));
  const auto other = good(host.eq_alloc(4));
  EXPECT_NE(queue, other);
  good(host.eq_free(other));
  EXPECT_EQ(good(host.eq_alloc(4)).value, other.value);
  const auto counter = good(host.ct_alloc());
  good(host.ct_inc(counter, {3, 0}));
  EXPECT_EQ(good(host.ct_wait(counter, 3)), (nic::CounterValue{3, 0}));
  good(host.ct_free(counter));
  const auto again = good(host.ct_alloc());
  EXPECT_EQ(again.value, counter.value);
  EXPECT_EQ(host.ct_get(again), nic::CounterValue{}) << "a new counter starts at zero";
  EXPECT_EQ(good(host.pt_alloc(queue)), nic::PortalIndex{0});
  EXPECT_EQ(good(host.pt_alloc(queue, {false, nic::PortalIndex{7}})), nic::PortalIndex{7});
  EXPECT_EQ(good(host.pt_alloc(queue)).exists(), true);
  EXPECT_FALSE(host.pt_alloc(queue, {false, nic::PortalIndex{7}}).ok());
  EXPECT_NE(host.pt_alloc(queue, {false, nic::PortalIndex{256}}).error().message.find("portal_table_max"),
            std::string::npos);
  good(host.pt_free(nic::PortalIndex{7}));
  EXPECT_EQ(good(host.pt_alloc(queue, {false, nic::PortalIndex{7}})), nic::PortalIndex{7});
}

TEST(Interface, EntryIdsOfUseOnceEntriesComeBackHoweverTheyAreTold) {
  struct Row {
    const char* what;
    bool unlink_disable, comm_disable;
  };
  for (const Row& row :
       {Row{"by auto_unlink", false, false}, Row{"by put", true, false}, Row{"silently", true, true}}) {
    SCOPED_TRACE(row.what);
    const auto bed = make_bed();
    portals::Interface::Limits limits;
    limits.entries = 2;
    portals::Interface host(bed->loopback().port(0), limits);
    portals::Interface& sender = bed->rank(1);
    const auto queue = good(host.eq_alloc(16));
    const auto counter = good(host.ct_alloc());
    const auto portal = good(host.pt_alloc(queue));
    uint8_t memory[8] = {};
    const uint8_t bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    nic::Entry entry;
    entry.start = memory;
    entry.length = sizeof memory;
    entry.counter = counter;
    entry.options.ct_comm = true;
    entry.options.use_once = true;
    entry.options.event_unlink_disable = row.unlink_disable;
    entry.options.event_comm_disable = row.comm_disable;
    nic::Entry permanent = entry;
    permanent.match_bits = 99;
    permanent.options.use_once = false;
    const auto kept = good(host.me_append(portal, permanent));
    for (uint64_t round = 1; round <= 20; ++round) {
      EXPECT_NE(good(host.me_append(portal, entry)).value, kept.value);
      const auto full = host.me_append(portal, entry);
      ASSERT_FALSE(full.ok()) << "round " << round;
      EXPECT_EQ(full.error().code, Code::exhausted);
      EXPECT_NE(full.error().message.find("Limits::entries"), std::string::npos);
      portals::PutArguments put;
      put.local = bytes;
      put.length = sizeof bytes;
      put.target = host.rank();
      put.portal = portal;
      good(sender.put(put));
      EXPECT_EQ(good(host.ct_wait(counter, round)).success, round);
      good(bed->settle());
      while (host.eq_get(queue)) {
      }
    }
    EXPECT_EQ(good(host.me_unlink(kept)), portals::Unlinked::done);
    EXPECT_FALSE(host.me_unlink(kept).ok());
  }
}

TEST(Interface, ABundleRegistersItsOperationsInOrderAndTellsTheFirstErrorAtItsEnd) {
  const auto bed = make_bed();
  portals::Interface& host = bed->rank(0);
  const auto trigger = good(host.ct_alloc(3));
  const auto counted = good(host.ct_alloc());
  const auto portal = good(host.pt_alloc({}));
  uint8_t memory[8] = {};
  nic::Entry entry;
  entry.start = memory;
  entry.length = sizeof memory;
  entry.counter = counted;
  entry.options.ct_comm = true;
  good(host.me_append(portal, entry));
  const uint8_t bytes[2] = {1, 2};
  portals::PutArguments put;
  put.local = bytes;
  put.length = 1;
  put.target = host.rank();
  put.portal = portal;
  EXPECT_FALSE(host.bundle_end().ok()) << "no bundle is open";
  host.bundle_begin();
  host.bundle_begin();
  for (int i = 0; i < 3; ++i) good(host.put(put, nic::Trigger{trigger, 1}));
  good(host.put(put, nic::Trigger{trigger, 1}));  // one more than may wait: refused by the NIC, told at the end
  good(host.bundle_end());
  constexpr uint64_t changes = 3000;  // more than may be unanswered at a time
  for (uint64_t i = 0; i < changes; ++i) good(host.ct_inc(counted, {1, 0}, nic::Trigger{trigger, 1}));
  const Status ended = host.bundle_end();
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().code, Code::exhausted);
  EXPECT_NE(ended.error().message.find("max_triggered_ops"), std::string::npos) << ended.error().message;
  EXPECT_EQ(host.ct_get(counted).success, 0u);
  good(host.ct_inc(trigger, {1, 0}));
  EXPECT_EQ(good(host.ct_wait(counted, 3 + changes)).success, 3 + changes);
  good(bed->settle());
  EXPECT_EQ(host.ct_get(counted).success, 3 + changes) << "the refused put never starts";
  host.bundle_begin();
  good(host.bundle_end());
}

// No event says any more which entries have left; entries that are still there keep their ids.
TEST(Interface, EntryIdsComeBackWithoutTheirQueue) {
  const auto bed = make_bed();
  portals::Interface::Limits limits;
  limits.entries = 3;
  portals::Interface host(bed->loopback().port(0), limits);
  portals::Interface& sender = bed->rank(1);
  const auto counter = good(host.ct_alloc());
  nic::Entry once;
  once.counter = counter;
  once.options.ct_comm = true;
  once.options.use_once = true;
  nic::Entry stays = once;
  stays.match_bits = 99;
  for (uint64_t round = 1; round <= 20; ++round) {
    const auto queue = good(host.eq_alloc(16));
    const auto portal = good(host.pt_alloc(queue, {round % 2 == 0, {}}));
    std::vector<nic::EntryId> gone{good(host.me_append(portal, once)), good(host.me_append(portal, once))};
    const auto kept = good(host.me_append(portal, stays));
    EXPECT_FALSE(host.me_append(portal, once).ok());
    good(host.eq_free(queue));
    EXPECT_FALSE(host.eq_free(queue).ok());
    EXPECT_FALSE(host.me_append(portal, once).ok()) << "all are there still";
    portals::PutArguments put;
    put.target = host.rank();
    put.portal = portal;
    for (size_t i = 0; i < 2; ++i) good(sender.put(put));
    EXPECT_EQ(good(host.ct_wait(counter, 2 * round)).success, 2 * round);
    good(bed->settle());
    for (size_t i = 0; i < 2; ++i) gone.push_back(good(host.me_append(portal, once)));
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_FALSE(host.me_unlink(gone[i]).ok()) << "it is another one's";
      EXPECT_EQ(good(host.me_unlink(gone[i + 2])), portals::Unlinked::done);
    }
    EXPECT_EQ(good(host.me_unlink(kept)), portals::Unlinked::done);
    good(host.pt_free(portal));
  }
}

TEST(Interface, AnIdIsGivenOutOnce) {
  const auto bed = make_bed();
  portals::Interface& host = bed->rank(0);
  const auto queue = good(host.eq_alloc(16));
  const auto counter = good(host.ct_alloc());
  good(host.eq_free(queue));
  good(host.ct_free(counter));
  for (int round = 0; round < 5; ++round) {
    const auto next_queue = good(host.eq_alloc(16));
    const auto next_counter = good(host.ct_alloc());
    EXPECT_EQ(next_queue.value, queue.value);
    EXPECT_NE(next_queue, queue);
    EXPECT_EQ(next_counter.value, counter.value);
    EXPECT_NE(next_counter, counter);
    EXPECT_FALSE(host.ct_wait(counter, 0).ok());
    EXPECT_FALSE(host.ct_inc(counter, {1, 0}).ok());
    EXPECT_FALSE(host.pt_alloc(queue).ok());
    good(host.eq_free(next_queue));
    good(host.ct_free(next_counter));
  }
}

// A triggered append that is cancelled, or fails when it fires, gives its id back.
TEST(Interface, EntryIdsOfAppendsThatNeverComeComeBack) {
  enum class End { cancelled, freed, failed };
  for (const End end : {End::cancelled, End::freed, End::failed}) {
    SCOPED_TRACE(static_cast<int>(end));
    const auto bed = make_bed();
    portals::Interface::Limits limits;
    limits.entries = 3;
    portals::Interface host(bed->loopback().port(0), limits);
    const auto queue = good(host.eq_alloc(16));
    auto counter = good(host.ct_alloc());
    const auto portal = good(host.pt_alloc(queue));
    nic::Entry entry;
    nic::Entry told = entry, silent = entry;  // their ids come back in other ways
    told.options.use_once = silent.options.use_once = true;
    silent.options.event_unlink_disable = silent.options.event_comm_disable = true;
    const nic::Entry* const kinds[] = {&entry, &told, &silent};
    const auto kept = good(host.me_append(portal, entry));
    for (uint64_t round = 1; round <= 20; ++round) {
      if (end == End::failed) good(host.pt_disable(portal));
      const auto other = end == End::failed ? good(host.pt_alloc(queue)) : portal;
      const auto waits =
          good(host.me_append(other, *kinds[round % 3], nic::ListKind::priority, nic::Trigger{counter, 1000}));
      const auto comes = good(host.me_append(portal, entry, nic::ListKind::priority, nic::Trigger{counter, round}));
      EXPECT_NE(waits.value, kept.value);
      EXPECT_FALSE(host.me_append(portal, entry).ok()) << "all are in use";
      EXPECT_FALSE(host.me_unlink(waits).ok()) << "it is not there";
      good(host.ct_inc(counter, {1, 0}));
      good(bed->settle());
      switch (end) {
        case End::cancelled: good(host.ct_cancel(counter)); break;
        case End::freed:
          good(host.ct_free(counter));
          counter = good(host.ct_alloc());
          good(host.ct_inc(counter, {round, 0}));
          break;
        case End::failed:
          good(host.pt_free(other));
          good(host.ct_inc(counter, {1000 - round, 0}));
          good(bed->settle());
          good(host.ct_set(counter, {round, 0}));
          break;
      }
      good(bed->settle());
      EXPECT_EQ(good(host.me_unlink(comes)), portals::Unlinked::done) << "it has come";
      const auto again = host.me_append(portal, entry);
      ASSERT_TRUE(again.ok()) << round;
      EXPECT_EQ(good(host.me_unlink(*again)), portals::Unlinked::done);
    }
    EXPECT_EQ(good(host.me_unlink(kept)), portals::Unlinked::done);
  }
}

// Messages were refused before the queue was full; the events of the host's own append then find no room in it.
// Rules: P4F-17.10.
TEST(Interface, UnderFlowControlNoEventOfAnAppendIsLost) {
  const auto bed = make_bed();
  portals::Interface& host = bed->rank(0);
  portals::Interface& sender = bed->rank(1);
  const auto queue = good(host.eq_alloc(4 + 1, 1));
  const auto portal = good(host.pt_alloc(queue, {true, {}}));
  nic::Entry holder;
  uint8_t memory[64] = {};
  holder.start = memory;
  holder.length = sizeof memory;
  holder.options.use_once = true;
  constexpr uint64_t messages = 12;
  const uint8_t byte = 7;
  portals::PutArguments put;
  put.local = &byte;
  put.length = 1;
  put.target = host.rank();
  put.portal = portal;
  for (int round = 1; round <= 3; ++round) {
    for (uint64_t i = 0; i < messages; ++i) {
      good(host.me_append(portal, holder, nic::ListKind::overflow));
      put.hdr_data = i;
      good(sender.put(put));
      good(bed->settle());
      EXPECT_EQ(good(host.eq_wait(queue)).kind, nic::EventKind::put);
      EXPECT_EQ(good(host.eq_wait(queue)).kind, nic::EventKind::auto_unlink);
    }
    nic::Entry claimer = holder;
    claimer.options.use_once = false;
    claimer.options.event_link_disable = false;
    const bool searches = round == 2;
    const auto claiming = searches ? nic::EntryId{} : good(host.me_append(portal, claimer));
    const uint64_t found = searches ? good(host.me_search(portal, claimer, true)) : messages;
    EXPECT_EQ(found, messages);
    good(bed->settle());
    std::vector<uint64_t> claimed;
    std::map<nic::EventKind, uint64_t> seen;
    while (const auto told = host.eq_get(queue)) {
      EXPECT_FALSE(told->after_gap);
      ++seen[told->kind];
      if (told->kind == nic::EventKind::put_overflow) claimed.push_back(told->hdr_data);
    }
    ASSERT_EQ(claimed.size(), messages);
    for (uint64_t i = 0; i < messages; ++i) EXPECT_EQ(claimed[i], i);
    EXPECT_EQ(seen[nic::EventKind::auto_free], messages);
    EXPECT_EQ(seen[nic::EventKind::link], searches ? 0u : 1u);
    EXPECT_EQ(seen[nic::EventKind::pt_disabled], 1u);
    good(host.pt_enable(portal));
    if (searches) continue;
    EXPECT_EQ(good(host.me_unlink(claiming)), portals::Unlinked::done);
  }
}

TEST(Interface, ArgumentsAreCheckedBeforeTheNicIsAsked) {
  const auto bed = make_bed();
  portals::Interface& host = bed->rank(0);
  const auto queue = good(host.eq_alloc(4));
  EXPECT_NE(host.eq_free(nic::QueueId{9}).error().message.find("queue 9"), std::string::npos);
  EXPECT_FALSE(host.eq_wait(nic::QueueId{9}).ok());
  EXPECT_FALSE(host.ct_inc(nic::CounterId{3}, {1, 0}).ok());
  EXPECT_FALSE(host.pt_disable(nic::PortalIndex{0}).ok());
  EXPECT_FALSE(host.me_append(nic::PortalIndex{0}, {}).ok());
  EXPECT_FALSE(host.context_free(nic::ContextId{0}).ok());
  portals::PutArguments put;
  put.portal = nic::PortalIndex{0};
  put.length = 1;
  EXPECT_NE(host.put(put).error().message.find("null"), std::string::npos);
  put.length = 0;
  put.ack_request = nic::AckRequest::ack;
  EXPECT_NE(host.put(put).error().message.find("event queue"), std::string::npos);
  put.queue = queue;
  EXPECT_TRUE(host.put(put).ok());
  put.ack_request = nic::AckRequest::ct_ack;
  EXPECT_NE(host.put(put).error().message.find("counter"), std::string::npos);
  EXPECT_FALSE(host.put(put, nic::Trigger{nic::CounterId{5}, 1}).ok());
}

// Rules: SPIN-3.1.
TEST(Interface, NicMemoryAndContexts) {
  const auto bed = make_bed();
  portals::Interface& host = bed->rank(0);
  const uint64_t offset = good(host.memory_alloc(16));
  const std::vector<uint8_t> bytes = {9, 8, 7};
  good(host.memory_write(offset + 1, bytes));
  EXPECT_EQ(bed->loopback().nic_memory(0)[offset + 2], 8);
  EXPECT_EQ(host.memory_alloc(1 << 20).error().code, Code::exhausted);
  nic::Context context;
  context.payload_entry = 0;
  context.state = {offset, 16};
  const auto id = good(host.context_create(context));
  EXPECT_FALSE(host.memory_free(offset).ok());
  good(host.context_free(id));
  good(host.memory_free(offset));
  context.state = {};
  context.header_entry = 0;
  good(host.context_free(good(host.context_create(context))));
}

TEST(Loopback, WaitingForWhatNeverComesIsAStallThatNamesTheWaiter) {
  const auto bed = make_bed();
  portals::Interface& host = bed->rank(0);
  const auto queue = good(host.eq_alloc(4));
  const auto stalled = host.eq_wait(queue);
  ASSERT_FALSE(stalled.ok());
  EXPECT_EQ(stalled.error().code, Code::stalled);
  EXPECT_NE(stalled.error().message.find("rank 0 waits"), std::string::npos);
}

TEST(Loopback, ACycleOfPersistentCommandsEndsInAStall) {
  LoopbackOptions options;
  options.ranks = 1;
  options.steps_max = 1000;
  const auto loopback = std::move(*Loopback::create(options));
  portals::Interface host(loopback->port(0));
  const auto a = good(host.ct_alloc());
  const auto b = good(host.ct_alloc());
  good(host.ct_inc(b, {1, 0}, nic::Trigger{a, 1, 1}));
  good(host.ct_inc(a, {1, 0}, nic::Trigger{b, 1, 1}));
  good(host.ct_inc(a, {1, 0}));
  const auto ran = loopback->run();
  ASSERT_FALSE(ran.ok());
  EXPECT_NE(ran.error().message.find("steps_max"), std::string::npos);
  EXPECT_GT(host.ct_get(a).success, 100u);
}

TEST(Loopback, WithoutARunnerContextsAreRefused) {
  const auto loopback = std::move(*Loopback::create({}));
  portals::Interface host(loopback->port(0));
  nic::Context context;
  context.payload_entry = 0;
  EXPECT_EQ(host.context_create(context).error().code, Code::unsupported);
}

TEST(Loopback, BadOptionsAreErrors) {
  LoopbackOptions options;
  options.ranks = 0;
  EXPECT_FALSE(Loopback::create(options).ok());
  options.ranks = 1;
  options.nic.hpus = 0;
  EXPECT_FALSE(Loopback::create(options).ok());
}

}  // namespace
}  // namespace spinloom::testbed
