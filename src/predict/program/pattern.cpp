#include "predict/program/pattern.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "predict/program/collectives.hpp"

namespace spinloom::predict {
namespace {

using trace::CommEntry;
using trace::RankTrace;
using trace::Signature;

bool is_same_type(const trace::TypeEntry& a, const trace::TypeEntry& b) {
  return a.size_bytes == b.size_bytes && a.extent_bytes == b.extent_bytes && a.blob == b.blob;
}

constexpr uint32_t edge_classes_per_dimension = 3;  // the beginning of a dimension, its inside, its end

// Tries to explain all ranks on one grid.
class Explainer {
 public:
  Explainer(std::span<const RankTrace> traces, Pattern pattern) : traces_(traces), pattern_(std::move(pattern)) {}

  Result<Pattern> explain() {
    SPL_TRY(explain_comms());
    std::map<uint32_t, std::vector<uint32_t>> classes;
    for (uint32_t rank = 0; rank < traces_.size(); ++rank) {
      classes[pattern_.has_edge_classes ? pattern_.grid.edge_class(rank) : 0].push_back(rank);
    }
    for (const auto& [edge_class, ranks] : classes) {
      if (pattern_.calls.size() <= edge_class) pattern_.calls.resize(edge_class + 1);
      SPL_TRY(explain_calls(ranks, pattern_.calls[edge_class]));
    }
    if ((wrapped_dims_ & pattern_.walled_dims) != 0)
      return fail(Code::unsupported, "a dimension has ends for some calls only");
    return std::move(pattern_);
  }

 private:
  [[nodiscard]] const Signature& call(uint32_t rank, size_t number) const {
    return traces_[rank].signatures[traces_[rank].events[pattern_.events[rank][number]].signature];
  }

  Status explain_comms() {
    const uint32_t masks = 1U << pattern_.grid.dims.size();
    for (size_t comm = 0; comm < traces_[0].comms.size(); ++comm) {
      const auto fits = [&](uint32_t mask) {
        return std::ranges::all_of(traces_, [&](const RankTrace& trace) {
          return trace.comms[comm].remote_ranks.empty() &&
                 trace.comms[comm].world_ranks == pattern_.grid.slice(trace.rank, mask);
        });
      };
      uint32_t mask = 0;
      while (mask < masks && !fits(mask)) ++mask;
      if (mask == masks) {
        return fail(Code::unsupported, "communicator ", comm, " is no row, column or plane of the grid");
      }
      CommPattern pattern{mask, {}, {}};
      SPL_TRY(explain_neighbours(comm, &CommEntry::sources, pattern.sources));
      SPL_TRY(explain_neighbours(comm, &CommEntry::destinations, pattern.destinations));
      pattern_.comms.push_back(std::move(pattern));
    }
    return {};
  }

  Status explain_neighbours(size_t comm, std::vector<int32_t> CommEntry::* list, std::vector<Relation>& relations) {
    const size_t count = (traces_[0].comms[comm].*list).size();
    std::vector<uint32_t> ranks;
    for (uint32_t rank = 0; rank < traces_.size(); ++rank) {
      if ((traces_[rank].comms[comm].*list).size() != count) {
        return fail(Code::unsupported, "communicator ", comm, " has other numbers of neighbours on other ranks");
      }
      ranks.push_back(rank);
    }
    for (size_t i = 0; i < count; ++i) {
      SPL_ASSIGN(const Relation relation, relate(ranks, [&](uint32_t rank) {
                   return world_rank(rank, static_cast<uint32_t>(comm), (traces_[rank].comms[comm].*list)[i]);
                 }));
      relations.push_back(relation);
    }
    return {};
  }

