// The portal table alone: entries, unexpected headers, disabling, refusals, and inactive contexts.
#include "nic/portals/portal_table.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace spinloom::nic {
namespace {

constexpr QueueId queue{0};
constexpr PortalIndex index{0};
constexpr MatchKey key{Rank{3}, 5, 0, 8};

struct PortalTableTest : testing::Test {
  PortalTableTest() {
    EXPECT_TRUE(queues.alloc({queue, 64, 0, host}).ok());
    EXPECT_TRUE(portals.alloc({index, queue, false}).ok());
  }
  Append request(uint32_t id, ListKind list = ListKind::priority, bool use_once = false) {
    Append made;
    made.id = EntryId{id};
    made.portal = index;
    made.list = list;
    made.entry.start = memory.data();
    made.entry.length = memory.size();
    made.entry.match_bits = 5;
    made.entry.options.op_put = true;
    made.entry.options.event_link_disable = false;
    made.entry.options.use_once = use_once;
    return made;
  }
  uint32_t append(const Append& command) {
    EXPECT_TRUE(portals.append(command, out).ok());
    const auto slot = portals.slot_of(command.id);
    return slot.ok() ? *slot : no_slot;
  }
  uint32_t find() {
    uint32_t searched = 0;
    return portals.find_priority(*portals.find(index), key, searched);
  }
  PortalTable::Attached attach(uint32_t slot) { return portals.attach(slot, key, Operation::put, {}, 0, 8); }
  void detach(uint32_t slot, const PortalTable::Attached& attached, bool comes_back = false) {
    portals.detach(slot, attached, comes_back, out);
    portals.leave(index, out);
  }
  std::vector<EventKind> events() {
    std::vector<EventKind> kinds;
    for (const Action& action : out.list) {
      if (const auto* post = std::get_if<PostEvent>(&action)) kinds.push_back(post->event.kind);
    }
    out.clear();
    return kinds;
  }
  using Kinds = std::vector<EventKind>;

