// Messages that lie in the sender's memory until their receiver has taken them, or the sender has lost its patience.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/shared_heap.hpp"
#include "memory/layout/type.hpp"
#include "mpi/moving/copy_pipeline.hpp"

namespace spinloom::mpi {
namespace {

class OfferTest : public ::testing::TestWithParam<bool> {
 protected:
  static constexpr int count = 3'000;
  static constexpr size_t words = size_t{3} * count;

  void SetUp() override {
    static int worlds = 0;
    const std::string world = text("spinloom-mpi-offer-", getpid(), "-", ++worlds);
    Settings settings;
    settings.chunk_bytes = 1 << 10;
    settings.staging_bytes = 1 << 20;
    settings.memoised = GetParam();
    for (uint32_t rank = 0; rank < 2; ++rank) ASSERT_TRUE(ranks_[rank].begin(world, rank, 2, 2, settings).ok());
    ranks_[0].notice();
    from_ = static_cast<int32_t*>(process_heap().allocate(words * sizeof(int32_t)));
    ASSERT_NE(from_, nullptr);
    for (size_t i = 0; i < words; ++i) from_[i] = static_cast<int32_t>(i);
    form_ = make_form(*layout::vector(count, 1, 3, *layout::primitive("int32_t")));
  }
  void TearDown() override {
    EXPECT_TRUE(process_heap().release(from_));
    for (CopyPipeline& rank : ranks_) rank.end();
  }
  [[nodiscard]] Message message() const { return {*form_, 1, from_}; }
  [[nodiscard]] Record record_of(const PendingSend& pending) const {
    const auto record = ranks_[1].read(pending.record(), Record::least);
    EXPECT_TRUE(record.has_value());
    return record.value_or(Record{});
  }
  void expect_every_third(const std::vector<int32_t>& to, size_t first_wrong) const {
    for (size_t i = 0; i < to.size(); ++i) {
      ASSERT_EQ(to[i], i % 3 == 0 && i < first_wrong ? static_cast<int32_t>(i) : -1) << i;
    }
  }

  std::array<CopyPipeline, 2> ranks_;
  int32_t* from_ = nullptr;
  FormPointer form_;
};
INSTANTIATE_TEST_SUITE_P(Layouts, OfferTest, ::testing::Bool(),
                         [](const auto& memoised) { return memoised.param ? "Memoised" : "Naive"; });

TEST_P(OfferTest, OnlyMemoryThatPeersMapIsOffered) {
  EXPECT_TRUE(CopyPipeline::is_mapped(message()));
  std::vector<int32_t> elsewhere(words);
  EXPECT_FALSE(CopyPipeline::is_mapped({*form_, 1, elsewhere.data()}));
  EXPECT_FALSE(CopyPipeline::is_mapped({*form_, 1 << 24, from_}));
}

TEST_P(OfferTest, TheReceiverTakesItFromTheSendersMemory) {
  for (int round = 0; round < 3; ++round) {
    const auto pending = ranks_[0].offer(message());
    ASSERT_TRUE(pending.has_value());
    EXPECT_FALSE(CopyPipeline::is_done(*pending));
    std::vector<int32_t> to(words, -1);
    ASSERT_TRUE(ranks_[1].land(record_of(*pending), {*form_, 1, to.data()}).ok());
    expect_every_third(to, words);
    EXPECT_TRUE(CopyPipeline::is_done(*pending));
    EXPECT_FALSE(CopyPipeline::withdraw(*pending));
  }
  EXPECT_EQ(ranks_[0].totals().offered, 3U);
}

// The sender of the first message looks only when its slot already carries a later one.
TEST_P(OfferTest, AMessageStaysTakenWhenItsSlotCarriesALaterOne) {
  std::vector<int32_t> to(words, -1);
  const auto first = ranks_[0].offer(message());
  ASSERT_TRUE(first.has_value());
  ASSERT_TRUE(ranks_[1].land(record_of(*first), {*form_, 1, to.data()}).ok());
  const auto second = ranks_[0].offer(message());
  ASSERT_TRUE(second.has_value());
  ASSERT_EQ(second->slot, first->slot);
  EXPECT_TRUE(CopyPipeline::is_done(*first));
  EXPECT_FALSE(CopyPipeline::is_done(*second));
  ASSERT_TRUE(ranks_[1].land(record_of(*second), {*form_, 1, to.data()}).ok());
  EXPECT_TRUE(CopyPipeline::is_done(*first));
  EXPECT_TRUE(CopyPipeline::is_done(*second));
}

// More layouts than are kept, so that each call changes the table.
TEST_P(OfferTest, ThreadsLearnLayoutsAtOnce) {
  ASSERT_TRUE(CopyPipeline::publish(*form_));
  const Offer offer{0, 0, form_->number, form_->published.address(), form_->published.bytes()};
  std::vector<std::thread> threads;
  std::atomic<bool> go = false;
  for (uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      while (!go) std::this_thread::yield();
      for (uint64_t i = 0; i < 4 * PeerLayouts::most; ++i) {
        Offer one = offer;
        one.layout_number = 1'000 + 4 * i + thread;
        ranks_[1].learn(0, one);
      }
    });
  }
  go = true;
  for (std::thread& thread : threads) thread.join();
  const auto pending = ranks_[0].offer(message());
  ASSERT_TRUE(pending.has_value());
  std::vector<int32_t> to(words, -1);
  ASSERT_TRUE(ranks_[1].land(record_of(*pending), {*form_, 1, to.data()}).ok());
  expect_every_third(to, words);
}

