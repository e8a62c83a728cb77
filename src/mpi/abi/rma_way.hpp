// RmaWay - by what the ranks of a window access each other's memory and synchronise: their NICs, or memory that all of
// them have mapped.
//
// Contract: an RmaWindow (rma_window.hpp) checks and describes accesses; a way does them. Ranks are the window's. Calls
//   return a code of portals4.h: PTL_OK, PTL_ARG_INVALID where the call does not belong to what was called before, else
//   another one, and error() has a sentence. Those named *_test() are called again until they set `done`.
// Threads: the caller's lock. Time: none.
#pragma once

#include <portals4.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "mpi/abi/abi.hpp"
#include "spinloom/rma.h"

namespace spinloom::mpi::SPINLOOM_ABI {

class RmaWay {
 public:
  virtual ~RmaWay() = default;
  [[nodiscard]] virtual const char* error() const = 0;

  virtual int fence_begin() = 0;
  virtual int fence_test(int* done) = 0;
  virtual int post(std::span<const int> origins) = 0;
  virtual int completed_test(int* done) = 0;
  virtual int start_test(std::span<const int> targets, int* done) = 0;
  virtual int complete() = 0;
  virtual int lock_begin(int target, bool is_shared) = 0;
  virtual int lock_test(int target, int* done) = 0;
  virtual int unlock(int target) = 0;
  // True if an access has ended when its call returns: then flush_test() finds nothing to wait for.
  [[nodiscard]] virtual bool is_immediate() const { return false; }
  // The shared locks of all ranks at once, for an immediate way.
  virtual int lock_all_test(int*) { return PTL_FAIL; }
  virtual int unlock_all() { return PTL_FAIL; }
  virtual int flush_test(int target, int* done) = 0;
  // Sleeps for a moment, or until something has changed that a rank may wait for. `lock_of`: the rank for whose lock it
  // waits; -1: for something else. is_needed() is asked once more before. False: the way cannot sleep.
  virtual bool sleep(int, const std::function<bool()>&) { return false; }
  // After the last fence of all ranks: no other rank uses the way any more when it is done.
  virtual int close_test(int* done) = 0;

  // Copies the bytes of `here`, piece after piece, to the parts `there` of the target's memory, or back.
  virtual int move(int target, std::span<const ptl_iovec_t> here, std::span<const spl_rma_piece> there,
                   bool is_put) = 0;

  // The target's part in this process, whose elements this process changes itself between begin_change() and
  // end_change(). Null: the way has functions for that, which follow. begin_change() is false while another rank, or
  // another thread of this one, changes elements there.
  [[nodiscard]] virtual uint8_t* memory_of(int) { return nullptr; }
  [[nodiscard]] virtual bool begin_change(int) { return false; }
  virtual void end_change(int) {}

  // Combines `from` into elements of the target. `result` gets their old values, if there is one. Without `from` they
  // are only read.
  virtual int accumulate(int target, uint64_t offset, const void* from, void* result, uint64_t count, int op,
                         ptl_datatype_t type) = 0;
  virtual int compare_and_swap(int target, uint64_t offset, const void* value, const void* compare, void* result,
                               ptl_datatype_t type) = 0;
  // Sets the target's word to `to` if it is `from`. After a flush, `was` holds its old value.
  virtual int swap_word(int target, uint64_t from, uint64_t to, uint64_t& was) = 0;
};

}  // namespace spinloom::mpi::SPINLOOM_ABI
