// Collective calls, done by messages between pairs of ranks on a communicator of the layer's own: each takes the way that
// the layer finds for it.
#include <algorithm>
#include <numeric>

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
  [[nodiscard]] Place place(int rank, Comm comm) const {
    const Lock lock;
    return layer.place_of(at(rank), counts[rank], types[rank], comm);
  }
};

// Where an MPI has no call for large counts.
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

// What a rank sends to itself. False: the MPI is to carry it.
bool copied_here(const Place& from, const Place& to) {
  if (!from.form->known || !to.form->known || from.capacity() != to.capacity()) return false;
  const End source = end_of({*from.form, from.count, from.buffer}, from.count);
  const End target = end_of({*to.form, to.count, to.buffer}, to.count);
  return copy_part(source, target, {0, from.capacity()}).ok();
}

// Receives and sends are posted first, each rank's to and from the one that comes next first; what a rank sends to itself
// is copied while these are under way.
template <class N>
int exchange(const Side<N, const char>& out, const Side<N, char>& in, Comm twin, int rank, int size,
             std::vector<Request>& requests) {
  const auto receive_from = [&](int from) {
    if (in.place(from, twin).capacity() == 0) return success;
    requests.push_back(handles().request_null);
    return Irecv<N>(in.at(from), in.counts[from], in.types[from], from, 0, twin, &requests.back());
  };
  const auto send_to = [&](int to) {
    if (out.place(to, twin).capacity() == 0) return success;
    requests.push_back(handles().request_null);
    return Isend<N>(out.at(to), out.counts[to], out.types[to], to, 0, twin, &requests.back());
  };
  int code = success;
  for (int step = 1; step < size && code == success; ++step) code = receive_from((rank + size - step) % size);
  for (int step = 1; step < size && code == success; ++step) code = send_to((rank + step) % size);
  if (code != success || copied_here(out.place(rank, twin), in.place(rank, twin))) return code;
  code = receive_from(rank);
  return code == success ? send_to(rank) : code;
}

int finish(std::vector<Request>& requests) {
  std::vector<Status> statuses(requests.size());
  const int code = Waitall(static_cast<int>(requests.size()), requests.data(), statuses.data());
  if (code != error_in_status) return code;
  const auto failed = std::ranges::find_if(statuses, [](const Status& one) { return one.error != success; });
  return failed == statuses.end() ? code : failed->error;
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
  std::vector<Request> requests;
  int code = real.Comm_rank(twin, &rank);
  if (code == success) code = real.Comm_size(twin, &size);
  requests.reserve(2 * static_cast<size_t>(size));
  const Side<N, const char> sent{static_cast<const char*>(out), out_counts, out_places, out_types};
  const Side<N, char> received{static_cast<char*>(in), in_counts, in_places, in_types};
  if (code == success) code = exchange(sent, received, twin, rank, size, requests);
  if (code == success) {
    code = finish(requests);
  } else {
    for (Request& request : requests) Request_free(&request);
  }
  return code == success ? code : raise(comm, code);
}

template int Alltoallw<int>(const void*, const int*, const int*, const Datatype*, void*, const int*, const int*,
                            const Datatype*, Comm);
template int Alltoallw<Count>(const void*, const Count*, const Aint*, const Datatype*, void*, const Count*, const Aint*,
                              const Datatype*, Comm);

}  // namespace spinloom::mpi::SPINLOOM_ABI
