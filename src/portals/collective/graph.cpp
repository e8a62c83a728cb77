#include "portals/collective/graph.hpp"

#include <algorithm>

namespace spinloom::collective {
namespace {

// The last writer and the readers of each byte, by ranges of addresses.
class Dataflow {
 public:
  // Notes a reader of the bytes, and adds to `waits` the operations for which it waits.
  void read(uint32_t operation, const Pieces& pieces, std::vector<uint32_t>& waits) {
    for (const nic::IovecElement& piece : pieces) {
      each(piece, [&](Use& use) {
        if (use.writer != nobody) waits.push_back(use.writer);
        use.readers.push_back(operation);
      });
    }
  }
  void write(uint32_t operation, const Pieces& pieces, std::vector<uint32_t>& waits) {
    for (const nic::IovecElement& piece : pieces) {
      each(piece, [&](Use& use) {
        if (use.writer != nobody) waits.push_back(use.writer);
        waits.insert(waits.end(), use.readers.begin(), use.readers.end());
        use.writer = operation;
        use.readers.clear();
      });
    }
  }

 private:
  static constexpr uint32_t nobody = UINT32_MAX;
  struct Use {
    uint64_t end = 0;
    uint32_t writer = nobody;
    std::vector<uint32_t> readers;
  };

  // Cuts the range that contains the address, so that a range begins there.
  void cut(uint64_t at) {
    auto after = uses_.upper_bound(at);
    if (after == uses_.begin()) return;
    auto& [begin, use] = *std::prev(after);
    if (begin == at || use.end <= at) return;
    Use upper = use;
    use.end = at;
    uses_.emplace(at, std::move(upper));
  }
  template <class Visit>
  void each(const nic::IovecElement& piece, const Visit& visit) {
    uint64_t at = reinterpret_cast<uint64_t>(piece.base);
    const uint64_t end = at + piece.length;
    cut(at);
    cut(end);
    while (at < end) {
      auto found = uses_.lower_bound(at);
      if (found == uses_.end() || found->first > at) {
        const uint64_t gap_end = found == uses_.end() ? end : std::min(end, found->first);
        found = uses_.emplace(at, Use{gap_end, nobody, {}}).first;
      }
      visit(found->second);
      at = found->second.end;
    }
  }

  std::map<uint64_t, Use> uses_;  // the key is the begin
};

Pieces pieces_of(const Part& part, const CallArguments& arguments) {
  if (part.bytes == 0) return {};
  uint8_t* const area = part.place.area == Area::send      ? arguments.send
                        : part.place.area == Area::receive ? arguments.receive
                                                           : arguments.work;
  const uint64_t wrap = part.place.wrap;
  const uint64_t at = wrap == 0 ? part.place.at : part.place.at % wrap;
  if (wrap == 0 || at + part.bytes <= wrap) return {{area + at, part.bytes}};
  return {{area + at, wrap - at}, {area, part.bytes - (wrap - at)}};
}

class GraphMaker {
 public:
  explicit GraphMaker(const CallArguments& arguments) : arguments_(arguments) {}