TEST_P(OfferTest, ALayoutThatWasLearntIsNotReadAgain) {
  if (!GetParam()) GTEST_SKIP() << "nothing is kept";
  ASSERT_TRUE(CopyPipeline::publish(*form_));
  const Published& published = form_->published;
  ranks_[1].learn(0, {0, 0, form_->number, published.address(), published.bytes()});
  std::memset(reinterpret_cast<void*>(published.address()), 0, published.bytes());
  const auto pending = ranks_[0].offer(message());
  ASSERT_TRUE(pending.has_value());
  std::vector<int32_t> to(words, -1);
  ASSERT_TRUE(ranks_[1].land(record_of(*pending), {*form_, 1, to.data()}).ok());
  expect_every_third(to, words);
}

TEST_P(OfferTest, WhatIsNoLayoutIsNotLearnt) {
  ranks_[1].learn(0, {0, 0, form_->number, reinterpret_cast<uint64_t>(from_), 64});
  ranks_[1].learn(0, {0, 0, form_->number, 0, 64});
  ranks_[1].learn(7, {0, 0, form_->number, reinterpret_cast<uint64_t>(from_), 64});
  const auto pending = ranks_[0].offer(message());
  ASSERT_TRUE(pending.has_value());
  std::vector<int32_t> to(words, -1);
  ASSERT_TRUE(ranks_[1].land(record_of(*pending), {*form_, 1, to.data()}).ok());
  expect_every_third(to, words);
}

TEST_P(OfferTest, ToTheRankItselfAnyMemoryIsOffered) {
  std::vector<int32_t> elsewhere(from_, from_ + words);
  const FormPointer word = make_form(*layout::primitive("int32_t"));
  for (const bool is_run : {false, true}) {
    const Message there(is_run ? *word : *form_, is_run ? count : 1, elsewhere.data());
    const auto pending = ranks_[0].offer(there, CopyPipeline::CopyMode::within);
    ASSERT_TRUE(pending.has_value());
    const auto record = ranks_[0].read(pending->record(), Record::least);
    ASSERT_TRUE(record.has_value());
    std::vector<int32_t> to(words, -1);
    ASSERT_TRUE(ranks_[0].land(*record, {is_run ? *word : *form_, is_run ? count : 1, to.data()}).ok());
    for (size_t i = 0; i < words; ++i) {
      const bool is_sent = is_run ? i < count : i % 3 == 0;
      ASSERT_EQ(to[i], is_sent ? static_cast<int32_t>(i) : -1) << i;
    }
    EXPECT_TRUE(CopyPipeline::is_done(*pending));
  }
}

