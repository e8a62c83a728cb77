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
                  Layer::Offers may = Layer::Offers::mapped) {
  const Lock lock;
  layer.attend();
  Outgoing made{layer.place_of(buffer, count, type, comm), std::nullopt};
  made.pending = layer.pending_send_for(made.place, peer, may);
  return made;
}

// True for messages that the layer does nothing about, which leave at once: they are short, or contiguous. Counts them.
template <class N>
bool passes(const void* buffer, N count, Datatype type, int peer, Comm comm) {
  const Lock lock;
  if (!layer.bounced_sends.empty() && layer.has_bounced(buffer)) return false;
  const Form& form = *layer.types.form(type);
  const bool passing = form.size * static_cast<int64_t>(count) < layer.settings.min_bytes ||
                       (form.contiguous(count) && !layer.settings.offers_runs());
  if (passing && form.tally != nullptr) [[unlikely]]
    layer.count_pass(form, count, peer, comm);
  return passing;
}

}  // namespace

#define SPINLOOM_SEND(name, mode)                                                                                     \
  template <class N>                                                                                                  \
  int name(const void* buffer, N count, Datatype type, int peer, int tag, Comm comm) {                                \
    if (passes(buffer, count, type, peer, comm)) return real.counted<N>().name(buffer, count, type, peer, tag, comm); \
    const Outgoing out = outgoing(buffer, count, type, peer, comm, Layer::Offers::any);                               \
    if (!out.pending) return real.counted<N>().name(buffer, count, type, peer, tag, comm);                            \
    return layer.announce(*out.pending, out.place, Mode::mode, peer, tag, nullptr);                                   \
  }
SPINLOOM_SEND(Send, standard)
SPINLOOM_SEND(Ssend, synchronous)
SPINLOOM_SEND(Rsend, ready)

namespace {

// Remembers a synchronous send where the MPI cannot cancel sends, so that MPI_Cancel knows it. Requests that are
// complete at once may share a handle; they can be cancelled without harm.
int remember_synchronous(int code, Request* request) {
  if (may_cancel_sends || code != success) return code;
  int flag = 0;
  if (real.Request_get_status(*request, &flag, status_ignore) != success || flag != 0) return code;
  const Lock lock;
  auto* const known = new Open{.place = {}, .receives = false, .active = true};
  layer.remember(*request, known);
  return code;
}
int noted(Mode mode, int code, Request* request) {
  return mode == Mode::synchronous ? remember_synchronous(code, request) : code;
}

}  // namespace

#define SPINLOOM_ISEND(name, mode)                                                                              \
  template <class N>                                                                                            \
  int name(const void* buffer, N count, Datatype type, int peer, int tag, Comm comm, Request* request) {        \
    const auto pass = [&] {                                                                                     \
      return noted(Mode::mode, real.counted<N>().name(buffer, count, type, peer, tag, comm, request), request); \
    };                                                                                                          \
    if (passes(buffer, count, type, peer, comm)) return pass();                                                 \
    const Outgoing out = outgoing(buffer, count, type, peer, comm);                                             \
    if (!out.pending) return pass();                                                                            \
    return noted(Mode::mode, layer.announce(*out.pending, out.place, Mode::mode, peer, tag, request), request); \
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
    const bool is_plain_run = form.contiguous(count) && DeviceEnds::of_process().find(buffer) == nullptr;
    if (!form.known || is_plain_run || place.capacity() < layer.settings.min_bytes) return;
    const int to = layer.world_rank(comm, peer);
    if (to < 0) return;
  }  // for the report the starts of all are counted
  auto* const known = new Open{.place = std::move(place), .receives = false, .persistent = true};
  known->mode = mode;
  known->peer = peer;
  known->tag = tag;
  layer.remember(*request, known);
}

int start(Request* request, Open* known) {
  if (known->carried) {
    known->substituted = true;
    known->active = true;
    return start(known->carried, &known->inner);
  }
  if (known->receives) {
    const Lock lock;
    known->claim = layer.take_claim(known->peer, known->tag, known->place.comm);
    if (known->claim && !known->claim->received) {
      // The message waits in the MPI: it is received by its handle.
      known->substituted = true;
      const Place& place = known->place;
      MessageHandle handle = known->claim->handle;
      known->claim.reset();
      known->active = true;
      if (place.count > INT32_MAX) {
        return real.large.Imrecv(place.buffer, place.count, place.type, &handle, &known->inner);
      }
      return real.Imrecv(place.buffer, static_cast<int>(place.count), place.type, &handle, &known->inner);
    }
    if (known->claim) {
      known->substituted = true;
      known->active = true;
      return layer.completed_request(&known->inner);
    }
    const int code = real.Start(request);
    known->active = code == success;
    return code;
  } else {
    std::optional<PendingSend> pending;
    {
      const Lock lock;
      pending = layer.pending_send_for(known->place, known->peer);
    }
    if (pending) {
      known->substituted = true;
      known->active = true;
      return layer.announce(*pending, known->place, known->mode, known->peer, known->tag, &known->inner);
    }
  }
  const int code = real.Start(request);
  known->active = code == success;
  return code;
}

Open* known_as(Request handle) {
  const Lock lock;
  Open* const known = layer.take(handle);
  if (known != nullptr) layer.put_back(handle, known);
  return known;
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
  Open* const known = known_as(*request);
  return known == nullptr ? real.Start(request) : start(request, known);
}

int Startall(int count, Request* requests) {
  bool any = false;
  for (int i = 0; i < count && !any; ++i) any = known_as(requests[i]) != nullptr;
  if (!any) return real.Startall(count, requests);
  for (int i = 0; i < count; ++i) {
    Open* const known = known_as(requests[i]);
    const int code = known == nullptr ? real.Start(&requests[i]) : start(&requests[i], known);
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
