// The key-value store (handlers/key_value.h) by both faces: against a map, and by several handlers at once.
#include <array>
#include <barrier>
#include <map>
#include <random>
#include <thread>
#include <tuple>

#include "live/node/testing/frame_bed.hpp"
#include "live/node/testing/one_handler.hpp"
#include "nic/spin/testing/replay.hpp"

#if defined(__SANITIZE_THREAD__)
// Native handlers are compiled without the sanitizer, which does not see that they lock a slot.
extern "C" const char* __tsan_default_suppressions() { return "race:key_value_put.so\n"; }
#endif

namespace spinloom::live {
namespace {

#ifdef SPINLOOM_HANDLERS

enum class Operation : uint8_t { insert = 1, get, erase, select };
enum class Answer : uint8_t { done, absent, full, wrong, more };

struct Message {
  Operation operation = Operation::insert;
  Answer status = Answer::done;
  uint16_t length = 0;
  uint32_t transaction = 0;
  uint32_t version = 0;
  uint32_t key[2] = {0, 0};
};
static_assert(sizeof(Message) == 20);
struct Slot {
  uint32_t version, length, key[2];
  uint8_t value[32];
};
struct LogEntry {
  uint32_t transaction, operation, version, key[2];
};
struct Constants {
  uint32_t slots, log_entries, answer_bits;
};

Bytes request_of(Operation operation, uint32_t key, const Bytes& value = {}, uint32_t transaction = 0) {
  Message message{operation, Answer::done, static_cast<uint16_t>(value.size()), transaction, 0, {key, key * 3}};
  Bytes bytes(sizeof message + value.size());
  put(bytes, 0, message);
  std::copy(value.begin(), value.end(), bytes.begin() + sizeof message);
  return bytes;
}
Bytes value_of(const Bytes& answer) {
  const auto message = FrameBed::value<Message>(answer, 0);
  EXPECT_EQ(answer.size(), sizeof message + message.length);
  return {answer.begin() + sizeof message, answer.end()};
}

class KeyValue : public testing::TestWithParam<const char*> {
 protected:
  static constexpr uint32_t slots = 64, log_entries = 8;
  static constexpr uint64_t log_at = 8 + slots * sizeof(Slot);

