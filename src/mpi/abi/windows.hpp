// Windows - what the layer knows of the program's windows: where the memory of each target lies in this process, and
// whether this process may touch it now.
//
// Contract: add() follows a window's creation, on every rank of its communicator, and sends nothing; forget() precedes
//   its end. look_up() finds what a target has posted of its memory, when this rank wants to access it; until it is
//   there, accesses are the MPI's. The calls by which epochs begin and end (epochs.cpp) tell the Window so.
//   why_closed() says why a copy to or from a target's memory must not be made at once, in place of a call of MPI_Put
//   or MPI_Get; null: it may be.
// Invariants: (1) all ranks of a window's communicator know the window, or none does, so that they change asserts
//   alike; what each can reach, it finds out for itself. (2) A copy is made at once only where the target has granted
//   access:
//   - between fences, where the MPI's fence is a barrier. An assert that there is nothing to end (MPI_MODE_NOPRECEDE)
//     would let a fence return early, so it is not handed on;
//   - under a lock that is known to be granted. Some MPIs ask for it no sooner than the first access: where that cannot
//     be ruled out, one byte is read by MPI_Rget first, and until it has come all accesses are left to the MPI. The
//     first access waits for it only for a moment, because the holder of the lock may wait for us;
//   - between MPI_Win_start and MPI_Win_complete, once the target has posted. Some MPIs return from MPI_Win_start
//     before it has, so each target counts its posts where we see them (Posts); a late target is waited for only for
//     a moment.
//   (3) An access that was copied has ended. One that the MPI carries ends by the MPI's next flush, unlock or fence;
//   until then the program must not touch the same place by any other access than an accumulate (MPI 4.1, 12.7), and
//   these all are the MPI's. So accesses of both kinds may be mixed. (4) Nothing is copied where the MPI has a separate
//   copy of the window (MPI_WIN_SEPARATE).
// Threads: Lock, for all but Windows::add(), why_closed(), forbid_cma(), unlock() and unlock_all(), which take it
//   themselves, and count_copy() and copies(). Time: none.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "mpi/abi/abi.hpp"
#include "mpi/abi/teams.hpp"
#include "mpi/entry/handle_map.hpp"
#include "mpi/meeting/mappings.hpp"
#include "mpi/meeting/posts.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

// Returns the ranks in a window of a group's processes, without those that the window does not have. Empty if the MPI
// does not say them.
[[nodiscard]] std::vector<int> ranks_in(Group group, Win window);
[[nodiscard]] std::vector<int> ranks_in_group(Group group, Group window_group);

class Window {
 public:
  // A target's memory, as the target has given it to the window.
  struct TargetMemory {
    std::byte* local_address = nullptr;  // its address in this process; null: it cannot be mapped
    int64_t bytes = 0;
    int64_t unit = 1;
    uint64_t remote_address = 0;  // its address in the target's process
    bool is_reached_by_cma = false;  // true if system calls of this process reach it
    int rank = -1;  // the target's rank in MPI_COMM_WORLD
    const Posts::Count* posts = nullptr;  // the number of the target's posts to this rank; null: not known
  };
  // Properties of the windows of the MPI that is loaded.
  struct MpiTraits {
    bool fences_meet = false;  // a fence returns when all ranks have come to it
    bool locks_wait = false;  // a call that locks returns when the lock is granted
    bool is_cma_quicker = false;  // system calls take less time than its accesses to long blocks that cannot be mapped
  };

  // `key`: by which the ranks have posted what they tell of their memory; none: they could not. `own`: what this rank
  // tells.
  Window(Win handle, Key key, std::shared_ptr<const Members> members, PostedMemory own, Posts posts, MpiTraits traits);

  [[nodiscard]] const TargetMemory* memory_of(int target) const {
    return target >= 0 && static_cast<size_t>(target) < targets_.size() ? &targets_[static_cast<size_t>(target)].memory
                                                                        : nullptr;
  }
  // Finds out where the memory of `target` lies, if the target has posted it. `mappings`: this process's, where several
  // targets are looked up.
  void look_up(int target, SharedMappings* mappings = nullptr);
  [[nodiscard]] bool has_posted_memory(int target) const { return targets_[static_cast<size_t>(target)].is_known; }
  [[nodiscard]] Key key() const { return key_; }
  void fence(int assert) { epoch_ = (assert& mode_nosucceed) != 0 ? Epoch::none : Epoch::fenced; }
  // `targets`: ranks of the window.
  void start(std::span<const int> targets);
  void complete();
  [[nodiscard]] const Posts& posts() const { return posts_; }
  void lock(int target, int assert);
  void lock_all(int assert);
  void unlock(int target);  // precedes MPI_Win_unlock
  void unlock_all();
  [[nodiscard]] bool is_cma_quicker() const { return traits_.is_cma_quicker; }
  [[nodiscard]] bool is_passive() const { return epoch_ == Epoch::locked; }
  // Lets no more system calls be used for a target, because they have failed.
  void forbid_cma(int target);
  // Returns why a copy must not be made now; null: it may. `target` must have a part.
  [[nodiscard]] const char* why_closed(int target);

 private:
  enum class Epoch : uint8_t { none, fenced, started, locked };
  enum class Grant : uint8_t { none, wanted, asked, granted };
  struct Target {
    TargetMemory memory;
    bool is_known = false;
    uint64_t seen = 0;  // the state that Postings::find() has seen so far
    Grant grant = Grant::none;
    Request grant_request{};
    uint8_t grant_byte = 0;
    bool is_started = false;
    bool is_late = false;  // this rank has waited for its post in vain
    uint64_t starts = 0;
  };
  [[nodiscard]] Grant granted_by(int assert) const {
    return traits_.locks_wait || (assert& mode_nocheck) != 0 ? Grant::granted : Grant::wanted;
  }
  [[nodiscard]] bool request_grant(Target& target, int rank);
  [[nodiscard]] static bool poll_grant(Target& target);
  [[nodiscard]] static bool has_posted(const Target& target) {
    return target.memory.posts != nullptr && target.memory.posts->load(std::memory_order_acquire) >= target.starts;
  }
  [[nodiscard]] const char* why_not_granted(Target& target) const;
  static void settle(Target& target);

  [[nodiscard]] bool is_unified();

  Win handle_;
  Key key_;
  std::shared_ptr<const Members> members_;
  PostedMemory own_;
  std::optional<bool> is_unified_;
  std::vector<Target> targets_;
  Posts posts_;
  MpiTraits traits_;
  Epoch epoch_ = Epoch::none;
  int locks_ = 0;
};

class Windows {
 public:
  [[nodiscard]] bool none() const { return windows_.empty(); }
  [[nodiscard]] Window* find(Win handle) {
    std::unique_ptr<Window>* const found = windows_.find(key_of(handle));
    return found == nullptr ? nullptr : found->get();
  }
  // `comm`: the window's communicator. `key`: the window's, from Teams::next_window(). `posted`: what this rank tells
  // of its memory.
  void add(Win handle, Comm comm, Key key, PostedMemory posted);
  void forget(Win handle);
  void count_copy() { copies_.fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] uint64_t copies() const { return copies_.load(std::memory_order_relaxed); }

 private:
  HandleMap<std::unique_ptr<Window>> windows_;
  std::atomic<uint64_t> copies_{0};
};

}  // namespace spinloom::mpi::SPINLOOM_ABI
