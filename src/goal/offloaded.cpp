#include "goal/offloaded.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace spinloom::goal {

using collective::Does;
using schedule::Awaits;
using schedule::Kind;
using schedule::Shape;

namespace {

using Meeting = std::tuple<uint32_t, uint32_t, uint32_t>;  // source, target, name

// The counts of a rank: what the same ones wait for has one, whose number is that of the first of them.
struct Counts {
  std::vector<uint32_t> number_of;  // by operation
  std::vector<uint32_t> most;       // by number
};

Counts counts_of(const collective::Graph& graph) {
  const auto& operations = graph.operations;
  std::vector<std::vector<uint32_t>> waiting(operations.size());
  for (uint32_t number = 0; number < operations.size(); ++number) {
    for (const uint32_t before : operations[number].all) waiting[before].push_back(number);
  }
  Counts made{std::vector<uint32_t>(operations.size()), std::vector<uint32_t>(operations.size())};
  std::map<std::vector<uint32_t>, uint32_t> firsts;
  for (uint32_t number = 0; number < operations.size(); ++number) {
    if (operations[number].what == Does::send) continue;
    made.number_of[number] = firsts.try_emplace(std::move(waiting[number]), number).first->second;
    ++made.most[made.number_of[number]];
  }
  return made;
}

class ProgramMaker {
 public:
  explicit ProgramMaker(std::span<const collective::Graph> ranks)
      : ranks_(ranks), made_(static_cast<uint32_t>(ranks.size())) {}

  Result<schedule::Schedule> make() {
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      counts_.push_back(counts_of(ranks_[rank]));
      const auto& operations = ranks_[rank].operations;
      for (uint32_t number = 0; number < operations.size(); ++number) {
        const auto& one = operations[number];
        if (one.what != Does::receive) continue;
        receives_[{one.peer, rank, one.name.message}] = counts_[rank].number_of[number];
      }
    }
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) SPL_TRY(add(rank));
    return std::move(made_);
  }

 private:
  Status add(uint32_t rank) {
    const auto& operations = ranks_[rank].operations;
    const Counts& counts = counts_[rank];
    schedule::Builder builder;
    std::vector<uint32_t> arrived(operations.size());  // by number of a count
    for (uint32_t number = 0; number < operations.size(); ++number) {
      const auto& one = operations[number];
      if (one.what == Does::send) {
        const auto found = receives_.find({rank, one.peer, one.name.message});
        if (found == receives_.end()) {
          return fail(Code::stalled, "rank ", one.peer, " receives no message ", one.name.message, " of rank ", rank);
        }
        const Shape put{.size = collective::bytes_of(one.from), .tag = found->second, .kind = Kind::put};
        wait(one, counts, arrived, operations, builder.add(made_.number_of(put), one.peer), builder);
        continue;
      }
      const uint32_t tag = counts.number_of[number];
      if (one.what != Does::receive) {
        const Kind kind = one.what == Does::combine ? Kind::atomic : Kind::put;
        const Shape own{.size = collective::bytes_of(one.to), .tag = tag, .kind = kind};
        wait(one, counts, arrived, operations, builder.add(made_.number_of(own), rank), builder);
      }
      if (tag != number) continue;
      arrived[tag] = builder.add(made_.number_of({.size = counts.most[tag], .tag = tag, .kind = Kind::arrived}), 0);
    }
    made_.intern(rank, builder.take());
    return {};
  }

  static void wait(const collective::Vertex& one, const Counts& counts, const std::vector<uint32_t>& arrived,
                   const std::vector<collective::Vertex>& operations, uint32_t put, schedule::Builder& builder) {
    std::vector<uint32_t> awaited;
    for (const uint32_t before : one.all) {
      if (operations[before].what != Does::send) awaited.push_back(arrived[counts.number_of[before]]);
    }
    std::ranges::sort(awaited);
    const auto rest = std::ranges::unique(awaited);
    awaited.erase(rest.begin(), rest.end());
    for (const uint32_t arrival : awaited) builder.require(put, arrival, Awaits::end);
  }

  std::span<const collective::Graph> ranks_;
  schedule::Schedule made_;
  std::vector<Counts> counts_;
  std::map<Meeting, uint32_t> receives_;  // their counts
};

}  // namespace

Result<schedule::Schedule> offloaded(std::span<const collective::Graph> ranks) { return ProgramMaker(ranks).make(); }

}  // namespace spinloom::goal