TEST_P(OfferTest, TheRankItselfUnpacksWhatItHasWithdrawn) {
  const auto pending = ranks_[0].offer(message(), CopyPipeline::CopyMode::within);
  ASSERT_TRUE(pending.has_value());
  const auto record = ranks_[0].read(pending->record(), Record::least);
  ASSERT_TRUE(record.has_value());
  ASSERT_TRUE(CopyPipeline::withdraw(*pending));
  ranks_[0].load(*pending, message());
  for (size_t i = 0; i < words; ++i) from_[i] = -7;
  std::vector<int32_t> to(words, -1);
  ASSERT_TRUE(ranks_[0].land(*record, {*form_, 1, to.data()}).ok());
  expect_every_third(to, words);
}

TEST_P(OfferTest, AWithdrawnOfferIsPacked) {
  const auto pending = ranks_[0].offer(message());
  ASSERT_TRUE(pending.has_value());
  const Record record = record_of(*pending);
  ASSERT_TRUE(CopyPipeline::withdraw(*pending));
  ranks_[0].load(*pending, message());
  for (size_t i = 0; i < words; ++i) from_[i] = -7;  // the send has ended: the program writes its buffer
  std::vector<int32_t> to(words, -1);
  ASSERT_TRUE(ranks_[1].land(record, {*form_, 1, to.data()}).ok());
  expect_every_third(to, words);
}

TEST_P(OfferTest, ItLandsInOtherLayoutsAndInRoomForMore) {
  const FormPointer pairs = make_form(*layout::vector(count / 2, 2, 5, *layout::primitive("int32_t")));
  const FormPointer word = make_form(*layout::primitive("int32_t"));
  const FormPointer sevens = make_form(*layout::vector(7, 1, 2, *layout::primitive("int32_t")));
  struct Target {
    FormPointer form;
    int64_t elements;
  };
  // A layout of the same bytes; one run; elements of which the message does not fill the last (3,000 is no multiple of
  // 7).
  for (const Target& target : {Target{pairs, 1}, Target{word, count + 5}, Target{sevens, count / 7 + 2}}) {
    const auto pending = ranks_[0].offer(message());
    ASSERT_TRUE(pending.has_value());
    std::vector<int32_t> to(words, -1);
    const Message into(*target.form, target.elements, to.data());
    ASSERT_TRUE(ranks_[1].land(record_of(*pending), into).ok());
    std::vector<int32_t> packed(count);
    into.pack({0, form_->size}, reinterpret_cast<uint8_t*>(packed.data()));
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(packed[i], static_cast<int32_t>(3 * i));
    EXPECT_EQ(std::ranges::count_if(to, [](int32_t one) { return one != -1; }), count);
  }
}

TEST_P(OfferTest, OneRunNeedsNoLayout) {
  const FormPointer run = basic_form(4, 4);
  const auto pending = ranks_[0].offer({*run, count, from_ + 5});
  ASSERT_TRUE(pending.has_value());
  std::vector<int32_t> to(words, -1);
  ASSERT_TRUE(ranks_[1].land(record_of(*pending), {*form_, 1, to.data()}).ok());
  for (size_t i = 0; i < words; ++i) ASSERT_EQ(to[i], i % 3 == 0 ? static_cast<int32_t>(5 + i / 3) : -1);
}

