// Trace - what the ranks of an MPI program did, call by call: the form in memory.
//
// Contract: a RankTrace is what one rank called, in the order in which the calls ended. What a call was asked for, and
//   what came of it, is a Signature; equal ones are kept once, so that a loop costs a number and two times a call.
//   Types are layouts (blobs), so that a trace says which bytes lay where.
// Invariants: (1) numbers of types, communicators and signatures are indices of this rank's tables; (2) requests are
//   slots: a slot is free again when its request has ended, and the lowest free one is taken next, so that a loop has
//   the same signatures each time; (3) peers are ranks of the communicator: of its remote group where that has one.
// Threads: plain values. Time: of the host's monotonic clock, in ns since `begun_ns`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace spinloom::trace {

// Calls have the names of MPI, without "MPI_" and without "_c", whatever their form.
// clang-format off
#define SPINLOOM_TRACE_CALLS(X) \
  X(Init) X(Finalize) \
  X(Send) X(Ssend) X(Rsend) X(Bsend) X(Recv) X(Mrecv) X(Sendrecv) X(Sendrecv_replace) \
  X(Start) X(Startall) X(Wait) X(Waitall) X(Waitany) X(Waitsome) X(Test) X(Testall) X(Testany) X(Testsome) \
  X(Request_free) X(Cancel) X(Probe) X(Iprobe) X(Mprobe) X(Improbe) \
  X(Barrier) X(Bcast) X(Gather) X(Gatherv) X(Scatter) X(Scatterv) X(Allgather) X(Allgatherv) \
  X(Alltoall) X(Alltoallv) X(Alltoallw) X(Neighbor_allgather) X(Neighbor_allgatherv) \
  X(Neighbor_alltoall) X(Neighbor_alltoallv) X(Neighbor_alltoallw) \
  X(Reduce) X(Allreduce) X(Reduce_scatter) X(Reduce_scatter_block) X(Scan) X(Exscan) \
  X(Comm_make) X(Comm_free) \
  X(Put) X(Get) X(Accumulate) X(Get_accumulate) X(Fetch_and_op) X(Compare_and_swap) \
  X(Win_make) X(Win_free) X(Win_fence) X(Win_start) X(Win_complete) X(Win_post) X(Win_wait) \
  X(Win_lock) X(Win_unlock) X(Win_lock_all) X(Win_unlock_all) X(Win_flush) \
  X(File_read) X(File_write)
// clang-format on

enum class Call : uint8_t {
#define SPINLOOM_TRACE_NAME(name) name,
  SPINLOOM_TRACE_CALLS(SPINLOOM_TRACE_NAME)
#undef SPINLOOM_TRACE_NAME
};
[[nodiscard]] std::string_view name_of(Call call);  // "Send"

// Isend is Send in its non-blocking form, Send_init in its persistent one.
enum class CallForm : uint8_t { blocking, nonblocking, persistent };

inline constexpr int32_t any = -1;  // peer, tag: MPI_ANY_SOURCE, MPI_ANY_TAG
inline constexpr int32_t nobody = -2;  // peer: MPI_PROC_NULL; root of an intercommunicator's other ranks
inline constexpr int32_t itself = -3;  // root of an intercommunicator: this rank (MPI_ROOT)
inline constexpr int32_t cancelled = -4;  // source of a match: its request was cancelled
inline constexpr uint32_t none = UINT32_MAX;  // no type, communicator, window, request

inline constexpr uint64_t nowhere = UINT64_MAX;  // address: the trace does not tell it

// One end of a transfer: the address of its first element, the number of its elements, and their type.
struct Block {
  uint64_t address = 0;
  int64_t count = 0;
  uint32_t type = none;
  bool operator==(const Block&) const = default;
};

// The message that a completed receive request, or a probe, has matched, where it had asked for any source or any tag.
// For a request that MPI_Cancel named, `source` is `cancelled` if the cancel was in time. If it was too late, `source`
// is `any`, unless the request is a receive of any source or tag.
struct Match {
  uint32_t request = none;  // its slot; none: the call's own receive
  int32_t source = any;
  int32_t tag = any;
  int64_t bytes = 0;
  bool operator==(const Match&) const = default;
};