  std::shared_ptr<QueueIndex> host = std::make_shared<QueueIndex>();
  std::array<uint8_t, 64> memory{};
  EventQueues queues{portals};
  Triggers triggers{8};
  ContextTable contexts{1024};
  PortalTable portals{queues, triggers, contexts, 4};
  Actions out;
};

TEST_F(PortalTableTest, AUseOnceEntryIsToldAfterItsMessage) {
  const uint32_t slot = append(request(0, ListKind::priority, true));
  EXPECT_EQ(events(), Kinds{EventKind::link});
  EXPECT_EQ(find(), slot);
  const auto attached = attach(slot);
  EXPECT_TRUE(attached.unlinked);
  EXPECT_EQ(find(), no_slot);
  EXPECT_TRUE(events().empty());
  detach(slot, attached);
  EXPECT_EQ(events(), Kinds{EventKind::auto_unlink});
  EXPECT_FALSE(portals.slot_of(EntryId{0}).ok());
}

TEST_F(PortalTableTest, OneThatComesBackIsFirstInItsListAgain) {
  const uint32_t once = append(request(0, ListKind::priority, true));
  append(request(1));
  const auto attached = attach(once);
  EXPECT_NE(find(), once);
  detach(once, attached, true);
  EXPECT_EQ(find(), once);
}

TEST_F(PortalTableTest, AnEntryWithMessagesIsInUse) {
  const uint32_t slot = append(request(0));
  const auto attached = attach(slot);
  EXPECT_EQ(*portals.unlink(EntryId{0}), UnlinkResult::in_use);
  EXPECT_FALSE(portals.free(index, out).ok());
  detach(slot, attached);
  EXPECT_EQ(*portals.unlink(EntryId{0}), UnlinkResult::done);
  EXPECT_TRUE(portals.free(index, out).ok());
}

TEST_F(PortalTableTest, AnUnexpectedHeaderIsClaimedByALaterEntry) {
  const uint32_t overflow = append(request(0, ListKind::overflow, true));
  const auto attached = attach(overflow);
  ASSERT_NE(attached.header, no_slot);
  EXPECT_EQ(portals.headers(), 1u);
  portals.landed(attached.header, 8, 0, Fail::ok);
  detach(overflow, attached);
  events();
  EXPECT_TRUE(portals.append(request(1, ListKind::priority, true), out).ok());
  EXPECT_EQ(events(), (Kinds{EventKind::put_overflow, EventKind::auto_free, EventKind::auto_unlink}));
  EXPECT_EQ(portals.headers(), 0u);
}

TEST_F(PortalTableTest, AClaimedHeaderIsToldWhenItsDataIsThere) {
  const uint32_t overflow = append(request(0, ListKind::overflow));
  const auto attached = attach(overflow);
  EXPECT_TRUE(portals.append(request(1, ListKind::priority, true), out).ok());
  events();
  EXPECT_EQ(*portals.search({index, request(2).entry, false}, out), 0u);  // the header is claimed
  events();
  portals.landed(attached.header, 8, 0, Fail::ok);
  detach(overflow, attached);
  EXPECT_EQ(events(), (Kinds{EventKind::put_overflow, EventKind::auto_unlink}));
}

// Rules: P4F-7.56, P4F-7.60, P4F-7.66.
TEST_F(PortalTableTest, ClaimedHeadersAreToldInTheirOrderAndLinkComesLast) {
  const uint32_t overflow = append(request(0, ListKind::overflow));
  const auto first = attach(overflow);
  const auto second = attach(overflow);
  events();
  append(request(1));
  EXPECT_TRUE(events().empty());
  EXPECT_EQ(*portals.unlink(EntryId{1}), UnlinkResult::in_use);
  portals.landed(second.header, 8, 0, Fail::ok);
  detach(overflow, second);
  EXPECT_TRUE(events().empty());  // the first one's data is still to come
  portals.landed(first.header, 4, 0, Fail::ok);
  detach(overflow, first);
  std::vector<uint64_t> lengths;
  for (const Action& action : out.list) lengths.push_back(std::get<PostEvent>(action).event.manipulated_bytes);
  EXPECT_EQ(lengths, (std::vector<uint64_t>{4, 8, 0}));
  EXPECT_EQ(events(), (Kinds{EventKind::put_overflow, EventKind::put_overflow, EventKind::link}));
  EXPECT_EQ(*portals.unlink(EntryId{1}), UnlinkResult::done);
}

TEST_F(PortalTableTest, AHeaderThatHasLandedWaitsForAClaimBeforeIt) {
  const uint32_t overflow = append(request(0, ListKind::overflow));
  const auto first = attach(overflow);
  const auto second = attach(overflow);
  portals.landed(second.header, 8, 0, Fail::ok);
  detach(overflow, second);
  events();
  append(request(1));
  EXPECT_TRUE(events().empty());
  portals.landed(first.header, 8, 0, Fail::ok);
  detach(overflow, first);
  EXPECT_EQ(events(), (Kinds{EventKind::put_overflow, EventKind::put_overflow, EventKind::link}));
}

// Rules: P4F-9.11, P4F-9.15.
TEST_F(PortalTableTest, ASearchRemovesAHeaderWhoseDataIsStillToCome) {
  const uint32_t overflow = append(request(0, ListKind::overflow));
  const auto first = attach(overflow);
  const auto second = attach(overflow);
  portals.landed(second.header, 8, 0, Fail::ok);
  detach(overflow, second);
  events();
  Entry all = request(1).entry;
  ASSERT_TRUE(triggers.alloc({CounterId{0}}).ok());
  all.counter = CounterId{0};
  all.options.ct_overflow = true;
  out.clear();
  EXPECT_EQ(*portals.search({index, all, true}, out), 2u);
  EXPECT_TRUE(events().empty());
  EXPECT_EQ(*portals.search({index, all, false}, out), 0u);  // both are taken
  EXPECT_EQ(events(), Kinds{EventKind::search});
  portals.landed(first.header, 8, 0, Fail::ok);
  detach(overflow, first);
  EXPECT_EQ(events(), (Kinds{EventKind::put_overflow, EventKind::put_overflow}));
  EXPECT_EQ(triggers.value(CounterId{0}), (CounterValue{2, 2}));  // the end of each search counts as a failure
  EXPECT_EQ(portals.headers(), 0u);
}

// Rules: P4F-9.10.
TEST_F(PortalTableTest, AUseOnceSearchTakesOneHeader) {
  const uint32_t overflow = append(request(0, ListKind::overflow, true));
  const auto attached = attach(overflow);
  events();
  EXPECT_EQ(*portals.search({index, request(1, ListKind::priority, true).entry, true}, out), 1u);
  EXPECT_TRUE(events().empty());
  portals.landed(attached.header, 8, 0, Fail::ok);
  detach(overflow, attached);
  EXPECT_EQ(events(), (Kinds{EventKind::put_overflow, EventKind::auto_unlink, EventKind::auto_free}));
}

// Rules: P4F-9.7, P4F-9.18, P4F-9.20.
TEST_F(PortalTableTest, ASearchThatFindsNothingSaysSo) {
  Entry quiet = request(1).entry;
  EXPECT_EQ(*portals.search({index, quiet, false}, out), 0u);
  EXPECT_EQ(events(), Kinds{EventKind::search});
  quiet.options.event_comm_disable = true;
  EXPECT_EQ(*portals.search({index, quiet, false}, out), 0u);
  EXPECT_TRUE(events().empty());
  EXPECT_EQ(*portals.search({index, quiet, true}, out), 0u);  // one that removes says so in any case
  EXPECT_EQ(events(), Kinds{EventKind::search});
}

TEST_F(PortalTableTest, HeadersHaveALimit) {
  const uint32_t overflow = append(request(0, ListKind::overflow));
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(portals.has_header_room(*portals.find(index)));
    (void)attach(overflow);
  }
  EXPECT_FALSE(portals.has_header_room(*portals.find(index)));
}

