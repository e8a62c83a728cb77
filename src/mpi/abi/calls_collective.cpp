// Collective calls. On communicators whose ranks have agreed on it, each is done by messages between pairs of ranks,
// which take the way that the layer finds for each (exchange.hpp). On a communicator of one rank, long messages with
// gaps are copied (to_itself.hpp). All other calls are the MPI's, some of them as packed bytes (packed_call.hpp).
#include <optional>
#include <string_view>

#include "mpi/abi/calls.hpp"
#include "mpi/abi/exchange.hpp"
#include "mpi/abi/gpu_aware.hpp"
#include "mpi/abi/packed_call.hpp"
#include "mpi/abi/patterns.hpp"
#include "mpi/abi/to_itself.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

enum class Kind : uint8_t {
#define SPINLOOM_KIND(name, ...) name,
  SPINLOOM_COLLECTIVE_CALLS(SPINLOOM_KIND, int)
#undef SPINLOOM_KIND
};

constexpr const char* names[] = {
#define SPINLOOM_KIND(name, ...) "MPI_" #name,
    SPINLOOM_COLLECTIVE_CALLS(SPINLOOM_KIND, int)
#undef SPINLOOM_KIND
};
constexpr const char* name_of(Kind kind) { return names[static_cast<size_t>(kind)]; }

// Two values in place of a number of bytes. various: the blocks of the call may differ in size. none: the MPI must do
// the call.
constexpr int64_t various = INT64_MAX;
constexpr int64_t none = -1;

int64_t bytes_of(int64_t count, Datatype type) {
  return count < 0 ? none : Place::capacity_of(*layer.types.form(type), count);
}

// Finds out whether a rank would gain by the layer's way: some of what it moves has gaps and is not short.
struct Gains {
  bool has_gain = false;
  int64_t min_bytes;
  void look(int64_t count, Datatype type) {
    if (has_gain || count <= 0) return;
    const Form& form = *layer.types.form(type);
    has_gain = form.is_known && !form.is_contiguous(count) && Place::capacity_of(form, count) >= min_bytes;
  }
  void send(int, const void*, int64_t count, Datatype type) { look(count, type); }
  void receive(int, const void*, int64_t count, Datatype type) { look(count, type); }
};

// True if a call should be looked at for gaps. A look takes time: after 15 in vain, one call in 32 is looked at.
bool decide_look(uint8_t& vain_looks) {
  constexpr uint8_t vain_max = 16;
  constexpr uint8_t calls_for_a_look = 32;
  if (++vain_looks < vain_max) return true;
  if (vain_looks < vain_max + calls_for_a_look) return false;
  vain_looks = vain_max;
  return true;
}

// True if this rank would gain by the layer's way in a call.
template <class Describe>
bool gains(const Team& team, Completion completion, const Describe& describe) {
  if (layer.settings.path == Path::pass) return false;
  // Slot tables make short blocks quicker, too.
  const bool by_slot_tables = completion == Completion::blocking && team.slot_tables.are_open();
  Gains sink{.min_bytes = by_slot_tables ? 1 : team.min_bytes};
  describe(team, sink);
  return sink.has_gain;
}

// Counts, for the report, messages with gaps that this rank sends by the MPI.
struct PassCounter {
  Kind kind;
  const char* why;
  void send(int rank, const void* buffer, int64_t count, Datatype type) const {
    const Form& form = *layer.types.form(type);
    if (count <= 0 || form.is_contiguous(count)) return;
    Place place = layer.place_of(buffer, count, type, layer.teams.comm());
    place.call = name_of(kind);
    layer.count(place, layer.world_rank(place.comm, rank), Way::pass, why);
  }
  void receive(int, const void*, int64_t, Datatype) const {}
};

// True for calls in which MPIs differ in what goes where if a rank meets a neighbour twice. On a distributed graph no
// other rank knows that it does.
constexpr bool depends_on_order(Kind kind) {
  return kind == Kind::Neighbor_alltoall || kind == Kind::Neighbor_alltoallv || kind == Kind::Neighbor_alltoallw;
}

