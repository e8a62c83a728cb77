// Windows: MPI_Put and MPI_Get of types with gaps are one copy from layout to layout, where this process reaches the
// target's memory and may touch it (windows.hpp). Accumulates, and all that is left, are the MPI's.
#include <algorithm>
#include <atomic>

#include "base/shared_heap.hpp"
#include "mpi/abi/calls.hpp"
#include "mpi/ends.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

Window* known(Win handle) {
  const Lock lock;
  return layer.windows.find(handle);
}

// From so many bytes on, a copy takes less time than the MPI's own way.
constexpr int64_t least_bytes = 128;

// The arguments of MPI_Put and MPI_Get.
template <class N>
struct Access {
  const void* origin;
  N count;
  Datatype type;
  int target;
  Aint place;
  N count_there;
  Datatype type_there;
  Win window;
};

struct Copy {
  Window* window = nullptr;  // null: the MPI's
  FormPointer own, theirs;
  std::byte* there = nullptr;
};

[[nodiscard]] bool overlap(const std::byte* a, int64_t a_bytes, const std::byte* b, int64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

template <class N>
Copy copy_for(const Access<N>& asked, bool by_request) {
  if (asked.count <= 0 || asked.count_there <= 0 || layer.settings.path == Path::pass) return {};
  const Lock lock;
  Copy copy;
  copy.window = layer.windows.find(asked.window);
  if (copy.window == nullptr || (by_request && !copy.window->is_passive())) return {};
  copy.own = layer.types.form(asked.type);
  copy.theirs = layer.types.form(asked.type_there);
  const Form& own = *copy.own;
  const Form& theirs = *copy.theirs;
  if (!own.known || !theirs.known || own.size <= 0 || theirs.size <= 0) return {};
  if (own.contiguous(asked.count) && theirs.contiguous(asked.count_there)) return {};
  const int64_t bytes = Place::capacity_of(own, asked.count);
  if (bytes == INT64_MAX || bytes != Place::capacity_of(theirs, asked.count_there)) return {};
  if (bytes < std::min(layer.settings.min_bytes, least_bytes)) return {};
  copy.window->look_up(asked.target);
  const Window::Part* const part = copy.window->part(asked.target);
  if (part == nullptr || part->here == nullptr || asked.place < 0 || asked.place > part->bytes / part->unit) return {};
  copy.there = part->here + asked.place * part->unit;
  const std::byte* first = nullptr;
  int64_t length = 0;
  if (!Message(theirs, asked.count_there, copy.there).reach(first, length)) return {};
  if (first < part->here || length > part->bytes || first - part->here > part->bytes - length) return {};
  const std::byte* own_first = nullptr;
  int64_t own_length = 0;
  if (!Message(own, asked.count, asked.origin).reach(own_first, own_length)) return {};
  if (overlap(first, length, own_first, own_length)) return {};
  return copy;
}

// False: the MPI has to do it.
template <class N>
bool copied(const Access<N>& asked, bool puts, bool by_request = false) {
  const Copy copy = copy_for(asked, by_request);
  if (copy.window == nullptr || !copy.window->may_access(asked.target)) return false;
  const Message own(*copy.own, asked.count, asked.origin);
  const Message theirs(*copy.theirs, asked.count_there, copy.there);
  const End here = end_of(own, asked.count);
  const End there = end_of(theirs, asked.count_there);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!copy_part(puts ? here : there, puts ? there : here, {0, own.bytes()}).ok()) return false;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  layer.windows.count_copy();
  return true;
}

Key next_window(Comm comm) {
  const Lock lock;
  return layer.teams.next_window(comm);
}

int created(int code, Win handle, Comm comm, Key key, const Told& told) {
  if (code == success) layer.windows.add(handle, comm, key, told);
  return code;
}

Told tell(const void* base, Aint bytes, int64_t unit, Told::Lies otherwise) {
  const bool in_heap = base != nullptr && bytes > 0 && process_heap_is_malloc() &&
                       process_heap().shares(base, static_cast<uint64_t>(bytes));
  return {reinterpret_cast<uint64_t>(base), bytes, unit, in_heap ? Told::Lies::in_heap : otherwise};
}

}  // namespace

template <class N>
int Win_create(void* base, Aint bytes, N unit, Info info, Comm comm, Win* window) {
  const Key key = next_window(comm);
  const int code = real.counted<N>().Win_create(base, bytes, unit, info, comm, window);
  return created(code, *window, comm, key, tell(base, bytes, unit, Told::Lies::elsewhere));
}

