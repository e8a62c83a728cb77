// Entries that peers use without the NIC: which are published, and that the NIC closes them before anything changes.
#include <set>
#include <vector>

#include "nic/portals/testing/nic_bench.hpp"

namespace spinloom::nic {
namespace {

// Notes what the NIC asks, and may be in the state in which a peer does not leave.
class Peers final : public Publisher {
 public:
  bool close(PortalIndex portal) override {
    ++closes;
    if (one_stays) return false;
    open.erase(portal.value);
    return true;
  }
  void note_change(PortalIndex portal) override { changed.insert(portal.value); }

  std::set<uint32_t> open;
  std::set<uint32_t> changed;
  uint32_t closes = 0;
  bool one_stays = false;
};

class Publication : public testing::Test {
 protected:
  Publication() {
    bench.nic.set_publisher(peers);
    bench.good(CounterAlloc{counter});
  }
  Entry plain(uint64_t match_bits = 5) {
    Entry made = bench.entry(match_bits);
    made.options.event_comm_disable = true;
    return made;
  }
  Entry counting() {
    Entry made = plain();
    made.options.ct_comm = true;
    made.counter = counter;
    return made;
  }
  std::vector<PlainEntry> publish(uint32_t most = 8) {
    std::vector<PlainEntry> found = bench.nic.publish(bench.portal, most);
    if (!found.empty()) peers.open.insert(bench.portal.value);
    bench.nic.check_invariants();
    return found;
  }
  [[nodiscard]] bool is_open() const { return peers.open.contains(bench.portal.value); }

  Bench bench;
  Peers peers;
  CounterId counter{3};
};

TEST_F(Publication, GivesThePlainEntriesBeforeTheFirstThatIsNot) {
  Entry first = plain(1);
  first.match_rank = Rank{0};
  first.user = 4;
  first.options.op_put = false;
  first.options.op_get = true;
  first.options.ack_disable = true;
  bench.append(first);
  Entry second = counting();
  second.options.ct_bytes = true;
  bench.append(second);
  Entry once = plain(2);
  once.options.use_once = true;
  bench.append(once);
  bench.append(plain(3));
  const std::vector<PlainEntry> found = publish();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0], (PlainEntry{first.start, first.length, 1, 0, Rank{0}, 4, false, true, true, false, {}}));
  EXPECT_EQ(found[1],
            (PlainEntry{second.start, second.length, 5, 0, Rank::any(), any_user, true, false, false, true, counter}));
}

TEST_F(Publication, LeavesOutWhatMakesADecisionOrAnEvent) {
  std::vector<Entry> others(9, plain());
  others[0].options.event_comm_disable = false;
  others[1].options.use_once = true;
  others[2].options.manage_local = true;
  others[3].options.host_activated = true;
  others[4].context = bench.context();
  const IovecElement piece{bench.memory.data(), 8};
  others[5].iovec = {&piece, 1};
  others[5].length = 8;
  others[6] = counting();
  bench.good(CounterAutoReset{counter, 4});
  others[7] = counting();
  others[7].counter = {};  // it would count, but by nothing
  others[8] = plain();
  for (size_t i = 0; i < others.size(); ++i) {
    const EntryId id = bench.append(others[i]);
    EXPECT_EQ(publish().size(), i >= 7 ? 1u : 0u) << i;
    bench.good(Unlink{id});
  }
}

TEST_F(Publication, LeavesOutPortalsWithFlowControl) {
  const PortalIndex portal{7};
  bench.good(PortalAlloc{portal, bench.queue, true});
  bench.good(Append{EntryId{40}, portal, ListKind::priority, plain()});
  EXPECT_EQ(bench.nic.publish(portal, 8).size(), 0u) << "it may disable itself at any message";
}

