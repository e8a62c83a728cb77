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
  bool any = false;
  int64_t min_bytes;
  void look(int64_t count, Datatype type) {
    if (any || count <= 0) return;
    const Form& form = *layer.types.form(type);
    any = form.known && !form.contiguous(count) && Place::capacity_of(form, count) >= min_bytes;
  }
  void send(int, const void*, int64_t count, Datatype type) { look(count, type); }
  void receive(int, const void*, int64_t count, Datatype type) { look(count, type); }
};

// True if a call should be looked at for gaps. A look takes time: after 15 in vain, one call in 32 is looked at.
bool is_worth_a_look(uint8_t& vain) {
  constexpr uint8_t vain_most = 16;
  constexpr uint8_t calls_for_a_look = 32;
  if (++vain < vain_most) return true;
  if (vain < vain_most + calls_for_a_look) return false;
  vain = vain_most;
  return true;
}

// True if this rank would gain by the layer's way in a call.
template <class Describe>
bool gains(const Team& team, Completion completion, const Describe& describe) {
  if (layer.settings.path == Path::pass) return false;
  // Slot tables make short blocks quicker, too.
  const bool by_slot_tables = completion == Completion::blocking && team.slot_tables.are_open();
  Gains found{.min_bytes = by_slot_tables ? 1 : team.min_bytes};
  describe(team, found);
  return found.any;
}

// Counts, for the report, messages with gaps that this rank sends by the MPI.
struct Passes {
  Kind kind;
  const char* why;
  void send(int rank, const void* buffer, int64_t count, Datatype type) const {
    const Form& form = *layer.types.form(type);
    if (count <= 0 || form.contiguous(count)) return;
    Place place = layer.place_of(buffer, count, type, layer.teams.comm());
    place.call = name_of(kind);
    layer.count(place, layer.world_rank(place.comm, rank), Way::pass, why);
  }
  void receive(int, const void*, int64_t, Datatype) const {}
};

// True for calls in which MPIs differ in what goes where if a rank meets a neighbour twice. On a distributed graph no
// other rank knows that it does.
constexpr bool has_orders(Kind kind) {
  return kind == Kind::Neighbor_alltoall || kind == Kind::Neighbor_alltoallv || kind == Kind::Neighbor_alltoallw;
}

// The decision on a call that this thread is about to make.
struct Ahead {
  const Team* team = nullptr;  // the team that has counted it
  bool has_agreed = false;
  bool any = false;  // there is such a call; its buffers are a device's
};
thread_local Ahead ahead;

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
  const bool is_counted = std::exchange(ahead.team, nullptr) == team;
  const bool has_agreed = is_counted ? ahead.has_agreed : begin_call(*team, number);
  const bool looks =
      !has_agreed && team->has_met && team->voter.is_open(number) && is_worth_a_look(team->vain_looks[number]);
  if (!has_agreed && !looks && !layer.tally) return nullptr;
  const int64_t each = has_orders(kind) && team->meets_twice ? none : bytes(*team);
  const bool is_short = each < team->min_bytes;
  if (has_agreed && !is_short) return team;
  if (layer.tally && each != none) describe(*team, Passes{kind, is_short ? "short" : "its ranks had not agreed"});
  if (looks && !is_short && gains(*team, completion, describe)) team->voter.propose(number, team->counts);
  return nullptr;
}

template <class Describe>
std::shared_ptr<Exchange> exchange_of(Kind kind, const Team& team, int tag, const Describe& describe) {
  const Lock lock;
  auto made = std::make_shared<Exchange>(name_of(kind), tag);
  describe(team, *made);
  return made;
}

// True for calls with a root: a rank that sends may have no message to wait for.
constexpr bool has_root(Kind kind) { return kind < Kind::Allgather; }

// The exchange of an earlier call that was the same, or a new one.
template <class Describe>
std::shared_ptr<Exchange> plan_of(Kind kind, Team& team, const Describe& describe) {
  const Lock lock;
  auto& [kept, next] = team.plans[static_cast<size_t>(kind)];
  for (const auto& plan : kept) {
    if (!plan) continue;
    Exchange::Repeat repeat(*plan);
    describe(team, repeat);
    if (repeat.holds()) return plan;
  }
  using Senders = Exchange::Senders;
  auto made = std::make_shared<Exchange>(name_of(kind), team.tag, has_root(kind) ? Senders::go_on : Senders::wait);
  describe(team, *made);
  if (made->is_wrong()) return made;
  kept[next] = made;
  next = (next + 1) % kept.size();
  return made;
}

