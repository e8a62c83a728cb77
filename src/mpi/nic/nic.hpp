// Nic - the live Portals NIC of this rank, for a job with collective calls or windows on it.
//
// Contract: load() loads libportals.so.4, which lies beside this library; open() becomes a rank of the Portals job,
//   which all ranks do or none; close() leaves it. open() waits for the others in PtlInit only: no schedule may be
//   started before they are known to have opened theirs. open_memory() waits until all ranks are in it. All of these
//   but close() return a sentence that describes the error, or an empty one.
// Invariants: (1) nothing of Portals is loaded in a job that does not ask for it; (2) team ids are those of
//   communicators that live, or whose calls are still under way.
// Threads: one at a time. Time: none.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "spinloom/offload.h"
#include "spinloom/rma.h"

namespace spinloom::mpi {

#define SPINLOOM_NIC_FUNCTIONS(X) \
  X(PtlInit)                      \
  X(PtlFini)                      \
  X(PtlNIInit)                    \
  X(PtlNIFini)                    \
  X(PtlGetId)                     \
  X(spl_oe_open)                  \
  X(spl_oe_close)                 \
  X(spl_oe_error)                 \
  X(spl_team_make)                \
  X(spl_team_free)                \
  X(spl_collective)               \
  X(spl_schedule_start)           \
  X(spl_schedule_test)            \
  X(spl_schedule_free)            \
  X(spl_rma_open)                 \
  X(spl_rma_close)                \
  X(spl_rma_error)                \
  X(spl_rma_register)             \
  X(spl_rma_deregister)           \
  X(spl_rma_export)               \
  X(spl_rma_import)               \
  X(spl_rma_forget)               \
  X(spl_rma_window_part)          \
  X(spl_rma_window_join)          \
  X(spl_rma_window_drop)          \
  X(spl_rma_window_key)           \
  X(spl_rma_window_fence_begin)   \
  X(spl_rma_window_fence_test)    \
  X(spl_rma_post)                 \
  X(spl_rma_start_test)           \
  X(spl_rma_complete)             \
  X(spl_rma_test_completed)       \
  X(spl_rma_lock_begin)           \
  X(spl_rma_lock_test)            \
  X(spl_rma_unlock)               \
  X(spl_rma_flush_test)           \
  X(spl_rma_put)                  \
  X(spl_rma_get)                  \
  X(spl_rma_put_pieces)           \
  X(spl_rma_get_pieces)           \
  X(spl_rma_accumulate)           \
  X(spl_rma_get_accumulate)       \
  X(spl_rma_compare_and_swap)

class Nic {
 public:
  static constexpr uint32_t teams_max = 1'024;
  // A bit for each team id, set if some communicator has the id. The bit of id 0, which no team has, is set while a
  // rank chooses an id for another communicator.
  using Ids = std::array<uint8_t, teams_max / 8>;
  [[nodiscard]] static Ids busy() { return {1}; }
  [[nodiscard]] static bool is_busy(const Ids& ids) { return (ids[0] & 1) != 0; }

  [[nodiscard]] std::string load();
  // `with_engine`: opens the offload engine, too.
  [[nodiscard]] std::string open(uint32_t rank, bool with_engine);
  [[nodiscard]] std::string open_memory();
  // This is a collective call if the NIC's memory is open.
  void close();
  [[nodiscard]] spl_oe* engine() const { return engine_; }
  [[nodiscard]] spl_rma* memory() const { return memory_; }

  [[nodiscard]] const Ids& taken_ids() const { return ids_; }
  // Returns the least id that is not taken; 0: there is none.
  [[nodiscard]] static uint32_t free_id(const Ids& taken_somewhere);
  void take_id(uint32_t id) { ids_[id / 8] |= bit(id); }
  void give_back_id(uint32_t id) { ids_[id / 8] &= static_cast<uint8_t>(~bit(id)); }

#define SPINLOOM_MEMBER(name) decltype(&::name) name = nullptr;
  SPINLOOM_NIC_FUNCTIONS(SPINLOOM_MEMBER)
#undef SPINLOOM_MEMBER

 private:
  [[nodiscard]] std::string open_engine(uint32_t rank, bool with_engine);
  [[nodiscard]] static uint8_t bit(uint32_t id) { return static_cast<uint8_t>(1U << (id % 8)); }

  ptl_handle_ni_t interface_{};
  bool has_interface_ = false;
  spl_oe* engine_ = nullptr;
  spl_rma* memory_ = nullptr;
  Ids ids_{};
};

}  // namespace spinloom::mpi
