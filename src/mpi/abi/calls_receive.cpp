// Receives: blocking, non-blocking and persistent, and those of matched messages.
#include <cstdint>
#include <memory>
#include <new>

#include "mpi/abi/calls.hpp"
#include "mpi/abi/too_long.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

// True for receives that no record fits into, while there is no claim: they are the MPI's alone. Among threads a claim
// may be made at any time: there a receive looks for one and is given to the MPI under one lock.
template <class N>
bool fits_no_record(N count, Datatype type) {
  return !layer.is_threaded && layer.claims.empty() &&
         Place::capacity_of(*layer.types.form(type), count) < Record::least;
}

ClaimPointer take_claim_for(int source, int tag, Comm comm) {
  const Lock lock;
  return layer.claims.empty() ? nullptr : layer.take_claim(source, tag, comm);
}

// Receives a message that is probed first, so that the one that is too long for its place is seen before the MPI is
// asked to cut it.
template <class N>
int receive_probed(const Place& place, int source, int tag, Status* status) {
  MessageHandle message{};
  CallStatus seen(status);
  const int code = Mprobe(source, tag, place.comm, &message, seen.get());
  if (code != success) return code;
  const int64_t length = bytes_of(*seen.get(), real);
  const bool is_cut = length > place.capacity() && length <= INT32_MAX;
  const std::unique_ptr<uint8_t[]> bytes(is_cut ? new (std::nothrow) uint8_t[static_cast<size_t>(length)] : nullptr);
  if (bytes == nullptr) return Mrecv<N>(place.buffer, static_cast<N>(place.count), place.type, &message, seen.get());
  const int received = Mrecv<int>(bytes.get(), static_cast<int>(length), handles().byte, &message, seen.get());
  return received == success ? too_long(bytes.get(), length, place, seen.get()) : received;
}

}  // namespace

template <class N>
int receive(const Place& place, int source, int tag, Status* status) {
  const auto count = static_cast<N>(place.count);
  if (layer.is_threaded && source != proc_null) {
    const bool is_valid = place.count >= 0 && place.type != handles().type_null;  // the MPI refuses others at once
    if (is_valid && errors_of_requests_stray(place.comm)) return receive_probed<N>(place, source, tag, status);
    Request request{};
    const int code = Irecv<N>(place.buffer, count, place.type, source, tag, place.comm, &request);
    return code == success ? Wait(&request, status) : code;
  }
  CallStatus seen(status);
  if (const ClaimPointer claim = take_claim_for(source, tag, place.comm)) {
    if (claim->received) return layer.deliver_claim(*claim, place, seen.get());
    return real.counted<N>().Mrecv(place.buffer, count, place.type, &claim->handle, seen.get());
  }
  const int code = real.counted<N>().Recv(place.buffer, count, place.type, source, tag, place.comm, seen.get());
  return code == success ? layer.deliver(place, seen.get()) : code;
}

template <class N>
int Recv(void* buffer, N count, Datatype type, int source, int tag, Comm comm, Status* status) {
  if (fits_no_record(count, type)) return real.counted<N>().Recv(buffer, count, type, source, tag, comm, status);
  if (!layer.is_threaded && layer.claims.empty()) {
    layer.attend();
    CallStatus seen(status);
    const int code = real.counted<N>().Recv(buffer, count, type, source, tag, comm, seen.get());
    if (code != success || !Record::may_be(bytes_of(*seen.get(), real))) return code;
    const ReceivingCallBy receiving(by_recv<N>);
    return layer.deliver(layer.place_of(buffer, count, type, comm), seen.get());
  }
  const ReceivingCallBy receiving(by_recv<N>);
  return receive<N>(incoming(buffer, count, type, comm), source, tag, status);
}

template <class N>
int Irecv(void* buffer, N count, Datatype type, int source, int tag, Comm comm, Request* request) {
  if (fits_no_record(count, type)) return real.counted<N>().Irecv(buffer, count, type, source, tag, comm, request);
  const Lock lock;
  layer.attend();
  if (ClaimPointer claim = layer.claims.empty() ? nullptr : layer.take_claim(source, tag, comm)) {
    if (!claim->received) return real.counted<N>().Imrecv(buffer, count, type, &claim->handle, request);
    const int code = layer.make_completed_request(request);
    if (code == success) layer.remember_receive(buffer, count, type, comm, *request, std::move(claim));
    return code;
  }
  const int code = real.counted<N>().Irecv(buffer, count, type, source, tag, comm, request);
  if (code == success && source != proc_null) layer.remember_receive(buffer, count, type, comm, *request);
  return code;
}

template <class N>
int Recv_init(void* buffer, N count, Datatype type, int source, int tag, Comm comm, Request* request) {
  const int code = real.counted<N>().Recv_init(buffer, count, type, source, tag, comm, request);
  if (code != success || source == proc_null) return code;
  auto* const tracked = new TrackedRequest{.place = incoming(buffer, count, type, comm), .is_persistent = true};
  tracked->peer = source;
  tracked->tag = tag;
  const Lock lock;
  layer.remember(*request, tracked);
  return code;
}

namespace {

ClaimPointer take_claim_of(MessageHandle handle) {
  const Lock lock;
  Claim** const found = layer.messages.find(key_of(handle));
  if (found == nullptr) return nullptr;
  ClaimPointer claim(*found);
  layer.messages.erase(key_of(handle));
  return claim;
}

// Receives the message that stands for a claim.
int receive_stand_in(Claim& claim, MessageHandle* message) {
  const int code = real.Mrecv(nullptr, 0, handles().byte, message, status_ignore);
  return code == success ? real.Wait(&claim.stand_in, status_ignore) : code;
}

}  // namespace

// Messages that may be records were taken out of the MPI by the probe that found them; others are the MPI's.
template <class N>
int Mrecv(void* buffer, N count, Datatype type, MessageHandle* message, Status* status) {
  const ClaimPointer claim = take_claim_of(*message);
  if (!claim) return real.counted<N>().Mrecv(buffer, count, type, message, status);
  const int code = receive_stand_in(*claim, message);
  if (code != success) return code;
  CallStatus seen(status);
  const ReceivingCallBy receiving(by_mrecv<N>);
  return layer.deliver_claim(*claim, incoming(buffer, count, type, claim->comm), seen.get());
}

template <class N>
int Imrecv(void* buffer, N count, Datatype type, MessageHandle* message, Request* request) {
  ClaimPointer claim = take_claim_of(*message);
  if (!claim) return real.counted<N>().Imrecv(buffer, count, type, message, request);
  int code = receive_stand_in(*claim, message);
  if (code == success) code = layer.make_completed_request(request);
  if (code != success) return code;
  const Comm comm = claim->comm;
  layer.remember_receive(buffer, count, type, comm, *request, std::move(claim));
  return success;
}

#define SPINLOOM_MAKE(N)                                                   \
  template int receive<N>(const Place&, int, int, Status*);                \
  template int Recv<N>(void*, N, Datatype, int, int, Comm, Status*);       \
  template int Irecv<N>(void*, N, Datatype, int, int, Comm, Request*);     \
  template int Recv_init<N>(void*, N, Datatype, int, int, Comm, Request*); \
  template int Mrecv<N>(void*, N, Datatype, MessageHandle*, Status*);      \
  template int Imrecv<N>(void*, N, Datatype, MessageHandle*, Request*);
SPINLOOM_MAKE(int)
SPINLOOM_MAKE(Count)
#undef SPINLOOM_MAKE

}  // namespace spinloom::mpi::SPINLOOM_ABI
