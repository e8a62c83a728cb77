// DevicePeers - finds out which ranks of this machine can map the memory of each other's device.
//
// Contract: open() is called with the device of each buffer in a device's memory. At the first call this rank puts up a
//   sign on the board: some bytes of that device's memory. notice() tries to map the signs of others, once each, by the
//   same device, and writes on the board which it has read; without news it costs a few loads. maps_ours() is true if a
//   rank has read our sign and has not called give_up() for us. Errors are silent: messages go by way of the host then,
//   and why() returns the first error for the report.
// Invariants: (1) messages of one device only are offered, and others' memory is mapped by one device only: ordinal().
// Threads: any. Time: none.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "memory/gpu/device.hpp"
#include "mpi/meeting/board.hpp"

namespace spinloom::mpi {

class DevicePeers {
 public:
  explicit DevicePeers(Board& board) : board_(board) {}
  DevicePeers(const DevicePeers&) = delete;
  DevicePeers& operator=(const DevicePeers&) = delete;

  void open(int ordinal) {
    if (ordinal_.load(std::memory_order_acquire) < 0) open_first(ordinal);
  }
  void notice() {
    if (ordinal() >= 0 && board_.device_signs().load(std::memory_order_acquire) != noticed_.load()) notice_now();
  }
  // The device of the first open(); below zero: there was none.
  [[nodiscard]] int ordinal() const { return ordinal_.load(std::memory_order_acquire); }
  [[nodiscard]] bool maps_ours(uint32_t receiver) const {
    return board_.maps_device(receiver, board_.rank()).load(std::memory_order_acquire) != 0;
  }
  // Called when this rank could not map a message that `sender` has offered: `sender` is to offer no more.
  void give_up(uint32_t sender, const Error& error);
  [[nodiscard]] std::string why() const;

 private:
  void open_first(int ordinal);
  [[nodiscard]] Status put_up_sign(int ordinal);
  void notice_now();
  [[nodiscard]] Status read_sign(const DeviceSign& sign) const;
  void keep_why(const Error& error);

  Board& board_;
  mutable std::mutex mutex_;
  std::atomic<int> ordinal_{-1};
  std::atomic<uint32_t> noticed_{0};
  std::vector<bool> tried_;
  gpu::Memory sign_;
  std::string why_;
};

}  // namespace spinloom::mpi
