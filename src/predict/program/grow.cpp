#include "predict/program/grow.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "predict/program/collectives.hpp"
#include "predict/program/pattern.hpp"
#include "predict/program/shrink.hpp"

namespace spinloom::predict {
namespace {

using trace::Block;
using trace::Call;
using trace::CommEntry;
using trace::RankTrace;
using trace::Signature;

constexpr uint64_t events_max = 100'000'000;

class Grower {
 public:
  Grower(std::span<const RankTrace> traces, const Pattern& pattern, Grid grid, Scaling scaling)
      : traces_(traces), pattern_(pattern), grid_(std::move(grid)), is_strong_(scaling == Scaling::strong) {}

  // Strong scaling divides by whole numbers only.
  [[nodiscard]] Status check_divisible() const {
    for (size_t i = 0; is_strong_ && i < grid_.dims.size(); ++i) {
      if (grid_.dims[i] % pattern_.grid.dims[i] != 0) {
        return fail(Code::unsupported, "a grid of ", pattern_.grid.text(), " ranks became ", grid_.text(),
                    ": where the problem stays as it is, each dimension grows by a whole number of times");
      }
    }
    return {};
  }

  Result<RankTrace> make_trace(uint32_t rank) {
    const uint32_t edge_class = pattern_.has_edge_classes ? grid_.edge_class(rank) : 0;
    const uint32_t recorded_rank = pattern_.grid.rank_at(recorded_coordinates(grid_.coordinates_of(rank)));
    const RankTrace& recorded = traces_[recorded_rank];
    RankTrace grown = header_of(recorded);
    grown.rank = rank;
    grown.ranks = grid_.ranks();
    grown.types = recorded.types;
    for (size_t comm = 0; comm < recorded.comms.size(); ++comm) {
      grown.comms.push_back(comm_of(rank, recorded.comms[comm], pattern_.comms[comm]));
    }
    // The key is the number of the recorded one, and its peers.
    std::map<std::vector<int64_t>, uint32_t> signature_numbers;
    for (size_t number = 0; number < pattern_.events[recorded_rank].size(); ++number) {
      trace::Event event = recorded.events[pattern_.events[recorded_rank][number]];
      const CallPattern& pattern = pattern_.calls[edge_class][number];
      const auto next = static_cast<uint32_t>(grown.signatures.size());
      const auto [signature, is_new] = signature_numbers.try_emplace(key_of(event.signature, pattern), next);
      if (is_new) {
        SPL_ASSIGN(Signature refitted, refit(recorded, recorded.signatures[event.signature], pattern, grown));
        grown.signatures.push_back(std::move(refitted));
      }
      event.signature = signature->second;
      grown.events.push_back(event);
    }
    if (is_strong_) scale_compute(grown);
    return grown;
  }

 private:
  // Scales the time between calls by the old number of ranks over the new number, rounded up.
  void scale_compute(RankTrace& grown) const {
    uint64_t previous_end_ns = 0;
    uint64_t now_ns = 0;
    for (trace::Event& event : grown.events) {
      const uint64_t gap_ns = event.begin_ns > previous_end_ns ? event.begin_ns - previous_end_ns : 0;
      const uint64_t in_call_ns = event.end_ns - event.begin_ns;
      previous_end_ns = event.end_ns;
      const auto scaled = static_cast<unsigned __int128>(gap_ns) * traces_.size();
      event.begin_ns = now_ns + static_cast<uint64_t>((scaled + grid_.ranks() - 1) / grid_.ranks());
      event.end_ns = event.begin_ns + in_call_ns;
      now_ns = event.end_ns;
    }
  }

  // Returns the divisor of a rank's data for this neighbour: the face between them shrinks by it.
  [[nodiscard]] uint64_t face_divisor(const Relation& relation) const {
    if (relation.is_constant) return 1;  // nobody
    uint64_t divisor = 1;
    for (size_t i = 0; i < grid_.dims.size(); ++i) {
      if (relation.steps[i] == 0) divisor *= grid_.dims[i] / pattern_.grid.dims[i];
    }
    return divisor;
  }
  [[nodiscard]] uint64_t rank_divisor() const { return grid_.ranks() / traces_.size(); }

  // Shrinks the messages of a call whose peers are known.
  Status shrink_messages(const Signature& call, const CallPattern& pattern, RankTrace& grown, Signature& shrunk) const {
    const bool is_exchange = call.call == Call::Sendrecv || call.call == Call::Sendrecv_replace;
    const bool has_unknown_source = call.peer == trace::any && pattern.matches.empty() && !call.receives.empty();
    if (has_unknown_source) {
      return fail(Code::unsupported, "from any source, and nobody knows through which face the message comes");
    }
    const bool has_matches = call.peer == trace::any && !pattern.matches.empty();
    const Relation& peer = has_matches ? pattern.matches[0] : pattern.peer;
    SPL_TRY(shrink_blocks(shrunk.sends, face_divisor(peer), grown));
    return shrink_blocks(shrunk.receives, face_divisor(is_exchange ? pattern.receive_peer : peer), grown);
  }

