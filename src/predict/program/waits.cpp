#include "predict/program/waits.hpp"

#include <algorithm>

namespace spinloom::predict {

std::vector<uint64_t> waited_ps(const schedule::Schedule& schedule, const Waits& waits, const goal::Record& record) {
  std::vector<uint64_t> found(waits.size());
  for (uint32_t rank = 0; rank < waits.size(); ++rank) {
    const auto come_ps = [&](const Awaited& one) {
      const goal::Trace& trace = record.of(rank, one.operation);
      if (one.awaits == schedule::Awaits::end) return trace.end_ps;
      const schedule::Program& program = schedule.program(rank);
      const bool is_receive = schedule.shape(program.operation(one.operation)).kind == schedule::Kind::receive;
      return is_receive ? trace.posted_ps : trace.begin_ps;
    };
    const auto all_ps = [&](const Cursor& cursor) {
      uint64_t last_ps = 0;
      for (const Awaited& one : cursor) last_ps = std::max(last_ps, come_ps(one));
      return last_ps;
    };
    for (const Wait& wait : waits[rank]) {
      const uint64_t begun_ps = all_ps(wait.begins);
      found[rank] += std::max(begun_ps, all_ps(wait.returns)) - begun_ps;
    }
  }
  return found;
}

}  // namespace spinloom::predict
