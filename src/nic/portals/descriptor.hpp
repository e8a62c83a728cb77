// Descriptor - what the operations on a memory descriptor share: its pieces, and how many operations are open.
//
// Contract: the host counts an operation with begin() before it submits it. The NIC ends each operation once by
//   end(), before the operation's last event or count, or when the operation is refused or forgotten. A descriptor
//   without open operations may be released. copy_of() makes a descriptor over a copy of bytes, whose operations also
//   count for the original. A DescriptorRef counts without atomics: a put copies one, and an atomic count would wait
//   each time for all stores before it.
// Threads: the owner of the NIC, host and engine alike. Time: none.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "nic/portals/ids.hpp"
#include "nic/spin/iovec.hpp"

namespace spinloom::nic {

class Descriptor;

// A reference that keeps a descriptor alive; or none.
class DescriptorRef {
 public:
  DescriptorRef() = default;
  explicit DescriptorRef(Descriptor* made);  // takes over a new descriptor
  DescriptorRef(const DescriptorRef& other);
  DescriptorRef(DescriptorRef&& other) noexcept : to_(std::exchange(other.to_, nullptr)) {}
  DescriptorRef& operator=(DescriptorRef other) noexcept {
    std::swap(to_, other.to_);
    return *this;
  }
  ~DescriptorRef() { reset(); }

  void reset();
  explicit operator bool() const { return to_ != nullptr; }
  Descriptor* operator->() const { return to_; }
  Descriptor& operator*() const { return *to_; }

 private:
  Descriptor* to_ = nullptr;
};

class Descriptor {
 public:
  // Without elements the memory is contiguous, and operations carry their address.
  explicit Descriptor(std::vector<IovecElement> elements = {})
      : elements_(std::move(elements)), ends_(ends_of(elements_)) {}

  [[nodiscard]] static DescriptorRef make(std::vector<IovecElement> elements = {}) {
    return DescriptorRef(new Descriptor(std::move(elements)));
  }
  [[nodiscard]] static DescriptorRef copy_of(const DescriptorRef& other, std::vector<uint8_t> bytes) {
    DescriptorRef made = make();
    made->bytes_ = std::move(bytes);
    made->other_ = other;
    return made;
  }

  [[nodiscard]] IovecView list() const { return {elements_, ends_}; }
  [[nodiscard]] const uint8_t* bytes() const { return bytes_.data(); }

  void begin() { ++counted(); }
  void end() { --counted(); }
  [[nodiscard]] bool in_use() const { return under_way_ > 0; }

 private:
  friend class DescriptorRef;
  [[nodiscard]] uint32_t& counted() { return other_ ? other_->under_way_ : under_way_; }

  std::vector<IovecElement> elements_;
  std::vector<uint64_t> ends_;
  std::vector<uint8_t> bytes_;  // the bytes of a copy
  DescriptorRef other_;
  uint32_t under_way_ = 0;
  uint32_t holders_ = 0;
};

// True if the descriptor has a list that contains the range.
[[nodiscard]] inline bool is_listed(const DescriptorRef& descriptor, uint64_t offset, uint64_t length) {
  if (!descriptor || !descriptor->list().exists()) return false;
  const uint64_t whole = descriptor->list().length();
  return offset <= whole && length <= whole - offset;
}

inline DescriptorRef::DescriptorRef(Descriptor* made) : to_(made) { ++to_->holders_; }
inline DescriptorRef::DescriptorRef(const DescriptorRef& other) : to_(other.to_) {
  if (to_ != nullptr) ++to_->holders_;
}
inline void DescriptorRef::reset() {
  Descriptor* const last = std::exchange(to_, nullptr);
  if (last != nullptr && --last->holders_ == 0) delete last;
}

}  // namespace spinloom::nic