// Does a call on a communicator of one rank. False: nothing has been moved, and the call is the MPI's.
template <class Bytes, class Describe>
bool copied_alone(Kind kind, Comm comm, const Bytes& bytes, const Describe& describe) {
  const Lock lock;
  const Team* const team = layer.teams.lone(comm);
  if (team == nullptr || layer.settings.path == Path::pass || ahead.any) return false;
  const bool is_known = bytes(*team) != none && !(has_orders(kind) && team->neighbours.meets_twice);
  if (!is_known && !(layer.tally && has_orders(kind))) return false;
  ToItself all(comm);
  describe(*team, all);
  if (is_known && all.copies()) {
    all.copy(name_of(kind));
    return true;
  }
  if (layer.tally) all.pass(name_of(kind), is_known ? "short" : "it is not known which slot each part goes to");
  return false;
}

// Finds out whether a call that no team does is quicker as packed bytes, in the calls that is_worth_a_look() picks.
// Null: it is not, or was not looked at.
template <class Pattern>
auto packed_call_of(Kind kind, Comm comm, const Pattern& pattern) {
  static uint8_t vain = 0;
  const Lock lock;
  if (ahead.any) return decltype(packed_call(name_of(kind), comm, pattern)){};  // the buffers are a device's
  auto made = is_worth_a_look(vain) ? packed_call(name_of(kind), comm, pattern) : nullptr;
  if (made != nullptr) vain = 0;
  return made;
}

template <class Bytes, class Describe, class Call, class Arguments>
int blocking(Kind kind, Comm comm, const Bytes& bytes, const Describe& describe, const Call& the_mpis,
             const Arguments& arguments) {
  if (Team* const team = team_of(kind, Completion::blocking, comm, bytes, describe)) {
    const auto plan = plan_of(kind, *team, describe);
    if (plan->is_wrong()) return std::apply(the_mpis, arguments);
    const int code = plan->run(team->slot_tables);
    return code == success ? code : raise(comm, code);
  }
  if (copied_alone(kind, comm, bytes, describe)) return success;
  if constexpr (may_be_packed<Describe>) {
    if (const auto packed = packed_call_of(kind, comm, describe)) {
      packed->packing()->begin();
      const int code = packed->call(the_mpis);
      packed->packing()->copy_own();
      if (code == success) packed->packing()->end();
      return code;
    }
  }
  return std::apply(the_mpis, arguments);
}

template <class Bytes, class Describe, class Call, class Arguments>
int non_blocking(Kind kind, Comm comm, const Bytes& bytes, const Describe& describe, const Call& the_mpis,
                 const Arguments& arguments, Request* request) {
  if (const Team* const team = team_of(kind, Completion::non_blocking, comm, bytes, describe)) {
    auto exchange = exchange_of(kind, *team, team->tag, describe);
    if (exchange->is_wrong()) return std::apply([&](auto... each) { return the_mpis(request, each...); }, arguments);
    const int code = start(std::move(exchange), request);
    return code == success ? code : raise(comm, code);
  }
  if (copied_alone(kind, comm, bytes, describe)) return layer.completed_request(request);
  if constexpr (may_be_packed<Describe>) {
    if (const auto packed = packed_call_of(kind, comm, describe)) {
      packed->packing()->begin();
      Request carrier = handles().request_null;
      int code = packed->call([&](auto... each) { return the_mpis(&carrier, each...); });
      if (code != success) return code;
      packed->packing()->copy_own();
      auto exchange = std::make_shared<Exchange>(name_of(kind), 0);
      exchange->begin(carrier, {packed, packed->packing().get()});
      code = follow(std::move(exchange), request);
      return code == success ? code : raise(comm, code);
    }
  }
  return std::apply([&](auto... each) { return the_mpis(request, each...); }, arguments);
}

// Asks all ranks, when they make a persistent request, whether any would gain. Returns a tag that no other call has, so
// that requests may be started in any order; zero: the MPI has to make the request, because no rank gains, one meets a
// neighbour twice on a distributed graph, or no tag is left.
template <class Describe>
int tag_agreed_on(Kind kind, Comm comm, const Team& team, const Describe& describe) {
  constexpr uint8_t gain = 1;
  constexpr uint8_t veto = 2;
  uint8_t own = 0;
  {
    const Lock lock;
    own = gains(team, Completion::persistent, describe) ? gain : 0;
    if (has_orders(kind) && team.neighbours.meets_twice) own |= veto;
  }
  std::vector<uint8_t> told(static_cast<size_t>(team.size));
  if (real.Allgather(&own, 1, handles().byte, told.data(), 1, handles().byte, comm) != success) return 0;
  uint8_t of_all = 0;
  for (const uint8_t one : told) of_all |= one;
  if (of_all != gain) return 0;
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
  const int tag = team == nullptr ? 0 : tag_agreed_on(kind, comm, *team, describe);
  if (tag == 0) return pass();  // without the lock: it may wait for other ranks
  auto exchange = exchange_of(kind, *team, tag, describe);
  if (exchange->is_wrong()) return pass();
  exchange->keep_types();
  const int code = persist(std::move(exchange), comm, request);
  return code == success ? code : raise(comm, code);
}

}  // namespace

