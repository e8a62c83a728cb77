// Test support - random schedules and parameters, and the comparison with the naive engine.
//
// Contract: compare() compares the times of ranks, also of schedules that stall, and whether a schedule stalls.
// Threads: tests run in one thread. Time: none.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/random.hpp"
#include "base/testing/seeds.hpp"
#include "predict/goal/loggopsim/loggopsim_engine.hpp"
#include "predict/goal/testing/naive_loggopsim.hpp"
#include "predict/schedule/schedule.hpp"

namespace spinloom::goal::test {

using spinloom::for_seeds;

// Times from few values, so that many are equal.
inline uint64_t random_cost(Random& random) {
  switch (random.below(8)) {
    case 0:
    case 1: return 0;
    case 2:
    case 3: return random.below(4);
    case 4: return 1000;
    case 5: return random.below(40);
    case 6: return random.below(3000);
    default: return random.chance(1, 6) ? random.next() : 5;
  }
}

inline LogGopSimParameters random_parameters(Random& random) {
  const uint64_t sizes[] = {0, 1, 4, 65535, UINT64_MAX, 10};
  LogGopSimParameters parameters;
  for (uint64_t* one : {&parameters.L, &parameters.o, &parameters.g, &parameters.G, &parameters.O})
    *one = random_cost(random);
  parameters.S = sizes[random.below(6)];
  if (random.chance(1, 4)) parameters.tags_apart = {1, static_cast<uint32_t>(random.between(1, 3))};
  return parameters;
}

// Rank 0 does something to rank 1, which computes for 5 ns when one has arrived.
inline std::string one_sided(std::string_view what) {
  return text("num_ranks 2\nrank 0 {\n", what,
              " 1 tag 3\n}\nrank 1 {\na: arrived 1 tag 3\nc: calc 5\nc requires a\n}\n");
}

// `all`: schedules also have what our model adds to LogGOPSim's.
enum class Words { goal, all };

enum class Sizes { brief, usual, any };  // sizes to 12, those that fit in a modelled time, or all of 64 bits

inline uint64_t random_size(Random& random, Sizes sizes) {
  if (random.chance(1, 3)) return random.below(3);
  if (sizes == Sizes::any && random.chance(1, 40)) return random.next();
  return sizes != Sizes::brief && random.chance(1, 3) ? random.below(100'000) : random.below(12);
}

// Makes messages in an order that they can have. Most edges go from earlier operations to later ones, so that most
// schedules complete.
inline schedule::Schedule random_schedule(Random& random, int64_t messages, Sizes sizes = Sizes::any,
                                          Words words = Words::goal) {
  using schedule::Kind;
  using schedule::Shape;
  const auto ranks = static_cast<uint32_t>(random.between(1, 6));
  const uint64_t cpus = random.chance(1, 2) ? 1 : 3;
  const uint64_t nics = random.chance(1, 2) ? 1 : 2;
  const uint64_t tags = random.chance(1, 2) ? 1 : 4;
  // The tenths of receives that take any tag or any source.
  const uint64_t wild = random.chance(1, 2) ? 0 : random.between(1, 4);
  const bool same_sizes = random.chance(1, 2);
  const uint64_t usual = random_size(random, sizes);
  const bool to_one = random.chance(1, 3);
  const bool in_order = random.chance(3, 4);
  const uint64_t edges = random.below(4);  // the chance of one more edge, in quarters
  // The tenths of edges that are any-of ones.
  const uint64_t firsts = words == Words::goal || random.chance(1, 2) ? 0 : random.between(1, 9);
  const bool layouts = words == Words::all && random.chance(1, 3);
  // The chance of one more one-sided operation, in tenths.
  const uint64_t one_sided = words == Words::goal || random.chance(1, 2) ? 0 : random.between(1, 7);
  schedule::Schedule schedule(ranks);
  std::vector<schedule::Builder> builders(ranks);
  const auto tag = [&] { return static_cast<uint32_t>(random.below(tags)); };
  const auto add = [&](uint32_t rank, Shape shape, uint32_t peer) {
    if (shape.kind != Kind::arrived) shape.cpu = static_cast<uint32_t>(random.below(cpus));
    if (schedule::has_peer(shape.kind)) shape.nic = static_cast<uint32_t>(random.below(nics));
    schedule::Builder& builder = builders[rank];
    schedule::TransferLayouts ends;
    if (layouts && schedule::has_peer(shape.kind) && random.chance(1, 2)) {
      ends.local = schedule.intern_layout(schedule::Layout{"some", static_cast<int64_t>(shape.size), shape.size});
      if (schedule::is_one_sided(shape.kind)) ends.remote = ends.local;
    }
    const uint32_t number = builder.add(schedule.intern_shape(shape, ends), peer);
    while (number > 0 && random.below(4) < edges) {
      const auto before =
          static_cast<uint32_t>(in_order ? number - 1 - random.below(std::min(number, 3U)) : random.below(number));
      const bool is_reversed = !in_order && random.chance(1, 50);
      const auto awaits = random.chance(1, 3) ? schedule::Awaits::start : schedule::Awaits::end;
      const bool is_first = firsts > 0 && random.below(10) < firsts;
      builder.require(is_reversed ? before : number, is_reversed ? number : before, awaits,
                      is_first ? schedule::Join::first : schedule::Join::all);
    }
  };
  for (int64_t message = 0; message < messages; ++message) {
    const auto from = static_cast<uint32_t>(random.below(ranks));
    const auto to = static_cast<uint32_t>(to_one ? 0 : random.below(ranks));
    Shape send{.size = same_sizes ? usual : random_size(random, sizes), .tag = tag(), .kind = Kind::send};
    Shape receive = send;
    receive.kind = Kind::receive;
    if (random.chance(1, 6)) receive.size = random_size(random, sizes);
    if (random.below(10) < wild) receive.tag = schedule::any;
    if (random.below(30) < wild) send.tag = schedule::any;
    if (random.chance(1, 400)) receive.tag += 1;
    const uint32_t source = random.below(10) < wild ? schedule::any : from;
    while (random.below(10) < one_sided) {
      const Shape shape{
          .size = random_size(random, sizes), .tag = tag(), .kind = static_cast<Kind>(random.between(4, 7))};
      add(static_cast<uint32_t>(random.below(ranks)), shape, to);
      if (random.chance(1, 2)) add(to, {.size = random.below(3), .tag = tag(), .kind = Kind::arrived}, 0);
    }
    const bool posts_first = random.chance(1, 2);
    if (posts_first) add(to, receive, source);
    add(from, send, to);
    if (!posts_first) add(to, receive, source);
    while (random.chance(1, 3)) {
      add(static_cast<uint32_t>(random.below(ranks)),
          {.size = random.chance(1, 2) ? 1000 * random.below(9) : random.below(9)}, 0);
    }
  }
  for (uint32_t rank = 0; rank < ranks; ++rank) schedule.intern(rank, builders[rank].take());
  return schedule;
}

// True if the graph alone decides who receives which message: no operation has any source or any tag, and no two
// messages have sender, receiver and tag in common.
inline bool is_determined(const schedule::Schedule& schedule) {
  std::map<std::tuple<uint32_t, uint32_t, uint32_t, schedule::Kind>, uint32_t> found;
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    for (const schedule::Operation& operation : schedule.program(rank).operations) {
      const schedule::Shape& shape = schedule.shape(operation);
      if (shape.kind != schedule::Kind::send && shape.kind != schedule::Kind::receive) continue;
      const uint32_t peer = schedule.peer(rank, operation);
      if (peer == schedule::any || shape.tag == schedule::any) return false;
      const bool sends = shape.kind == schedule::Kind::send;
      if (++found[{sends ? rank : peer, sends ? peer : rank, shape.tag, shape.kind}] > 1) return false;
    }
  }
  return true;
}

inline void compare(const schedule::Schedule& schedule, const LogGopSimParameters& parameters) {
  SCOPED_TRACE(text("L = ", parameters.L, ", o = ", parameters.o, ", g = ", parameters.g, ", G = ", parameters.G,
                    ", O = ", parameters.O, ", S = ", parameters.S));
  Naive naive(schedule, parameters);
  naive.run();
  LogGopSimEngine engine(schedule, parameters);
  EXPECT_TRUE(engine.run());
  EXPECT_EQ(engine.outcome().host_times, naive.outcome.host_times);
  EXPECT_EQ(engine.outcome().makespan, naive.outcome.makespan);
  EXPECT_EQ(engine.outcome().events, naive.outcome.events);
  const auto outcome = run_loggopsim(schedule, parameters);
  if (naive.left + naive.unmatched == 0) {
    ASSERT_TRUE(outcome) << outcome.error().message;
    EXPECT_EQ(outcome->host_times, naive.outcome.host_times);
    return;
  }
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Code::stalled);
  const std::string end = text("in all ", naive.unmatched, " receives and messages are without a partner and ",
                               naive.left, " operations never begin");
  EXPECT_TRUE(outcome.error().message.ends_with(end)) << outcome.error().message << "\n" << end;
}

}  // namespace spinloom::goal::test
