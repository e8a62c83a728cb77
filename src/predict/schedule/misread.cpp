#include "predict/schedule/misread.hpp"

#include <algorithm>
#include <vector>

namespace spinloom::schedule {
namespace {

uint64_t mix(uint64_t value) {
  value = (value ^ value >> 30) * 0xbf58'476d'1ce4'e5b9;
  value = (value ^ value >> 27) * 0x94d0'49bb'1331'11eb;
  return value ^ value >> 31;
}

uint64_t hash_of(uint32_t source, const Shape& shape) {
  return mix(mix(uint64_t{source} << 32 | shape.tag) + shape.cpu + 1);
}

uint64_t edges_between_cpus(const Schedule& schedule, const Program& program) {
  const auto cpu_of = [&](uint32_t number) { return schedule.shape(program.operation(number)).cpu; };
  uint64_t result = 0;
  for (uint32_t number = 0; number < program.size(); ++number) {
    program.for_each_edge(number, [&](Edge edge) { result += cpu_of(number) != cpu_of(edge.to()) ? 1 : 0; });
  }
  return result;
}

// Messages to a rank less its receives, as sums of hashes: 0 if they are the same.
struct Balance {
  uint64_t exact = 0;  // hashes of source, tag and CPU
  uint64_t cpus = 0;  // hashes of the CPU alone
  bool has_wildcard = false;  // a receive has any source or tag, or a message any tag
};

uint32_t receivers_on_other_cpus(const Schedule& schedule) {
  std::vector<Balance> balances(schedule.ranks());
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    const Program& program = schedule.program(rank);
    for (const Operation& operation : program.operations) {
      const Shape& shape = schedule.shape(operation);
      const uint32_t peer = schedule.peer(rank, operation);
      if (shape.kind == Kind::send && peer < schedule.ranks()) {
        balances[peer].exact += program.passes * hash_of(rank, shape);
        balances[peer].cpus += program.passes * mix(shape.cpu + 1);
        balances[peer].has_wildcard |= shape.tag == any;
      } else if (shape.kind == Kind::receive) {
        balances[rank].exact -= program.passes * hash_of(peer, shape);
        balances[rank].cpus -= program.passes * mix(shape.cpu + 1);
        balances[rank].has_wildcard |= peer == any || shape.tag == any;
      }
    }
  }
  const auto differs = [](const Balance& one) { return one.cpus != 0 || (!one.has_wildcard && one.exact != 0); };
  return static_cast<uint32_t>(std::ranges::count_if(balances, differs));
}

}  // namespace

Misread misread(const Schedule& schedule) {
  const auto is_on_first_cpu = [&](const Shape& shape) { return shape.cpu == schedule.shapes().front().cpu; };
  if (std::ranges::all_of(schedule.shapes(), is_on_first_cpu)) return {};
  std::vector<uint64_t> users(schedule.programs().size());
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) ++users[schedule.number_of_program(rank)];
  Misread result;
  for (size_t number = 0; number < users.size(); ++number) {
    if (users[number] > 0) result.edges += users[number] * edges_between_cpus(schedule, schedule.programs()[number]);
  }
  result.receivers = receivers_on_other_cpus(schedule);
  return result;
}

}  // namespace spinloom::schedule