template <class N>
int Win_allocate(Aint bytes, N unit, Info info, Comm comm, void* base, Win* window) {
  const Key key = next_window(comm);
  const int code = real.counted<N>().Win_allocate(bytes, unit, info, comm, base, window);
  return created(code, *window, comm, key, tell(*static_cast<void**>(base), bytes, unit, Told::Lies::in_mpis_memory));
}

template <class N>
int Win_allocate_shared(Aint bytes, N unit, Info info, Comm comm, void* base, Win* window) {
  const Key key = next_window(comm);
  const int code = real.counted<N>().Win_allocate_shared(bytes, unit, info, comm, base, window);
  return created(code, *window, comm, key, tell(*static_cast<void**>(base), bytes, unit, Told::Lies::in_mpis_memory));
}

int Win_free(Win* window) {
  {
    const Lock lock;
    layer.windows.forget(*window);
  }
  return real.Win_free(window);
}

int Win_fence(int assert, Win window) {
  Window* const ours = known(window);
  if (ours == nullptr) return real.Win_fence(assert, window);
  const int code = real.Win_fence(assert & ~mode_noprecede, window);
  const Lock lock;
  if (code == success) ours->fence(assert);
  return code;
}

int Win_start(Group group, int assert, Win window) {
  if (Window* const ours = known(window)) {
    const Lock lock;
    ours->start();
  }
  return real.Win_start(group, assert, window);
}

int Win_complete(Win window) {
  if (Window* const ours = known(window)) {
    const Lock lock;
    ours->complete();
  }
  return real.Win_complete(window);
}

int Win_lock(int kind, int target, int assert, Win window) {
  const int code = real.Win_lock(kind, target, assert, window);
  if (Window* const ours = code == success ? known(window) : nullptr) {
    const Lock lock;
    ours->lock(target, assert);
  }
  return code;
}

int Win_unlock(int target, Win window) {
  if (Window* const ours = known(window)) ours->close(target);
  return real.Win_unlock(target, window);
}

int Win_lock_all(int assert, Win window) {
  const int code = real.Win_lock_all(assert, window);
  if (Window* const ours = code == success ? known(window) : nullptr) {
    const Lock lock;
    ours->lock_all(assert);
  }
  return code;
}

int Win_unlock_all(Win window) {
  if (Window* const ours = known(window)) ours->close_all();
  return real.Win_unlock_all(window);
}

template <class N>
int Put(const void* origin, N count, Datatype type, int target, Aint place, N count_there, Datatype type_there,
        Win window) {
  if (copied<N>({origin, count, type, target, place, count_there, type_there, window}, true)) return success;
  return real.counted<N>().Put(origin, count, type, target, place, count_there, type_there, window);
}

template <class N>
int Get(void* origin, N count, Datatype type, int target, Aint place, N count_there, Datatype type_there, Win window) {
  if (copied<N>({origin, count, type, target, place, count_there, type_there, window}, false)) return success;
  return real.counted<N>().Get(origin, count, type, target, place, count_there, type_there, window);
}

// After a copy, an access of no bytes by the MPI gives the program its request.
template <class N>
int Rput(const void* origin, N count, Datatype type, int target, Aint place, N count_there, Datatype type_there,
         Win window, Request* request) {
  if (copied<N>({origin, count, type, target, place, count_there, type_there, window}, true, true)) {
    return real.Rput(origin, 0, handles().byte, target, 0, 0, handles().byte, window, request);
  }
  return real.counted<N>().Rput(origin, count, type, target, place, count_there, type_there, window, request);
}

template <class N>
int Rget(void* origin, N count, Datatype type, int target, Aint place, N count_there, Datatype type_there, Win window,
         Request* request) {
  if (copied<N>({origin, count, type, target, place, count_there, type_there, window}, false, true)) {
    return real.Rget(origin, 0, handles().byte, target, 0, 0, handles().byte, window, request);
  }
  return real.counted<N>().Rget(origin, count, type, target, place, count_there, type_there, window, request);
}

#define SPINLOOM_FOR_COUNTS(name, N, parameters) template int name<N> parameters;
SPINLOOM_WINDOW_CALLS(SPINLOOM_FOR_COUNTS, int)
SPINLOOM_WINDOW_CALLS(SPINLOOM_FOR_COUNTS, Count)
#undef SPINLOOM_FOR_COUNTS

}  // namespace spinloom::mpi::SPINLOOM_ABI
