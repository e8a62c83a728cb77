// Partitioned messages with buffers in a GPU's memory: a part is packed when the program says that it is ready, and
// lands when the program finds that it has arrived, or with its request.
#include <mutex>

#include "mpi/abi/bounce_rules.hpp"
#include "mpi/abi/bounced.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

// The requests of partitioned messages, from beginning to end: one thread may wait for a request while others say that
// parts of it are ready.
class PartRequests {
 public:
  static PartRequests& of_process() {
    static auto* const requests = new PartRequests;
    return *requests;
  }
  void keep(Request handle, std::shared_ptr<BouncedRequest> request) {
    const std::lock_guard lock(mutex_);
    requests_.put(key_of(handle), std::move(request));
    count_ = requests_.size();
  }
  void forget(Request handle) {
    const std::lock_guard lock(mutex_);
    requests_.erase(key_of(handle));
    count_ = requests_.size();
  }
  [[nodiscard]] std::shared_ptr<BouncedRequest> find(Request handle) {
    if (count_.load(std::memory_order_relaxed) == 0) return nullptr;
    const std::lock_guard lock(mutex_);
    std::shared_ptr<BouncedRequest>* const found = requests_.find(key_of(handle));
    return found == nullptr ? nullptr : *found;
  }

 private:
  std::mutex mutex_;
  HandleMap<std::shared_ptr<BouncedRequest>> requests_;
  std::atomic<size_t> count_{0};
};

// Calls `move` for a request whose buffer is bounced, and raises what it throws.
template <class Move>
int with_parts(Request request, Move move) {
  const std::shared_ptr<BouncedRequest> bounced = PartRequests::of_process().find(request);
  if (bounced == nullptr) return success;
  try {
    move(*bounced);
    return success;
  } catch (const Refused& refused) {
    return bounced->bounce.raise(code_of(refused.error));
  } catch (...) {
    return bounced->bounce.raise(error_other);
  }
}

using HookedReady = HookedCall<"Pready", int, Request>;
using HookedReadyRange = HookedCall<"Pready_range", int, int, Request>;
using HookedReadyList = HookedCall<"Pready_list", int, const int*, Request>;
using HookedArrived = HookedCall<"Parrived", Request, int, int*>;

int ready(int part, Request request) {
  const int code =
      with_parts(request, [&](BouncedRequest& bounced) { bounced.bounce.fill_part(static_cast<size_t>(part)); });
  return code == success ? HookedReady::next(part, request) : code;
}
int ready_range(int first, int last, Request request) {
  const int code = with_parts(request, [&](BouncedRequest& bounced) {
    for (int part = first; part <= last; ++part) bounced.bounce.fill_part(static_cast<size_t>(part));
  });
  return code == success ? HookedReadyRange::next(first, last, request) : code;
}
int ready_list(int count, const int* parts, Request request) {
  const int code = with_parts(request, [&](BouncedRequest& bounced) {
    for (int i = 0; i < count; ++i) bounced.bounce.fill_part(static_cast<size_t>(parts[i]));
  });
  return code == success ? HookedReadyList::next(count, parts, request) : code;
}
int arrived(Request request, int part, int* flag) {
  const int code = HookedArrived::next(request, part, flag);
  if (code != success || *flag == 0) return code;
  return with_parts(request, [&](BouncedRequest& bounced) { land_part(bounced, static_cast<size_t>(part)); });
}

template <Name name, class Pointer>
using HookedInit = Bounced<name, int(Pointer, int, Count, Datatype, int, int, Comm, Info, Request*)>;

}  // namespace

void keep_parts(Request request, BounceBuffers&& bounce, int count, bool is_sent) {
  auto bounced = std::make_shared<BouncedRequest>();
  bounced->bounce = std::move(bounce);
  bounced->is_persistent = true;
  bounced->is_active = false;
  bounced->parts = std::make_unique<Parts>(static_cast<size_t>(count), is_sent);
  PartRequests::of_process().keep(request, bounced);
  bounced_requests.keep(request, std::move(bounced));
}
void forget_parts(Request request) { PartRequests::of_process().forget(request); }

std::span<const ForwardingHook> bounced_parts() {
  static const ForwardingHook table[] = {
      HookedInit<"Psend_init", const void*>::hook<bounce_rules::PartitionedSend, Ending::partitioned>(),
      HookedInit<"Precv_init", void*>::hook<bounce_rules::PartitionedReceive, Ending::partitioned>(),
      HookedReady::hook(&ready),
      HookedReadyRange::hook(&ready_range),
      HookedReadyList::hook(&ready_list),
      HookedArrived::hook(&arrived)};
  return table;
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
