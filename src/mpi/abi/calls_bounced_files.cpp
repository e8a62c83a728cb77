// Calls on files with buffers in a GPU's memory: what is written is packed into memory of the host before the MPI takes
// it, what is read lands when the call, its request or its second half has ended.
#include <map>
#include <mutex>

#include "mpi/abi/bounce_rules.hpp"
#include "mpi/abi/bounced.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

// Split collective calls between their halves: a file has one at a time.
class SplitCalls {
 public:
  static SplitCalls& of_process() {
    static auto* const splits = new SplitCalls;
    return *splits;
  }
  [[nodiscard]] bool none() const { return count_.load(std::memory_order_relaxed) == 0; }
  void keep(std::shared_ptr<BouncedRequest> begun) {
    const std::lock_guard lock(mutex_);
    const File file = *begun->bounce.file;
    begun_calls_[file] = std::move(begun);
    count_ = begun_calls_.size();
  }
  [[nodiscard]] std::shared_ptr<BouncedRequest> take(File file) {
    const std::lock_guard lock(mutex_);
    const auto found = begun_calls_.find(file);
    if (found == begun_calls_.end()) return nullptr;
    std::shared_ptr<BouncedRequest> begun = std::move(found->second);
    begun_calls_.erase(found);
    count_ = begun_calls_.size();
    return begun;
  }

 private:
  std::mutex mutex_;
  std::map<File, std::shared_ptr<BouncedRequest>> begun_calls_;
  std::atomic<size_t> count_{0};
};

// The second half of a split collective call. Buffer is void* or const void*.
template <Name name, class Buffer>
struct SplitEnd {
  using Hooked = HookedCall<name, File, Buffer, Status*>;
  static int call(File file, Buffer buffer, Status* status) {
    if (SplitCalls::of_process().none()) return Hooked::next(file, buffer, status);
    if (layer.library->contains(__builtin_return_address(0))) return Hooked::mpi_function(file, buffer, status);
    const std::shared_ptr<BouncedRequest> begun = SplitCalls::of_process().take(file);
    if (begun == nullptr) return Hooked::next(file, buffer, status);
    const int code = Hooked::next(file, begun->bounce.stand_in, status);
    return code == success ? land(*begun, Status{}) : code;
  }
  static ForwardingHook hook() { return Hooked::hook(&call); }
};

#define SPINLOOM_BOUNCED(ending, name, Rule, form, ...) \
  Bounced<#name ending, int(__VA_ARGS__)>::hook<bounce_rules::Rule, Ending::form>()
// Calls at the file's own position; with Offset as the last argument of the macro, those that have a position as an
// argument.
#define SPINLOOM_FILE_CALLS(ending, N, way, Rule, Buffer, ...)                                                    \
  SPINLOOM_BOUNCED(ending, File_##way, Rule, blocking, File __VA_ARGS__, Buffer, N, Datatype, Status*),           \
      SPINLOOM_BOUNCED(ending, File_i##way, Rule, non_blocking, File __VA_ARGS__, Buffer, N, Datatype, Request*), \
      SPINLOOM_BOUNCED(ending, File_##way##_all, Rule, blocking, File __VA_ARGS__, Buffer, N, Datatype, Status*), \
      SPINLOOM_BOUNCED(ending, File_i##way##_all, Rule, non_blocking, File __VA_ARGS__, Buffer, N, Datatype,      \
                       Request*),                                                                                 \
      SPINLOOM_BOUNCED(ending, File_##way##_all_begin, Rule, split, File __VA_ARGS__, Buffer, N, Datatype)
#define SPINLOOM_SHARED_FILE_CALLS(ending, N, way, Rule, Buffer)                                               \
  SPINLOOM_BOUNCED(ending, File_##way##_shared, Rule, blocking, File, Buffer, N, Datatype, Status*),           \
      SPINLOOM_BOUNCED(ending, File_i##way##_shared, Rule, non_blocking, File, Buffer, N, Datatype, Request*), \
      SPINLOOM_BOUNCED(ending, File_##way##_ordered, Rule, blocking, File, Buffer, N, Datatype, Status*),      \
      SPINLOOM_BOUNCED(ending, File_##way##_ordered_begin, Rule, split, File, Buffer, N, Datatype)
#define SPINLOOM_ALL_FILE_CALLS(ending, N)                                        \
  SPINLOOM_FILE_CALLS(ending, N, read, FileRead, void*),                          \
      SPINLOOM_FILE_CALLS(ending, N, read_at, FileRead, void*, , Offset),         \
      SPINLOOM_SHARED_FILE_CALLS(ending, N, read, FileRead, void*),               \
      SPINLOOM_FILE_CALLS(ending, N, write, FileWrite, const void*),              \
      SPINLOOM_FILE_CALLS(ending, N, write_at, FileWrite, const void*, , Offset), \
      SPINLOOM_SHARED_FILE_CALLS(ending, N, write, FileWrite, const void*)

}  // namespace

void keep_split(BounceBuffers&& bounce) {
  auto begun = std::make_shared<BouncedRequest>();
  begun->bounce = std::move(bounce);
  SplitCalls::of_process().keep(std::move(begun));
}

std::span<const ForwardingHook> bounced_files() {
  static const ForwardingHook table[] = {SPINLOOM_ALL_FILE_CALLS("", int),
                                         SPINLOOM_ALL_FILE_CALLS("_c", Count),
                                         SplitEnd<"File_read_all_end", void*>::hook(),
                                         SplitEnd<"File_read_at_all_end", void*>::hook(),
                                         SplitEnd<"File_read_ordered_end", void*>::hook(),
                                         SplitEnd<"File_write_all_end", const void*>::hook(),
                                         SplitEnd<"File_write_at_all_end", const void*>::hook(),
                                         SplitEnd<"File_write_ordered_end", const void*>::hook()};
  return table;
}

#undef SPINLOOM_BOUNCED
#undef SPINLOOM_FILE_CALLS
#undef SPINLOOM_SHARED_FILE_CALLS
#undef SPINLOOM_ALL_FILE_CALLS

}  // namespace spinloom::mpi::SPINLOOM_ABI