bool foresee_layers_way(const char* name, Comm comm) {
  ahead = {.any = true};
  std::string_view word = name;
  if (word.ends_with("_c")) word.remove_suffix(2);
  const auto* const found =
      std::ranges::find(names, word, [](const char* known) { return std::string_view(known).substr(4); });
  if (found == std::end(names)) return true;
  const Lock lock;
  Team* const team = layer.on ? layer.teams.of(comm) : nullptr;
  if (team == nullptr) return false;
  ahead.has_agreed = begin_call(*team, static_cast<uint32_t>(found - std::begin(names)));
  ahead.team = team;
  return ahead.has_agreed;
}
void forget_foreseen() { ahead = {}; }

// The three forms of a call: its parameters, the same as arguments, the bytes that all ranks see alike, and its
// messages.
#define SPINLOOM_LIST(...) __VA_ARGS__
#define SPINLOOM_COLLECTIVE(name, iname, parameters, arguments, bytes, describe)                                   \
  template <class N>                                                                                               \
  int name(SPINLOOM_LIST parameters, Comm comm) {                                                                  \
    [[maybe_unused]] constexpr Completion completion = Completion::blocking;                                       \
    const auto the_mpis = [&](auto... each) { return real.counted<N>().name(each..., comm); };                     \
    return blocking(                                                                                               \
        Kind::name, comm, [&]([[maybe_unused]] const Team& team) -> int64_t { return bytes; }, describe, the_mpis, \
        std::tuple arguments);                                                                                     \
  }                                                                                                                \
  template <class N>                                                                                               \
  int iname(SPINLOOM_LIST parameters, Comm comm, Request* request) {                                               \
    [[maybe_unused]] constexpr Completion completion = Completion::non_blocking;                                   \
    const auto the_mpis = [&](Request* by, auto... each) { return real.counted<N>().iname(each..., comm, by); };   \
    return non_blocking(                                                                                           \
        Kind::name, comm, [&]([[maybe_unused]] const Team& team) -> int64_t { return bytes; }, describe, the_mpis, \
        std::tuple arguments, request);                                                                            \
  }                                                                                                                \
  template <class N>                                                                                               \
  int name##_init(SPINLOOM_LIST parameters, Comm comm, Info info, Request* request) {                              \
    [[maybe_unused]] constexpr Completion completion = Completion::persistent;                                     \
    const auto pass = [&] { return real.counted<N>().name##_init(SPINLOOM_LIST arguments, comm, info, request); }; \
    return persistent(                                                                                             \
        Kind::name, comm, [&]([[maybe_unused]] const Team& team) -> int64_t { return bytes; }, describe, pass,     \
        request);                                                                                                  \
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
                     const Displacement<N>* in_places, Datatype in_type, int root),
                    (out, out_count, out_type, in, in_counts, in_places, in_type, root),
                    SPINLOOM_IS_RANK(root) ? various : none,
                    gather(out, out_count, out_type, BlocksV<N>(in, in_counts, in_places, in_type), root))

SPINLOOM_COLLECTIVE(Scatter, Iscatter,
                    (const void* out, N out_count, Datatype out_type, void* in, N in_count, Datatype in_type, int root),
                    (out, out_count, out_type, in, in_count, in_type, root),
                    !SPINLOOM_IS_RANK(root) ? none
                    : team.rank == root     ? bytes_of(out_count, out_type)
                                            : bytes_of(in_count, in_type),
                    scatter(Blocks(out, out_count, out_type), in, in_count, in_type, root))

SPINLOOM_COLLECTIVE(Scatterv, Iscatterv,
                    (const void* out, const N* out_counts, const Displacement<N>* out_places, Datatype out_type,
                     void* in, N in_count, Datatype in_type, int root),
                    (out, out_counts, out_places, out_type, in, in_count, in_type, root),
                    SPINLOOM_IS_RANK(root) ? various : none,
                    scatter(BlocksV<N>(out, out_counts, out_places, out_type), in, in_count, in_type, root))

SPINLOOM_COLLECTIVE(Allgather, Iallgather,
                    (const void* out, N out_count, Datatype out_type, void* in, N in_count, Datatype in_type),
                    (out, out_count, out_type, in, in_count, in_type), bytes_of(in_count, in_type),
                    gather_to_all(out, out_count, out_type, Blocks(in, in_count, in_type)))

SPINLOOM_COLLECTIVE(Allgatherv, Iallgatherv,
                    (const void* out, N out_count, Datatype out_type, void* in, const N* in_counts,
                     const Displacement<N>* in_places, Datatype in_type),
                    (out, out_count, out_type, in, in_counts, in_places, in_type), various,
                    gather_to_all(out, out_count, out_type, BlocksV<N>(in, in_counts, in_places, in_type)))