  KeyValue() : bed(log_at + log_entries * sizeof(LogEntry), sizeof(Constants)) {
    const Constants given{slots, log_entries, 0};
    std::memcpy(bed.constants().data(), &given, sizeof given);
  }
  [[nodiscard]] static std::string path(const char* name) {
    return std::string(SPINLOOM_HANDLERS) + "/" + name + GetParam();
  }
  // The answer to a request that is padded to so many bytes.
  Bytes ask(Bytes request, size_t room = 60) {
    request.resize(std::max(request.size(), room));
    Bytes frame = udp_frame(static_cast<uint16_t>(request.size()));
    std::copy(request.begin(), request.end(), frame.begin() + 42);
    bed.sent.clear();
    bed.arrive(frame);
    if (bed.sent.size() != 1) {
      ADD_FAILURE() << bed.sent.size() << " answers";
      return Bytes(sizeof(Message));
    }
    EXPECT_EQ(FrameBed::value<uint16_t>(bed.sent[0], 38), big(static_cast<uint16_t>(bed.sent[0].size() - 34)));
    return {bed.sent[0].begin() + 42, bed.sent[0].end()};
  }
  FrameBed bed;
};
INSTANTIATE_TEST_SUITE_P(Runners, KeyValue, testing::Values(".elf", ".so"),
                         [](const auto& suffix) { return suffix.param[1] == 'e' ? "Sandbox" : "Native"; });

TEST_P(KeyValue, AnswersAsAMapDoes) {
  bed.install(path("key_value_frame"));
  const uint64_t seed = spin::test_seed();
  SCOPED_TRACE(spin::replay(seed, "live"));
  std::mt19937_64 chance(seed);
  std::map<uint32_t, Bytes> wanted;
  for (int i = 0; i < 2000; ++i) {
    const auto key = static_cast<uint32_t>(chance() % 40);
    const auto operation = static_cast<Operation>(1 + chance() % 3);
    Bytes value(operation == Operation::insert ? chance() % 33 : 0);
    for (uint8_t& byte : value) byte = static_cast<uint8_t>(chance());
    const Bytes answer = ask(request_of(operation, key, value));
    const auto message = FrameBed::value<Message>(answer, 0);
    const bool present = wanted.contains(key);
    if (operation == Operation::insert) {
      ASSERT_EQ(message.status, Answer::done) << "40 keys in 64 slots";
      wanted[key] = value;
    } else {
      ASSERT_EQ(message.status, present ? Answer::done : Answer::absent);
      if (operation == Operation::get && present) {
        ASSERT_EQ(value_of(answer), wanted[key]);
      }
      if (operation == Operation::erase) wanted.erase(key);
    }
    ASSERT_EQ(message.version % 2, 0u);
  }
}

TEST_P(KeyValue, SelectsPairsByAWordAndGoesOn) {
  bed.install(path("key_value_frame"));
  std::map<uint32_t, Bytes> wanted;
  for (uint32_t key = 0; key < 30; ++key) {
    Bytes value(8);
    put(value, 4, key % 3);
    put(value, 0, key);
    (void)ask(request_of(Operation::insert, key, value));
    value.resize(32);
    if (key % 3 == 1 && key != 4) wanted[key] = value;
  }
  (void)ask(request_of(Operation::erase, 4));
  std::map<uint32_t, Bytes> found;
  uint32_t first = 0;
  int answers = 0;
  for (auto status = Answer::more; status == Answer::more; ++answers) {
    Bytes request = request_of(Operation::select, 0);
    request.resize(sizeof(Message) + 20);
    const uint32_t condition[5] = {first, slots - first, 1, 0xff, 1};
    std::memcpy(request.data() + sizeof(Message), condition, sizeof condition);
    const Bytes answer = ask(request, sizeof(Message) + 4 * 40 + 39);  // room for four pairs
    const Bytes pairs = value_of(answer);
    for (size_t at = 0; at < pairs.size(); at += 40) {
      const auto key = FrameBed::value<uint32_t>(pairs, at);
      EXPECT_TRUE(found.emplace(key, Bytes(pairs.begin() + at + 8, pairs.begin() + at + 40)).second);
    }
    status = FrameBed::value<Message>(answer, 0).status;
    first = FrameBed::value<Message>(answer, 0).version;
    ASSERT_LT(answers, 10);
  }
  EXPECT_EQ(found, wanted);
  EXPECT_EQ(answers, 3) << "nine pairs, four an answer";
}

TEST_P(KeyValue, TransactionsAreLogged) {
  bed.install(path("key_value_frame"));
  (void)ask(request_of(Operation::insert, 5, Bytes(4)));  // this insert is of no transaction
  (void)ask(request_of(Operation::insert, 6, Bytes(4), 77));
  (void)ask(request_of(Operation::get, 5, {}, 77));
  (void)ask(request_of(Operation::insert, 5, Bytes(4), 78));
  (void)ask(request_of(Operation::get, 9, {}, 78));
  const LogEntry wanted[] = {{77, 1, 2, {6, 18}}, {77, 2, 2, {5, 15}}, {78, 1, 4, {5, 15}}, {78, 2, 0, {9, 27}}};
  EXPECT_EQ(bed.state_at<uint32_t>(0), 4u);
  EXPECT_EQ(std::memcmp(bed.state().data() + log_at, wanted, sizeof wanted), 0);
  for (int i = 0; i < 5; ++i) (void)ask(request_of(Operation::get, 5, {}, 100));
  EXPECT_EQ(bed.state_at<uint32_t>(0), 9u);
  EXPECT_EQ(bed.state_at<uint32_t>(log_at), 100u) << "the log has wrapped around";
}

TEST_P(KeyValue, WhatIsWrongIsSaid) {
  bed.install(path("key_value_frame"));
  const auto status = [&](const Bytes& request) { return FrameBed::value<Message>(ask(request), 0).status; };
  EXPECT_EQ(status(request_of(Operation::insert, 1, Bytes(33))), Answer::wrong);
  EXPECT_EQ(status(request_of(static_cast<Operation>(9), 1)), Answer::wrong);
  Bytes lies = request_of(Operation::insert, 1, Bytes(10));
  put(lies, 2, uint16_t{1000});
  EXPECT_EQ(status(lies), Answer::wrong);
  Answer last = Answer::done;
  uint32_t kept = 0;
  for (uint32_t key = 0; key < 2 * slots; ++key) {
    last = status(request_of(Operation::insert, key, Bytes(1)));
    if (last == Answer::done)
      ++kept;
    else
      EXPECT_EQ(last, Answer::full);
  }
  EXPECT_LE(kept, slots);
  EXPECT_GT(kept, slots * 3 / 4);
  bed.arrive(udp_frame(19));
  EXPECT_EQ(bed.to_host.size(), 1u) << "shorter than a request";
  // One goes to a group of stations; in the other IP says that it is longer.
  for (const auto& [field, value] : {std::pair{0, 0x21}, {17, 0xff}}) {
    Bytes frame = udp_frame(60);
    frame[field] = static_cast<uint8_t>(value);
    bed.arrive(frame);
  }
  EXPECT_EQ(bed.to_host.size(), 3u);
}

TEST_P(KeyValue, PutsAreAnsweredByPuts) {
  OneHandler puts(path("key_value_put"), spin::HandlerKind::header);
  Bytes state(8 + 16 * sizeof(Slot));
  const Constants given{16, 0, 1234};
  Answers answers;
  EXPECT_EQ(puts.run(request_of(Operation::insert, 3, Bytes{1, 2, 3}), state, given, answers).code, uint32_t{DROP});
  EXPECT_EQ(puts.run(request_of(Operation::get, 3), state, given, answers).code, uint32_t{DROP});
  EXPECT_EQ(value_of(answers.last), (Bytes{1, 2, 3}));
  EXPECT_EQ(answers.last_call.target, 6u);
  EXPECT_EQ(answers.last_call.match_bits, 1234u);
  EXPECT_EQ(answers.last_call.hdr_data, 99u);
  EXPECT_EQ(puts.run(Bytes(19), state, given, answers).code, uint32_t{FAIL});
}

TEST_P(KeyValue, ManyHandlersAtOnceTakeOneSlotAKey) {
  OneHandler puts(path("key_value_put"), spin::HandlerKind::header);
  constexpr uint32_t threads = 4, keys = 3, rounds = 10, tables = 20;
  const Constants given{slots, 0, 0};
  std::vector<Bytes> states(tables, Bytes(8 + slots * sizeof(Slot)));
  std::array<uint32_t, threads> torn{};
  std::barrier together(threads);
  std::vector<std::thread> running;
  for (uint32_t thread = 0; thread < threads; ++thread) {
    running.emplace_back([&, thread] {
      Answers answers;
      for (Bytes& state : states) {
        together.arrive_and_wait();
        for (uint32_t i = 0; i < rounds * keys; ++i) {
          const uint32_t key = i % keys;
          const Bytes value(32, static_cast<uint8_t>(thread * 50 + i));
          (void)puts.run(request_of(Operation::insert, key, value), state, given, answers);
          (void)puts.run(request_of(Operation::get, key), state, given, answers);
          const Bytes read(answers.last.begin() + sizeof(Message), answers.last.end());
          if (read.size() != 32 || read != Bytes(32, read[0])) ++torn[thread];
        }
      }
    });
  }
  for (std::thread& one : running) one.join();
  for (const uint32_t count : torn) EXPECT_EQ(count, 0u) << "values that no insert has written as a whole";
  for (const Bytes& state : states) {
    std::map<uint32_t, uint32_t> found;
    uint32_t writes = 0;
    for (uint32_t i = 0; i < slots; ++i) {
      const auto slot = FrameBed::value<Slot>(state, 8 + i * sizeof(Slot));
      if (slot.version == 0) continue;
      EXPECT_EQ(slot.version % 2, 0u);
      writes += slot.version / 2;
      ++found[slot.key[0]];
    }
    ASSERT_EQ(found, (std::map<uint32_t, uint32_t>{{0, 1}, {1, 1}, {2, 1}})) << "each key has one slot";
    ASSERT_EQ(writes, threads * rounds * keys) << "each insert has left a version";
  }
}

// Both answers, and each key's version and value.
using Outcome = std::tuple<Bytes, Bytes, std::map<uint32_t, std::pair<uint32_t, Bytes>>>;
Outcome outcome_of(const Bytes& first, const Bytes& second, const Bytes& state) {
  std::map<uint32_t, std::pair<uint32_t, Bytes>> pairs;
  for (size_t at = 8; at + sizeof(Slot) <= state.size(); at += sizeof(Slot)) {
    const auto slot = FrameBed::value<Slot>(state, at);
    if (slot.version == 0) continue;
    const Bytes value = slot.length == UINT32_MAX ? Bytes{} : Bytes(slot.value, slot.value + 32);
    EXPECT_TRUE(pairs.emplace(slot.key[0], std::pair(slot.version, value)).second)
        << "two slots of key " << slot.key[0];
  }
  return {first, second, pairs};
}

TEST(KeyValueSandbox, InterruptedAnywhereTwoRequestsAreAsOneAfterTheOther) {
  OneHandler puts(std::string(SPINLOOM_HANDLERS) + "/key_value_put.elf", spin::HandlerKind::header);
  const Constants given{4, 0, 0};
  const Bytes empty(8 + 4 * sizeof(Slot));
  Bytes full = empty;
  Answers unheard;
  for (uint32_t key = 0; key < 2; ++key) {
    (void)puts.run(request_of(Operation::insert, key, Bytes(32, 1)), full, given, unheard);
  }
  const Bytes requests[] = {
      request_of(Operation::insert, 0, Bytes(32, 2)), request_of(Operation::insert, 0, Bytes(32, 3)),
      request_of(Operation::insert, 5, Bytes(32, 4)), request_of(Operation::get, 0), request_of(Operation::erase, 0)};
  int interruptions = 0;
  for (const Bytes& initial : {empty, full}) {
    for (const Bytes& first : requests) {
      for (const Bytes& second : requests) {
        const auto in_order = [&](const Bytes& one, const Bytes& other, Bytes* answer, Bytes* other_answer) {
          Bytes state = initial;
          (void)puts.run(one, state, given, unheard);
          *answer = unheard.last;
          (void)puts.run(other, state, given, unheard);
          *other_answer = unheard.last;
          return state;
        };
        Bytes a, b;
        const Bytes forth = in_order(first, second, &a, &b);
        const Outcome first_first = outcome_of(a, b, forth);
        const Bytes back = in_order(second, first, &b, &a);
        const Outcome second_first = outcome_of(a, b, back);
        for (int at = 0;; ++at) {
          SCOPED_TRACE(text("operation ", int(first[0]), " interrupted at access ", at, " by ", int(second[0])));
          Bytes state = initial;
          Answers heard;
          bool waits = false;
          Interrupted interrupted(at, [&] {
            Interrupted never(-1, [] {});
            waits = puts.run(second, state, given, never).end != spin::HandlerEnd::returned;
            heard.last = never.last;
          });
          (void)puts.run(first, state, given, interrupted);
          if (!interrupted.was_interrupted()) break;
          if (waits) (void)puts.run(second, state, given, heard);
          const Outcome found = outcome_of(interrupted.last, heard.last, state);
          ASSERT_TRUE(found == first_first || found == second_first);
          ++interruptions;
        }
      }
    }
  }
  EXPECT_GT(interruptions, 500);
}

// A handler that finds a slot half filled waits, and takes what has come there into account.
TEST_P(KeyValue, ASlotThatIsBeingFilledMayBecomeThatOfTheKey) {
  OneHandler puts(path("key_value_put"), spin::HandlerKind::header);
  const Constants given{1, 0, 0};
  Bytes state(8 + sizeof(Slot));
  class Filled final : public Answers {
   public:
    explicit Filled(Bytes& state) : state_(state) {}
    std::optional<uint32_t> call(const spin::HandlerCall& given) override {
      if (given.call == SPL_CALL_YIELD) {  // the other handler is done
        put(state_, 8 + offsetof(Slot, key), uint32_t{3});
        put(state_, 8 + offsetof(Slot, key) + 4, uint32_t{9});
        put(state_, 8, uint32_t{2});
        ++yields;
      }
      return Answers::call(given);
    }
    int yields = 0;

   private:
    Bytes& state_;
  } answers(state);
  put(state, 8, uint32_t{1});
  (void)puts.run(request_of(Operation::insert, 3, Bytes(32, 7)), state, given, answers);
  EXPECT_EQ(answers.yields, 1);
  EXPECT_EQ(FrameBed::value<Slot>(state, 8).version, 4u);
  EXPECT_EQ(FrameBed::value<Message>(answers.last, 0).status, Answer::done);
  (void)puts.run(request_of(Operation::insert, 4, Bytes(32, 7)), state, given, answers);
  EXPECT_EQ(FrameBed::value<Message>(answers.last, 0).status, Answer::full);
}

#endif

}  // namespace
}  // namespace spinloom::live
