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

constexpr uint64_t events_most = 100'000'000;

class Grower {
 public:
  Grower(std::span<const RankTrace> traces, const Pattern& pattern, Grid grid, Scaling scaling)
      : traces_(traces), pattern_(pattern), grid_(std::move(grid)), is_strong_(scaling == Scaling::strong) {}

  // Strong scaling divides by whole numbers only.
  [[nodiscard]] Status check() const {
    for (size_t i = 0; is_strong_ && i < grid_.dims.size(); ++i) {
      if (grid_.dims[i] % pattern_.grid.dims[i] != 0) {
        return fail(Code::unsupported, "a grid of ", pattern_.grid.text(), " ranks became ", grid_.text(),
                    ": where the problem stays as it is, each dimension grows by a whole number of times");
      }
    }
    return {};
  }

  Result<RankTrace> make(uint32_t rank) {
    const uint32_t position = pattern_.by_edge_class ? grid_.edge_class(rank) : 0;
    const uint32_t model = pattern_.grid.rank_at(place_of_model(grid_.place_of(rank)));
    const RankTrace& from = traces_[model];
    RankTrace made = heading_of(from);
    made.rank = rank;
    made.ranks = grid_.ranks();
    made.types = from.types;
    for (size_t comm = 0; comm < from.comms.size(); ++comm) {
      made.comms.push_back(comm_of(rank, from.comms[comm], pattern_.comms[comm]));
    }
    std::map<std::vector<int64_t>, uint32_t> known;  // by the recorded one, and its peers
    for (size_t number = 0; number < pattern_.events[model].size(); ++number) {
      trace::Event event = from.events[pattern_.events[model][number]];
      const CallPattern& pattern = pattern_.calls[position][number];
      const auto next = static_cast<uint32_t>(made.signatures.size());
      const auto [signature, is_new] = known.try_emplace(key_of(event.signature, pattern), next);
      if (is_new) {
        SPL_ASSIGN(Signature refitted, refit(from, from.signatures[event.signature], pattern, made));
        made.signatures.push_back(std::move(refitted));
      }
      event.signature = signature->second;
      made.events.push_back(event);
    }
    if (is_strong_) compute_less(made);
    return made;
  }

