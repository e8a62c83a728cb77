#include "predict/goal/patterns/offloaded.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace spinloom::goal {

using collective::VertexKind;
using schedule::Awaits;
using schedule::Kind;
using schedule::Shape;

namespace {

// A message that is received, and the count of its receive.
struct ReceivedMessage {
  uint32_t source = 0;
  uint32_t target = 0;
  uint32_t name = 0;
  uint32_t count = 0;
  [[nodiscard]] auto key() const { return std::tie(source, target, name); }
  bool operator<(const ReceivedMessage& other) const { return key() < other.key(); }
};

// The counts of a rank: operations on which the same ones depend have one count, with the number of the first of them.
struct Counts {
  std::vector<uint32_t> number_of;  // the number of each operation's count
  std::vector<uint32_t> members;  // one for each number of a count: the operations that have it
};

Counts counts_of(const collective::Graph& graph) {
  const auto& operations = graph.operations;
  std::vector<std::vector<uint32_t>> waiting(operations.size());
  for (uint32_t number = 0; number < operations.size(); ++number) {
    for (const uint32_t before : operations[number].all) waiting[before].push_back(number);
  }
  Counts counts{std::vector<uint32_t>(operations.size()), std::vector<uint32_t>(operations.size())};
  std::map<std::vector<uint32_t>, uint32_t> firsts;
  for (uint32_t number = 0; number < operations.size(); ++number) {
    if (operations[number].kind == VertexKind::send) continue;
    counts.number_of[number] = firsts.try_emplace(std::move(waiting[number]), number).first->second;
    ++counts.members[counts.number_of[number]];
  }
  return counts;
}

class ScheduleMaker {
 public:
  ScheduleMaker(uint32_t ranks, const GraphOf& graph_of) : ranks_(ranks), graph_of_(graph_of), schedule_(ranks) {}

  Result<schedule::Schedule> make() {
    for (uint32_t rank = 0; rank < ranks_; ++rank) {
      SPL_ASSIGN(const collective::Graph graph, graph_of_(rank));
      const Counts counts = counts_of(graph);
      for (uint32_t number = 0; number < graph.operations.size(); ++number) {
        const auto& operation = graph.operations[number];
        if (operation.kind != VertexKind::receive) continue;
        receives_.push_back({operation.peer, rank, operation.name.message, counts.number_of[number]});
      }
    }
    std::sort(receives_.begin(), receives_.end());
    for (uint32_t rank = 0; rank < ranks_; ++rank) {
      SPL_ASSIGN(const collective::Graph graph, graph_of_(rank));
      SPL_TRY(add(rank, graph));
    }
    return std::move(schedule_);
  }

 private:
  Status add(uint32_t rank, const collective::Graph& graph) {
    const auto& operations = graph.operations;
    const Counts counts = counts_of(graph);
    schedule::Builder builder;
    std::vector<uint32_t> arrived(operations.size());  // one for each number of a count
    for (uint32_t number = 0; number < operations.size(); ++number) {
      const auto& operation = operations[number];
      if (operation.kind == VertexKind::send) {
        const ReceivedMessage wanted{rank, operation.peer, operation.name.message};
        const auto receive = std::lower_bound(receives_.begin(), receives_.end(), wanted);
        if (receive == receives_.end() || wanted < *receive) {
          return fail(Code::stalled, "rank ", operation.peer, " receives no message ", operation.name.message,
                      " of rank ", rank);
        }
        const Shape put{.size = collective::bytes_of(operation.from), .tag = receive->count, .kind = Kind::put};
        require_awaited(operation, counts, arrived, operations,
                        builder.add(schedule_.intern_shape(put), operation.peer), builder);
        continue;
      }
      const uint32_t tag = counts.number_of[number];
      if (operation.kind != VertexKind::receive) {
        const Kind kind = operation.kind == VertexKind::combine ? Kind::atomic : Kind::put;
        const Shape own{.size = collective::bytes_of(operation.to), .tag = tag, .kind = kind};
        require_awaited(operation, counts, arrived, operations, builder.add(schedule_.intern_shape(own), rank),
                        builder);
      }
      if (tag != number) continue;
      arrived[tag] =
          builder.add(schedule_.intern_shape({.size = counts.members[tag], .tag = tag, .kind = Kind::arrived}), 0);
    }
    schedule_.intern(rank, builder.take());
    return {};
  }

  static void require_awaited(const collective::Vertex& operation, const Counts& counts,
                              const std::vector<uint32_t>& arrived, const std::vector<collective::Vertex>& operations,
                              uint32_t put, schedule::Builder& builder) {
    std::vector<uint32_t> awaited;
    for (const uint32_t before : operation.all) {
      if (operations[before].kind != VertexKind::send) awaited.push_back(arrived[counts.number_of[before]]);
    }
    std::ranges::sort(awaited);
    const auto rest = std::ranges::unique(awaited);
    awaited.erase(rest.begin(), rest.end());
    for (const uint32_t arrival : awaited) builder.require(put, arrival, Awaits::end);
  }

  uint32_t ranks_;
  const GraphOf& graph_of_;
  schedule::Schedule schedule_;
  std::vector<ReceivedMessage> receives_;  // sorted
};

}  // namespace

Result<schedule::Schedule> offloaded(uint32_t ranks, const GraphOf& graph_of) {
  return ScheduleMaker(ranks, graph_of).make();
}

Result<schedule::Schedule> offloaded(std::span<const collective::Graph> ranks) {
  return offloaded(static_cast<uint32_t>(ranks.size()),
                   [&](uint32_t rank) -> Result<collective::Graph> { return ranks[rank]; });
}

}  // namespace spinloom::goal