SPINLOOM_COLLECTIVE(Alltoall, Ialltoall,
                    (const void* out, N out_count, Datatype out_type, void* in, N in_count, Datatype in_type),
                    (out, out_count, out_type, in, in_count, in_type), bytes_of(in_count, in_type),
                    AllToAll(Blocks(out, out_count, out_type), Blocks(in, in_count, in_type)))

SPINLOOM_COLLECTIVE(Alltoallv, Ialltoallv,
                    (const void* out, const N* out_counts, const Displacement<N>* out_places, Datatype out_type,
                     void* in, const N* in_counts, const Displacement<N>* in_places, Datatype in_type),
                    (out, out_counts, out_places, out_type, in, in_counts, in_places, in_type), various,
                    AllToAll(BlocksV<N>(out, out_counts, out_places, out_type),
                             BlocksV<N>(in, in_counts, in_places, in_type)))

SPINLOOM_COLLECTIVE(Alltoallw, Ialltoallw,
                    (const void* out, const N* out_counts, const Displacement<N>* out_places, const Datatype* out_types,
                     void* in, const N* in_counts, const Displacement<N>* in_places, const Datatype* in_types),
                    (out, out_counts, out_places, out_types, in, in_counts, in_places, in_types), various,
                    AllToAll(BlocksW<N, Displacement<N>>(out, out_counts, out_places, out_types),
                             BlocksW<N, Displacement<N>>(in, in_counts, in_places, in_types)))

SPINLOOM_COLLECTIVE(Neighbor_allgather, Ineighbor_allgather,
                    (const void* out, N out_count, Datatype out_type, void* in, N in_count, Datatype in_type),
                    (out, out_count, out_type, in, in_count, in_type), team.neighbours.known ? various : none,
                    gather_from_neighbours(out, out_count, out_type, Blocks(in, in_count, in_type)))

SPINLOOM_COLLECTIVE(Neighbor_allgatherv, Ineighbor_allgatherv,
                    (const void* out, N out_count, Datatype out_type, void* in, const N* in_counts,
                     const Displacement<N>* in_places, Datatype in_type),
                    (out, out_count, out_type, in, in_counts, in_places, in_type),
                    team.neighbours.known ? various : none,
                    gather_from_neighbours(out, out_count, out_type, BlocksV<N>(in, in_counts, in_places, in_type)))

SPINLOOM_COLLECTIVE(Neighbor_alltoall, Ineighbor_alltoall,
                    (const void* out, N out_count, Datatype out_type, void* in, N in_count, Datatype in_type),
                    (out, out_count, out_type, in, in_count, in_type),
                    team.neighbours.knows(Spread::same, completion) ? various : none,
                    AmongNeighbours(Spread::same, completion, Blocks(out, out_count, out_type),
                                    Blocks(in, in_count, in_type)))

SPINLOOM_COLLECTIVE(Neighbor_alltoallv, Ineighbor_alltoallv,
                    (const void* out, const N* out_counts, const Displacement<N>* out_places, Datatype out_type,
                     void* in, const N* in_counts, const Displacement<N>* in_places, Datatype in_type),
                    (out, out_counts, out_places, out_type, in, in_counts, in_places, in_type),
                    team.neighbours.knows(Spread::several, completion) ? various : none,
                    AmongNeighbours(Spread::several, completion, BlocksV<N>(out, out_counts, out_places, out_type),
                                    BlocksV<N>(in, in_counts, in_places, in_type)))

SPINLOOM_COLLECTIVE(Neighbor_alltoallw, Ineighbor_alltoallw,
                    (const void* out, const N* out_counts, const Aint* out_places, const Datatype* out_types, void* in,
                     const N* in_counts, const Aint* in_places, const Datatype* in_types),
                    (out, out_counts, out_places, out_types, in, in_counts, in_places, in_types),
                    team.neighbours.knows(Spread::types, completion) ? various : none,
                    AmongNeighbours(Spread::types, completion, BlocksW<N, Aint>(out, out_counts, out_places, out_types),
                                    BlocksW<N, Aint>(in, in_counts, in_places, in_types)))

#define SPINLOOM_MAKE(name, iname, N, ...)      \
  template int name<N>(__VA_ARGS__);            \
  template int iname<N>(__VA_ARGS__, Request*); \
  template int name##_init<N>(__VA_ARGS__, Info, Request*);
SPINLOOM_COLLECTIVE_CALLS(SPINLOOM_MAKE, int)
SPINLOOM_COLLECTIVE_CALLS(SPINLOOM_MAKE, Count)
#undef SPINLOOM_MAKE

}  // namespace spinloom::mpi::SPINLOOM_ABI
