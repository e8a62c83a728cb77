// Calls of one rank with buffers in a GPU's memory: reductions by hand, the portable packed form, and what buffered
// sends use.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <tuple>

#include "mpi/abi/bounce_rules.hpp"
#include "mpi/abi/bounced.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

// The memory that the program has attached for buffered sends. In place of memory of a device the MPI gets memory of
// the host, until the program detaches it.
class AttachedBuffers {
 public:
  static AttachedBuffers& of_process() {
    static auto* const buffers = new AttachedBuffers;
    return *buffers;
  }
  // Returns the memory that the MPI gets in place of `buffer`; null if there is no memory left.
  [[nodiscard]] void* replace(void* buffer, int64_t bytes) {
    void* const host = std::malloc(static_cast<size_t>(std::max<int64_t>(bytes, 1)));
    const std::lock_guard lock(mutex_);
    if (host != nullptr) program_buffers_[host] = buffer;
    return host;
  }
  // Frees the memory that the MPI got, and returns the program's buffer: `host` itself if nothing was in its place.
  [[nodiscard]] void* give_back(void* host) {
    const std::lock_guard lock(mutex_);
    const auto found = program_buffers_.find(host);
    if (found == program_buffers_.end()) return host;
    void* const buffer = found->second;
    program_buffers_.erase(found);
    std::free(host);
    return buffer;
  }

 private:
  std::mutex mutex_;
  std::map<void*, void*> program_buffers_;  // the program's buffers by the memory that the MPI has
};

template <class N>
int attach(int (*next)(void*, N), void* buffer, N bytes) {
  if (!may_replace() || bytes <= 0) return next(buffer, bytes);
  const auto owner = DeviceWatch::of_process().owner(buffer);
  if (!owner || owner->ordinal < 0) return next(buffer, bytes);
  void* const host = AttachedBuffers::of_process().replace(buffer, static_cast<int64_t>(bytes));
  if (host == nullptr) return raise(handles().comm_world, error_other);
  const int code = next(host, bytes);
  if (code != success) std::ignore = AttachedBuffers::of_process().give_back(host);
  return code;
}
template <class N>
int detach(int (*next)(void*, N*), void* address, N* bytes) {
  const int code = next(address, bytes);
  auto* const buffer = static_cast<void**>(address);
  if (code == success && buffer != nullptr && *buffer != nullptr)
    *buffer = AttachedBuffers::of_process().give_back(*buffer);
  return code;
}
template <Name name, class N>
struct HookedAttach {
  static inline int (*next)(void*, N) = nullptr;
  static inline int (*mpi_function)(void*, N) = nullptr;
  static int call(void* buffer, N bytes) { return attach(next, buffer, bytes); }
};
template <Name name, class N>
struct HookedDetach {
  static inline int (*next)(void*, N*) = nullptr;
  static inline int (*mpi_function)(void*, N*) = nullptr;
  static int call(void* address, N* bytes) { return detach(next, address, bytes); }
};
template <Name name, class Hooked>
ForwardingHook hook_of() {
  return {name.letters, reinterpret_cast<void*>(&Hooked::call), reinterpret_cast<void**>(&Hooked::next),
          reinterpret_cast<void**>(&Hooked::mpi_function)};
}

#define SPINLOOM_LOCAL(ending, N, Place)                                                                        \
  Bounced<"Reduce_local" ending, int(const void*, void*, N, Datatype, Op)>::hook<bounce_rules::ReduceLocal,     \
                                                                                 Ending::blocking>(),           \
      Bounced<"Pack_external" ending, int(const char*, const void*, N, Datatype, void*, Place,                  \
                                          Place*)>::hook<bounce_rules::PackExternal, Ending::blocking>(),       \
      Bounced<"Unpack_external" ending, int(const char*, const void*, Place, Place*, void*, N,                  \
                                            Datatype)>::hook<bounce_rules::UnpackExternal, Ending::blocking>(), \
      hook_of<"Buffer_attach" ending, HookedAttach<"Buffer_attach" ending, N>>(),                               \
      hook_of<"Buffer_detach" ending, HookedDetach<"Buffer_detach" ending, N>>()

}  // namespace

std::span<const ForwardingHook> bounced_local() {
  static const ForwardingHook table[] = {SPINLOOM_LOCAL("", int, Aint), SPINLOOM_LOCAL("_c", Count, Count)};
  return table;
}
#undef SPINLOOM_LOCAL

}  // namespace spinloom::mpi::SPINLOOM_ABI
