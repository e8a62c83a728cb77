// RmaWindow - one window of the program on one-sided memory of ours: its epochs and its accesses.
//
// Contract: most functions are calls of MPI, without the argument for the window; they return MPI_SUCCESS or an error
//   code, for which no error handler has been called yet. Ranks are the window's. Accesses do not wait, but for
//   update(); they end with the epoch's end, a flush, or their request.
// Invariants: (1) put and get go between the program's own memory at both ends, in pieces where types have gaps;
//   (2) what the NIC accumulates is packed first where it is not contiguous, and what it fetches lands packed where its
//   place is not contiguous: such memory is kept until its operation has ended (PackedMemory); (3) elements that the
//   NIC cannot change (RmaType::code) are changed by their origin, which holds the target's word meanwhile: update();
//   all elements of memory that is mapped here are changed in place: change_in_place(); (4) calls that wait look again
//   and again, and let the MPI go on in between, because other ranks may wait for it.
// Threads: takes the lock itself, and never keeps it while it waits. Time: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "mpi/abi/abi.hpp"
#include "mpi/abi/rma_types.hpp"
#include "mpi/abi/rma_way.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

// The accesses to all windows, for the report.
struct RmaCounts {
  uint64_t puts = 0, gets = 0, accumulates = 0, fetches = 0, updates = 0;
  uint64_t bytes = 0;
};

class RmaWindow {
 public:
  struct Part {
    uint32_t rank = 0;  // the rank in the job
    int64_t bytes = 0;
    int64_t unit = 1;
  };
  RmaWindow(std::unique_ptr<RmaWay> way, RmaTypes& types, RmaCounts& counts, Win handle, std::vector<Part> parts);
  RmaWindow(const RmaWindow&) = delete;
  RmaWindow& operator=(const RmaWindow&) = delete;

  [[nodiscard]] Win handle() const { return handle_; }
  // The window's ranks of a group's processes, without those that the window does not have.
  [[nodiscard]] std::vector<int> ranks_of(Group group);

  // Epochs. Groups are the window's ranks.
  [[nodiscard]] int fence(int assert);
  [[nodiscard]] int post(std::span<const int> origins);
  [[nodiscard]] int start(std::span<const int> targets);
  [[nodiscard]] int complete();
  [[nodiscard]] int wait();
  [[nodiscard]] int test(int* flag);
  [[nodiscard]] int lock(int kind, int target, int assert);
  [[nodiscard]] int unlock(int target);
  [[nodiscard]] int lock_all(int assert);
  [[nodiscard]] int unlock_all();
  [[nodiscard]] int flush(int target);
  [[nodiscard]] int flush_all();
  // Waits until all ranks have come to the window's end, and ends it at this rank.
  [[nodiscard]] int close();

  // Accesses. A Buffer is `count` elements of a type in this rank's memory; a RemoteBuffer, at the target.
  struct Buffer {
    void* address = nullptr;
    int64_t count = 0;
    Datatype type{};
  };
  struct RemoteBuffer {
    int target = 0;
    Aint target_disp = 0;
    int64_t count = 0;
    Datatype type{};
  };
  [[nodiscard]] int put(const Buffer& from, const RemoteBuffer& remote);
  [[nodiscard]] int get(const Buffer& to, const RemoteBuffer& remote);
  // If there is a `result`, it gets the elements from before the operation.
  [[nodiscard]] int accumulate(const Buffer& from, const Buffer* result, const RemoteBuffer& remote, Op op);
  [[nodiscard]] int compare_and_swap(const void* value, const void* compare, void* result, const RemoteBuffer& remote);
  // Makes a request that ends when all accesses to the target have; at once for MPI_PROC_NULL.
  [[nodiscard]] int request_of(int target, Request* request);
  // True if all accesses to the target have ended, and what was fetched is in place, or if `code` is an error.
  [[nodiscard]] bool has_ended(int target, int& code);

  // True if an argument is wrong, so that the MPI's own function must be called to raise the error.
  [[nodiscard]] bool is_wrong(const RemoteBuffer& remote) const {
    return remote.count < 0 || remote.type == handles().type_null ||
           (remote.target != proc_null && (remote.target < 0 || static_cast<size_t>(remote.target) >= parts_.size()));
  }

