// Sends: blocking, non-blocking, persistent.
#include "mpi/abi/calls.hpp"
#include "mpi/abi/exchange.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

struct Outgoing {
  Place place;
  std::optional<PendingSend> pending;
};

template <class N>
Outgoing outgoing(const void* buffer, N count, Datatype type, int peer, Comm comm,
                  Layer::AllowedOffers allowed = Layer::AllowedOffers::mapped) {
  const Lock lock;
  layer.attend();
  Outgoing outgoing_send{layer.place_of(buffer, count, type, comm), std::nullopt};
  outgoing_send.pending = layer.pending_send_for(outgoing_send.place, peer, allowed);
  return outgoing_send;
}

// True for messages that are short or contiguous, so that they go straight to the MPI; those are counted for the
// report.
template <class N>
bool count_if_passing(const void* buffer, N count, Datatype type, int peer, Comm comm) {
  const Lock lock;
  if (!layer.bounced_sends.empty() && layer.has_bounced(buffer)) return false;
  const Form& form = *layer.types.form(type);
  const bool is_passing = form.size * static_cast<int64_t>(count) < layer.settings.min_bytes ||
                          (form.is_contiguous(count) && !layer.settings.offers_contiguous());
  if (is_passing && form.tally != nullptr) [[unlikely]]
    layer.count_pass(form, count, peer, comm);
  return is_passing;
}

}  // namespace

#define SPINLOOM_SEND(name, mode)                                                              \
  template <class N>                                                                           \
  int name(const void* buffer, N count, Datatype type, int peer, int tag, Comm comm) {         \
    if (count_if_passing(buffer, count, type, peer, comm))                                     \
      return real.counted<N>().name(buffer, count, type, peer, tag, comm);                     \
    const Outgoing out = outgoing(buffer, count, type, peer, comm, Layer::AllowedOffers::any); \
    if (!out.pending) return real.counted<N>().name(buffer, count, type, peer, tag, comm);     \
    return layer.announce(*out.pending, out.place, Mode::mode, peer, tag, nullptr);            \
  }
SPINLOOM_SEND(Send, standard)
SPINLOOM_SEND(Ssend, synchronous)
SPINLOOM_SEND(Rsend, ready)

namespace {

// Remembers a synchronous send where the MPI cannot cancel sends, so that MPI_Cancel knows it. Requests that are
// complete at once may share a handle; the MPI cancels sends that have ended without harm, also in fresh memory
// (cancelled_after_their_end of tests/mpi/layer_rules.c).
int remember_synchronous(int code, Request* request) {
  if (may_cancel_sends || code != success) return code;
  int flag = 0;
  if (real.Request_get_status(*request, &flag, status_ignore) != success || flag != 0) return code;
  const Lock lock;
  auto* const tracked = new TrackedRequest{.place = {}, .is_receive = false, .is_active = true};
  layer.remember(*request, tracked);
  return code;
}
int remember_if_synchronous(Mode mode, int code, Request* request) {
  return mode == Mode::synchronous ? remember_synchronous(code, request) : code;
}

}  // namespace

#define SPINLOOM_ISEND(name, mode)                                                                                    \
  template <class N>                                                                                                  \
  int name(const void* buffer, N count, Datatype type, int peer, int tag, Comm comm, Request* request) {              \
    const auto pass = [&] {                                                                                           \
      return remember_if_synchronous(Mode::mode,                                                                      \
                                     real.counted<N>().name(buffer, count, type, peer, tag, comm, request), request); \
    };                                                                                                                \
    if (count_if_passing(buffer, count, type, peer, comm)) return pass();                                             \
    const Outgoing out = outgoing(buffer, count, type, peer, comm);                                                   \
    if (!out.pending) return pass();                                                                                  \
    return remember_if_synchronous(Mode::mode,                                                                        \
                                   layer.announce(*out.pending, out.place, Mode::mode, peer, tag, request), request); \
  }
SPINLOOM_ISEND(Isend, standard)
SPINLOOM_ISEND(Issend, synchronous)
SPINLOOM_ISEND(Irsend, ready)