  Status explain_calls(const std::vector<uint32_t>& ranks, std::vector<CallPattern>& patterns) {
    const uint32_t first = ranks.front();
    for (const uint32_t rank : ranks) {
      if (pattern_.events[rank].size() != pattern_.events[first].size()) {
        return fail(Code::unsupported, "rank ", rank, " has ", pattern_.events[rank].size(), " calls, and rank ", first,
                    " has ", pattern_.events[first].size());
      }
    }
    for (size_t number = 0; number < pattern_.events[first].size(); ++number) {
      const Signature& first_call = call(first, number);
      for (const uint32_t rank : ranks) {
        if (!is_alike(first_call, first, call(rank, number), rank)) {
          return fail(Code::unsupported, "call ", number, " of rank ", rank, " (",
                      trace::name_of(call(rank, number).call), ") is not that of rank ", first, " (",
                      trace::name_of(first_call.call), ")");
        }
      }
      CallPattern pattern;
      const auto peers = [&](auto peer_of, Relation& target) -> Status {
        auto relation = relate(ranks, peer_of);
        if (!relation) {
          return fail(Code::unsupported, trace::name_of(first_call.call), ", call ", number, ": ",
                      relation.error().message);
        }
        target = *relation;
        return {};
      };
      if (has_no_varying_peer(first_call)) {
        pattern.peer.constant = first_call.peer;
      } else {
        SPL_TRY(peers([&](uint32_t rank) { return world_rank(rank, first_call.comm, call(rank, number).peer); },
                      pattern.peer));
      }
      SPL_TRY(peers([&](uint32_t rank) { return world_rank(rank, first_call.comm, call(rank, number).receive_peer); },
                    pattern.receive_peer));
      for (size_t i = 0; i < first_call.matches.size(); ++i) {
        SPL_TRY(peers(
            [&](uint32_t rank) {
              return world_rank(rank, comm_of_match(first_call), call(rank, number).matches[i].source);
            },
            pattern.matches.emplace_back()));
      }
      patterns.push_back(std::move(pattern));
    }
    return {};
  }

  // True for calls whose peer is a root, or that have no peer.
  static bool has_no_varying_peer(const Signature& call) {
    return is_collective(call.call) || call.comm == trace::none;
  }
  // Completions have no communicator; their matches came over the world's, or are refused.
  static uint32_t comm_of_match(const Signature& call) { return call.comm == trace::none ? 0 : call.comm; }

  [[nodiscard]] bool is_alike(const Signature& a, uint32_t rank_a, const Signature& b, uint32_t rank_b) const {
    if (a.call != b.call || a.form != b.form || a.in_place != b.in_place || a.comm != b.comm || a.tag != b.tag ||
        a.receive_tag != b.receive_tag || a.error != b.error || a.requests != b.requests ||
        a.matches.size() != b.matches.size()) {
      return false;
    }
    if (has_no_varying_peer(a) && a.peer != b.peer) return false;
    for (size_t i = 0; i < a.matches.size(); ++i) {
      if (a.matches[i].tag != b.matches[i].tag || a.matches[i].bytes != b.matches[i].bytes) return false;
    }
    return is_alike(a.sends, rank_a, b.sends, rank_b) && is_alike(a.receives, rank_a, b.receives, rank_b);
  }
  [[nodiscard]] bool is_alike(const std::vector<trace::Block>& a, uint32_t rank_a, const std::vector<trace::Block>& b,
                              uint32_t rank_b) const {
    return std::ranges::equal(a, b, [&](const trace::Block& one, const trace::Block& other) {
      if (one.count != other.count || (one.type == trace::none) != (other.type == trace::none)) return false;
      return one.type == trace::none ||
             is_same_type(traces_[rank_a].types[one.type], traces_[rank_b].types[other.type]);
    });
  }

  // `any` and `nobody` stay as they are.
  [[nodiscard]] int32_t world_rank(uint32_t rank, uint32_t comm, int32_t peer) const {
    if (peer < 0 || comm == trace::none) return peer;
    const auto& members = traces_[rank].comms[comm].world_ranks;
    return static_cast<size_t>(peer) < members.size() ? static_cast<int32_t>(members[static_cast<size_t>(peer)]) : peer;
  }

  template <class PeerOf>
  Result<Relation> relate(const std::vector<uint32_t>& ranks, const PeerOf& peer_of) {
    std::vector<int32_t> peers;
    for (const uint32_t rank : ranks) peers.push_back(peer_of(rank));
    const auto negative = [](int32_t peer) { return peer < 0; };
    if (std::ranges::all_of(peers, negative)) {
      if (std::ranges::count(peers, peers[0]) == static_cast<std::ptrdiff_t>(peers.size())) {
        return Relation{.is_constant = true, .constant = peers[0]};
      }
    }
    const auto cached = relations_.find({ranks.front(), peers});
    if (cached != relations_.end()) return cached->second;
    SPL_ASSIGN(const Relation relation, steps_to(ranks, peers));
    relations_.emplace(std::pair(ranks.front(), peers), relation);
    return relation;
  }

