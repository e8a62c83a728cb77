// Peers that are waited for: when they are asked again, told of, and given up.
#include "live/launch/contacts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace spinloom::live {
namespace {

constexpr Time ms{1'000'000'000};
constexpr Time s{1'000'000'000'000};

TEST(Contacts, NothingIsDueForNobody) {
  Contacts contacts(s);
  EXPECT_TRUE(contacts.empty());
  EXPECT_EQ(contacts.next(), Time::never());
  contacts.add(3, ms);
  contacts.remove(3);
  EXPECT_EQ(contacts.next(), Time::never());
  EXPECT_TRUE(contacts.take_due(s * 100).to_ask.empty());
}

TEST(Contacts, PausesBetweenQuestionsDoubleAndStaySmall) {
  Contacts contacts;
  contacts.add(3, Time{});
  Time last{};
  int questions = 0;
  for (Time pause = ms; last < s * 100; ++questions) {
    ASSERT_TRUE(contacts.take_due(contacts.next() - Time{1}).to_ask.empty());
    Time next = contacts.next();
    Contacts::Due due = contacts.take_due(next);
    if (due.to_report) due = contacts.take_due(next = contacts.next());
    ASSERT_EQ(next - last, pause);
    ASSERT_EQ(due.to_ask, std::vector<uint32_t>{3});
    last = next;
    pause = std::min(pause * 2, Contacts::pause_max);
  }
  EXPECT_LT(questions, 120);
}

// Looks whenever something is due, until the time.
struct Seen {
  std::vector<uint32_t> told, late;
};
Seen until(Contacts& contacts, Time end) {
  Seen seen;
  while (contacts.next() <= end) {
    const Contacts::Due due = contacts.take_due(contacts.next());
    if (due.to_report) seen.told.push_back(*due.to_report);
    for (const uint32_t rank : due.timed_out) {
      seen.late.push_back(rank);
      contacts.remove(rank);
    }
  }
  return seen;
}

TEST(Contacts, PeopleAreToldOnce) {
  Contacts contacts(s * 300);
  contacts.add(3, Time{});
  contacts.add(4, s);
  EXPECT_TRUE(until(contacts, s * 10 - ms).told.empty());
  EXPECT_EQ(until(contacts, s * 100).told, std::vector<uint32_t>{3});
  contacts.add(5, s * 100);
  const Seen rest = until(contacts, s * 1000);
  EXPECT_TRUE(rest.told.empty());
  EXPECT_EQ(rest.late, (std::vector<uint32_t>{3, 4, 5}));
  EXPECT_TRUE(contacts.empty());
}

TEST(Contacts, AShortLimitIsNotAnnounced) {
  Contacts contacts(s);
  contacts.add(3, Time{});
  const Seen seen = until(contacts, s * 100);
  EXPECT_TRUE(seen.told.empty());
  EXPECT_EQ(seen.late, std::vector<uint32_t>{3});
}

TEST(Contacts, WithoutALimitNobodyIsGivenUp) {
  Contacts contacts;
  contacts.add(3, Time{});
  const Seen seen = until(contacts, s * 10'000);
  EXPECT_EQ(seen.told, std::vector<uint32_t>{3});
  EXPECT_TRUE(seen.late.empty());
}

}  // namespace
}  // namespace spinloom::live
