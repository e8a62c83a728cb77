// The tally of an MPI job: what is counted together, and what is cut.
#include "mpi/moving/tally.hpp"

#include <gtest/gtest.h>

#include "memory/layout/text.hpp"

namespace spinloom::mpi {
namespace {

layout::Type type_of(const char* text) { return layout::parse(text).value(); }

TEST(Tally, TypesWithTheSameTextShareAnEntry) {
  Tally tally;
  const layout::Type first = type_of("vector(8, 1, 2, int64_t)");
  const FormPointer form = make_form(first);
  TypeTally* const entry = tally.tally_of(first, *form);
  EXPECT_EQ(entry, tally.tally_of(type_of("vector(8, 1, 2, int64_t)"), *form));
  EXPECT_NE(entry, tally.tally_of(type_of("vector(8, 1, 3, int64_t)"), *form));
}

TEST(Tally, MessagesAreCountedByCountReceiverWayAndReason) {
  Tally tally;
  const layout::Type type = type_of("resized(0B, 128B, vector(8, 1, 2, int64_t))");
  TypeTally* const entry = tally.tally_of(type, *make_form(type));
  const char* const why = "because";
  entry->count({1, 3, Way::staged, why}, 64);
  entry->count({2, 3, Way::mapped, why}, 128);
  entry->count({1, 3, Way::staged, why}, 64);
  entry->withdraw(2, 3);
  EXPECT_EQ(tally.as_json(),
            "[{\"kind\": \"derived\", \"text\": \"resized(0B, 128B, vector(8, 1, 2, int64_t))\", \"whole\": true, "
            "\"size\": 64, \"extent\": 128, \"spread\": 2, \"block_bytes\": 8, \"sent\": [[1, 3, \"staged\", "
            "\"because\", 2, 128, 0, \"\"], [2, 3, \"mapped\", \"because\", 1, 128, 1, \"\"]]}]");
}

TEST(Tally, WhatWasNotSentIsNotTold) {
  Tally tally;
  const layout::Type type = type_of("vector(8, 1, 2, int64_t)");
  ASSERT_NE(tally.tally_of(type, *make_form(type)), nullptr);
  EXPECT_EQ(tally.as_json(), "[]");
  tally.contiguous()->count({TypeTally::various, 1, Way::pass, "contiguous"}, 8);
  EXPECT_EQ(tally.as_json(),
            "[{\"kind\": \"contiguous\", \"sent\": [[-1, 1, \"pass\", \"contiguous\", 1, 8, 0, \"\"]]}]");
}

TEST(Tally, ManyCountsAndReceiversAreToldTogetherAndNoneIsLost) {
  Tally tally;
  TypeTally* const entry = tally.unknown();
  constexpr int64_t messages = 5'000;
  for (int64_t i = 0; i < messages; ++i) entry->count({i, i, Way::pass, "short"}, 1);
  const std::string json = entry->as_json();
  EXPECT_LT(json.size(), size_t{1} << 16);
  EXPECT_NE(json.find("[-1, -1, \"pass\", \"short\", 4744, 4744, 0, \"\"]"), std::string::npos)
      << json.substr(json.size() - 200);
}

TEST(Tally, ALongTextIsCutAndSaysSo) {
  std::string list = "idxblock(1, [0";
  for (int i = 1; i < 60'000; ++i) list += ", " + std::to_string(3 * i);
  const layout::Type type = type_of((list + "], int64_t)").c_str());
  Tally tally;
  tally.tally_of(type, *make_form(type))->count({1, 0, Way::pass, "short"}, 1);
  EXPECT_NE(tally.as_json().find("\"whole\": false"), std::string::npos);
  EXPECT_LT(tally.as_json().size(), size_t{1} << 10);
}

TEST(Tally, WhatIsKnownIsKeptOftenAtFirstAndSeldomLater) {
  Tally tally;
  int kept = 0;
  for (int i = 1; i <= 64; ++i) {
    const bool due = tally.is_due();
    EXPECT_EQ(due, (i & (i - 1)) == 0) << i;
    kept += due ? 1 : 0;
  }
  EXPECT_EQ(kept, 7);
}

}  // namespace
}  // namespace spinloom::mpi
