// The mailbox: events, counters, answers, and what counts as a change.
#include "portals/interface/mailbox.hpp"

#include <gtest/gtest.h>

namespace spinloom::portals {
namespace {

nic::Event event_of(uint64_t bits) {
  nic::Event event;
  event.match_bits = bits;
  return event;
}

TEST(Mailbox, EventsOfAQueueComeInTheirOrderAndOnce) {
  Mailbox mail;
  const nic::QueueId first{3};
  const nic::QueueId second{0};
  for (uint64_t i = 0; i < 100; ++i) {
    mail.add(first, event_of(i));
    mail.add(second, event_of(1000 + i));
  }
  for (uint64_t i = 0; i < 100; ++i) {
    const auto one = mail.take_event(first);
    const auto other = mail.take_event(second);
    ASSERT_TRUE(one.has_value() && other.has_value());
    EXPECT_EQ(one->match_bits, i);
    EXPECT_EQ(other->match_bits, 1000 + i);
  }
  EXPECT_FALSE(mail.take_event(first).has_value());
  EXPECT_FALSE(mail.take_event(nic::QueueId{1}).has_value());
  EXPECT_FALSE(mail.take_event(nic::QueueId{77}).has_value());
}

TEST(Mailbox, ACounterIsZeroUntilItIsSet) {
  Mailbox mail;
  const nic::CounterId counter{5};
  EXPECT_EQ(mail.counter(counter), (nic::CounterValue{}));
  mail.set(counter, {7, 1});
  EXPECT_EQ(mail.counter(counter), (nic::CounterValue{7, 1}));
  EXPECT_EQ(mail.counter(nic::CounterId{4}), (nic::CounterValue{}));
  EXPECT_EQ(mail.counter(nic::CounterId{6}), (nic::CounterValue{}));
}

// A new counter with an old index finds the old value until it sets the place.
TEST(Mailbox, TheGenerationOfAnIdDoesNotCount) {
  Mailbox mail;
  const nic::CounterId counter{2, 0};
  mail.set(counter, {9, 0});
  EXPECT_EQ(mail.counter(nic::next_of(counter)), (nic::CounterValue{9, 0}));
  const nic::QueueId queue{2, 0};
  mail.add(queue, event_of(1));
  EXPECT_TRUE(mail.take_event(nic::next_of(queue)).has_value());
  EXPECT_FALSE(mail.take_event(queue).has_value());
}

TEST(Mailbox, AnAnswerIsTakenOnce) {
  Mailbox mail;
  EXPECT_FALSE(mail.take_answer(1).has_value());
  mail.answer(1, uint64_t{42});
  mail.answer(2, fail(Code::exhausted, "full"));
  const auto good = mail.take_answer(1);
  ASSERT_TRUE(good.has_value() && good->ok());
  EXPECT_EQ(good->value(), 42u);
  EXPECT_FALSE(mail.take_answer(1).has_value());
  const auto bad = mail.take_answer(2);
  ASSERT_TRUE(bad.has_value());
  EXPECT_EQ(bad->error().code, Code::exhausted);
}

TEST(Mailbox, EveryAdditionIsAChangeAndNoReadingIs) {
  Mailbox mail;
  EXPECT_EQ(mail.changes(), 0u);
  mail.add(nic::QueueId{0}, event_of(1));
  EXPECT_EQ(mail.changes(), 1u);
  mail.set(nic::CounterId{0}, {});
  EXPECT_EQ(mail.changes(), 2u);
  mail.answer(1, uint64_t{0});
  EXPECT_EQ(mail.changes(), 3u);
  mail.note_change();
  EXPECT_EQ(mail.changes(), 4u);
  EXPECT_TRUE(mail.take_event(nic::QueueId{0}).has_value());
  EXPECT_TRUE(mail.take_answer(1).has_value());
  EXPECT_EQ(mail.changes(), 4u);
}

}  // namespace
}  // namespace spinloom::portals