// The decision on a call that this thread is about to make.
struct ForeseenCall {
  const Team* team = nullptr;  // the team that has counted it
  bool has_agreed = false;
  bool is_set = false;  // there is such a call; its buffers are a device's
};
thread_local ForeseenCall foreseen;

// Counts a call. True if its ranks have agreed to take the layer's way.
bool begin_call(Team& team, uint32_t number) {
  if (!team.has_met) layer.teams.meet(team);
  const bool has_agreed = team.voter.begin_call(number, team.counts);
  if (has_agreed && !team.has_met) layer.teams.meet(team);  // all have come, because one has proposed
  return has_agreed;
}

// Counts the call. Returns the team if the call goes the layer's way, else null. Where its ranks have agreed, they all
// take that way unless its blocks are short; what `bytes` gives is then the same on all. A rank that would gain
// proposes to agree.
template <class Bytes, class Describe>
Team* team_of(Kind kind, Completion completion, Comm comm, const Bytes& bytes, const Describe& describe) {
  const Lock lock;
  Team* const team = layer.teams.of(comm);
  if (team == nullptr) return nullptr;
  const auto number = static_cast<uint32_t>(kind);
  const bool is_counted = std::exchange(foreseen.team, nullptr) == team;
  const bool has_agreed = is_counted ? foreseen.has_agreed : begin_call(*team, number);
  const bool looks =
      !has_agreed && team->has_met && team->voter.is_open(number) && decide_look(team->vain_looks[number]);
  if (!has_agreed && !looks && !layer.tally) return nullptr;
  const int64_t block_bytes = depends_on_order(kind) && team->meets_twice ? none : bytes(*team);
  const bool is_short = block_bytes < team->min_bytes;
  if (has_agreed && !is_short) return team;
  if (layer.tally && block_bytes != none)
    describe(*team, PassCounter{kind, is_short ? "short" : "its ranks had not agreed"});
  if (looks && !is_short && gains(*team, completion, describe)) team->voter.propose(number, team->counts);
  return nullptr;
}

template <class Describe>
std::shared_ptr<Exchange> exchange_of(Kind kind, const Team& team, int tag, const Describe& describe) {
  const Lock lock;
  auto exchange = std::make_shared<Exchange>(name_of(kind), tag);
  describe(team, *exchange);
  return exchange;
}

// True for calls with a root: a rank that sends may have no message to wait for.
constexpr bool has_root(Kind kind) { return kind < Kind::Allgather; }

// The exchange of an earlier call that was the same, or a new one.
template <class Describe>
std::shared_ptr<Exchange> plan_of(Kind kind, Team& team, const Describe& describe) {
  const Lock lock;
  auto& [exchanges, next] = team.plans[static_cast<size_t>(kind)];
  for (const auto& plan : exchanges) {
    if (!plan) continue;
    Exchange::Repeat repeat(*plan);
    describe(team, repeat);
    if (repeat.is_same()) return plan;
  }
  using Senders = Exchange::Senders;
  auto exchange = std::make_shared<Exchange>(name_of(kind), team.tag, has_root(kind) ? Senders::go_on : Senders::wait);
  describe(team, *exchange);
  if (exchange->is_wrong()) return exchange;
  exchanges[next] = exchange;
  next = (next + 1) % exchanges.size();
  return exchange;
}

// Does a call on a communicator of one rank. False: nothing has been moved, and the call is the MPI's.
template <class Bytes, class Describe>
bool copy_alone(Kind kind, Comm comm, const Bytes& bytes, const Describe& describe) {
  const Lock lock;
  const Team* const team = layer.teams.lone_team(comm);
  if (team == nullptr || layer.settings.path == Path::pass || foreseen.is_set) return false;
  const bool is_known = bytes(*team) != none && !(depends_on_order(kind) && team->neighbours.meets_twice);
  if (!is_known && !(layer.tally && depends_on_order(kind))) return false;
  ToItself messages(comm);
  describe(*team, messages);
  if (is_known && messages.copies()) {
    messages.copy(name_of(kind));
    return true;
  }
  if (layer.tally) messages.pass(name_of(kind), is_known ? "short" : "it is not known which slot each part goes to");
  return false;
}

