// Partitioned messages with buffers in a GPU's memory: a part is packed when the program says that it is ready, and
// lands when the program finds that it has arrived, or with its request.
#include <mutex>

#include "mpi/abi/lent.hpp"
#include "mpi/abi/loan_rules.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

// Their requests from beginning to end: one thread may wait for a request while others say that parts of it are ready.
class PartRequests {
 public:
  static PartRequests& of_process() {
    static auto* const requests = new PartRequests;
    return *requests;
  }
  void keep(Request handle, std::shared_ptr<LentRequest> request) {
    const std::lock_guard lock(mutex_);
    requests_.put(key_of(handle), std::move(request));
    count_ = requests_.size();
  }
  void forget(Request handle) {
    const std::lock_guard lock(mutex_);
    requests_.erase(key_of(handle));
    count_ = requests_.size();
  }
  [[nodiscard]] std::shared_ptr<LentRequest> find(Request handle) {
    if (count_.load(std::memory_order_relaxed) == 0) return nullptr;
    const std::lock_guard lock(mutex_);
    std::shared_ptr<LentRequest>* const found = requests_.find(key_of(handle));
    return found == nullptr ? nullptr : *found;
  }

 private:
  std::mutex mutex_;
  HandleMap<std::shared_ptr<LentRequest>> requests_;
  std::atomic<size_t> count_{0};
};

// `move` does what is to be done with the parts of a request that is lent.
template <class Move>
int with_parts(Request request, Move move) {
  const std::shared_ptr<LentRequest> lent = PartRequests::of_process().find(request);
  if (lent == nullptr) return success;
  try {
    move(*lent);
    return success;
  } catch (const Refused& refused) {
    return lent->loan.raise(code_of(refused.error));
  } catch (...) {
    return lent->loan.raise(error_other);
  }
}

using ToReady = Next<"Pready", int, Request>;
using ToReadyRange = Next<"Pready_range", int, int, Request>;
using ToReadyList = Next<"Pready_list", int, const int*, Request>;
using ToArrived = Next<"Parrived", Request, int, int*>;

int ready(int part, Request request) {
  const int code = with_parts(request, [&](LentRequest& lent) { lent.loan.fill_part(static_cast<size_t>(part)); });
  return code == success ? ToReady::next(part, request) : code;
}
int ready_range(int first, int last, Request request) {
  const int code = with_parts(request, [&](LentRequest& lent) {
    for (int part = first; part <= last; ++part) lent.loan.fill_part(static_cast<size_t>(part));
  });
  return code == success ? ToReadyRange::next(first, last, request) : code;
}
int ready_list(int count, const int* parts, Request request) {
  const int code = with_parts(request, [&](LentRequest& lent) {
    for (int i = 0; i < count; ++i) lent.loan.fill_part(static_cast<size_t>(parts[i]));
  });
  return code == success ? ToReadyList::next(count, parts, request) : code;
}
int arrived(Request request, int part, int* flag) {
  const int code = ToArrived::next(request, part, flag);
  if (code != success || *flag == 0) return code;
  return with_parts(request, [&](LentRequest& lent) { land_part(lent, static_cast<size_t>(part)); });
}

template <Name name, class Pointer>
using ToInit = Lent<name, int(Pointer, int, Count, Datatype, int, int, Comm, Info, Request*)>;

}  // namespace

void keep_parts(Request request, Loan&& loan, int count, bool is_sent) {
  auto lent = std::make_shared<LentRequest>();
  lent->loan = std::move(loan);
  lent->is_persistent = true;
  lent->is_active = false;
  lent->parts = std::make_unique<Parts>(static_cast<size_t>(count), is_sent);
  PartRequests::of_process().keep(request, lent);
  lent_requests.keep(request, std::move(lent));
}
void forget_parts(Request request) { PartRequests::of_process().forget(request); }

std::span<const OffloadHook> lent_parts() {
  static const OffloadHook table[] = {
      ToInit<"Psend_init", const void*>::hook<lending::PartitionedSend, Ending::partitioned>(),
      ToInit<"Precv_init", void*>::hook<lending::PartitionedReceive, Ending::partitioned>(),
      ToReady::hook(&ready),
      ToReadyRange::hook(&ready_range),
      ToReadyList::hook(&ready_list),
      ToArrived::hook(&arrived)};
  return table;
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