  void add(const Round& round) {
    const auto first = static_cast<uint32_t>(graph_.operations.size());
    bool is_signal = false;
    // Receives are posted when the schedule starts, so they wait for nothing.
    for (const Leg& leg : round.legs) {
      is_signal |= leg.part.bytes == 0;
      if (leg.side != Side::receive) continue;
      Vertex vertex{.kind = VertexKind::receive,
                    .peer = leg.peer,
                    .name = {.message = numbers_[{leg.peer, Side::receive}]++},
                    .to = pieces_of(leg.part, arguments_)};
      std::vector<uint32_t> nothing;
      flow_.write(next(), vertex.to, nothing);
      graph_.operations.push_back(std::move(vertex));
    }
    for (const Leg& leg : round.legs) {
      if (leg.side != Side::send) continue;
      Vertex vertex{.kind = VertexKind::send,
                    .peer = leg.peer,
                    .name = {.message = numbers_[{leg.peer, Side::send}]++},
                    .from = pieces_of(leg.part, arguments_)};
      flow_.read(next(), vertex.from, vertex.all);
      if (leg.part.bytes == 0) vertex.all.insert(vertex.all.end(), signal_round_.begin(), signal_round_.end());
      graph_.operations.push_back(std::move(vertex));
    }
    for (const Copy& copy : round.copies) {
      Vertex vertex{
          .kind = VertexKind::copy, .from = pieces_of(copy.from, arguments_), .to = pieces_of(copy.to, arguments_)};
      flow_.read(next(), vertex.from, vertex.all);
      flow_.write(next(), vertex.to, vertex.all);
      graph_.operations.push_back(std::move(vertex));
    }
    for (const Combine& one : round.combines) {
      Vertex vertex{.kind = VertexKind::combine,
                    .from = pieces_of(one.from, arguments_),
                    .to = pieces_of(one.into, arguments_),
                    .op = arguments_.op,
                    .type = arguments_.type};
      if (vertex.to.empty()) continue;
      flow_.read(next(), vertex.from, vertex.all);
      flow_.write(next(), vertex.to, vertex.all);
      graph_.operations.push_back(std::move(vertex));
    }
    if (!is_signal) return;
    signal_round_.clear();
    for (uint32_t operation = first; operation < graph_.operations.size(); ++operation)
      signal_round_.push_back(operation);
  }
  [[nodiscard]] Graph take() { return std::move(graph_); }

 private:
  [[nodiscard]] uint32_t next() const { return static_cast<uint32_t>(graph_.operations.size()); }

