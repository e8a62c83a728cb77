// Waits - calls that wait for collective operations which do not block, and how long a run was in them.
//
// Contract: such a call begins when all that is in `begins` has come, and returns when all in `returns` has.
//   waited_ps() adds up the times between, for each rank, as `record` has kept them of a run of the schedule.
// Threads: pure. Time: modelled, in ps.
#pragma once

#include <cstdint>
#include <vector>

#include "predict/goal/model/record.hpp"
#include "predict/schedule/schedule.hpp"

namespace spinloom::predict {

struct Awaited {
  uint32_t operation = 0;
  schedule::Awaits awaits = schedule::Awaits::end;
  bool operator==(const Awaited&) const = default;
};
using Cursor = std::vector<Awaited>;  // the operations for which the next one of a rank waits

struct Wait {
  Cursor begins;
  Cursor returns;
};

using Waits = std::vector<std::vector<Wait>>;  // one list for each rank

[[nodiscard]] std::vector<uint64_t> waited_ps(const schedule::Schedule& schedule, const Waits& waits,
                                              const goal::Record& record);

}  // namespace spinloom::predict