// Finds out whether a call that no team does is quicker as packed bytes, in the calls that decide_look() picks.
// Null: it is not, or was not looked at.
template <class Pattern>
auto packed_call_of(Kind kind, Comm comm, const Pattern& pattern) {
  static uint8_t vain_looks = 0;
  const Lock lock;
  if (foreseen.is_set) return decltype(packed_call(name_of(kind), comm, pattern)){};  // the buffers are a device's
  auto call = decide_look(vain_looks) ? packed_call(name_of(kind), comm, pattern) : nullptr;
  if (call != nullptr) vain_looks = 0;
  return call;
}

template <class Bytes, class Describe, class Call, class Arguments>
int blocking(Kind kind, Comm comm, const Bytes& bytes, const Describe& describe, const Call& mpi_function,
             const Arguments& arguments) {
  if (Team* const team = team_of(kind, Completion::blocking, comm, bytes, describe)) {
    const auto plan = plan_of(kind, *team, describe);
    if (plan->is_wrong()) return std::apply(mpi_function, arguments);
    const int code = plan->run(team->slot_tables);
    return code == success ? code : raise(comm, code);
  }
  if (copy_alone(kind, comm, bytes, describe)) return success;
  if constexpr (may_be_packed<Describe>) {
    if (const auto packed = packed_call_of(kind, comm, describe)) {
      packed->packing()->begin();
      const int code = packed->call(mpi_function);
      packed->packing()->copy_own();
      if (code == success) packed->packing()->end();
      return code;
    }
  }
  return std::apply(mpi_function, arguments);
}

template <class Bytes, class Describe, class Call, class Arguments>
int non_blocking(Kind kind, Comm comm, const Bytes& bytes, const Describe& describe, const Call& mpi_function,
                 const Arguments& arguments, Request* request) {
  if (const Team* const team = team_of(kind, Completion::non_blocking, comm, bytes, describe)) {
    auto exchange = exchange_of(kind, *team, team->tag, describe);
    if (exchange->is_wrong())
      return std::apply([&](auto... each) { return mpi_function(request, each...); }, arguments);
    const int code = start(std::move(exchange), request);
    return code == success ? code : raise(comm, code);
  }
  if (copy_alone(kind, comm, bytes, describe)) return layer.make_completed_request(request);
  if constexpr (may_be_packed<Describe>) {
    if (const auto packed = packed_call_of(kind, comm, describe)) {
      packed->packing()->begin();
      Request carrier = handles().request_null;
      int code = packed->call([&](auto... each) { return mpi_function(&carrier, each...); });
      if (code != success) return code;
      packed->packing()->copy_own();
      auto exchange = std::make_shared<Exchange>(name_of(kind), 0);
      exchange->begin(carrier, {packed, packed->packing().get()});
      code = follow(std::move(exchange), request);
      return code == success ? code : raise(comm, code);
    }
  }
  return std::apply([&](auto... each) { return mpi_function(request, each...); }, arguments);
}

// Asks all ranks, when they make a persistent request, whether any would gain. Returns a tag that no other call has, so
// that requests may be started in any order; zero: the MPI has to make the request, because no rank gains, one meets a
// neighbour twice on a distributed graph, or no tag is left.
template <class Describe>
int agree_on_tag(Kind kind, Comm comm, const Team& team, const Describe& describe) {
  constexpr uint8_t gain = 1;
  constexpr uint8_t veto = 2;
  uint8_t own_vote = 0;
  {
    const Lock lock;
    own_vote = gains(team, Completion::persistent, describe) ? gain : 0;
    if (depends_on_order(kind) && team.neighbours.meets_twice) own_vote |= veto;
  }
  std::vector<uint8_t> votes(static_cast<size_t>(team.size));
  if (real.Allgather(&own_vote, 1, handles().byte, votes.data(), 1, handles().byte, comm) != success) return 0;
  uint8_t all_votes = 0;
  for (const uint8_t vote : votes) all_votes |= vote;
  if (all_votes != gain) return 0;
  int32_t tag = team.rank == 0 ? layer.teams.next_tag() : 0;
  return real.Bcast(&tag, sizeof tag, handles().byte, 0, comm) == success ? tag : 0;
}

