// RmaWindows - the windows that stand on one-sided memory of ours, for all of their calls: on memory that all of their
//   ranks have mapped or, where the job asks for it, on the NIC's.
//
// Contract: begin() is called in MPI_Init by all ranks, or by none; where the job asks for the NIC, once the NIC of
//   each has its memory. add() follows a window's creation by the MPI, on every rank of its communicator: a collective
//   call, after which the window goes the same way at all of them: by mapped memory, by the NIC, or by the MPI. free()
//   precedes its end, and is collective, too.
// Invariants: (1) the MPI's own window is there for what is no access and no epoch: attributes, names, groups and error
//   handlers; it has no accesses. (2) A window stays the MPI's where a rank could not make its part, where its
//   communicator has a rank that is no founder (Teams::members()), and if it was made by MPI_Win_create_dynamic.
// Threads: any, but for begin(), turn_off() and end(); it takes the lock itself. Time: none.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "mpi/abi/abi.hpp"
#include "mpi/abi/rma_arguments.hpp"
#include "mpi/abi/rma_window.hpp"
#include "mpi/abi/windows.hpp"
#include "mpi/entry/handle_map.hpp"
#include "mpi/meeting/window_words.hpp"
#include "mpi/nic/nic.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

class RmaWindows {
 public:
  explicit RmaWindows(Nic& nic) : nic_(nic) {}
  void begin() { why_off_.clear(); }
  void turn_off(std::string why);
  void end();
  [[nodiscard]] bool is_on() const { return why_off_.empty() && !has_ended_; }
  [[nodiscard]] const std::string& why_off() const { return why_off_; }

  void add(Win handle, Comm comm, void* base, int64_t bytes, int64_t unit);
  [[nodiscard]] RmaWindow* find(Win handle);
  [[nodiscard]] int free(RmaWindow& window);

  [[nodiscard]] RmaArguments& arguments() { return arguments_; }
  [[nodiscard]] std::string as_json() const;

 private:
  Nic& nic_;
  std::string why_off_ = "not asked for";
  bool has_ended_ = false;
  HandleMap<std::unique_ptr<RmaWindow>> windows_;
  RmaTypes types_;
  RmaArguments arguments_;
  RmaCounts counts_;
  [[nodiscard]] std::unique_ptr<RmaWay> mapped_way(Win handle, const Members& members,
                                                   const std::vector<RmaWindow::Part>& parts,
                                                   const std::vector<uint64_t>& places, WindowWords own,
                                                   std::string& why_not);
  [[nodiscard]] std::unique_ptr<RmaWay> nic_way(Comm comm, const Members& members, void* base, int64_t bytes);

  uint64_t windows_made_ = 0;
  uint64_t windows_mapped_ = 0;  // the windows on mapped memory
  std::map<std::string, uint64_t> windows_left_;  // the windows that are the MPI's, by the reason
  bool has_arguments_ = false;  // arguments_ has begun
};

}  // namespace spinloom::mpi::SPINLOOM_ABI
