// Windows: MPI_Put and MPI_Get of types with gaps are one copy from layout to layout, where this process maps the
// target's memory or system calls reach it in long blocks, and may touch it (windows.hpp). Accumulates, and all that is
// left, are the MPI's.
#include <algorithm>
#include <atomic>

#include "base/shared_heap.hpp"
#include "mpi/abi/calls.hpp"
#include "mpi/messages/cma.hpp"
#include "mpi/messages/ends.hpp"
#include "mpi/moving/way.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

// A copy of at least this many bytes takes less time than the MPI's own way.
constexpr int64_t least_bytes = 128;

// The arguments of MPI_Put and MPI_Get.
template <class N>
struct Access {
  const char* call;
  const void* origin;
  N count;
  Datatype type;
  int target;
  Aint place;
  N count_there;
  Datatype type_there;
  Win window;

  [[nodiscard]] bool moves_nothing() const { return count <= 0 || count_there <= 0 || target < 0; }
};

struct Copy {
  Window* window = nullptr;
  FormPointer own, theirs;
  Window::Part part;
  int64_t bytes = 0;
  Way way = Way::pass;  // mapped or cma, where it is not the MPI's
  const char* why = "";
};

[[nodiscard]] bool overlap(const std::byte* a, int64_t a_bytes, const std::byte* b, int64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

// System calls cost time for each block, most of all for the target's. With at least so many bytes, in blocks of at
// least this mean length, they take less time than the MPIs do (docs/mpi.md has the numbers).
constexpr int64_t least_bytes_by_calls = 128 << 10;
constexpr double least_block_by_calls = 2 << 10;

[[nodiscard]] bool has_long_blocks(const Form& form, int64_t bytes) {
  return static_cast<double>(bytes) >= least_block_by_calls * work_of(form, bytes).blocks;
}

void choose_way(Copy& copy) {
  const Window::Part& part = copy.part;
  if (part.by_calls && layer.settings.path == Path::cma) {
    copy.way = Way::cma;
    copy.why = "asked for";
  } else if (part.here != nullptr) {
    copy.way = Way::mapped;
    copy.why = "one copy by its origin";
  } else if (!part.by_calls) {
    copy.why = "the target's memory can be neither mapped nor reached by system calls";
  } else if (!copy.window->calls_pay()) {
    copy.why = "the target's memory cannot be mapped, and this MPI is as quick as system calls";
  } else if (copy.bytes < least_bytes_by_calls || !has_long_blocks(*copy.theirs, copy.bytes) ||
             !has_long_blocks(*copy.own, copy.bytes)) {
    copy.why = "the target's memory cannot be mapped, and this is too little for system calls, or in short blocks";
  } else {
    copy.way = Way::cma;
    copy.why = "one copy by system calls";
  }
}

// Returns what is wrong: the access leaves the window, or overlaps its origin's own bytes, or these reach beyond all
// addresses. Null: nothing is wrong.
template <class N>
[[nodiscard]] const char* misplaced(const Access<N>& asked, const Copy& copy) {
  constexpr const char* outside = "outside of the window";
  const Window::Part& part = copy.part;
  if (asked.place < 0 || asked.place > part.bytes / part.unit) return outside;
  const auto* const start = reinterpret_cast<const std::byte*>(part.there);  // NOLINT: an address
  const std::byte* first = nullptr;
  int64_t length = 0;
  if (!Message(*copy.theirs, asked.count_there, start + asked.place * part.unit).reach(first, length)) return outside;
  if (first < start || length > part.bytes || first - start > part.bytes - length) return outside;
  const std::byte* own_first = nullptr;
  int64_t own_length = 0;
  if (!Message(*copy.own, asked.count, asked.origin).reach(own_first, own_length))
    return "its origin's bytes have no place";
  const std::byte* const here = part.here == nullptr ? nullptr : part.here + (first - start);
  if (here != nullptr && overlap(here, length, own_first, own_length)) return "it overlaps its origin's bytes";
  return nullptr;
}

template <class N>
Copy copy_for(const Access<N>& asked, bool by_request) {
  Copy copy;
  const Lock lock;
  copy.window = layer.windows.find(asked.window);
  if (copy.window == nullptr && !layer.tally) return copy;
  copy.own = layer.types.form(asked.type);
  copy.theirs = layer.types.form(asked.type_there);
  const Form& own = *copy.own;
  const Form& theirs = *copy.theirs;
  copy.bytes = Place::capacity_of(own, asked.count);
  const Window::Part* part = nullptr;
  if (copy.window != nullptr) {
    if (!own.contiguous(asked.count) || !theirs.contiguous(asked.count_there)) copy.window->look_up(asked.target);
    part = copy.window->part(asked.target);
  }
  if (part != nullptr) copy.part = *part;
  const auto why_not = [&]() -> const char* {
    if (!own.known || !theirs.known) return "a type that is not known here";
    if (own.contiguous(asked.count) && theirs.contiguous(asked.count_there)) return "contiguous";
    if (copy.bytes < std::min(layer.settings.min_bytes, least_bytes)) return "short";
    if (layer.settings.path == Path::pass) return "asked for";
    if (part == nullptr) return "a window that is not of one machine's ranks, or that grows";
    if (!copy.window->has_told(asked.target)) return "the target has not told yet where its memory lies";
    if (copy.bytes == INT64_MAX || copy.bytes != Place::capacity_of(theirs, asked.count_there)) return "wrong counts";
    if (by_request && !copy.window->is_passive()) return "under no lock";
    return misplaced(asked, copy);
  }();
  if (why_not != nullptr) {
    copy.why = why_not;
  } else {
    choose_way(copy);
  }
  return copy;
}

[[nodiscard]] bool has_moved_by_calls(const Copy& copy, const Message& own, const Message& theirs, bool puts) {
  const auto there = static_cast<uint32_t>(copy.part.rank);
  const Board& board = layer.pipeline.board();
  const End end = end_of(theirs, theirs.count());
  const FarPlace place{end.blob, end.count, reinterpret_cast<uint64_t>(end.base)};
  const peer::Process& process = board.process(there);
  return puts ? write_by_cma(process, board.word_of(there), place, own, copy.bytes).ok()
              : read_by_cma(process, place, own, copy.bytes).ok();
}

// Copies the bytes of an access. False: the MPI has to do the access, also the part of it that was copied.
template <class N>
[[nodiscard]] bool has_moved(const Access<N>& asked, bool puts, Copy& copy) {
  const char* why_not = copy.window->closed(asked.target);
  if (why_not == nullptr) {
    const bool by_calls = copy.way == Way::cma;
    const uint64_t start = by_calls ? copy.part.there : reinterpret_cast<uint64_t>(copy.part.here);
    const auto* const there = reinterpret_cast<const std::byte*>(start);  // NOLINT: an address
    const Message own(*copy.own, asked.count, asked.origin);
    const Message theirs(*copy.theirs, asked.count_there, there + asked.place * copy.part.unit);
    const End from = end_of(puts ? own : theirs, puts ? own.count() : theirs.count());
    const End to = end_of(puts ? theirs : own, puts ? theirs.count() : own.count());
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const bool done =
        by_calls ? has_moved_by_calls(copy, own, theirs, puts) : copy_part(from, to, {0, copy.bytes}).ok();
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (done) return true;
    if (by_calls) copy.window->forbid_calls(asked.target);
    why_not = "its bytes could not be copied";
  }
  copy.way = Way::pass;
  copy.why = why_not;
  return false;
}

// Counts an access for the report, by the target's type unless only the origin's has gaps.
template <class N>
void count(const Access<N>& asked, const Copy& copy) {
  if (!layer.tally || copy.own == nullptr || copy.theirs == nullptr) return;
  const bool by_target = !copy.theirs->contiguous(asked.count_there) || copy.own->contiguous(asked.count);
  Place place;
  place.count = by_target ? asked.count_there : asked.count;
  place.form = by_target ? copy.theirs : copy.own;
  place.call = asked.call;
  const Lock lock;
  layer.count(place, copy.part.rank, copy.way, copy.why);
}

template <class N>
bool copied(const Access<N>& asked, bool puts, bool by_request = false) {
  if (asked.moves_nothing()) return false;
  Copy copy = copy_for(asked, by_request);
  const bool done = copy.way != Way::pass && has_moved(asked, puts, copy);
  if (done) layer.windows.count_copy();
  count(asked, copy);
  return done;
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

template <class N>
int Put(const void* origin, N count, Datatype type, int target, Aint place, N count_there, Datatype type_there,
        Win window) {
  if (copied<N>({"MPI_Put", origin, count, type, target, place, count_there, type_there, window}, true)) return success;
  return real.counted<N>().Put(origin, count, type, target, place, count_there, type_there, window);
}

template <class N>
int Get(void* origin, N count, Datatype type, int target, Aint place, N count_there, Datatype type_there, Win window) {
  if (copied<N>({"MPI_Get", origin, count, type, target, place, count_there, type_there, window}, false))
    return success;
  return real.counted<N>().Get(origin, count, type, target, place, count_there, type_there, window);
}

// After a copy, an access of no bytes by the MPI gives the program its request.
template <class N>
int Rput(const void* origin, N count, Datatype type, int target, Aint place, N count_there, Datatype type_there,
         Win window, Request* request) {
  if (copied<N>({"MPI_Put", origin, count, type, target, place, count_there, type_there, window}, true, true)) {
    return real.Rput(origin, 0, handles().byte, target, 0, 0, handles().byte, window, request);
  }
  return real.counted<N>().Rput(origin, count, type, target, place, count_there, type_there, window, request);
}

template <class N>
int Rget(void* origin, N count, Datatype type, int target, Aint place, N count_there, Datatype type_there, Win window,
         Request* request) {
  if (copied<N>({"MPI_Get", origin, count, type, target, place, count_there, type_there, window}, false, true)) {
    return real.Rget(origin, 0, handles().byte, target, 0, 0, handles().byte, window, request);
  }
  return real.counted<N>().Rget(origin, count, type, target, place, count_there, type_there, window, request);
}

#define SPINLOOM_FOR_COUNTS(name, N, parameters) template int name<N> parameters;
SPINLOOM_WINDOW_CALLS(SPINLOOM_FOR_COUNTS, int)
SPINLOOM_WINDOW_CALLS(SPINLOOM_FOR_COUNTS, Count)
#undef SPINLOOM_FOR_COUNTS

}  // namespace spinloom::mpi::SPINLOOM_ABI
