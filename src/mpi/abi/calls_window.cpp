// Windows: MPI_Put and MPI_Get of types with gaps are one copy from layout to layout, where this process reaches the
// target's memory and may touch it (windows.hpp). Accumulates, and all that is left, are the MPI's.
#include <algorithm>
#include <atomic>

#include "mpi/abi/calls.hpp"
#include "mpi/ends.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

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
  const Window::Part* const part = copy.window->part(asked.target);
  if (part == nullptr || part->here == nullptr || asked.place < 0 || asked.place > part->bytes / part->unit) return {};
  copy.own = layer.types.form(asked.type);
  copy.theirs = layer.types.form(asked.type_there);
  const Form& own = *copy.own;
  const Form& theirs = *copy.theirs;
  if (!own.known || !theirs.known || own.size <= 0 || theirs.size <= 0) return {};
  if (own.contiguous(asked.count) && theirs.contiguous(asked.count_there)) return {};
  const int64_t bytes = Place::capacity_of(own, asked.count);
  if (bytes == INT64_MAX || bytes != Place::capacity_of(theirs, asked.count_there)) return {};
  if (bytes < std::min(layer.settings.min_bytes, least_bytes)) return {};
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
  if (copy.window == nullptr || copy.window->closed(asked.target) != nullptr) return false;
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

int created(int code, Win handle, Comm comm, const void* base, Aint bytes, int64_t unit) {
  if (code == success) layer.windows.add(handle, comm, base, bytes, unit);
  return code;
}

}  // namespace

template <class N>
int Win_create(void* base, Aint bytes, N unit, Info info, Comm comm, Win* window) {
  const int code = real.counted<N>().Win_create(base, bytes, unit, info, comm, window);
  return created(code, *window, comm, base, bytes, unit);
}

template <class N>
int Win_allocate(Aint bytes, N unit, Info info, Comm comm, void* base, Win* window) {
  const int code = real.counted<N>().Win_allocate(bytes, unit, info, comm, base, window);
  return created(code, *window, comm, *static_cast<void**>(base), bytes, unit);
}

template <class N>
int Win_allocate_shared(Aint bytes, N unit, Info info, Comm comm, void* base, Win* window) {
  const int code = real.counted<N>().Win_allocate_shared(bytes, unit, info, comm, base, window);
  return created(code, *window, comm, *static_cast<void**>(base), bytes, unit);
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