  Status shrink_collective(const Signature& call, RankTrace& grown, Signature& shrunk) const {
    const CommPattern& comm = pattern_.comms[call.comm];
    if (has_neighbours(call.call)) {
      SPL_TRY(shrink_faces(shrunk.sends, comm.destinations, grown));
      return shrink_faces(shrunk.receives, comm.sources, grown);
    }
    switch (call.call) {
      case Call::Alltoall:
      case Call::Alltoallv:
      case Call::Alltoallw:
      case Call::Allgather:
      case Call::Allgatherv:
      case Call::Gather:
      case Call::Gatherv:
      case Call::Scatter:
      case Call::Scatterv:
        SPL_TRY(shrink_blocks(shrunk.sends, rank_divisor(), grown));
        return shrink_blocks(shrunk.receives, rank_divisor(), grown);
      default: return {};  // data that is reduced or told to all is the same on more ranks
    }
  }

  Status shrink_faces(std::vector<Block>& blocks, const std::vector<Relation>& neighbours, RankTrace& grown) const {
    for (size_t i = 0; i < neighbours.size(); ++i) {
      if (blocks.size() == 1 && face_divisor(neighbours[i]) != face_divisor(neighbours[0])) {
        return fail(Code::unsupported, "one block for all neighbours, and faces that shrink differently");
      }
    }
    for (size_t i = 0; i < blocks.size() && i < neighbours.size(); ++i) {
      SPL_ASSIGN(blocks[i], shrink(blocks[i], face_divisor(neighbours[i]), grown.types));
    }
    return {};
  }

  static Status shrink_blocks(std::vector<Block>& blocks, uint64_t divisor, RankTrace& grown) {
    for (Block& block : blocks) {
      SPL_ASSIGN(block, shrink(block, divisor, grown.types));
    }
    return {};
  }

  static RankTrace header_of(const RankTrace& recorded) {
    RankTrace header;
    header.begun_ns = recorded.begun_ns;
    header.begun_unix_ns = recorded.begun_unix_ns;
    header.is_cpu_time = recorded.is_cpu_time;
    header.host = recorded.host;
    header.mpi = recorded.mpi;
    header.program = recorded.program;
    header.has_ended = true;
    return header;
  }

  // Returns the coordinates of the recorded rank that a new rank follows: at the same edges, and between edges the
  // recorded ones repeat. A dimension of one or two ranks repeats up to its end.
  [[nodiscard]] Grid::Coordinates recorded_coordinates(const Grid::Coordinates& coordinates) const {
    Grid::Coordinates result{};
    for (size_t i = 0; i < grid_.dims.size(); ++i) {
      const uint32_t size = pattern_.grid.dims[i];
      const bool is_end = coordinates[i] + 1 == grid_.dims[i];
      const bool has_middle = size > 2;
      if (!has_middle) {
        result[i] = is_end ? size - 1 : coordinates[i] % size;
      } else {
        result[i] = coordinates[i] == 0 ? 0 : is_end ? size - 1 : 1 + (coordinates[i] - 1) % (size - 2);
      }
    }
    return result;
  }

  static void add_relation(std::vector<int64_t>& key, const Relation& relation) {
    key.push_back(relation.is_constant ? relation.constant : 0);
    for (const int8_t step : relation.steps) key.push_back(step);
  }
  static std::vector<int64_t> key_of(uint32_t signature, const CallPattern& pattern) {
    std::vector<int64_t> key{signature};
    add_relation(key, pattern.peer);
    add_relation(key, pattern.receive_peer);
    for (const Relation& match : pattern.matches) add_relation(key, match);
    return key;
  }

  [[nodiscard]] CommEntry comm_of(uint32_t rank, const CommEntry& recorded, const CommPattern& pattern) const {
    CommEntry grown = recorded;
    grown.world_ranks = grid_.slice(rank, pattern.mask);
    grown.rank = rank_in(grown, rank);
    for (size_t i = 0; i < pattern.sources.size(); ++i) grown.sources[i] = peer_in(grown, rank, pattern.sources[i]);
    for (size_t i = 0; i < pattern.destinations.size(); ++i) {
      grown.destinations[i] = peer_in(grown, rank, pattern.destinations[i]);
    }
    if (!grown.dims.empty() && grown.dims.size() == grid_.dims.size()) {
      for (size_t i = 0; i < grown.dims.size(); ++i) grown.dims[i] = static_cast<int32_t>(grid_.dims[i]);
    }
    return grown;
  }

  static uint32_t rank_in(const CommEntry& comm, uint32_t world_rank) {
    return static_cast<uint32_t>(std::ranges::find(comm.world_ranks, world_rank) - comm.world_ranks.begin());
  }