template <class Bytes, class Describe, class Pass>
int persistent(Kind kind, Comm comm, const Bytes& bytes, const Describe& describe, const Pass& pass, Request* request) {
  const Team* team = nullptr;
  {
    const Lock lock;
    team = layer.teams.of(comm);
    if (team != nullptr && bytes(*team) < team->min_bytes) team = nullptr;
  }
  const int tag = team == nullptr ? 0 : agree_on_tag(kind, comm, *team, describe);
  if (tag == 0) return pass();  // the call has no lock here: it may wait for other ranks
  auto exchange = exchange_of(kind, *team, tag, describe);
  if (exchange->is_wrong()) return pass();
  exchange->keep_types();
  const int code = persist(std::move(exchange), comm, request);
  return code == success ? code : raise(comm, code);
}

}  // namespace

bool foresee_layers_way(const char* name, Comm comm) {
  foreseen = {.is_set = true};
  std::string_view call_name = name;
  if (call_name.ends_with("_c")) call_name.remove_suffix(2);
  const auto* const found =
      std::ranges::find(names, call_name, [](const char* call) { return std::string_view(call).substr(4); });
  if (found == std::end(names)) return true;
  const Lock lock;
  Team* const team = layer.is_on ? layer.teams.of(comm) : nullptr;
  if (team == nullptr) return false;
  foreseen.has_agreed = begin_call(*team, static_cast<uint32_t>(found - std::begin(names)));
  foreseen.team = team;
  return foreseen.has_agreed;
}
void forget_foreseen() { foreseen = {}; }

// The three forms of a call: its parameters, the same as arguments, the bytes that all ranks see alike, and its
// messages.
#define SPINLOOM_LIST(...) __VA_ARGS__
#define SPINLOOM_COLLECTIVE(name, iname, parameters, arguments, bytes, describe)                                       \
  template <class N>                                                                                                   \
  int name(SPINLOOM_LIST parameters, Comm comm) {                                                                      \
    [[maybe_unused]] constexpr Completion completion = Completion::blocking;                                           \
    const auto mpi_function = [&](auto... each) { return real.counted<N>().name(each..., comm); };                     \
    return blocking(                                                                                                   \
        Kind::name, comm, [&]([[maybe_unused]] const Team& team) -> int64_t { return bytes; }, describe, mpi_function, \
        std::tuple arguments);                                                                                         \
  }                                                                                                                    \
  template <class N>                                                                                                   \
  int iname(SPINLOOM_LIST parameters, Comm comm, Request* request) {                                                   \
    [[maybe_unused]] constexpr Completion completion = Completion::non_blocking;                                       \
    const auto mpi_function = [&](Request* request_of_call, auto... each) {                                            \
      return real.counted<N>().iname(each..., comm, request_of_call);                                                  \
    };                                                                                                                 \
    return non_blocking(                                                                                               \
        Kind::name, comm, [&]([[maybe_unused]] const Team& team) -> int64_t { return bytes; }, describe, mpi_function, \
        std::tuple arguments, request);                                                                                \
  }                                                                                                                    \
  template <class N>                                                                                                   \
  int name##_init(SPINLOOM_LIST parameters, Comm comm, Info info, Request* request) {                                  \
    [[maybe_unused]] constexpr Completion completion = Completion::persistent;                                         \
    const auto pass = [&] { return real.counted<N>().name##_init(SPINLOOM_LIST arguments, comm, info, request); };     \
    return persistent(                                                                                                 \
        Kind::name, comm, [&]([[maybe_unused]] const Team& team) -> int64_t { return bytes; }, describe, pass,         \
        request);                                                                                                      \
  }