namespace {

// Remembers a persistent send, unless its starts can only be the MPI's. The program has the MPI's own request. A start
// that goes through shared memory leaves that inactive.
void remember_send(const void* buffer, int64_t count, Datatype type, int peer, int tag, Comm comm, Mode mode,
                   const Request* request) {
  const Lock lock;
  Place place = layer.place_of(buffer, count, type, comm);
  const Form& form = *place.form;
  if (form.tally == nullptr) {
    const bool is_plain_contiguous = form.is_contiguous(count) && DeviceEnds::of_process().find(buffer) == nullptr;
    if (!form.is_known || is_plain_contiguous || place.capacity() < layer.settings.min_bytes) return;
    const int to = layer.world_rank(comm, peer);
    if (to < 0) return;
  }  // the report counts the starts of all
  auto* const tracked = new TrackedRequest{.place = std::move(place), .is_receive = false, .is_persistent = true};
  tracked->mode = mode;
  tracked->peer = peer;
  tracked->tag = tag;
  layer.remember(*request, tracked);
}

int start(Request* request, TrackedRequest* tracked) {
  if (tracked->carried) {
    tracked->is_substituted = true;
    tracked->is_active = true;
    return start(tracked->carried, &tracked->substitute);
  }
  if (tracked->is_receive) {
    const Lock lock;
    tracked->claim = layer.take_claim(tracked->peer, tracked->tag, tracked->place.comm);
    if (tracked->claim && !tracked->claim->received) {
      // The message waits in the MPI: it is received by its handle.
      tracked->is_substituted = true;
      const Place& place = tracked->place;
      MessageHandle handle = tracked->claim->handle;
      tracked->claim.reset();
      tracked->is_active = true;
      if (place.count > INT32_MAX) {
        return real.large.Imrecv(place.buffer, place.count, place.type, &handle, &tracked->substitute);
      }
      return real.Imrecv(place.buffer, static_cast<int>(place.count), place.type, &handle, &tracked->substitute);
    }
    if (tracked->claim) {
      tracked->is_substituted = true;
      tracked->is_active = true;
      return layer.make_completed_request(&tracked->substitute);
    }
    const int code = real.Start(request);
    tracked->is_active = code == success;
    return code;
  } else {
    std::optional<PendingSend> pending;
    {
      const Lock lock;
      pending = layer.pending_send_for(tracked->place, tracked->peer);
    }
    if (pending) {
      tracked->is_substituted = true;
      tracked->is_active = true;
      return layer.announce(*pending, tracked->place, tracked->mode, tracked->peer, tracked->tag, &tracked->substitute);
    }
  }
  const int code = real.Start(request);
  tracked->is_active = code == success;
  return code;
}

TrackedRequest* tracked_as(Request handle) {
  const Lock lock;
  TrackedRequest* const tracked = layer.take(handle);
  if (tracked != nullptr) layer.put_back(handle, tracked);
  return tracked;
}

}  // namespace

#define SPINLOOM_SEND_INIT(name, mode)                                                                   \
  template <class N>                                                                                     \
  int name(const void* buffer, N count, Datatype type, int peer, int tag, Comm comm, Request* request) { \
    const int code = real.counted<N>().name(buffer, count, type, peer, tag, comm, request);              \
    if (code == success) remember_send(buffer, count, type, peer, tag, comm, Mode::mode, request);       \
    return code;                                                                                         \
  }
SPINLOOM_SEND_INIT(Send_init, standard)
SPINLOOM_SEND_INIT(Ssend_init, synchronous)
SPINLOOM_SEND_INIT(Rsend_init, ready)

int Start(Request* request) {
  TrackedRequest* const tracked = tracked_as(*request);
  return tracked == nullptr ? real.Start(request) : start(request, tracked);
}

int Startall(int count, Request* requests) {
  bool any = false;
  for (int i = 0; i < count && !any; ++i) any = tracked_as(requests[i]) != nullptr;
  if (!any) return real.Startall(count, requests);
  for (int i = 0; i < count; ++i) {
    TrackedRequest* const tracked = tracked_as(requests[i]);
    const int code = tracked == nullptr ? real.Start(&requests[i]) : start(&requests[i], tracked);
    if (code != success) return code;
  }
  return success;
}

#define SPINLOOM_MAKE(name)                                           \
  template int name<int>(const void*, int, Datatype, int, int, Comm); \
  template int name<Count>(const void*, Count, Datatype, int, int, Comm);
SPINLOOM_MAKE(Send)
SPINLOOM_MAKE(Ssend)
SPINLOOM_MAKE(Rsend)
#undef SPINLOOM_MAKE
#define SPINLOOM_MAKE(name)                                                     \
  template int name<int>(const void*, int, Datatype, int, int, Comm, Request*); \
  template int name<Count>(const void*, Count, Datatype, int, int, Comm, Request*);
SPINLOOM_MAKE(Isend)
SPINLOOM_MAKE(Issend)
SPINLOOM_MAKE(Irsend)
SPINLOOM_MAKE(Send_init)
SPINLOOM_MAKE(Ssend_init)
SPINLOOM_MAKE(Rsend_init)
#undef SPINLOOM_MAKE

}  // namespace spinloom::mpi::SPINLOOM_ABI