  [[nodiscard]] int32_t peer_in(const CommEntry& comm, uint32_t rank, const Relation& relation) const {
    if (relation.is_constant) return relation.constant;
    const Grid::Shifted to = grid_.shifted(rank, relation.steps);
    if ((to.crossed_edges & pattern_.walled_dims) != 0) return trace::nobody;
    return static_cast<int32_t>(rank_in(comm, to.rank));
  }

  Result<Signature> refit(const RankTrace& recorded, const Signature& call, const CallPattern& pattern,
                          RankTrace& grown) const {
    Signature refitted = call;
    const CommEntry& comm = grown.comms[call.comm == trace::none ? 0 : call.comm];
    refitted.peer = peer_in(comm, grown.rank, pattern.peer);
    refitted.receive_peer = peer_in(comm, grown.rank, pattern.receive_peer);
    for (size_t i = 0; i < pattern.matches.size(); ++i) {
      refitted.matches[i].source = peer_in(comm, grown.rank, pattern.matches[i]);
    }
    if (is_strong_ && call.comm != trace::none) {
      const Status shrunk = is_collective(call.call) ? shrink_collective(call, grown, refitted)
                                                     : shrink_messages(call, pattern, grown, refitted);
      if (!shrunk) return fail(Code::unsupported, trace::name_of(call.call), ": ", shrunk.error().message);
    }
    if (call.comm == trace::none || !is_collective(call.call) || has_neighbours(call.call)) return refitted;
    const uint64_t before = recorded.comms[call.comm].world_ranks.size();
    // The data that a Reduce_scatter_block sends are what all ranks get together.
    if (call.call != Call::Reduce_scatter_block) {
      SPL_TRY(refit_blocks(refitted, before, comm.world_ranks.size(), refitted.sends));
    }
    SPL_TRY(refit_blocks(refitted, before, comm.world_ranks.size(), refitted.receives));
    return refitted;
  }

  static bool has_neighbours(Call call) { return trace::name_of(call).starts_with("Neighbor"); }

  // True for calls in which a rank keeps the same amount of data for all other ranks together.
  static bool keeps_total(Call call) {
    switch (call) {
      case Call::Alltoall:
      case Call::Alltoallv:
      case Call::Alltoallw:
      case Call::Reduce_scatter:
      case Call::Reduce_scatter_block: return true;
      default: return false;
    }
  }

  static Status refit_blocks(const Signature& call, uint64_t before, uint64_t after, std::vector<Block>& blocks) {
    if (before == after || blocks.empty()) return {};
    for (const Block& other : blocks) {
      if (other.count != blocks[0].count || other.type != blocks[0].type) {
        return fail(Code::unsupported, trace::name_of(call.call), " has blocks of different sizes for its ", before,
                    " ranks: nobody knows what it would have for ", after);
      }
    }
    Block block = blocks[0];
    if (keeps_total(call.call)) {
      const uint64_t total = static_cast<uint64_t>(block.count) * before;
      if (total % after != 0) {
        return fail(Code::unsupported, trace::name_of(call.call), " of ", block.count, " elements for each of ", before,
                    " ranks has ", total, " for all: they are not to be dealt to ", after);
      }
      block.count = static_cast<int64_t>(total / after);
    }
    if (blocks.size() == 1) {
      blocks[0] = block;
    } else {
      blocks.assign(after, block);
    }
    return {};
  }

  std::span<const RankTrace> traces_;
  const Pattern& pattern_;
  Grid grid_;
  bool is_strong_;
};

}  // namespace

Result<Grown> grow(std::span<const RankTrace> traces, uint32_t ranks, Scaling scaling) {
  if (ranks < traces.size()) {
    return fail(Code::unsupported, "the program was recorded on ", traces.size(), " ranks; it grows to more, not to ",
                ranks);
  }
  for (const RankTrace& trace : traces) {  // peers are ranks of a communicator
    if (trace.comms.empty()) return fail(Code::invalid, "the trace of rank ", trace.rank, " has no communicator");
  }
  SPL_ASSIGN(const Pattern pattern, pattern_of(traces));
  const std::optional<Grid> grid = larger_grid(pattern.grid, ranks);
  if (!grid) {
    return fail(Code::unsupported, ranks, " ranks make no grid of ", pattern.grid.dims.size(),
                " dimensions that is at least ", pattern.grid.text());
  }
  uint64_t events = 0;
  for (const RankTrace& trace : traces) events = std::max<uint64_t>(events, trace.events.size());
  if (events * ranks > events_max) {
    return fail(Code::unsupported, ranks, " ranks of ", events, " calls are more than ", events_max,
                " calls: record fewer steps of the program");
  }
  Grown grown;
  Grower grower(traces, pattern, *grid, scaling);
  SPL_TRY(grower.check_divisible());
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    SPL_ASSIGN(RankTrace trace, grower.make_trace(rank));
    grown.traces.push_back(std::move(trace));
  }
  grown.description = text("a grid of ", pattern.grid.text(), " ranks became ", grid->text());
  return grown;
}

}  // namespace spinloom::predict