TEST_F(PortalTableTest, AQueueThatIsFullDisablesWhoHoldsIt) {
  constexpr PortalIndex controlled{1};
  constexpr QueueId small{1};
  const auto taken = std::make_shared<QueueIndex>();
  ASSERT_TRUE(queues.alloc({small, 3, 1, taken}).ok());
  ASSERT_TRUE(portals.alloc({controlled, small, true}).ok());
  Append one = request(0);
  one.portal = controlled;
  one.entry.options.event_link_disable = true;
  const uint32_t slot = append(one);
  EXPECT_TRUE(portals.has_event_room(*portals.find(controlled), one.entry));
  const auto first = portals.attach(slot, key, Operation::put, {}, 0, 8);
  const auto second = portals.attach(slot, key, Operation::put, {}, 0, 8);
  EXPECT_FALSE(portals.has_event_room(*portals.find(controlled), one.entry));
  queues.post(small, Event{}, out);
  EXPECT_TRUE(portals.find(controlled)->enabled);
  queues.post(small, Event{}, out);
  EXPECT_FALSE(portals.find(controlled)->enabled);
  events();
  portals.detach(slot, first, false, out);
  portals.leave(controlled, out);
  EXPECT_TRUE(events().empty());  // another message is under way
  portals.detach(slot, second, false, out);
  portals.leave(controlled, out);
  EXPECT_EQ(events(), Kinds{EventKind::pt_disabled});
}

TEST_F(PortalTableTest, WhoDisablesIsAnsweredWhenItsMessagesHaveEnded) {
  const uint32_t slot = append(request(0));
  EXPECT_FALSE(portals.answer_when_empty(index, {9, 1}));
  const auto attached = attach(slot);
  EXPECT_TRUE(portals.answer_when_empty(index, {9, 1}));
  out.clear();
  detach(slot, attached);
  ASSERT_EQ(out.list.size(), 1u);
  EXPECT_EQ(std::get<Answer>(out.list[0]).token, 9u);
  EXPECT_EQ(*std::get<Answer>(out.list[0]).result, 1u);
}

