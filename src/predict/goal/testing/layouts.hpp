// Test layouts - a schedule in which the bytes of a message do not lie in one block.
//
// Contract: rank 0 sends 1,000 B to rank 1, from a layout and to one.
// Threads: tests run in one thread. Time: none.
#pragma once

#include "predict/schedule/schedule.hpp"

namespace spinloom::goal::test {

inline schedule::Schedule layouts_at_both_ends() {
  using schedule::Kind;
  schedule::Schedule schedule(2);
  schedule::Builder builder;
  const auto layout = schedule.intern_layout(schedule::Layout{"every other", 250, 1000});
  builder.add(schedule.intern_shape({.size = 1000, .kind = Kind::send}, {layout, schedule::contiguous}), 1);
  schedule.intern(0, builder.take());
  builder.add(schedule.intern_shape({.size = 1000, .kind = Kind::receive}, {layout, schedule::contiguous}), 0);
  schedule.intern(1, builder.take());
  return schedule;
}

}  // namespace spinloom::goal::test