#define SPINLOOM_IS_RANK(root) ((root) >= 0 && (root) < team.size)

SPINLOOM_COLLECTIVE(Bcast, Ibcast, (void* buffer, N count, Datatype type, int root), (buffer, count, type, root),
                    SPINLOOM_IS_RANK(root) ? bytes_of(count, type) : none,
                    broadcast(buffer, count, type, root, completion))

SPINLOOM_COLLECTIVE(Gather, Igather,
                    (const void* out, N out_count, Datatype out_type, void* in, N in_count, Datatype in_type, int root),
                    (out, out_count, out_type, in, in_count, in_type, root),
                    !SPINLOOM_IS_RANK(root) ? none
                    : team.rank == root     ? bytes_of(in_count, in_type)
                                            : bytes_of(out_count, out_type),
                    gather(out, out_count, out_type, Blocks(in, in_count, in_type), root))

SPINLOOM_COLLECTIVE(Gatherv, Igatherv,
                    (const void* out, N out_count, Datatype out_type, void* in, const N* in_counts,
                     const Displacement<N>* in_displs, Datatype in_type, int root),
                    (out, out_count, out_type, in, in_counts, in_displs, in_type, root),
                    SPINLOOM_IS_RANK(root) ? various : none,
                    gather(out, out_count, out_type, BlocksV<N>(in, in_counts, in_displs, in_type), root))

SPINLOOM_COLLECTIVE(Scatter, Iscatter,
                    (const void* out, N out_count, Datatype out_type, void* in, N in_count, Datatype in_type, int root),
                    (out, out_count, out_type, in, in_count, in_type, root),
                    !SPINLOOM_IS_RANK(root) ? none
                    : team.rank == root     ? bytes_of(out_count, out_type)
                                            : bytes_of(in_count, in_type),
                    scatter(Blocks(out, out_count, out_type), in, in_count, in_type, root))

SPINLOOM_COLLECTIVE(Scatterv, Iscatterv,
                    (const void* out, const N* out_counts, const Displacement<N>* out_displs, Datatype out_type,
                     void* in, N in_count, Datatype in_type, int root),
                    (out, out_counts, out_displs, out_type, in, in_count, in_type, root),
                    SPINLOOM_IS_RANK(root) ? various : none,
                    scatter(BlocksV<N>(out, out_counts, out_displs, out_type), in, in_count, in_type, root))

SPINLOOM_COLLECTIVE(Allgather, Iallgather,
                    (const void* out, N out_count, Datatype out_type, void* in, N in_count, Datatype in_type),
                    (out, out_count, out_type, in, in_count, in_type), bytes_of(in_count, in_type),
                    gather_to_all(out, out_count, out_type, Blocks(in, in_count, in_type)))

SPINLOOM_COLLECTIVE(Allgatherv, Iallgatherv,
                    (const void* out, N out_count, Datatype out_type, void* in, const N* in_counts,
                     const Displacement<N>* in_displs, Datatype in_type),
                    (out, out_count, out_type, in, in_counts, in_displs, in_type), various,
                    gather_to_all(out, out_count, out_type, BlocksV<N>(in, in_counts, in_displs, in_type)))

SPINLOOM_COLLECTIVE(Alltoall, Ialltoall,
                    (const void* out, N out_count, Datatype out_type, void* in, N in_count, Datatype in_type),
                    (out, out_count, out_type, in, in_count, in_type), bytes_of(in_count, in_type),
                    AllToAll(Blocks(out, out_count, out_type), Blocks(in, in_count, in_type)))

SPINLOOM_COLLECTIVE(Alltoallv, Ialltoallv,
                    (const void* out, const N* out_counts, const Displacement<N>* out_displs, Datatype out_type,
                     void* in, const N* in_counts, const Displacement<N>* in_displs, Datatype in_type),
                    (out, out_counts, out_displs, out_type, in, in_counts, in_displs, in_type), various,
                    AllToAll(BlocksV<N>(out, out_counts, out_displs, out_type),
                             BlocksV<N>(in, in_counts, in_displs, in_type)))

