// Published - a layout's bytes where peers can read them: in this process's heap.
//
// Contract: put() copies the bytes once; address() is 0 before that, or if there is no room. The destructor frees the
//   copy, so a Published must live at least as long as a message that names it.
// Threads: any; call bytes() after address(). Time: none.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace spinloom::mpi {

class Published {
 public:
  Published() = default;
  Published(const Published&) = delete;
  Published& operator=(const Published&) = delete;
  ~Published();

  void put(std::span<const std::byte> bytes) {
    if (address() == 0) put_first(bytes);
  }
  [[nodiscard]] uint64_t address() const { return address_.load(std::memory_order_acquire); }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }

 private:
  void put_first(std::span<const std::byte> bytes);

  std::atomic<uint64_t> address_{0};
  uint64_t bytes_ = 0;
};

}  // namespace spinloom::mpi
