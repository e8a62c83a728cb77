// Rules of bounce buffers: which buffers each call reads and writes, by its arguments (bounce_buffers.hpp).
//
// Contract: a rule's operator() replaces the call's buffers. `has_bytes_in_status` is true if the call receives, and
//   the status says how many bytes have arrived; else all bytes that there is room for land. `is_collective` is true
//   for collective calls. `sends_too` is true for calls that send and receive: the status of their request is not
//   always that of the receive. `kind` is the kind of the call, for an MPI that knows of GPUs (gpu_aware.hpp).
#pragma once

#include "mpi/abi/bounce_buffers.hpp"
#include "mpi/abi/topology.hpp"

namespace spinloom::mpi::SPINLOOM_ABI::bounce_rules {

// Arguments that are not significant may hold anything, so the rules look at roots and peers first.
struct Send {
  static constexpr bool has_bytes_in_status = false;
  static constexpr bool is_collective = false;
  static constexpr bool sends_too = false;
  static constexpr CallKind kind = CallKind::message;
  template <class N, class... More>
  void operator()(BounceBuffers& bounce, const void*& buffer, N& count, Datatype& type, int& peer, int&, Comm& comm,
                  More&...) {
    bounce.comm = comm;
    if (peer == proc_null) return;
    bounce.sending = {static_cast<int64_t>(count), type, peer, comm};
    bounce.replace(buffer, count, type, Use::reads);
    bounce.sending->type = type;
  }
};
// Buffered sends: the MPI copies the message into its buffer, in memory of the host.
struct BufferedSend : Send {
  static constexpr CallKind kind = CallKind::host;
  template <class... Arguments>
  void operator()(BounceBuffers& bounce, Arguments&&... arguments) {
    Send::operator()(bounce, arguments...);
    bounce.sending.reset();
  }
};
struct Receive {
  static constexpr bool has_bytes_in_status = true;
  static constexpr bool is_collective = false;
  static constexpr bool sends_too = false;
  static constexpr CallKind kind = CallKind::message;
  template <class N, class... More>
  void operator()(BounceBuffers& bounce, void*& buffer, N& count, Datatype& type, int& peer, int&, Comm& comm,
                  More&...) {
    bounce.comm = comm;
    if (peer != proc_null) bounce.replace(buffer, count, type, Use::writes);
  }
};
struct ReceiveMatched {
  static constexpr bool has_bytes_in_status = true;
  static constexpr bool is_collective = false;
  static constexpr bool sends_too = false;
  static constexpr CallKind kind = CallKind::message;
  template <class N, class... More>
  void operator()(BounceBuffers& bounce, void*& buffer, N& count, Datatype& type, MessageHandle*& message, More&...) {
    if (*message != handles().message_no_proc) bounce.replace(buffer, count, type, Use::writes);
  }
};
struct SendReceive {
  static constexpr bool has_bytes_in_status = true;
  static constexpr bool is_collective = false;
  static constexpr bool sends_too = true;
  static constexpr CallKind kind = CallKind::message;
  template <class N, class... More>
  void operator()(BounceBuffers& bounce, const void*& out, N& out_count, Datatype& out_type, int& peer, int&, void*& in,
                  N& in_count, Datatype& in_type, int& source, int&, Comm& comm, More&...) {
    // If no status says how many bytes have arrived, the old bytes are copied, too, and stay behind the message.
    constexpr bool is_blocking = (std::is_same_v<More, Status*> || ...);
    bounce.comm = comm;
    if (peer != proc_null) {
      if (is_blocking) bounce.sending = {static_cast<int64_t>(out_count), out_type, peer, comm};
      bounce.replace(out, out_count, out_type, Use::reads);
      if (is_blocking) bounce.sending->type = out_type;
    }
    if (source != proc_null) bounce.replace(in, in_count, in_type, is_blocking ? Use::writes : Use::both);
  }
};
// MPI_Isendrecv sends and receives with one request. The layer may take it apart, so the MPI gets memory of the host.
struct BeginSendReceive : SendReceive {
  static constexpr CallKind kind = CallKind::host;
};
struct Replace {
  static constexpr bool has_bytes_in_status = true;
  static constexpr bool is_collective = false;
  static constexpr bool sends_too = true;
  static constexpr CallKind kind = CallKind::host;
  template <class N, class... More>
  void operator()(BounceBuffers& bounce, void*& buffer, N& count, Datatype& type, int&, int&, int& source, int&,
                  Comm& comm, More&...) {
    bounce.comm = comm;
    bounce.replace(buffer, count, type, source == proc_null ? Use::reads : Use::both);
  }
};

// The MPI gets memory of the host, and no status says how many bytes have arrived.
struct ByTheHost {
  static constexpr bool has_bytes_in_status = false;
  static constexpr bool is_collective = false;
  static constexpr bool sends_too = false;
  static constexpr CallKind kind = CallKind::host;
};

// Returns the number of packed bytes of `count` elements; 0 if the MPI does not say their size.
inline int64_t packed_bytes_of(int64_t count, Datatype type) {
  Count size = 0;
  return real.Type_size_x(type, &size) == success ? size * count : 0;
}
struct Pack : ByTheHost {
  template <class N>
  void operator()(BounceBuffers& bounce, const void*& buffer, N& count, Datatype& type, void*& packed, N&, N*& position,
                  Comm& comm) {
    bounce.comm = comm;
    bounce.replace_bytes(packed, static_cast<int64_t>(*position), packed_bytes_of(count, type), Use::writes);
    bounce.replace(buffer, count, type, Use::reads);
  }
};
struct Unpack : ByTheHost {
  template <class N>
  void operator()(BounceBuffers& bounce, const void*& packed, N&, N*& position, void*& buffer, N& count, Datatype& type,
                  Comm& comm) {
    bounce.comm = comm;
    bounce.replace_bytes(packed, static_cast<int64_t>(*position), packed_bytes_of(count, type), Use::reads);
    bounce.replace(buffer, count, type, Use::writes);
  }
};

// The portable form has lengths of its own, so all that is left of the packed buffer is bounced.
struct PackExternal : ByTheHost {
  template <class N, class Disp>
  void operator()(BounceBuffers& bounce, const char*&, const void*& buffer, N& count, Datatype& type, void*& packed,
                  Disp& bytes, Disp*& position) {
    bounce.replace_bytes(packed, *position, bytes - *position, Use::both);
    bounce.replace(buffer, count, type, Use::reads);
  }
};
struct UnpackExternal : ByTheHost {
  template <class N, class Disp>
  void operator()(BounceBuffers& bounce, const char*&, const void*& packed, Disp& bytes, Disp*& position, void*& buffer,
                  N& count, Datatype& type) {
    bounce.replace_bytes(packed, *position, bytes - *position, Use::reads);
    bounce.replace(buffer, count, type, Use::writes);
  }
};
struct ReduceLocal : ByTheHost {
  template <class N>
  void operator()(BounceBuffers& bounce, const void*& in, void*& in_out, N& count, Datatype& type, Op&) {
    bounce.replace_operand(in, count, type, Use::reads);
    bounce.replace_operand(in_out, count, type, Use::both);
  }
};

// ---- partitioned messages ----

struct Partitioned : ByTheHost {
 protected:
  template <class Pointer>
  static void replace(BounceBuffers& bounce, Pointer& buffer, int parts, Count count, Datatype& type, int peer,
                      Comm comm, Use use) {
    bounce.comm = comm;
    if (peer == proc_null || parts <= 0) return;
    const std::vector<Count> counts(static_cast<size_t>(parts), count);
    std::vector<Aint> displs(counts.size());
    for (size_t i = 0; i < displs.size(); ++i) displs[i] = static_cast<Aint>(i) * static_cast<Aint>(count);
    const Aint* list = displs.data();
    bounce.replace_list(buffer, parts, counts.data(), list, type, use);
  }
};
struct PartitionedSend : Partitioned {
  static constexpr bool is_sent = true;
  template <class... More>
  void operator()(BounceBuffers& bounce, const void*& buffer, int& parts, Count& count, Datatype& type, int& peer, int&,
                  Comm& comm, More&...) {
    replace(bounce, buffer, parts, count, type, peer, comm, Use::reads);
  }
};
struct PartitionedReceive : Partitioned {
  static constexpr bool is_sent = false;
  template <class... More>
  void operator()(BounceBuffers& bounce, void*& buffer, int& parts, Count& count, Datatype& type, int& peer, int&,
                  Comm& comm, More&...) {
    replace(bounce, buffer, parts, count, type, peer, comm, Use::writes);
  }
};

// ---- calls on files ----

struct FileCall : ByTheHost {
 protected:
  template <class Pointer, class N>
  static void replace(BounceBuffers& bounce, File file, Pointer& buffer, N& count, Datatype& type, Use use) {
    bounce.file = file;
    bounce.replace(buffer, count, type, use);
    bounce.stand_in = const_cast<void*>(static_cast<const void*>(buffer));
  }
};
// At the end of a file less comes than there is room for, and not every MPI's status says how much (ROMIO's does not in
// MPI_File_iread_all). So the old bytes are copied into the bounce buffer, and land again where nothing has come.
struct FileRead : FileCall {
  template <class N, class... More>
  void operator()(BounceBuffers& bounce, File& file, void*& buffer, N& count, Datatype& type, More&...) {
    replace(bounce, file, buffer, count, type, Use::both);
  }
  template <class N, class... More>
  void operator()(BounceBuffers& bounce, File& file, Offset&, void*& buffer, N& count, Datatype& type, More&...) {
    replace(bounce, file, buffer, count, type, Use::both);
  }
};
struct FileWrite : FileCall {
  template <class N, class... More>
  void operator()(BounceBuffers& bounce, File& file, const void*& buffer, N& count, Datatype& type, More&...) {
    replace(bounce, file, buffer, count, type, Use::reads);
  }
  template <class N, class... More>
  void operator()(BounceBuffers& bounce, File& file, Offset&, const void*& buffer, N& count, Datatype& type, More&...) {
    replace(bounce, file, buffer, count, type, Use::reads);
  }
};

// ---- accesses to windows ----

// Only the buffers of the origin are bounced; a call to MPI_PROC_NULL touches nothing.
struct Access : ByTheHost {
 protected:
  // True if the call touches its buffers.
  static bool begin(BounceBuffers& bounce, int target, Win window) {
    bounce.window = window;
    bounce.target = target;
    return target != proc_null;
  }
};
struct Put : Access {
  template <class N, class... More>
  void operator()(BounceBuffers& bounce, const void*& origin, N& count, Datatype& type, int& target, Aint&, N&,
                  Datatype&, Win& window, More&...) {
    if (begin(bounce, target, window)) bounce.replace(origin, count, type, Use::reads);
  }
};
struct Get : Access {
  template <class N, class... More>
  void operator()(BounceBuffers& bounce, void*& origin, N& count, Datatype& type, int& target, Aint&, N&, Datatype&,
                  Win& window, More&...) {
    if (begin(bounce, target, window)) bounce.replace(origin, count, type, Use::writes);
  }
};
struct Accumulate : Access {
  template <class N, class... More>
  void operator()(BounceBuffers& bounce, const void*& origin, N& count, Datatype& type, int& target, Aint&, N&,
                  Datatype&, Op&, Win& window, More&...) {
    if (begin(bounce, target, window)) bounce.replace_operand(origin, static_cast<int64_t>(count), type, Use::reads);
  }
};
struct Get_accumulate : Access {
  template <class N, class... More>
  void operator()(BounceBuffers& bounce, const void*& origin, N& count, Datatype& type, void*& result, N& result_count,
                  Datatype& result_type, int& target, Aint&, N&, Datatype&, Op&, Win& window, More&...) {
    if (!begin(bounce, target, window)) return;
    bounce.replace_operand(origin, static_cast<int64_t>(count), type, Use::reads);
    bounce.replace_operand(result, static_cast<int64_t>(result_count), result_type, Use::both);
  }
};
struct Fetch_and_op : Access {
  void operator()(BounceBuffers& bounce, const void*& origin, void*& result, Datatype& type, int& target, Aint&, Op&,
                  Win& window) {
    if (!begin(bounce, target, window)) return;
    bounce.replace_operand(origin, 1, type, Use::reads);
    bounce.replace_operand(result, 1, type, Use::both);
  }
};
struct Compare_and_swap : Access {
  void operator()(BounceBuffers& bounce, const void*& origin, const void*& compared, void*& result, Datatype& type,
                  int& target, Aint&, Win& window) {
    if (!begin(bounce, target, window)) return;
    bounce.replace_operand(origin, 1, type, Use::reads);
    bounce.replace_operand(compared, 1, type, Use::reads);
    bounce.replace_operand(result, 1, type, Use::both);
  }
};

// ---- collective calls ----

struct Collective {
  static constexpr bool has_bytes_in_status = false;
  static constexpr bool is_collective = true;
  static constexpr bool sends_too = false;
  static constexpr CallKind kind = CallKind::collective;