struct Signature {
  Call call = Call::Init;
  CallForm form = CallForm::blocking;
  bool in_place = false;  // MPI_IN_PLACE was given for one of the ends
  uint32_t comm = none;  // Comm_make: the new communicator; calls of windows: the window's
  int32_t peer = any;  // the destination, source, root or target
  int32_t tag = 0;
  int32_t receive_peer = any;  // Sendrecv: the source, and its tag
  int32_t receive_tag = 0;
  int32_t error = 0;  // the value that the call returned: 0 is MPI_SUCCESS
  uint32_t window = none;
  // One block, or one for each peer in calls that have several (v and w forms, neighbours). A reduction has sends[0].
  std::vector<Block> sends;
  std::vector<Block> receives;
  // Slots of requests: the one that this call made (non-blocking, persistent), or those that it started (Start,
  // Startall), cancelled, freed or ended. A completion that ended only some of its requests lists only these.
  std::vector<uint32_t> requests;
  std::vector<Match> matches;
  bool operator==(const Signature&) const = default;
};

// Equal polls in vain (Test, Iprobe, Request_get_status) that follow each other within 100 ms are one event. `polls` is
// their number; the event begins with the first poll and ends with the last. Its signature lists no requests and no
// matches.
struct Event {
  uint32_t signature = 0;
  uint32_t polls = 0;
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
};

struct TypeEntry {
  std::string name;  // the name of a basic type ("MPI_DOUBLE"), or what MPI_Type_set_name gave; may be empty
  int64_t size_bytes = 0;
  int64_t extent_bytes = 0;
  std::vector<std::byte> blob;  // layout::Blob::validate() takes it; empty: a basic type, or one that is not known
  uint64_t signature_hash = 0;  // a hash of the sequence of basic types, counted out; 0: not known
  std::string text{};  // the beginning of its text form, shown to people; empty: a basic type, or one not known
};

struct CommEntry {
  uint32_t rank = 0;  // the rank in it of the traced rank
  std::vector<uint32_t> world_ranks;  // its members as ranks of MPI_COMM_WORLD; none: the member is not in it
  std::vector<uint32_t> remote_ranks;  // the members of an intercommunicator's other side, in the same way
  // The neighbours of a communicator with a topology, as ranks of the communicator: neighbourhood calls receive from
  // `sources` and send to `destinations`, in this order.
  std::vector<int32_t> sources;
  std::vector<int32_t> destinations;
  std::vector<int32_t> dims;  // the sizes of a Cartesian grid
  bool has_topology = false;
  uint32_t parent = none;  // the communicator that it was made of, if a call said so; it has a lower number
};

struct RankTrace {
  uint32_t rank = 0;
  uint32_t ranks = 0;
  uint64_t begun_ns = 0;  // the monotonic clock when the trace began
  uint64_t begun_unix_ns = 0;  // the wall clock at the same moment
  std::string host;
  std::string mpi;  // the first line that MPI_Get_library_version gives
  std::string program;  // its command line
  bool is_cpu_time = false;  // times of events are CPU time of the rank's thread, in which it does not wait
  bool has_ended = false;  // MPI_Finalize was recorded; else the trace ends with the rank, or where recording stopped
  bool tells_under_way = false;  // the rank's last chunk is open, and says in which call the rank was
  bool is_under_way = false;  // a call had not ended when the rank was killed, or when the trace was read
  Call under_way = Call::Init;
  CallForm under_way_form = CallForm::blocking;
  uint64_t under_way_ns = 0;  // the time when it began
  std::string warning;  // the reason why it is shorter than what the rank did; empty if nothing is wrong with it
  std::vector<TypeEntry> types;
  std::vector<CommEntry> comms;  // 0 is MPI_COMM_WORLD, 1 MPI_COMM_SELF
  std::vector<Signature> signatures;
  std::vector<Event> events;
};

}  // namespace spinloom::trace