  const CallArguments& arguments_;
  Graph graph_;
  Dataflow flow_;
  std::map<std::pair<uint32_t, Side>, uint32_t> numbers_;
  std::vector<uint32_t> signal_round_;  // the latest round with messages of no bytes
};

void sort_unique(std::vector<uint32_t>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

}  // namespace

uint64_t bytes_of(const Pieces& pieces) {
  uint64_t bytes = 0;
  for (const nic::IovecElement& piece : pieces) bytes += piece.length;
  return bytes;
}

uint64_t area_bytes_of(std::span<const Round> rounds, Area area) {
  uint64_t bytes = 0;
  const auto include = [&](const Part& part) {
    if (part.place.area != area || part.bytes == 0) return;
    bytes = std::max(bytes, part.place.wrap != 0 ? part.place.wrap : part.place.at + part.bytes);
  };
  for (const Round& round : rounds) {
    for (const Leg& leg : round.legs) include(leg.part);
    for (const Copy& copy : round.copies) {
      include(copy.from);
      include(copy.to);
    }
    for (const Combine& one : round.combines) {
      include(one.from);
      include(one.into);
    }
  }
  return bytes;
}

Graph graph_of(std::span<const Round> rounds, const CallArguments& arguments) {
  GraphMaker maker(arguments);
  for (const Round& round : rounds) maker.add(round);
  Graph graph = maker.take();
  graph.memory_bytes = work_bytes_of(rounds);
  reduce_edges(graph);
  return graph;
}

void reduce_edges(Graph& graph) {
  // An operation of `all` is dropped if another one of `all` waits for it, maybe by way of others. `seen` marks the
  // operations that are waited for, from the last one of `all` down. Those before the first one of `all` do not matter.
  std::vector<uint32_t> seen(graph.operations.size(), UINT32_MAX);
  std::vector<uint32_t> open;
  for (uint32_t number = 0; number < graph.operations.size(); ++number) {
    std::vector<uint32_t>& all = graph.operations[number].all;
    sort_unique(all);
    sort_unique(graph.operations[number].any);
    if (all.size() < 2) continue;
    std::vector<uint32_t> needed;
    for (size_t i = all.size(); i-- > 0;) {
      const uint32_t candidate = all[i];
      if (seen[candidate] == number) continue;
      needed.push_back(candidate);
      open.assign(1, candidate);
      while (!open.empty()) {
        const uint32_t at = open.back();
        open.pop_back();
        for (const uint32_t before : graph.operations[at].all) {
          if (before < all.front() || seen[before] == number) continue;
          seen[before] = number;
          open.push_back(before);
        }
      }
    }
    std::reverse(needed.begin(), needed.end());
    all = std::move(needed);
  }
}

void with_rendezvous(Graph& graph, uint64_t eager_bytes, uint32_t early_messages, Initiator initiator) {
  const auto bytes_of_message = [](const Vertex& one) {
    return bytes_of(one.kind == VertexKind::send ? one.from : one.to);
  };
  const auto is_message = [](const Vertex& one) {
    return one.kind == VertexKind::send || one.kind == VertexKind::receive;
  };
  const auto is_short = [&](const Vertex& one) {
    return is_message(one) && !one.optional && bytes_of_message(one) <= eager_bytes;
  };
  // The ends may name their messages in other orders, so the names decide which come first.
  std::map<std::pair<uint32_t, VertexKind>, std::vector<uint32_t>> short_names;
  for (const Vertex& one : graph.operations) {
    if (is_message(one) && bytes_of_message(one) <= eager_bytes)
      short_names[{one.peer, one.kind}].push_back(one.name.message);
  }
  for (auto& [peer, names] : short_names) std::sort(names.begin(), names.end());
  const auto is_early = [&](const Vertex& one) {
    if (!is_short(one)) return false;
    const std::vector<uint32_t>& names = short_names[{one.peer, one.kind}];
    return names.size() <= early_messages || one.name.message < names[early_messages];
  };
  std::vector<uint32_t> number_of(graph.operations.size());
  std::vector<Vertex> operations;
  operations.reserve(graph.operations.size());
  const auto add = [&operations](Vertex operation) {
    operations.push_back(std::move(operation));
    return static_cast<uint32_t>(operations.size() - 1);
  };
  for (uint32_t old = 0; old < graph.operations.size(); ++old) {
    Vertex operation = std::move(graph.operations[old]);
    for (uint32_t& one : operation.all) one = number_of[one];
    for (uint32_t& one : operation.any) one = number_of[one];
    operation.early = is_early(operation);
    if (operation.early || !is_message(operation)) {
      number_of[old] = add(std::move(operation));
      continue;
    }
    MessageName signal = operation.name;
    signal.is_signal = true;
    const uint32_t peer = operation.peer;
    if (initiator == Initiator::receiver || operation.optional) {
      if (operation.kind == VertexKind::send) {
        const bool optional = operation.optional;
        operation.all.push_back(add({.kind = VertexKind::receive, .peer = peer, .name = signal, .optional = optional}));
        number_of[old] = add(std::move(operation));
      } else {
        number_of[old] = add(std::move(operation));
        add({.kind = VertexKind::send, .peer = peer, .name = signal, .optional = operations[number_of[old]].optional});
      }
      continue;
    }
    operation.name.is_exposed = true;
    if (operation.kind == VertexKind::send) {
      add({.kind = VertexKind::send,
           .peer = peer,
           .name = signal,
           .cpu_dependent = operation.cpu_dependent,
           .all = operation.all,
           .any = operation.any});
      number_of[old] = add({.kind = VertexKind::expose, .peer = peer, .name = operation.name, .from = operation.from});
    } else {
      const uint32_t ready = add({.kind = VertexKind::receive, .peer = peer, .name = signal});
      operation.kind = VertexKind::fetch;
      operation.all.push_back(ready);
      number_of[old] = add(std::move(operation));
    }
  }
  graph.operations = std::move(operations);
  graph.number_of = std::move(number_of);
}

}  // namespace spinloom::collective