 protected:
  // Finds the number of peers: of the ranks on the other side of an intercommunicator, else of all ranks.
  void begin(BounceBuffers& bounce, Comm comm) {
    bounce.comm = comm;
    if (real.Comm_test_inter(comm, &is_inter_) != success) is_inter_ = 0;
    const int code = is_inter_ != 0 ? real.Comm_remote_size(comm, &peers_) : real.Comm_size(comm, &peers_);
    if (code != success) peers_ = 0;
  }
  void begin_rooted(BounceBuffers& bounce, int root, Comm comm) {
    begin(bounce, comm);
    int rank = -1;
    if (real.Comm_rank(comm, &rank) != success) rank = -1;
    is_root_ = is_inter_ != 0 ? root == root_here : root == rank;
    takes_part_ = root != proc_null;
  }
  // True if this rank has a block of its own: every rank has, but for those on the root's side of an intercommunicator.
  [[nodiscard]] bool has_own_block() const { return takes_part_ && !(is_root_ && is_inter_ != 0); }

  int peers_ = 0;
  int is_inter_ = 0;
  bool is_root_ = false;
  bool takes_part_ = true;
};

// If `out` is MPI_IN_PLACE, the call reads its operand from the buffer of the result.
inline Use use_of_result(const void* out) { return out == in_place ? Use::both : Use::writes; }

struct Bcast : Collective {
  template <class N, class... More>
  void operator()(BounceBuffers& bounce, void*& buffer, N& count, Datatype& type, int& root, Comm& comm, More&...) {
    begin_rooted(bounce, root, comm);
    if (takes_part_) bounce.replace(buffer, count, type, is_root_ ? Use::reads : Use::writes);
  }
};
struct Gather : Collective {
  template <class N, class... More>
  void operator()(BounceBuffers& bounce, const void*& out, N& out_count, Datatype& out_type, void*& in, N& in_count,
                  Datatype& in_type, int& root, Comm& comm, More&...) {
    begin_rooted(bounce, root, comm);
    const Use use = use_of_result(out);
    if (has_own_block()) bounce.replace(out, out_count, out_type, Use::reads);
    if (is_root_) bounce.replace_each(in, peers_, in_count, in_type, use);
  }
};
struct Gatherv : Collective {
  template <class N, class... More>
  void operator()(BounceBuffers& bounce, const void*& out, N& out_count, Datatype& out_type, void*& in,
                  const N*& counts, const Displacement<N>*& displs, Datatype& in_type, int& root, Comm& comm,
                  More&...) {
    begin_rooted(bounce, root, comm);
    const Use use = use_of_result(out);
    if (has_own_block()) bounce.replace(out, out_count, out_type, Use::reads);
    if (is_root_) bounce.replace_list(in, peers_, counts, displs, in_type, use);
  }
};
struct Scatter : Collective {
  template <class N, class... More>
  void operator()(BounceBuffers& bounce, const void*& out, N& out_count, Datatype& out_type, void*& in, N& in_count,
                  Datatype& in_type, int& root, Comm& comm, More&...) {
    begin_rooted(bounce, root, comm);
    if (is_root_) bounce.replace_each(out, peers_, out_count, out_type, Use::reads);
    if (has_own_block()) bounce.replace(in, in_count, in_type, Use::writes);
  }
};
struct Scatterv : Collective {
  template <class N, class... More>
  void operator()(BounceBuffers& bounce, const void*& out, const N*& counts, const Displacement<N>*& displs,
                  Datatype& out_type, void*& in, N& in_count, Datatype& in_type, int& root, Comm& comm, More&...) {
    begin_rooted(bounce, root, comm);
    if (is_root_) bounce.replace_list(out, peers_, counts, displs, out_type, Use::reads);
    if (has_own_block()) bounce.replace(in, in_count, in_type, Use::writes);
  }
};
struct Allgather : Collective {
  template <class N, class... More>
  void operator()(BounceBuffers& bounce, const void*& out, N& out_count, Datatype& out_type, void*& in, N& in_count,
                  Datatype& in_type, Comm& comm, More&...) {
    begin(bounce, comm);
    const Use use = use_of_result(out);
    bounce.replace(out, out_count, out_type, Use::reads);
    bounce.replace_each(in, peers_, in_count, in_type, use);
  }
};
struct Allgatherv : Collective {
  template <class N, class... More>
  void operator()(BounceBuffers& bounce, const void*& out, N& out_count, Datatype& out_type, void*& in,
                  const N*& counts, const Displacement<N>*& displs, Datatype& in_type, Comm& comm, More&...) {
    begin(bounce, comm);
    const Use use = use_of_result(out);
    bounce.replace(out, out_count, out_type, Use::reads);
    bounce.replace_list(in, peers_, counts, displs, in_type, use);
  }
};
struct Alltoall : Collective {
  template <class N, class... More>
  void operator()(BounceBuffers& bounce, const void*& out, N& out_count, Datatype& out_type, void*& in, N& in_count,
                  Datatype& in_type, Comm& comm, More&...) {
    begin(bounce, comm);
    const Use use = use_of_result(out);
    bounce.replace_each(out, peers_, out_count, out_type, Use::reads);
    bounce.replace_each(in, peers_, in_count, in_type, use);
  }
};
// Alltoallv has one type for all peers, Alltoallw a list of types.
struct Alltoallv : Collective {
  template <class N, class Disp, class Types, class... More>
  void operator()(BounceBuffers& bounce, const void*& out, const N*& out_counts, const Disp*& out_displs,
                  Types& out_types, void*& in, const N*& in_counts, const Disp*& in_displs, Types& in_types, Comm& comm,
                  More&...) {
    begin(bounce, comm);
    const Use use = use_of_result(out);
    if (out != in_place) bounce.replace_list(out, peers_, out_counts, out_displs, out_types, Use::reads);
    bounce.replace_list(in, peers_, in_counts, in_displs, in_types, use);
  }
};
using Alltoallw = Alltoallv;

// Calls with neighbours: no MPI says that it takes memory of a device in them.
struct Neighbourhood : Collective {
  static constexpr CallKind kind = CallKind::host;