  // Steps that lead every rank to its peer, and the dimensions in which they pass edges.
  struct Fit {
    Grid::Steps steps{};
    uint8_t wrapped_dims = 0;  // the peer lies around the edge
    uint8_t walled_dims = 0;  // there is no peer beyond the edge
  };

  // Prefers steps that do not go around edges; exactly one of the preferred steps may fit.
  Result<Relation> steps_to(const std::vector<uint32_t>& ranks, const std::vector<int32_t>& peers) {
    std::vector<Fit> within;
    std::vector<Fit> around;
    for (const Grid::Steps& steps : pattern_.grid.neighbour_steps()) {
      const std::optional<Fit> fit = fit_of(ranks, peers, steps);
      if (fit) (fit->wrapped_dims == 0 ? within : around).push_back(*fit);
    }
    const std::vector<Fit>& fits = within.empty() ? around : within;
    if (fits.empty()) {
      return fail(Code::unsupported, "rank ", ranks.front(), "'s peer ", peers.front(), " is no neighbour on the grid");
    }
    if (fits.size() > 1) {
      return fail(Code::unsupported, "with two ranks along a dimension both neighbours are one: record three or more");
    }
    wrapped_dims_ |= fits[0].wrapped_dims;
    pattern_.walled_dims |= fits[0].walled_dims;
    return Relation{.is_constant = false, .constant = 0, .steps = fits[0].steps};
  }

  // Returns nothing if the steps do not lead every rank to its peer.
  [[nodiscard]] std::optional<Fit> fit_of(const std::vector<uint32_t>& ranks, const std::vector<int32_t>& peers,
                                          const Grid::Steps& steps) const {
    Fit fit{.steps = steps};
    for (size_t i = 0; i < ranks.size(); ++i) {
      const Grid::Shifted to = pattern_.grid.shifted(ranks[i], steps);
      if (peers[i] == trace::nobody && to.crossed_edges != 0) {
        fit.walled_dims |= to.crossed_edges;
      } else if (peers[i] >= 0 && static_cast<uint32_t>(peers[i]) == to.rank) {
        fit.wrapped_dims |= to.crossed_edges;
      } else {
        return {};
      }
    }
    if ((fit.wrapped_dims & fit.walled_dims) != 0) return {};
    return fit;
  }

  std::span<const RankTrace> traces_;
  Pattern pattern_;
  uint8_t wrapped_dims_ = 0;  // dimensions around whose edges messages go
  std::map<std::pair<uint32_t, std::vector<int32_t>>, Relation> relations_;
};

}  // namespace

Result<Pattern> pattern_of(std::span<const RankTrace> traces) {
  Pattern prototype;
  for (const RankTrace& trace : traces) {
    if (!trace.has_ended) return fail(Code::unsupported, "rank ", trace.rank, "'s trace ends before MPI_Finalize");
    if (trace.comms.size() != traces[0].comms.size()) {
      return fail(Code::unsupported, "rank ", trace.rank, " has ", trace.comms.size(),
                  " communicators, and rank 0 has ", traces[0].comms.size());
    }
    std::vector<uint32_t>& events = prototype.events.emplace_back();
    for (uint32_t number = 0; number < trace.events.size(); ++number) {
      if (trace.events[number].polls == 0) events.push_back(number);
    }
  }
  std::string why;
  for (const bool has_edge_classes : {false, true}) {
    for (const Grid& grid : grids_of(static_cast<uint32_t>(traces.size()))) {
      if (has_edge_classes &&
          std::ranges::any_of(grid.dims, [](uint32_t size) { return size < edge_classes_per_dimension; }))
        continue;
      Pattern pattern = prototype;
      pattern.grid = grid;
      pattern.has_edge_classes = has_edge_classes;
      auto explained = Explainer(traces, std::move(pattern)).explain();
      if (explained) return explained;
      // Keep the failure on the last grid, which has the most dimensions: ranks differ least there, so it says most.
      if (!has_edge_classes) why = text(grid.text(), ": ", explained.error().message);
    }
  }
  return fail(Code::unsupported, "no grid explains what the ranks do: on ", why,
              "; where ranks at edges do other calls, ", "record three or more along each dimension");
}

}  // namespace spinloom::predict
