#include "predict/program/waits.hpp"

#include <algorithm>

namespace spinloom::predict {

std::vector<uint64_t> waited_ps(const schedule::Schedule& schedule, const Waits& waits, const goal::Record& record) {
  std::vector<uint64_t> waited(waits.size());
  for (uint32_t rank = 0; rank < waits.size(); ++rank) {
    const auto completion_ps = [&](const Awaited& awaited) {
      const goal::OperationTimes& times = record.of(rank, awaited.operation);
      if (awaited.awaits == schedule::Awaits::end) return times.end_ps;
      const schedule::Program& program = schedule.program(rank);
      const bool is_receive = schedule.shape(program.operation(awaited.operation)).kind == schedule::Kind::receive;
      return is_receive ? times.posted_ps : times.begin_ps;
    };
    const auto last_ps_of = [&](const Cursor& cursor) {
      uint64_t last_ps = 0;
      for (const Awaited& awaited : cursor) last_ps = std::max(last_ps, completion_ps(awaited));
      return last_ps;
    };
    for (const Wait& wait : waits[rank]) {
      const uint64_t begun_ps = last_ps_of(wait.begins);
      waited[rank] += std::max(begun_ps, last_ps_of(wait.returns)) - begun_ps;
    }
  }
  return waited;
}

}  // namespace spinloom::predict