// Both ends copy, and which of them gets a part is left to chance. On one core the sender may come late for a long
// time.
TEST_P(OfferTest, ASenderThatWaitsHelps) {
  ranks_[0].notice();
  ranks_[1].notice();
  const FormPointer word = basic_form(4, 4);
  const FormPointer pairs = make_form(*layout::vector(count / 2, 2, 5, *layout::primitive("int32_t")));
  struct Target {
    FormPointer form;
    int64_t elements;
  };
  auto* const to = static_cast<int32_t*>(process_heap().allocate(words * sizeof(int32_t)));
  uint64_t helped = 0;
  for (int round = 0; round < 60 || (helped == 0 && round < 100'000); ++round) {
    for (const Target& target : {Target{form_, 1}, Target{pairs, 1}, Target{word, count + 5}}) {
      std::fill_n(to, words, -1);
      auto pending = ranks_[0].offer(message(), CopyPipeline::CopyMode::both);
      ASSERT_TRUE(pending.has_value());
      pending->receiver = 1;
      std::atomic<bool> waits{false};
      std::thread sender([&] {
        waits = true;
        while (!CopyPipeline::is_done(*pending)) ranks_[0].help(*pending, message());
      });
      while (!waits) continue;
      const Message into(*target.form, target.elements, to);
      EXPECT_TRUE(ranks_[1].land(record_of(*pending), into).ok());
      sender.join();
      std::vector<int32_t> packed(count);
      into.pack({0, form_->size}, reinterpret_cast<uint8_t*>(packed.data()));
      for (size_t i = 0; i < count; ++i) ASSERT_EQ(packed[i], static_cast<int32_t>(3 * i));
      ASSERT_EQ(std::count_if(to, to + words, [](int32_t one) { return one != -1; }), count);
    }
    helped = ranks_[0].totals().helped;
  }
  EXPECT_GT(helped, 0U);
  EXPECT_TRUE(process_heap().release(to));
}

TEST(JointCopy, APartThatOneEndRefusesIsLeft) {
  JointCopy joint;
  joint.open({}, 20'000, 1);
  int64_t copied = 0;
  const auto refused = joint.take(JointCopy::Side::sender);
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->last, 20'000) << "the sender begins with the last";
  EXPECT_FALSE(joint.has_refused());
  joint.refuse(*refused);
  EXPECT_TRUE(joint.has_refused());
  while (const auto part = joint.take(JointCopy::Side::receiver)) {
    copied += part->last - part->first;
    joint.finish();
  }
  EXPECT_FALSE(joint.is_over());
  const auto rest = joint.take_refused();
  ASSERT_TRUE(rest.has_value());
  EXPECT_EQ(rest->first, refused->first);
  EXPECT_EQ(copied + rest->last - rest->first, 20'000);
  EXPECT_FALSE(joint.has_refused());
  EXPECT_FALSE(joint.take_refused().has_value());
  joint.finish();
  EXPECT_TRUE(joint.is_over());
}

// Messages in memory that the receiver does not map: it reads them by system calls.
class CmaTest : public OfferTest {
 protected:
  void SetUp() override {
    OfferTest::SetUp();
    ASSERT_TRUE(ranks_[0].can_read(1));
    for (size_t i = 0; i < words; ++i) alone_[i] = static_cast<int32_t>(i);
  }
  [[nodiscard]] Message elsewhere() { return {*form_, 1, alone_.data()}; }

  std::vector<int32_t> alone_ = std::vector<int32_t>(words);
};
INSTANTIATE_TEST_SUITE_P(Layouts, CmaTest, ::testing::Bool(),
                         [](const auto& memoised) { return memoised.param ? "Memoised" : "Naive"; });

TEST_P(CmaTest, TheReceiverReadsMemoryThatItDoesNotMap) {
  const FormPointer pairs = make_form(*layout::vector(count / 2, 2, 5, *layout::primitive("int32_t")));
  const FormPointer word = make_form(*layout::primitive("int32_t"));
  const FormPointer sevens = make_form(*layout::vector(7, 1, 2, *layout::primitive("int32_t")));
  struct Target {
    FormPointer form;
    int64_t elements;
  };
  for (const Target& target : {Target{form_, 1}, Target{pairs, 1}, Target{word, count + 5}, Target{sevens, 431}}) {
    const auto pending = ranks_[0].offer(elsewhere(), CopyPipeline::CopyMode::cma);
    ASSERT_TRUE(pending.has_value());
    std::vector<int32_t> to(words, -1);
    const Message into(*target.form, target.elements, to.data());
    ASSERT_TRUE(ranks_[1].land(record_of(*pending), into).ok());
    EXPECT_TRUE(CopyPipeline::is_done(*pending));
    EXPECT_FALSE(CopyPipeline::is_returned(*pending));
    std::vector<int32_t> packed(count);
    into.pack({0, form_->size}, reinterpret_cast<uint8_t*>(packed.data()));
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(packed[i], static_cast<int32_t>(3 * i));
    EXPECT_EQ(std::ranges::count_if(to, [](int32_t one) { return one != -1; }), count);
  }
}

TEST_P(CmaTest, OneRunNeedsNoLayout) {
  const auto pending = ranks_[0].offer({*basic_form(4, 4), count, alone_.data() + 5}, CopyPipeline::CopyMode::cma);
  ASSERT_TRUE(pending.has_value());
  std::vector<int32_t> to(words, -1);
  ASSERT_TRUE(ranks_[1].land(record_of(*pending), {*form_, 1, to.data()}).ok());
  for (size_t i = 0; i < words; ++i) ASSERT_EQ(to[i], i % 3 == 0 ? static_cast<int32_t>(5 + i / 3) : -1);
}

// The sender of the test below, as the receiver finds it while it waits.
struct Sender {
  const CopyPipeline* pipeline = nullptr;
  const PendingSend* pending = nullptr;
  const Message* message = nullptr;
  void* closed = nullptr;
  size_t closed_bytes = 0;
  int asked = 0;
};
Sender sender;

TEST_P(CmaTest, WhatCannotBeReadIsPackedByItsSender) {
  const size_t bytes = words * sizeof(int32_t) / 4096 * 4096 + 4096;
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  std::memcpy(memory, alone_.data(), words * sizeof(int32_t));
  const Message message(*form_, 1, memory);
  const auto pending = ranks_[0].offer(message, CopyPipeline::CopyMode::cma);
  ASSERT_TRUE(pending.has_value());
  ASSERT_EQ(mprotect(memory, bytes, PROT_NONE), 0);
  sender = {&ranks_[0], &*pending, &message, memory, bytes, 0};
  constexpr auto idle = [] {
    if (++sender.asked > 1 || !CopyPipeline::is_returned(*sender.pending)) return;
    EXPECT_EQ(mprotect(sender.closed, sender.closed_bytes, PROT_READ), 0);
    sender.pipeline->load(*sender.pending, *sender.message);
  };
  std::vector<int32_t> to(words, -1);
  ASSERT_TRUE(ranks_[1].land(record_of(*pending), {*form_, 1, to.data()}, idle).ok());
  expect_every_third(to, words);
  EXPECT_EQ(sender.asked, 1);
  EXPECT_TRUE(CopyPipeline::is_done(*pending));
  munmap(memory, bytes);
}

TEST(PeerLayouts, TheOneThatWasNotAskedForLongestGoes) {
  const auto form = make_form(*layout::vector(10, 1, 2, *layout::primitive("int32_t")));
  const auto bytes = form->layout->blob().bytes();
  PeerLayouts layouts;
  for (uint64_t number = 1; number <= PeerLayouts::most; ++number) ASSERT_NE(layouts.learn(0, number, bytes), nullptr);
  ASSERT_NE(layouts.find(0, 1), nullptr);
  ASSERT_NE(layouts.learn(1, 1, bytes), nullptr);
  EXPECT_EQ(layouts.size(), PeerLayouts::most);
  EXPECT_NE(layouts.find(0, 1), nullptr);
  EXPECT_EQ(layouts.find(0, 2), nullptr);
  EXPECT_NE(layouts.find(1, 1), nullptr);
  EXPECT_EQ(layouts.learn(2, 1, bytes.first(bytes.size() - 8)), nullptr);
}

}  // namespace
}  // namespace spinloom::mpi