TEST_F(PortalTableTest, AnEventThatIsDueComesAlthoughAQuietEntryDisablesAgain) {
  constexpr PortalIndex controlled{1};
  ASSERT_TRUE(portals.alloc({controlled, queue, true}).ok());
  Append one = request(0);
  one.portal = controlled;
  const uint32_t slot = append(one);
  const auto attached = portals.attach(slot, key, Operation::put, {}, 0, 8);
  portals.disable(controlled, true);
  portals.leave(controlled, out);
  EXPECT_TRUE(portals.enable({controlled, true}).ok());
  portals.disable(controlled, false);
  portals.leave(controlled, out);
  events();
  portals.detach(slot, attached, false, out);
  portals.leave(controlled, out);
  EXPECT_EQ(events(), Kinds{EventKind::pt_disabled});
}

TEST_F(PortalTableTest, RefusalsAreCountedByKindAndByPartOfTheTable) {
  const PortalIndex other{limits::portal_table_max / limits::portal_tables};
  portals.count_refusal(index, Fail::perm_violation);
  portals.count_refusal(index, Fail::op_violation);
  portals.count_refusal(index, Fail::op_violation);
  portals.count_refusal(other, Fail::dropped);
  EXPECT_EQ(*portals.read_refusals({0, Refusal::permission}), 1u);
  EXPECT_EQ(*portals.read_refusals({0, Refusal::operation}), 2u);
  EXPECT_EQ(*portals.read_refusals({0, Refusal::dropped}), 0u);
  EXPECT_EQ(*portals.read_refusals({1, Refusal::dropped}), 1u);
}

TEST_F(PortalTableTest, APartOfTheTableHoldsSoManyEntries) {
  ASSERT_TRUE(portals.setup({0, 77, 2, 1}).ok());
  EXPECT_EQ(portals.user_of(index), 77u);
  append(request(0));
  EXPECT_FALSE(portals.append(request(1), out).ok());  // a list may have one entry
  append(request(1, ListKind::overflow));
  EXPECT_EQ(*portals.unlink(EntryId{0}), UnlinkResult::done);
  append(request(2));
  EXPECT_FALSE(portals.append(request(3, ListKind::overflow), out).ok());  // two entries may exist in all
}

TEST_F(PortalTableTest, EntriesOfAnInactiveContextWaitForIt) {
  ContextCreate inactive{ContextId{0}, {}};
  inactive.context.payload_entry = 0;
  inactive.context.active = false;
  ASSERT_TRUE(contexts.create(inactive, 1, 64).ok());
  Append one = request(0);
  one.entry.context = inactive.id;
  const uint32_t slot = append(one);
  EXPECT_TRUE(events().empty());
  EXPECT_EQ(find(), no_slot);
  EXPECT_FALSE(contexts.free(inactive.id).ok());
  ASSERT_TRUE(contexts.activate(inactive.id).ok());
  portals.activate(inactive.id, out);
  EXPECT_EQ(events(), Kinds{EventKind::link});
  EXPECT_EQ(find(), slot);
}

TEST_F(PortalTableTest, EntriesThatWaitedForTheirContextAreLinkedInTheOrderOfTheirAppends) {
  ContextCreate inactive{ContextId{0}, {}};
  inactive.context.payload_entry = 0;
  inactive.context.active = false;
  ASSERT_TRUE(contexts.create(inactive, 1, 64).ok());
  const std::vector<uint32_t> ids{2, 0, 3, 1};
  std::vector<uint32_t> slots;
  for (const uint32_t id : ids) {
    Append one = request(id, ListKind::priority, true);
    one.entry.context = inactive.id;
    slots.push_back(append(one));
  }
  ASSERT_TRUE(contexts.activate(inactive.id).ok());
  portals.activate(inactive.id, out);
  std::vector<uint32_t> linked;
  for (const Action& action : out.list) {
    const auto* const post = std::get_if<PostEvent>(&action);
    if (post != nullptr && post->event.kind == EventKind::link) linked.push_back(post->event.entry.value);
  }
  EXPECT_EQ(linked, ids);
  for (const uint32_t slot : slots) {
    ASSERT_EQ(find(), slot);
    detach(slot, attach(slot));
  }
}

}  // namespace
}  // namespace spinloom::nic
