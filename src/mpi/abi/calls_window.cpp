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
  Aint target_disp;
  N target_count;
  Datatype target_type;
  Win window;

  [[nodiscard]] bool moves_nothing() const { return count <= 0 || target_count <= 0 || target < 0; }
};

struct Copy {
  Window* window = nullptr;
  FormPointer own, theirs;  // the datatypes at the origin and at the target
  Window::TargetMemory memory;
  int64_t bytes = 0;
  Way way = Way::pass;  // mapped or cma, where it is not the MPI's
  const char* why = "";
};

[[nodiscard]] bool overlap(const std::byte* a, int64_t a_bytes, const std::byte* b, int64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

// System calls cost time for each block, most of all for the target's. With at least so many bytes, in blocks of at
// least this mean length, they take less time than the MPIs do (docs/mpi.md has the numbers).
constexpr int64_t least_bytes_by_cma = 128 << 10;
constexpr double least_block_by_cma = 2 << 10;

[[nodiscard]] bool has_long_blocks(const Form& form, int64_t bytes) {
  return static_cast<double>(bytes) >= least_block_by_cma * work_of(form, bytes).blocks;
}

void choose_way(Copy& copy) {
  const Window::TargetMemory& memory = copy.memory;
  if (memory.is_reached_by_cma && layer.settings.path == Path::cma) {
    copy.way = Way::cma;
    copy.why = "asked for";
  } else if (memory.local_address != nullptr) {
    copy.way = Way::mapped;
    copy.why = "one copy by its origin";
  } else if (!memory.is_reached_by_cma) {
    copy.why = "the target's memory can be neither mapped nor reached by system calls";
  } else if (!copy.window->is_cma_quicker()) {
    copy.why = "the target's memory cannot be mapped, and this MPI is as quick as system calls";
  } else if (copy.bytes < least_bytes_by_cma || !has_long_blocks(*copy.theirs, copy.bytes) ||
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
[[nodiscard]] const char* why_misplaced(const Access<N>& access, const Copy& copy) {
  constexpr const char* outside = "outside of the window";
  const Window::TargetMemory& memory = copy.memory;
  if (access.target_disp < 0 || access.target_disp > memory.bytes / memory.unit) return outside;
  const auto* const start = reinterpret_cast<const std::byte*>(memory.remote_address);  // NOLINT: an address
  const std::byte* first = nullptr;
  int64_t length = 0;
  if (!Message(*copy.theirs, access.target_count, start + access.target_disp * memory.unit).reach(first, length))
    return outside;
  if (first < start || length > memory.bytes || first - start > memory.bytes - length) return outside;
  const std::byte* own_first = nullptr;
  int64_t own_length = 0;
  if (!Message(*copy.own, access.count, access.origin).reach(own_first, own_length))
    return "its origin's bytes have no place";
  const std::byte* const target_first =
      memory.local_address == nullptr ? nullptr : memory.local_address + (first - start);
  if (target_first != nullptr && overlap(target_first, length, own_first, own_length))
    return "it overlaps its origin's bytes";
  return nullptr;
}

template <class N>
Copy copy_for(const Access<N>& access, bool has_request) {
  Copy copy;
  const Lock lock;
  copy.window = layer.windows.find(access.window);
  if (copy.window == nullptr && !layer.tally) return copy;
  copy.own = layer.types.form(access.type);
  copy.theirs = layer.types.form(access.target_type);
  const Form& own = *copy.own;
  const Form& theirs = *copy.theirs;
  copy.bytes = Place::capacity_of(own, access.count);
  const Window::TargetMemory* memory = nullptr;
  if (copy.window != nullptr) {
    if (!own.is_contiguous(access.count) || !theirs.is_contiguous(access.target_count))
      copy.window->look_up(access.target);
    memory = copy.window->memory_of(access.target);
  }
  if (memory != nullptr) copy.memory = *memory;
  const auto why_not = [&]() -> const char* {
    if (!own.is_known || !theirs.is_known) return "a type that is not known here";
    if (own.is_contiguous(access.count) && theirs.is_contiguous(access.target_count)) return "contiguous";
    if (copy.bytes < std::min(layer.settings.min_bytes, least_bytes)) return "short";
    if (layer.settings.path == Path::pass) return "asked for";
    if (memory == nullptr) return "a window that is not of one machine's ranks, or that grows";
    if (!copy.window->has_posted_memory(access.target)) return "the target has not told yet where its memory lies";
    if (copy.bytes == INT64_MAX || copy.bytes != Place::capacity_of(theirs, access.target_count)) return "wrong counts";
    if (has_request && !copy.window->is_passive()) return "under no lock";
    return why_misplaced(access, copy);
  }();
  if (why_not != nullptr) {
    copy.why = why_not;
  } else {
    choose_way(copy);
  }
  return copy;
}

[[nodiscard]] bool move_by_cma(const Copy& copy, const Message& own, const Message& theirs, bool is_put) {
  const auto target_rank = static_cast<uint32_t>(copy.memory.rank);
  const Board& board = layer.pipeline.board();
  const CopyEnd end = end_of(theirs, theirs.count());
  const RemotePlace place{end.blob, end.count, reinterpret_cast<uint64_t>(end.base)};
  const peer::Process& process = board.process(target_rank);
  return is_put ? write_by_cma(process, board.word_of(target_rank), place, own, copy.bytes).ok()
                : read_by_cma(process, place, own, copy.bytes).ok();
}

// Copies the bytes of an access. False: the MPI has to do the access, also the part of it that was copied.
template <class N>
[[nodiscard]] bool move_bytes(const Access<N>& access, bool is_put, Copy& copy) {
  const char* why_not = copy.window->why_closed(access.target);
  if (why_not == nullptr) {
    const bool by_cma = copy.way == Way::cma;
    const uint64_t start = by_cma ? copy.memory.remote_address : reinterpret_cast<uint64_t>(copy.memory.local_address);
    const auto* const target_base = reinterpret_cast<const std::byte*>(start);  // NOLINT: an address
    const Message own(*copy.own, access.count, access.origin);
    const Message theirs(*copy.theirs, access.target_count, target_base + access.target_disp * copy.memory.unit);
    const CopyEnd from = end_of(is_put ? own : theirs, is_put ? own.count() : theirs.count());
    const CopyEnd to = end_of(is_put ? theirs : own, is_put ? theirs.count() : own.count());
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const bool done = by_cma ? move_by_cma(copy, own, theirs, is_put) : copy_part(from, to, {0, copy.bytes}).ok();
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (done) return true;
    if (by_cma) copy.window->forbid_cma(access.target);
    why_not = "its bytes could not be copied";
  }
  copy.way = Way::pass;
  copy.why = why_not;
  return false;
}

// Counts an access for the report, by the target's type unless only the origin's has gaps.
template <class N>
void count(const Access<N>& access, const Copy& copy) {
  if (!layer.tally || copy.own == nullptr || copy.theirs == nullptr) return;
  const bool by_target = !copy.theirs->is_contiguous(access.target_count) || copy.own->is_contiguous(access.count);
  Place place;
  place.count = by_target ? access.target_count : access.count;
  place.form = by_target ? copy.theirs : copy.own;
  place.call = access.call;
  const Lock lock;
  layer.count(place, copy.memory.rank, copy.way, copy.why);
}

// True if both ends are contiguous, which is the MPI's, and no report is wanted.
template <class N>
bool passes_at_once(const Access<N>& access) {
  const Lock lock;
  if (layer.tally || !layer.types.form(access.type)->is_contiguous(access.count)) return false;
  const bool are_alike = access.type == access.target_type && access.count == access.target_count;
  return are_alike || layer.types.form(access.target_type)->is_contiguous(access.target_count);
}

template <class N>
bool copy_if_quicker(const Access<N>& access, bool is_put, bool has_request = false) {
  if (access.moves_nothing() || passes_at_once(access)) return false;
  Copy copy = copy_for(access, has_request);
  const bool done = copy.way != Way::pass && move_bytes(access, is_put, copy);
  if (done) layer.windows.count_copy();
  count(access, copy);
  return done;
}

Key next_window(Comm comm) {
  const Lock lock;
  return layer.teams.next_window(comm);
}

int add_window(int code, Win handle, Comm comm, Key key, const PostedMemory& posted) {
  if (code == success) layer.windows.add(handle, comm, key, posted);
  return code;
}

PostedMemory memory_to_post(const void* base, Aint bytes, int64_t unit, PostedMemory::Location otherwise) {
  const bool in_heap = base != nullptr && bytes > 0 && process_heap_is_malloc() &&
                       process_heap().is_shared(base, static_cast<uint64_t>(bytes));
  return {reinterpret_cast<uint64_t>(base), bytes, unit, in_heap ? PostedMemory::Location::in_heap : otherwise, 0, {}};
}

}  // namespace

template <class N>
int Win_create(void* base, Aint bytes, N unit, Info info, Comm comm, Win* window) {
  const Key key = next_window(comm);
  const int code = real.counted<N>().Win_create(base, bytes, unit, info, comm, window);
  return add_window(code, *window, comm, key, memory_to_post(base, bytes, unit, PostedMemory::Location::elsewhere));
}

template <class N>
int Win_allocate(Aint bytes, N unit, Info info, Comm comm, void* base, Win* window) {
  const Key key = next_window(comm);
  const int code = real.counted<N>().Win_allocate(bytes, unit, info, comm, base, window);
  return add_window(code, *window, comm, key,
                    memory_to_post(*static_cast<void**>(base), bytes, unit, PostedMemory::Location::in_mpis_memory));
}

template <class N>
int Win_allocate_shared(Aint bytes, N unit, Info info, Comm comm, void* base, Win* window) {
  const Key key = next_window(comm);
  const int code = real.counted<N>().Win_allocate_shared(bytes, unit, info, comm, base, window);
  return add_window(code, *window, comm, key,
                    memory_to_post(*static_cast<void**>(base), bytes, unit, PostedMemory::Location::in_mpis_memory));
}

template <class N>
int Put(const void* origin, N count, Datatype type, int target, Aint target_disp, N target_count, Datatype target_type,
        Win window) {
  if (copy_if_quicker<N>({"MPI_Put", origin, count, type, target, target_disp, target_count, target_type, window},
                         true))
    return success;
  return real.counted<N>().Put(origin, count, type, target, target_disp, target_count, target_type, window);
}

template <class N>
int Get(void* origin, N count, Datatype type, int target, Aint target_disp, N target_count, Datatype target_type,
        Win window) {
  if (copy_if_quicker<N>({"MPI_Get", origin, count, type, target, target_disp, target_count, target_type, window},
                         false))
    return success;
  return real.counted<N>().Get(origin, count, type, target, target_disp, target_count, target_type, window);
}

// After a copy, an access of no bytes by the MPI gives the program its request.
template <class N>
int Rput(const void* origin, N count, Datatype type, int target, Aint target_disp, N target_count, Datatype target_type,
         Win window, Request* request) {
  if (copy_if_quicker<N>({"MPI_Put", origin, count, type, target, target_disp, target_count, target_type, window}, true,
                         true)) {
    return real.Rput(origin, 0, handles().byte, target, 0, 0, handles().byte, window, request);
  }
  return real.counted<N>().Rput(origin, count, type, target, target_disp, target_count, target_type, window, request);
}

template <class N>
int Rget(void* origin, N count, Datatype type, int target, Aint target_disp, N target_count, Datatype target_type,
         Win window, Request* request) {
  if (copy_if_quicker<N>({"MPI_Get", origin, count, type, target, target_disp, target_count, target_type, window},
                         false, true)) {
    return real.Rget(origin, 0, handles().byte, target, 0, 0, handles().byte, window, request);
  }
  return real.counted<N>().Rget(origin, count, type, target, target_disp, target_count, target_type, window, request);
}

#define SPINLOOM_FOR_COUNTS(name, N, parameters) template int name<N> parameters;
SPINLOOM_WINDOW_CALLS(SPINLOOM_FOR_COUNTS, int)
SPINLOOM_WINDOW_CALLS(SPINLOOM_FOR_COUNTS, Count)
#undef SPINLOOM_FOR_COUNTS

}  // namespace spinloom::mpi::SPINLOOM_ABI
