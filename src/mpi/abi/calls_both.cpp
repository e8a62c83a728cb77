// The calls that send and receive.
#include <algorithm>

#include "mpi/abi/calls.hpp"
#include "mpi/abi/too_long.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

// Makes memory like that at `place`, with the same bytes. False: the MPI has refused, or there are too many gaps.
bool clone_buffer(const Place& place, std::vector<uint8_t>& bytes, Place& clone) {
  Count lb = 0;
  Count extent = 0;
  Count length = 0;
  if (real.Type_get_extent_x(place.type, &lb, &extent) != success ||
      real.Type_get_true_extent_x(place.type, &lb, &length) != success) {
    return false;
  }
  const Count last = place.count > 0 ? (place.count - 1) * extent : 0;
  const Count low = lb + std::min<Count>(0, last);
  const Count span = length + (last < 0 ? -last : last);
  constexpr Count slack = 1 << 20;
  if (span < 0 || span > 16 * place.capacity() + slack) return false;
  std::vector<uint8_t> packed;
  if (!layer.copy(place, packed)) return false;
  bytes.resize(static_cast<size_t>(span));
  clone = place;
  clone.buffer = reinterpret_cast<void*>(reinterpret_cast<intptr_t>(bytes.data()) - low);
  return layer.put_bytes(packed.data(), static_cast<int64_t>(packed.size()), clone) == success;
}

// Sends the bytes of `place` as they are now: with their own datatype, because MPICH refuses long packed messages where
// a struct is received; as MPI_PACKED only where clone_buffer() cannot make memory for that.
template <class N>
int send_copy(const Place& place, int to, int tag, Request* request, std::vector<uint8_t>& bytes) {
  if (to == proc_null) return real.Isend(nullptr, 0, handles().byte, to, tag, place.comm, request);
  Place clone;
  if (place.capacity() > 0 && clone_buffer(place, bytes, clone)) {
    return real.counted<N>().Isend(clone.buffer, static_cast<N>(clone.count), clone.type, to, tag, clone.comm, request);
  }
  if (!layer.copy(place, bytes)) return raise(place.comm, error_other);
  const auto length = static_cast<Count>(bytes.size());
  if (length <= INT32_MAX) {
    return real.Isend(bytes.data(), static_cast<int>(length), handles().packed, to, tag, place.comm, request);
  }
  if (real.large.Isend == nullptr) return raise(place.comm, error_other);
  return real.large.Isend(bytes.data(), length, handles().packed, to, tag, place.comm, request);
}

// True if a call must be taken apart into a send and a receive: the message that it would receive has been claimed by a
// probe, so the MPI does not have it any more. Among threads all are, because a claim may be made at any time.
bool must_split(int from, int tag, Comm comm) { return layer.is_threaded || has_claim(from, tag, comm); }

// Counts, for the report, the send of MPI_Isendrecv, which is left to the MPI.
template <class N>
void count_send(N count, Datatype type, int to, Comm comm) {
  if (!layer.tally || to == proc_null) return;
  const Lock lock;
  const Place place = layer.place_of(nullptr, count, type, comm);
  layer.count(place, layer.world_rank(comm, to), Way::pass, "MPI_Isendrecv is left to the MPI");
}

// Sends a copy, which is kept until the MPI has sent it, and begins a receive, whose request stands for both.
template <class N>
int split_call(const Place& source, int to, int out_tag, const Place& target, int from, int in_tag, Request* request) {
  Layer::SentCopy sent{{}, std::make_unique<std::vector<uint8_t>>()};
  const int code = send_copy<N>(source, to, out_tag, &sent.request, *sent.bytes);
  if (code != success) return code;
  {
    const Lock lock;
    layer.outbox.push_back(std::move(sent));
  }
  return Irecv<N>(target.buffer, static_cast<N>(target.count), target.type, from, in_tag, target.comm, request);
}

}  // namespace

