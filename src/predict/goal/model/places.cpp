#include "predict/goal/model/places.hpp"

#include <algorithm>
#include <set>

namespace spinloom::goal {

Places::Places(const schedule::Schedule& schedule) {
  std::set<uint32_t> cpus;
  std::set<uint32_t> nics;
  for (const schedule::Shape& shape : schedule.shapes()) {
    cpus.insert(shape.cpu);
    nics.insert(shape.nic);
  }
  if (schedule.shapes().empty()) cpus = nics = {0};
  cpus_.assign(cpus.begin(), cpus.end());
  nics_.assign(nics.begin(), nics.end());
}

uint32_t Places::place_of(const std::vector<uint32_t>& numbers, uint32_t number) {
  return static_cast<uint32_t>(std::ranges::lower_bound(numbers, number) - numbers.begin());
}

Status check_places(const schedule::Schedule& schedule) {
  const Places places(schedule);
  const uint64_t each = uint64_t{places.cpus()} + places.nics();
  if (each <= places_max / std::max(schedule.ranks(), 1U)) return {};
  return fail(Code::exhausted, "the schedule names ", places.cpus(), " CPUs and ", places.nics(), " NICs for each of ",
              schedule.ranks(), " ranks; a run has ", places_max, " of all ranks at most (places_max)");
}

}  // namespace spinloom::goal
