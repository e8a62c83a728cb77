// Descriptor - a memory descriptor, as far as the operations on it share it: its pieces, and how many are under way.
//
// Contract: the host counts an operation with begin() before it submits it, the NIC ends it by end(), once, before the
//   last event or count of the operation, or when it is refused or forgotten. A descriptor that none uses may go.
//   copy_of() is a descriptor of its own over a copy of bytes, whose operations are those of the other one, too.
// Threads: host and NIC may be two. Time: none.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "nic/iovec.hpp"

namespace spinloom::nic {

class Descriptor {
 public:
  // No elements: the memory is contiguous, operations say where.
  explicit Descriptor(std::vector<IovecElement> elements = {})
      : elements_(std::move(elements)), ends_(ends_of(elements_)) {}

  [[nodiscard]] static std::shared_ptr<Descriptor> copy_of(const std::shared_ptr<Descriptor>& other,
                                                           std::vector<uint8_t> bytes) {
    auto made = std::make_shared<Descriptor>();
    made->bytes_ = std::move(bytes);
    made->other_ = other;
    return made;
  }

  [[nodiscard]] IovecView list() const { return {elements_, ends_}; }
  [[nodiscard]] const uint8_t* bytes() const { return bytes_.data(); }

  void begin() { counted().fetch_add(1, std::memory_order_relaxed); }
  void end() { counted().fetch_sub(1, std::memory_order_release); }
  [[nodiscard]] bool in_use() const { return under_way_.load(std::memory_order_acquire) > 0; }

 private:
  [[nodiscard]] std::atomic<uint32_t>& counted() { return other_ ? other_->under_way_ : under_way_; }

  std::vector<IovecElement> elements_;
  std::vector<uint64_t> ends_;
  std::vector<uint8_t> bytes_;  // of a copy
  std::shared_ptr<Descriptor> other_;
  std::atomic<uint32_t> under_way_{0};
};

}  // namespace spinloom::nic
