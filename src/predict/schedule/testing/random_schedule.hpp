// Test support - random schedules, schedules made of text, what distinguishes two of them.
//
// Contract: difference() is empty if both schedules say the same for each rank, however they are kept.
// Threads: tests run in one thread. Time: none.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "base/random.hpp"
#include "base/testing/seeds.hpp"
#include "predict/schedule/goal.hpp"
#include "predict/schedule/schedule.hpp"

namespace spinloom::schedule::test {

using spinloom::for_seeds;

// Edges as text, of an operation.
inline std::string edges_of(const Program& program, uint32_t number) {
  std::string found;
  program.for_each_edge(number, [&](Edge edge) {
    found +=
        text(edge.join() == Join::first ? " any" : "", edge.awaits() == Awaits::start ? " start:" : " ", edge.to());
  });
  return found;
}

inline std::string difference(const Schedule& a, const Schedule& b) {
  if (a.ranks() != b.ranks()) return text(a.ranks(), " ranks, and ", b.ranks());
  for (uint32_t rank = 0; rank < a.ranks(); ++rank) {
    const Program& one = a.program(rank);
    const Program& other = b.program(rank);
    if (one.size() != other.size()) return text("rank ", rank, ": ", one.size(), " operations, and ", other.size());
    for (uint32_t number = 0; number < one.size(); ++number) {
      Shape shape = a.shape(one.operation(number));
      Shape second = b.shape(other.operation(number));
      shape.peer = second.peer = Peer::absolute;
      const std::string place = text("rank ", rank, ", operation ", number, ": ");
      if (shape != second || a.peer(rank, one.operation(number)) != b.peer(rank, other.operation(number))) {
        return text(place, a.describe(rank, one.operation(number)), ", and ", b.describe(rank, other.operation(number)),
                    " (or CPU or NIC)");
      }
      const auto layout_of = [](const Schedule& schedule, uint32_t end) {
        return end == contiguous ? Layout{} : schedule.layouts()[end];
      };
      const TransferLayouts layouts = a.transfer_layouts(one.operation(number));
      const TransferLayouts others = b.transfer_layouts(other.operation(number));
      if (layout_of(a, layouts.local) != layout_of(b, others.local) ||
          layout_of(a, layouts.remote) != layout_of(b, others.remote)) {
        return text(place, "layouts");
      }
      const std::string edges = edges_of(one, number);
      if (edges != edges_of(other, number)) return text(place, "edges", edges, ", and", edges_of(other, number));
    }
  }
  return "";
}

inline Schedule read(std::string_view goal) {
  auto made = read_goal(goal);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
  return made.ok() ? std::move(*made) : Schedule();
}

inline std::string error_of(std::string_view goal) {
  const auto made = read_goal(goal);
  return made.ok() ? "" : made.error().message;
}

inline std::string file(const std::string& name) {
  std::ifstream stream(text(SPINLOOM_GOAL_EXAMPLES, "/", name), std::ios::binary);
  EXPECT_TRUE(stream.good()) << name;
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

enum class Words { goal, text, all };  // the words of GOAL's binary form, those of our text, or all

// The index of a CPU or a NIC.
inline uint32_t random_index(Random& random, Words words) {
  const uint64_t most = words == Words::goal || random.chance(3, 4) ? 256 : uint64_t{1} << 32;
  return static_cast<uint32_t>(random.below(most));
}

inline uint64_t random_size(Random& random) {
  if (random.chance(1, 20)) return random.next();
  return random.below(random.chance(1, 2) ? 4 : 100'000);
}

// Anything, cycles too if `acyclic` is false.
inline Schedule random_schedule(Random& random, bool acyclic = false, Words words = Words::goal) {
  Schedule schedule(static_cast<uint32_t>(random.between(1, 9)));
  Builder builder;
  const bool has_layouts = words == Words::all && random.chance(1, 3);
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    const auto operations = static_cast<uint32_t>(random.chance(1, 6) ? 0 : random.between(1, 30));
    for (uint32_t number = 0; number < operations; ++number) {
      Shape shape;
      TransferLayouts layouts;
      shape.kind = static_cast<Kind>(random.between(1, words == Words::goal ? 3 : 8));
      shape.size = random_size(random);
      if (shape.kind == Kind::arrived) {
        shape.tag = static_cast<uint32_t>(random.below(any));
        builder.add(schedule.intern_shape(shape), 0);
        continue;
      }
      if (random.chance(1, 4)) shape.cpu = random_index(random, words);
      if (shape.kind == Kind::compute) {
        builder.add(schedule.intern_shape(shape), 0);
        continue;
      }
      if (random.chance(1, 4)) shape.nic = random_index(random, words);
      if (random.chance(1, 2)) shape.tag = static_cast<uint32_t>(random.chance(1, 4) ? any : random.below(any));
      if (is_one_sided(shape.kind) && shape.tag == any) shape.tag = 0;
      if (has_layouts && random.chance(1, 2)) {
        layouts.local =
            schedule.intern_layout(Layout{random.chance(1, 2) ? "a" : "bc", random.between(1, 3), shape.size});
        if (is_one_sided(shape.kind) && random.chance(1, 2)) layouts.remote = layouts.local;
      }
      const bool from_any = shape.kind == Kind::receive && random.chance(1, 5);
      builder.add(schedule.intern_shape(shape, layouts),
                  from_any ? any : static_cast<uint32_t>(random.below(schedule.ranks())));
    }
    const auto times =
        static_cast<uint32_t>(acyclic && words == Words::all && random.chance(1, 3) ? random.between(2, 4) : 1);
    for (uint64_t edges = operations < 2 ? 0 : random.below(2 * operations); edges > 0; --edges) {
      auto after = static_cast<uint32_t>(random.below(operations));
      auto before = static_cast<uint32_t>(random.below(operations));
      if (acyclic && after == before) continue;
      if (acyclic && after < before) std::swap(after, before);
      if (times > 1 && random.chance(1, 3)) after += operations;
      const auto awaits = random.chance(1, 3) ? Awaits::start : Awaits::end;
      const bool is_first = words != Words::goal && random.chance(1, 3);
      builder.require(after, before, awaits, is_first ? Join::first : Join::all);
    }
    schedule.intern(rank, builder.take(times));
  }
  return schedule;
}

// Each rank in turn sends to the one 2^k further on and receives from the one as far behind.
inline Schedule dissemination(uint32_t ranks) {
  Schedule schedule(ranks);
  Builder builder;
  Shape send;
  send.kind = Kind::send;
  send.size = 8;
  Shape receive = send;
  receive.kind = Kind::receive;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    uint32_t before = any;
    for (uint64_t step = 1; step < ranks; step *= 2) {
      const uint32_t sent = builder.add(schedule.intern_shape(send), static_cast<uint32_t>((rank + step) % ranks));
      if (before != any) builder.require(sent, before, Awaits::end);
      before = builder.add(schedule.intern_shape(receive), static_cast<uint32_t>((rank + ranks - step) % ranks));
    }
    schedule.intern(rank, builder.take());
  }
  return schedule;
}

// A file of our own form with the checksum that its bytes make, as docs/formats/schedule.md says: the sum over words of
// 8 bytes. So spoilt bytes are not found by it.
inline std::string with_checksum(const std::string& file) {
  std::string bytes = file;
  if (bytes.size() < 64) return bytes;
  std::memset(bytes.data() + 56, 0, 8);
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t at = 0; at < bytes.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min<size_t>(8, bytes.size() - at));
    hash = (hash ^ word) * 0x100000001b3;
    hash ^= hash >> 32;
  }
  std::memcpy(bytes.data() + 56, &hash, 8);
  return bytes;
}

}  // namespace spinloom::schedule::test
