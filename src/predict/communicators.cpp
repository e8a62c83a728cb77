#include "predict/communicators.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace spinloom::predict {

Communicators::Communicators(std::span<const trace::RankTrace> traces) : numbers_(traces.size()) {
  using Groups = std::pair<std::vector<uint32_t>, std::vector<uint32_t>>;
  std::map<std::pair<Groups, uint32_t>, uint32_t> known;  // the n-th of its groups
  for (size_t rank = 0; rank < traces.size(); ++rank) {
    std::map<Groups, uint32_t> seen;
    for (const trace::CommEntry& comm : traces[rank].comms) {
      Groups groups{comm.world_ranks, comm.remote_ranks};
      if (!groups.second.empty() && groups.second < groups.first) std::swap(groups.first, groups.second);
      const uint32_t ordinal = seen[groups]++;
      const auto next = static_cast<uint32_t>(known.size());
      numbers_[rank].push_back(known.try_emplace({std::move(groups), ordinal}, next).first->second);
    }
  }
}

}  // namespace spinloom::predict