TEST_F(Publication, EndsWhereAnEntryIsStillToBeLinked) {
  Context inactive;
  inactive.active = false;
  Entry later = plain(2);
  later.context = bench.context(inactive);
  bench.append(plain(1));
  bench.append(later);
  bench.append(plain(3));
  EXPECT_EQ(publish().size(), 1u);
  bench.good(ContextActivate{later.context});
  EXPECT_EQ(publish().size(), 0u) << "it lies before the third";
  bench.nic.check_invariants();
}

TEST_F(Publication, EndsBeforeAnEntryLeaves) {
  const EntryId first = bench.append(plain(1));
  const EntryId second = bench.append(plain(2));
  ASSERT_EQ(publish(1).size(), 1u);
  EXPECT_EQ(bench.good(Unlink{second}), static_cast<uint64_t>(UnlinkResult::done));
  EXPECT_TRUE(is_open()) << "it was not published";
  peers.one_stays = true;
  EXPECT_EQ(bench.good(Unlink{first}), static_cast<uint64_t>(UnlinkResult::in_use));
  peers.one_stays = false;
  EXPECT_EQ(bench.good(Unlink{first}), static_cast<uint64_t>(UnlinkResult::done));
  EXPECT_FALSE(is_open());
  EXPECT_EQ(peers.closes, 2u);
}

TEST_F(Publication, EndsBeforeThePortalIsDisabledAndComesBackWithIt) {
  bench.append(plain());
  ASSERT_EQ(publish().size(), 1u);
  peers.one_stays = true;
  bench.error(PortalEnable{bench.portal, false}, Code::exhausted);
  EXPECT_TRUE(is_open());
  peers.one_stays = false;
  bench.good(PortalEnable{bench.portal, false});
  EXPECT_FALSE(is_open());
  EXPECT_EQ(publish().size(), 0u);
  peers.changed.clear();
  bench.good(PortalEnable{bench.portal, true});
  EXPECT_TRUE(peers.changed.contains(bench.portal.value));
  EXPECT_EQ(publish().size(), 1u);
}

TEST_F(Publication, EndsBeforeACommandWaitsForAnEntrysCounter) {
  bench.append(counting());
  ASSERT_EQ(publish().size(), 1u);
  bench.good(CounterAlloc{CounterId{4}});
  bench.good(CounterInc{counter, {1, 0}}, Trigger{CounterId{4}, 1, 0});
  EXPECT_TRUE(is_open()) << "it waits for another counter";
  peers.one_stays = true;
  bench.error(CounterInc{CounterId{4}, {1, 0}}, Code::exhausted, Trigger{counter, 1, 0});
  peers.one_stays = false;
  bench.good(CounterInc{CounterId{4}, {1, 0}}, Trigger{counter, 1, 0});
  EXPECT_FALSE(is_open());
  EXPECT_EQ(publish().size(), 0u);
}

TEST_F(Publication, EndsBeforeACounterResetsItself) {
  bench.append(counting());
  ASSERT_EQ(publish().size(), 1u);
  bench.good(CounterAutoReset{counter, 2});
  EXPECT_FALSE(is_open());
}

TEST_F(Publication, GrowsByEntriesThatAreAppended) {
  bench.append(plain(1));
  ASSERT_EQ(publish(3).size(), 1u);
  EXPECT_EQ(publish(3).size(), 0u) << "nothing has come";
  EXPECT_EQ(peers.closes, 0u);
  peers.changed.clear();
  bench.append(plain(2));
  EXPECT_TRUE(peers.changed.contains(bench.portal.value));
  EXPECT_EQ(publish(3).size(), 2u);
  bench.append(plain(3));
  bench.append(plain(4));
  EXPECT_EQ(publish(3).size(), 3u);
  EXPECT_EQ(publish(3).size(), 0u);
  EXPECT_EQ(peers.closes, 2u);
}

TEST_F(Publication, IsSettledWhenNoMessageIsOpen) {
  bench.append(plain());
  EXPECT_TRUE(bench.nic.is_settled());
  bench.arrive(1, 40, 0);
  EXPECT_FALSE(bench.nic.is_settled()) << "24 B are still to come";
}

}  // namespace
}  // namespace spinloom::nic