 private:
  enum class Hold : uint8_t { none, by_lock, unchecked };
  struct PackedMemory {
    int target = 0;
    std::vector<uint8_t> bytes;
    Buffer into;
    FormPointer form;  // the form of `into`; null: the bytes go nowhere
  };
  // An access with its types, and where its bytes lie.
  struct Access {
    RmaType own;
    RmaType theirs;
    std::vector<MemoryBlock> own_blocks;
    std::vector<MemoryBlock> their_blocks;  // offsets are those in the target's part
    Part* part = nullptr;
    int64_t bytes = 0;
  };
  // An accumulating access: the forms of the origin's operands, of the place of the result and of the target's
  // elements.
  struct Accumulation {
    FormPointer own, into, theirs;
    MemoryBlocks own_blocks, their_blocks;  // RmaType::long_blocks
    Datatype element{};
    std::optional<ptl_datatype_t> code;  // RmaType::code
    FormPointer element_form;
    int64_t bytes = 0;
  };
  [[nodiscard]] bool is_open_to(int target) const;
  [[nodiscard]] uint8_t* start_of(const RemoteBuffer& remote, const Form& form, uint8_t* memory) const;
  [[nodiscard]] int describe(const Buffer* from, const Buffer* result, const RemoteBuffer& remote,
                             Accumulation& change);
  [[nodiscard]] int find_remote(const RemoteBuffer& remote, Access& access);
  [[nodiscard]] int find_own(const Buffer& own, Access& access);
  [[nodiscard]] int copy(const Buffer& own, const RemoteBuffer& remote, uint8_t* memory, bool is_put);
  void count_copy(const Buffer& own, const RemoteBuffer& remote, const FormPointer& here, const FormPointer& there,
                  bool is_put) const;
  [[nodiscard]] bool move_alike(const Buffer& own, const RemoteBuffer& remote, uint8_t* memory, bool is_put);
  [[nodiscard]] int move(const Buffer& own, const RemoteBuffer& remote, bool is_put);
  [[nodiscard]] int change_by_nic(const Buffer* from, const Buffer* result, const RemoteBuffer& remote,
                                  const Access& access, int op);
  // Changes elements by this rank's processor: change(bytes) makes of the packed bytes what they become.
  template <class Change>
  [[nodiscard]] int update(int target, const Access& access, Change change);
  [[nodiscard]] int change_here(const Buffer* from, const Buffer* result, const RemoteBuffer& remote,
                                const Access& access, Op op);
  // Calls change() under the lock and under the target's change lock, which no thread waits for with the lock held.
  template <class Change>
  void change_under_lock(int target, Change change);
  // Changes elements where they lie, in memory that this process has mapped.
  [[nodiscard]] int change_in_place(const Buffer* from, const Buffer* result, const RemoteBuffer& remote,
                                    const Accumulation& change, Op op);
  // change_in_place() without a copy, for elements that lie in long blocks. `there`: in this process.
  [[nodiscard]] int change_where_they_lie(const Buffer& from, const Buffer& there, int target,
                                          const Accumulation& change, Op op);
  [[nodiscard]] int swap_word(int target, uint64_t from, uint64_t to, uint64_t& was);
  [[nodiscard]] int move_packed(int target, const Access& access, uint8_t* packed, bool is_put);
  // Returns memory for packed bytes, which is kept until all accesses to the target have ended. Then settle() puts the
  // bytes `into` the buffer, if there is one, and frees the memory.
  [[nodiscard]] uint8_t* keep_packed(int target, int64_t bytes, const Buffer* into = nullptr);
  void settle(int target);
  // Waits until `test` says that what it looks for is over (rma_wait.hpp). `lock_of`: see RmaWay::sleep().
  template <class Test>
  [[nodiscard]] int wait_for(Test test, int lock_of = -1);
  [[nodiscard]] int failed() const;
  [[nodiscard]] int flush_part(int target);

  std::unique_ptr<RmaWay> way_;
  RmaTypes& types_;
  RmaCounts& counts_;
  Win handle_;
  std::vector<Part> parts_;
  std::list<PackedMemory> packed_memory_;
  bool is_fenced_ = false;
  bool is_started_ = false;
  bool holds_all_ = false;
  bool holds_at_once_ = false;  // holds_all_, by RmaWay::lock_all_test()
  const bool is_immediate_;  // the way is
  std::vector<int> started_;
  std::optional<Group> group_;  // the window's
  std::vector<Hold> holds_;  // one for each rank
};

}  // namespace spinloom::mpi::SPINLOOM_ABI