template <class N>
int Sendrecv(const void* out, N out_count, Datatype out_type, int to, int out_tag, void* in, N in_count,
             Datatype in_type, int from, int in_tag, Comm comm, Status* status) {
  if (layer.types.bypasses_send(out_type, out_count) && layer.claims.empty()) {
    layer.attend();
    CallStatus seen(status);
    const int code = real.counted<N>().Sendrecv(out, out_count, out_type, to, out_tag, in, in_count, in_type, from,
                                                in_tag, comm, seen.get());
    if (code != success || !Record::may_be(bytes_of(*seen.get(), real))) return code;
    const ReceivingCallBy receiving(by_sendrecv<N>);
    return layer.deliver(layer.place_of(in, in_count, in_type, comm), seen.get());
  }
  const ReceivingCallBy receiving(by_sendrecv<N>);
  const Place source = incoming(out, out_count, out_type, comm);
  const Place target = incoming(in, in_count, in_type, comm);
  std::optional<PendingSend> pending;
  {
    const Lock lock;
    pending = layer.pending_send_for(source, to);
  }
  if (!pending && !must_split(from, in_tag, comm)) {
    CallStatus seen(status);
    const int code = real.counted<N>().Sendrecv(out, out_count, out_type, to, out_tag, in, in_count, in_type, from,
                                                in_tag, comm, seen.get());
    return code == success ? layer.deliver(target, seen.get()) : code;
  }
  Request sent{};
  int code = pending ? layer.announce(*pending, source, Mode::standard, to, out_tag, &sent)
                     : real.counted<N>().Isend(out, out_count, out_type, to, out_tag, comm, &sent);
  if (code != success) return code;
  const int received = receive<N>(target, from, in_tag, status);
  code = layer.wait(&sent);
  return received == success ? code : received;
}

template <class N>
int Sendrecv_replace(void* buffer, N count, Datatype type, int to, int out_tag, int from, int in_tag, Comm comm,
                     Status* status) {
  if (layer.types.bypasses_send(type, count) && layer.claims.empty()) {
    layer.attend();
    CallStatus seen(status);
    const int code =
        real.counted<N>().Sendrecv_replace(buffer, count, type, to, out_tag, from, in_tag, comm, seen.get());
    if (code != success || !Record::may_be(bytes_of(*seen.get(), real))) return code;
    const ReceivingCallBy receiving(by_sendrecv_replace<N>);
    return layer.deliver(layer.place_of(buffer, count, type, comm), seen.get());
  }
  const ReceivingCallBy receiving(by_sendrecv_replace<N>);
  const Place place = incoming(buffer, count, type, comm);
  std::optional<PendingSend> pending;
  {
    const Lock lock;
    pending = layer.pending_send_for(place, to, Layer::AllowedOffers::none);
  }
  if (!pending && !must_split(from, in_tag, comm)) {
    CallStatus seen(status);
    const int code =
        real.counted<N>().Sendrecv_replace(buffer, count, type, to, out_tag, from, in_tag, comm, seen.get());
    return code == success ? layer.deliver(place, seen.get()) : code;
  }
  Request sent{};
  std::vector<uint8_t> bytes;
  int code = pending ? layer.announce(*pending, place, Mode::standard, to, out_tag, &sent)
                     : send_copy<N>(place, to, out_tag, &sent, bytes);
  if (code != success) return code;
  const int received = receive<N>(place, from, in_tag, status);
  code = layer.wait(&sent);
  return received == success ? code : received;
}

template <class N>
int Isendrecv(const void* out, N out_count, Datatype out_type, int to, int out_tag, void* in, N in_count,
              Datatype in_type, int from, int in_tag, Comm comm, Request* request) {
  const Place place = incoming(in, in_count, in_type, comm);
  count_send(out_count, out_type, to, comm);
  if (must_split(from, in_tag, comm)) {
    return split_call<N>(incoming(out, out_count, out_type, comm), to, out_tag, place, from, in_tag, request);
  }
  const int code = real.counted<N>().Isendrecv(out, out_count, out_type, to, out_tag, in, in_count, in_type, from,
                                               in_tag, comm, request);
  if (code == success && from != proc_null) {
    layer.remember_receive(in, in_count, in_type, comm, *request);
  }
  return code;
}

template <class N>
int Isendrecv_replace(void* buffer, N count, Datatype type, int to, int out_tag, int from, int in_tag, Comm comm,
                      Request* request) {
  const Place place = incoming(buffer, count, type, comm);
  count_send(count, type, to, comm);
  if (must_split(from, in_tag, comm)) return split_call<N>(place, to, out_tag, place, from, in_tag, request);
  const int code = real.counted<N>().Isendrecv_replace(buffer, count, type, to, out_tag, from, in_tag, comm, request);
  if (code == success && from != proc_null) {
    layer.remember_receive(buffer, count, type, comm, *request);
  }
  return code;
}

#define SPINLOOM_MAKE(N)                                                                                       \
  template int Sendrecv<N>(const void*, N, Datatype, int, int, void*, N, Datatype, int, int, Comm, Status*);   \
  template int Sendrecv_replace<N>(void*, N, Datatype, int, int, int, int, Comm, Status*);                     \
  template int Isendrecv<N>(const void*, N, Datatype, int, int, void*, N, Datatype, int, int, Comm, Request*); \
  template int Isendrecv_replace<N>(void*, N, Datatype, int, int, int, int, Comm, Request*);
SPINLOOM_MAKE(int)
SPINLOOM_MAKE(Count)
#undef SPINLOOM_MAKE

}  // namespace spinloom::mpi::SPINLOOM_ABI