 protected:
  void begin(BounceBuffers& bounce, Comm comm) {
    bounce.comm = comm;
    const Neighbours neighbours = neighbours_of(comm);
    destinations_ = static_cast<int>(neighbours.to.size());
    sources_ = static_cast<int>(neighbours.from.size());
  }
  int destinations_ = 0;
  int sources_ = 0;
};
struct Neighbor_allgather : Neighbourhood {
  template <class N, class... More>
  void operator()(BounceBuffers& bounce, const void*& out, N& out_count, Datatype& out_type, void*& in, N& in_count,
                  Datatype& in_type, Comm& comm, More&...) {
    begin(bounce, comm);
    bounce.replace(out, out_count, out_type, Use::reads);
    bounce.replace_each(in, sources_, in_count, in_type, has_null_source(comm) ? Use::both : Use::writes);
  }

 protected:
  // True if a source is MPI_PROC_NULL: then the block of that source must keep its bytes.
  static bool has_null_source(Comm comm) {
    const Neighbours neighbours = neighbours_of(comm);
    return std::ranges::find(neighbours.from, proc_null) != neighbours.from.end();
  }
};
struct Neighbor_allgatherv : Neighbor_allgather {
  template <class N, class... More>
  void operator()(BounceBuffers& bounce, const void*& out, N& out_count, Datatype& out_type, void*& in,
                  const N*& counts, const Displacement<N>*& displs, Datatype& in_type, Comm& comm, More&...) {
    begin(bounce, comm);
    bounce.replace(out, out_count, out_type, Use::reads);
    bounce.replace_list(in, sources_, counts, displs, in_type, has_null_source(comm) ? Use::both : Use::writes);
  }
};
struct Neighbor_alltoall : Neighbor_allgather {
  template <class N, class... More>
  void operator()(BounceBuffers& bounce, const void*& out, N& out_count, Datatype& out_type, void*& in, N& in_count,
                  Datatype& in_type, Comm& comm, More&...) {
    begin(bounce, comm);
    bounce.replace_each(out, destinations_, out_count, out_type, Use::reads);
    bounce.replace_each(in, sources_, in_count, in_type, has_null_source(comm) ? Use::both : Use::writes);
  }
};
struct Neighbor_alltoallv : Neighbor_allgather {
  template <class N, class Disp, class Types, class... More>
  void operator()(BounceBuffers& bounce, const void*& out, const N*& out_counts, const Disp*& out_displs,
                  Types& out_types, void*& in, const N*& in_counts, const Disp*& in_displs, Types& in_types, Comm& comm,
                  More&...) {
    begin(bounce, comm);
    bounce.replace_list(out, destinations_, out_counts, out_displs, out_types, Use::reads);
    bounce.replace_list(in, sources_, in_counts, in_displs, in_types, has_null_source(comm) ? Use::both : Use::writes);
  }
};
using Neighbor_alltoallw = Neighbor_alltoallv;

struct Reduction : Collective {
  static constexpr CallKind kind = CallKind::reduction;
};
struct Reduce : Reduction {
  template <class N, class... More>
  void operator()(BounceBuffers& bounce, const void*& out, void*& in, N& count, Datatype& type, Op&, int& root,
                  Comm& comm, More&...) {
    begin_rooted(bounce, root, comm);
    const Use use = use_of_result(out);
    if (has_own_block()) bounce.replace_operand(out, count, type, Use::reads);
    if (is_root_) bounce.replace_operand(in, count, type, use);
  }
};
struct Allreduce : Reduction {
  template <class N, class... More>
  void operator()(BounceBuffers& bounce, const void*& out, void*& in, N& count, Datatype& type, Op&, Comm& comm,
                  More&...) {
    begin(bounce, comm);
    const Use use = use_of_result(out);
    bounce.replace_operand(out, count, type, Use::reads);
    bounce.replace_operand(in, count, type, use);
  }
};
using Scan = Allreduce;
// The first rank gets no result: its buffer must keep its bytes.
struct Exscan : Reduction {
  template <class N, class... More>
  void operator()(BounceBuffers& bounce, const void*& out, void*& in, N& count, Datatype& type, Op&, Comm& comm,
                  More&...) {
    begin(bounce, comm);
    bounce.replace_operand(out, count, type, Use::reads);
    bounce.replace_operand(in, count, type, Use::both);
  }
};
struct Reduce_scatter_block : Reduction {
  template <class N, class... More>
  void operator()(BounceBuffers& bounce, const void*& out, void*& in, N& count, Datatype& type, Op&, Comm& comm,
                  More&...) {
    begin(bounce, comm);
    int size = 0;
    if (real.Comm_size(comm, &size) != success) return;
    const int64_t total = static_cast<int64_t>(count) * size;
    if (out == in_place) return bounce.replace_operand(in, total, type, Use::both);
    bounce.replace_operand(out, total, type, Use::reads);
    bounce.replace_operand(in, static_cast<int64_t>(count), type, Use::writes);
  }
};
struct Reduce_scatter : Reduction {
  template <class N, class... More>
  void operator()(BounceBuffers& bounce, const void*& out, void*& in, const N*& counts, Datatype& type, Op&, Comm& comm,
                  More&...) {
    begin(bounce, comm);
    int size = 0;
    int rank = 0;
    if (real.Comm_size(comm, &size) != success || real.Comm_rank(comm, &rank) != success) return;
    int64_t total = 0;
    for (int i = 0; i < size; ++i) total += static_cast<int64_t>(counts[i]);
    if (out == in_place) return bounce.replace_operand(in, total, type, Use::both);
    bounce.replace_operand(out, total, type, Use::reads);
    bounce.replace_operand(in, static_cast<int64_t>(counts[rank]), type, Use::writes);
  }
};

}  // namespace spinloom::mpi::SPINLOOM_ABI::bounce_rules
