#include "mpi/abi/rma_arguments.hpp"

#include <algorithm>

#include "mpi/abi/layer.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

void RmaArguments::begin() {
  const Library& mpi = Library::of_process();
  auto* const make_info = reinterpret_cast<int (*)(Info*)>(mpi.function("PMPI_Info_create"));
  auto* const free_info = reinterpret_cast<int (*)(Info*)>(mpi.function("PMPI_Info_free"));
  auto* const set_handler = reinterpret_cast<int (*)(Win, Errhandler)>(mpi.function("PMPI_Win_set_errhandler"));
  Info info{};
  if (make_info == nullptr || free_info == nullptr || set_handler == nullptr || make_info(&info) != success) return;
  // Open MPI 4.1 refuses windows of one process, by the error handler of their communicator.
  Comm alone{};
  if (real.Comm_split(handles().comm_self, 0, 0, &alone) == success) {
    real.Comm_set_errhandler(alone, handles().errors_return);
    can_ask_ = real.Win_create(nullptr, 0, 1, info, alone, &window_) == success;
    real.Comm_free(&alone);
  }
  free_info(&info);
  if (!can_ask_) return;
  can_ask_ = set_handler(window_, handles().errors_return) == success && real.Win_lock_all(0, window_) == success;
  if (!can_ask_) real.Win_free(&window_);
}

void RmaArguments::end() {
  if (!can_ask_) return;
  can_ask_ = false;
  real.Win_unlock_all(window_);
  real.Win_free(&window_);
}

bool RmaArguments::was_accepted(const Call& call) {
  if (const uint64_t changes = layer.types.changes(); changes != changes_) {
    changes_ = changes;
    accepted_.clear();
  }
  const auto found = std::ranges::find(accepted_, call);
  if (found == accepted_.end()) return false;
  if (found != accepted_.begin()) std::rotate(accepted_.begin(), found, found + 1);
  return true;
}

void RmaArguments::add(const Call& call) {
  if (accepted_.size() == most) accepted_.pop_back();
  accepted_.insert(accepted_.begin(), call);
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
