#include "predict/trace/communicators.hpp"

#include <map>
#include <tuple>
#include <utility>

namespace spinloom::trace {

Communicators::Communicators(std::span<const RankTrace* const> traces) : numbers_(traces.size()) {
  using Groups = std::tuple<uint32_t, std::vector<uint32_t>, std::vector<uint32_t>>;  // the parent's number, both sides
  std::map<std::pair<Groups, uint32_t>, uint32_t> numbers_by_groups;  // the n-th of them
  for (size_t trace = 0; trace < traces.size(); ++trace) {
    std::map<Groups, uint32_t> seen;
    std::vector<uint32_t>& numbers = numbers_[trace];
    for (const CommEntry& comm : traces[trace]->comms) {
      const uint32_t parent = comm.parent < numbers.size() ? numbers[comm.parent] : none;
      Groups groups{parent, comm.world_ranks, comm.remote_ranks};
      auto& [_, here, there] = groups;
      if (!there.empty() && there < here) std::swap(here, there);
      const uint32_t ordinal = seen[groups]++;
      const auto next = static_cast<uint32_t>(numbers_by_groups.size());
      numbers.push_back(numbers_by_groups.try_emplace({std::move(groups), ordinal}, next).first->second);
    }
  }
}

}  // namespace spinloom::trace