 private:
  // Scales the time between calls by the old number of ranks over the new number, rounded up.
  void compute_less(RankTrace& made) const {
    uint64_t before_ns = 0;
    uint64_t now_ns = 0;
    for (trace::Event& event : made.events) {
      const uint64_t gap_ns = event.begin_ns > before_ns ? event.begin_ns - before_ns : 0;
      const uint64_t in_call_ns = event.end_ns - event.begin_ns;
      before_ns = event.end_ns;
      const auto shared = static_cast<unsigned __int128>(gap_ns) * traces_.size();
      event.begin_ns = now_ns + static_cast<uint64_t>((shared + grid_.ranks() - 1) / grid_.ranks());
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
  Status shrink_messages(const Signature& call, const CallPattern& pattern, RankTrace& made, Signature& found) const {
    const bool is_exchange = call.call == Call::Sendrecv || call.call == Call::Sendrecv_replace;
    const bool is_wild = call.peer == trace::any && pattern.matches.empty() && !call.receives.empty();
    if (is_wild) {
      return fail(Code::unsupported, "from any source, and nobody knows through which face the message comes");
    }
    const bool has_met = call.peer == trace::any && !pattern.matches.empty();
    const Relation& peer = has_met ? pattern.matches[0] : pattern.peer;
    SPL_TRY(shrink_all(found.sends, face_divisor(peer), made));
    return shrink_all(found.receives, face_divisor(is_exchange ? pattern.receive_peer : peer), made);
  }

  Status shrink_collective(const Signature& call, RankTrace& made, Signature& found) const {
    const CommPattern& comm = pattern_.comms[call.comm];
    if (has_neighbours(call.call)) {
      SPL_TRY(shrink_faces(found.sends, comm.destinations, made));
      return shrink_faces(found.receives, comm.sources, made);
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
        SPL_TRY(shrink_all(found.sends, rank_divisor(), made));
        return shrink_all(found.receives, rank_divisor(), made);
      default: return {};  // what is reduced or told to all is the same on more ranks
    }
  }

  Status shrink_faces(std::vector<Block>& blocks, const std::vector<Relation>& neighbours, RankTrace& made) const {
    for (size_t i = 0; i < neighbours.size(); ++i) {
      if (blocks.size() == 1 && face_divisor(neighbours[i]) != face_divisor(neighbours[0])) {
        return fail(Code::unsupported, "one block for all neighbours, and faces that shrink differently");
      }
    }
    for (size_t i = 0; i < blocks.size() && i < neighbours.size(); ++i) {
      SPL_ASSIGN(blocks[i], shrink(blocks[i], face_divisor(neighbours[i]), made.types));
    }
    return {};
  }

  static Status shrink_all(std::vector<Block>& blocks, uint64_t divisor, RankTrace& made) {
    for (Block& block : blocks) {
      SPL_ASSIGN(block, shrink(block, divisor, made.types));
    }
    return {};
  }

  static RankTrace heading_of(const RankTrace& from) {
    RankTrace made;
    made.begun_ns = from.begun_ns;
    made.begun_unix_ns = from.begun_unix_ns;
    made.is_cpu_time = from.is_cpu_time;
    made.host = from.host;
    made.mpi = from.mpi;
    made.program = from.program;
    made.ended = true;
    return made;
  }

  // Returns the recorded place with the same edges; between edges, recorded places repeat. A dimension of one or two
  // ranks repeats up to its end.
  [[nodiscard]] Grid::Place place_of_model(const Grid::Place& place) const {
    Grid::Place found{};
    for (size_t i = 0; i < grid_.dims.size(); ++i) {
      const uint32_t recorded = pattern_.grid.dims[i];
      const bool is_end = place[i] + 1 == grid_.dims[i];
      const bool has_middle = recorded > 2;
      if (!has_middle) {
        found[i] = is_end ? recorded - 1 : place[i] % recorded;
      } else {
        found[i] = place[i] == 0 ? 0 : is_end ? recorded - 1 : 1 + (place[i] - 1) % (recorded - 2);
      }
    }
    return found;
  }

  static void add(std::vector<int64_t>& key, const Relation& relation) {
    key.push_back(relation.is_constant ? relation.constant : 0);
    for (const int8_t step : relation.steps) key.push_back(step);
  }
  static std::vector<int64_t> key_of(uint32_t signature, const CallPattern& pattern) {
    std::vector<int64_t> key{signature};
    add(key, pattern.peer);
    add(key, pattern.receive_peer);
    for (const Relation& one : pattern.matches) add(key, one);
    return key;
  }

  [[nodiscard]] CommEntry comm_of(uint32_t rank, const CommEntry& from, const CommPattern& pattern) const {
    CommEntry made = from;
    made.world_ranks = grid_.slice(rank, pattern.mask);
    made.rank = place_in(made, rank);
    for (size_t i = 0; i < pattern.sources.size(); ++i) made.sources[i] = peer_in(made, rank, pattern.sources[i]);
    for (size_t i = 0; i < pattern.destinations.size(); ++i) {
      made.destinations[i] = peer_in(made, rank, pattern.destinations[i]);
    }
    if (!made.dims.empty() && made.dims.size() == grid_.dims.size()) {
      for (size_t i = 0; i < made.dims.size(); ++i) made.dims[i] = static_cast<int32_t>(grid_.dims[i]);
    }
    return made;
  }

  static uint32_t place_in(const CommEntry& comm, uint32_t world_rank) {
    return static_cast<uint32_t>(std::ranges::find(comm.world_ranks, world_rank) - comm.world_ranks.begin());
  }

  [[nodiscard]] int32_t peer_in(const CommEntry& comm, uint32_t rank, const Relation& relation) const {
    if (relation.is_constant) return relation.constant;
    const Grid::Shifted to = grid_.shifted(rank, relation.steps);
    if ((to.edges & pattern_.walls) != 0) return trace::nobody;
    return static_cast<int32_t>(place_in(comm, to.rank));
  }

  Result<Signature> refit(const RankTrace& from, const Signature& call, const CallPattern& pattern,
                          RankTrace& made) const {
    Signature found = call;
    const CommEntry& comm = made.comms[call.comm == trace::none ? 0 : call.comm];
    found.peer = peer_in(comm, made.rank, pattern.peer);
    found.receive_peer = peer_in(comm, made.rank, pattern.receive_peer);
    for (size_t i = 0; i < pattern.matches.size(); ++i) {
      found.matches[i].source = peer_in(comm, made.rank, pattern.matches[i]);
    }
    if (is_strong_ && call.comm != trace::none) {
      const Status shrunk =
          is_collective(call.call) ? shrink_collective(call, made, found) : shrink_messages(call, pattern, made, found);
      if (!shrunk) return fail(Code::unsupported, trace::name_of(call.call), ": ", shrunk.error().message);
    }
    if (call.comm == trace::none || !is_collective(call.call) || has_neighbours(call.call)) return found;
    const uint64_t before = from.comms[call.comm].world_ranks.size();
    // The data that a Reduce_scatter_block sends are what all ranks get together.
    if (call.call != Call::Reduce_scatter_block) {
      SPL_TRY(refit_blocks(found, before, comm.world_ranks.size(), found.sends));
    }
    SPL_TRY(refit_blocks(found, before, comm.world_ranks.size(), found.receives));
    return found;
  }

  static bool has_neighbours(Call call) { return trace::name_of(call).starts_with("Neighbor"); }

  // True for calls in which a rank keeps the same amount of data for all other ranks together.
  static bool shrinks(Call call) {
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
    for (Block& one : blocks) {
      if (one.count != blocks[0].count || one.type != blocks[0].type) {
        return fail(Code::unsupported, trace::name_of(call.call), " has blocks of different sizes for its ", before,
                    " ranks: nobody knows what it would have for ", after);
      }
    }
    Block block = blocks[0];
    if (shrinks(call.call)) {
      const uint64_t all = static_cast<uint64_t>(block.count) * before;
      if (all % after != 0) {
        return fail(Code::unsupported, trace::name_of(call.call), " of ", block.count, " elements for each of ", before,
                    " ranks has ", all, " for all: they are not to be dealt to ", after);
      }
      block.count = static_cast<int64_t>(all / after);
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
  for (const RankTrace& one : traces) {  // peers are places in a communicator
    if (one.comms.empty()) return fail(Code::invalid, "the trace of rank ", one.rank, " has no communicator");
  }
  SPL_ASSIGN(const Pattern pattern, pattern_of(traces));
  const std::optional<Grid> grid = grown(pattern.grid, ranks);
  if (!grid) {
    return fail(Code::unsupported, ranks, " ranks make no grid of ", pattern.grid.dims.size(),
                " dimensions that is at least ", pattern.grid.text());
  }
  uint64_t events = 0;
  for (const RankTrace& one : traces) events = std::max<uint64_t>(events, one.events.size());
  if (events * ranks > events_most) {
    return fail(Code::unsupported, ranks, " ranks of ", events, " calls are more than ", events_most,
                " calls: record fewer steps of the program");
  }
  Grown made;
  Grower grower(traces, pattern, *grid, scaling);
  SPL_TRY(grower.check());
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    SPL_ASSIGN(RankTrace one, grower.make(rank));
    made.traces.push_back(std::move(one));
  }
  made.how = text("a grid of ", pattern.grid.text(), " ranks became ", grid->text());
  return made;
}

}  // namespace spinloom::predict