SPINLOOM_COLLECTIVE(Alltoallw, Ialltoallw,
                    (const void* out, const N* out_counts, const Displacement<N>* out_displs, const Datatype* out_types,
                     void* in, const N* in_counts, const Displacement<N>* in_displs, const Datatype* in_types),
                    (out, out_counts, out_displs, out_types, in, in_counts, in_displs, in_types), various,
                    AllToAll(BlocksW<N, Displacement<N>>(out, out_counts, out_displs, out_types),
                             BlocksW<N, Displacement<N>>(in, in_counts, in_displs, in_types)))

SPINLOOM_COLLECTIVE(Neighbor_allgather, Ineighbor_allgather,
                    (const void* out, N out_count, Datatype out_type, void* in, N in_count, Datatype in_type),
                    (out, out_count, out_type, in, in_count, in_type), team.neighbours.is_known ? various : none,
                    gather_from_neighbours(out, out_count, out_type, Blocks(in, in_count, in_type)))

SPINLOOM_COLLECTIVE(Neighbor_allgatherv, Ineighbor_allgatherv,
                    (const void* out, N out_count, Datatype out_type, void* in, const N* in_counts,
                     const Displacement<N>* in_displs, Datatype in_type),
                    (out, out_count, out_type, in, in_counts, in_displs, in_type),
                    team.neighbours.is_known ? various : none,
                    gather_from_neighbours(out, out_count, out_type, BlocksV<N>(in, in_counts, in_displs, in_type)))

SPINLOOM_COLLECTIVE(Neighbor_alltoall, Ineighbor_alltoall,
                    (const void* out, N out_count, Datatype out_type, void* in, N in_count, Datatype in_type),
                    (out, out_count, out_type, in, in_count, in_type),
                    team.neighbours.knows(AlltoallForm::plain, completion) ? various : none,
                    AmongNeighbours(AlltoallForm::plain, completion, Blocks(out, out_count, out_type),
                                    Blocks(in, in_count, in_type)))

SPINLOOM_COLLECTIVE(Neighbor_alltoallv, Ineighbor_alltoallv,
                    (const void* out, const N* out_counts, const Displacement<N>* out_displs, Datatype out_type,
                     void* in, const N* in_counts, const Displacement<N>* in_displs, Datatype in_type),
                    (out, out_counts, out_displs, out_type, in, in_counts, in_displs, in_type),
                    team.neighbours.knows(AlltoallForm::v, completion) ? various : none,
                    AmongNeighbours(AlltoallForm::v, completion, BlocksV<N>(out, out_counts, out_displs, out_type),
                                    BlocksV<N>(in, in_counts, in_displs, in_type)))

SPINLOOM_COLLECTIVE(Neighbor_alltoallw, Ineighbor_alltoallw,
                    (const void* out, const N* out_counts, const Aint* out_displs, const Datatype* out_types, void* in,
                     const N* in_counts, const Aint* in_displs, const Datatype* in_types),
                    (out, out_counts, out_displs, out_types, in, in_counts, in_displs, in_types),
                    team.neighbours.knows(AlltoallForm::w, completion) ? various : none,
                    AmongNeighbours(AlltoallForm::w, completion,
                                    BlocksW<N, Aint>(out, out_counts, out_displs, out_types),
                                    BlocksW<N, Aint>(in, in_counts, in_displs, in_types)))

#define SPINLOOM_MAKE(name, iname, N, ...)      \
  template int name<N>(__VA_ARGS__);            \
  template int iname<N>(__VA_ARGS__, Request*); \
  template int name##_init<N>(__VA_ARGS__, Info, Request*);
SPINLOOM_COLLECTIVE_CALLS(SPINLOOM_MAKE, int)
SPINLOOM_COLLECTIVE_CALLS(SPINLOOM_MAKE, Count)
#undef SPINLOOM_MAKE

}  // namespace spinloom::mpi::SPINLOOM_ABI
