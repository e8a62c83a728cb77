// Collective calls, done by messages between pairs of ranks on a communicator of the layer's own: each takes the way that
// the layer finds for it.
#include <algorithm>

#include "mpi/abi/batch.hpp"
#include "mpi/abi/calls.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

Comm Layer::twin_of(Comm comm) {
  if (comm == handles().comm_null) return comm;
  void* known = nullptr;
  int is_known = 0;
  if (real.Comm_get_attr(comm, twin_keyval_, &known, &is_known) != success) return handles().comm_null;
  if (is_known != 0) return *static_cast<Comm*>(known);
  Comm twin = handles().comm_null;
  int is_inter = 0;
  bool are_ours = ship.is_complete() && real.Comm_test_inter(comm, &is_inter) == success && is_inter == 0;
  if (are_ours) {
    const std::vector<int> members = ranks_of(comm);
    are_ours = members.size() > 1 && std::ranges::all_of(members, [](int member) { return member >= 0; });
  }
  if (are_ours) {
    int own = 0;
    if (real.Comm_rank(comm, &own) != success || real.Comm_split(comm, 0, own, &twin) != success) {
      twin = handles().comm_null;
    } else {
      real.Comm_set_errhandler(twin, handles().errors_return);
    }
  }
  auto kept = std::make_unique<Comm>(twin);
  if (real.Comm_set_attr(comm, twin_keyval_, kept.get()) == success) (void)kept.release();
  return twin;
}

namespace {

// One side of a call: what it sends to or receives from each rank.
template <class N, class Byte>
struct Side {
  Byte* buffer;
  const N* counts;
  const Displacement<N>* places;
  const Datatype* types;

  [[nodiscard]] Byte* at(int rank) const { return buffer + places[rank]; }
  [[nodiscard]] bool is_empty(int rank) const {
    const Lock lock;
    return counts[rank] == 0 || layer.types.form(types[rank])->size == 0;
  }
  [[nodiscard]] Place place(int rank, Comm comm) const {
    const Lock lock;
    return layer.place_of(at(rank), counts[rank], types[rank], comm);
  }
};

// MPI_Alltoallw_c for an MPI that has no such call.
int with_ints(const void* out, const Count* out_counts, const Aint* out_places, const Datatype* out_types, void* in,
              const Count* in_counts, const Aint* in_places, const Datatype* in_types, Comm comm) {
  int size = 0;
  if (const int code = real.Comm_size(comm, &size); code != success) return code;
  bool fits = true;
  const auto narrow = [&](const auto* values) {
    std::vector<int> made(static_cast<size_t>(size));
    for (size_t i = 0; values != nullptr && i < made.size(); ++i) {
      made[i] = static_cast<int>(values[i]);
      fits = fits && made[i] == values[i];
    }
    return made;
  };
  const auto counts_out = narrow(out == in_place ? nullptr : out_counts);
  const auto places_out = narrow(out == in_place ? nullptr : out_places);
  const auto counts_in = narrow(in_counts);
  const auto places_in = narrow(in_places);
  if (!fits) return raise(comm, error_other);
  return real.Alltoallw(out, counts_out.data(), places_out.data(), out_types, in, counts_in.data(), places_in.data(),
                        in_types, comm);
}

// Copies what a rank sends to itself. False: the layer cannot, and the MPI has to carry it.
bool copied_here(const Place& from, const Place& to) {
  if (!from.form->known || !to.form->known || from.capacity() != to.capacity()) return false;
  const End source = end_of({*from.form, from.count, from.buffer}, from.count);
  const End target = end_of({*to.form, to.count, to.buffer}, to.count);
  return copy_part(source, target, {0, from.capacity()}).ok();
}

// The requests of one call: at most two for each rank.
class Requests {
 public:
  explicit Requests(int ranks) : first_(room_.fill(2 * static_cast<size_t>(ranks), handles().request_null)) {}
  [[nodiscard]] Request* next() { return &first_[count_++]; }
  [[nodiscard]] int wait() {
    Status* const statuses = statuses_.fill(static_cast<size_t>(count_), {});
    const int code = Waitall(count_, first_, statuses);
    if (code != error_in_status) return code;
    const Status* const end = statuses + count_;
    const Status* const failed =
        std::find_if(statuses, statuses + count_, [](const Status& one) { return one.error != success; });
    return failed == end ? code : failed->error;
  }
  void let_go() {
    for (int i = 0; i < count_; ++i) {
      if (first_[i] != handles().request_null) Request_free(&first_[i]);
    }
  }

 private:
  Few<Request> room_;
  Few<Status> statuses_;
  Request* first_;
  int count_ = 0;
};

// Receives and sends are posted first, each rank's to and from the one that comes next first; what a rank sends to itself
// is copied while these are under way.
template <class N>
int exchange(const Side<N, const char>& out, const Side<N, char>& in, Comm twin, int rank, int size,
             Requests& requests) {
  const auto receive_from = [&](int from) {
    if (in.is_empty(from)) return success;
    return Irecv<N>(in.at(from), in.counts[from], in.types[from], from, 0, twin, requests.next());
  };
  const auto send_to = [&](int to) {
    if (out.is_empty(to)) return success;
    return Isend<N>(out.at(to), out.counts[to], out.types[to], to, 0, twin, requests.next());
  };
  int code = success;
  for (int step = 1; step < size && code == success; ++step) code = receive_from((rank + size - step) % size);
  for (int step = 1; step < size && code == success; ++step) code = send_to((rank + step) % size);
  if (code != success || copied_here(out.place(rank, twin), in.place(rank, twin))) return code;
  code = receive_from(rank);
  return code == success ? send_to(rank) : code;
}

}  // namespace

template <class N>
int Alltoallw(const void* out, const N* out_counts, const Displacement<N>* out_places, const Datatype* out_types,
              void* in, const N* in_counts, const Displacement<N>* in_places, const Datatype* in_types, Comm comm) {
  const Comm twin = out == in_place ? handles().comm_null : layer.twin_of(comm);
  if (twin == handles().comm_null) {
    if constexpr (sizeof(N) != sizeof(int)) {
      if (real.large.Alltoallw == nullptr) {
        return with_ints(out, out_counts, out_places, out_types, in, in_counts, in_places, in_types, comm);
      }
      return real.large.Alltoallw(out, out_counts, out_places, out_types, in, in_counts, in_places, in_types, comm);
    } else {
      return real.Alltoallw(out, out_counts, out_places, out_types, in, in_counts, in_places, in_types, comm);
    }
  }
  int rank = 0;
  int size = 0;
  int code = real.Comm_rank(twin, &rank);
  if (code == success) code = real.Comm_size(twin, &size);
  if (code != success) return raise(comm, code);
  Requests requests(size);
  const Side<N, const char> sent{static_cast<const char*>(out), out_counts, out_places, out_types};
  const Side<N, char> received{static_cast<char*>(in), in_counts, in_places, in_types};
  code = exchange(sent, received, twin, rank, size, requests);
  if (code == success) {
    code = requests.wait();
  } else {
    requests.let_go();
  }
  return code == success ? code : raise(comm, code);
}

template int Alltoallw<int>(const void*, const int*, const int*, const Datatype*, void*, const int*, const int*,
                            const Datatype*, Comm);
template int Alltoallw<Count>(const void*, const Count*, const Aint*, const Datatype*, void*, const Count*, const Aint*,
                              const Datatype*, Comm);

}  // namespace spinloom::mpi::SPINLOOM_ABI
