#include "mpi/abi/gpu_aware.hpp"

#include "mpi/entry/device_watch.hpp"
#include "mpi/entry/library.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

constexpr int cuda = 0;  // MPIX_GPU_SUPPORT_CUDA

std::atomic<bool> gives_device_memory{false};

// Open MPI has the first function, MPICH both. Neither may be called before MPI_Init.
bool says_gpu_aware() {
  const Library& library = Library::of_process();
  using Query = int (*)();
  using QuerySupport = int (*)(int, int*);
  const auto query = reinterpret_cast<Query>(library.extension("MPIX_Query_cuda_support"));
  if (query != nullptr && query() == 1) return true;
  const auto query_support = reinterpret_cast<QuerySupport>(library.extension("MPIX_GPU_query_support"));
  int is_supported = 0;
  return query_support != nullptr && query_support(cuda, &is_supported) == success && is_supported != 0;
}

bool may_stay(const BouncedCall& call, Comm comm) {
  switch (call.kind) {
    case CallKind::host: return false;
    case CallKind::message: return !layer.settings.offers_contiguous();
    case CallKind::collective: return call.is_blocking && !foresee_layers_way(call.name, comm);
    case CallKind::reduction: return call.is_blocking;
  }
  return false;
}

}  // namespace

bool mpi_knows_gpus() {
  static const bool knows = says_gpu_aware();
  return knows;
}

bool stays_on_device(const BouncedCall& call, Comm comm) {
  if (call.kind == CallKind::host || layer.settings.gpu_by_host || !mpi_knows_gpus() || !may_stay(call, comm))
    return false;
  gives_device_memory.store(true, std::memory_order_relaxed);
  return true;
}

std::optional<DevicePlace> device_of(const Place& place) {
  if (!gives_device_memory.load(std::memory_order_relaxed) || !place.form->is_known) return std::nullopt;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): MPI_BOTTOM and a type of addresses
  auto* const first = reinterpret_cast<std::byte*>(reinterpret_cast<intptr_t>(place.buffer) + place.form->true_lb);
  const auto owner = DeviceWatch::of_process().owner(first);
  if (!owner || owner->ordinal < 0) return std::nullopt;
  return DevicePlace{owner->ordinal, first};
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
