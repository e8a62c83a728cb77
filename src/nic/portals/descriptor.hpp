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
  explicit DescriptorRef(Descriptor* descriptor);  // takes over a new descriptor
  DescriptorRef(const DescriptorRef& other);
  DescriptorRef(DescriptorRef&& other) noexcept : descriptor_(std::exchange(other.descriptor_, nullptr)) {}
  DescriptorRef& operator=(DescriptorRef other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~DescriptorRef() { reset(); }

  void reset();
  explicit operator bool() const { return descriptor_ != nullptr; }
  Descriptor* operator->() const { return descriptor_; }
  Descriptor& operator*() const { return *descriptor_; }

 private:
  Descriptor* descriptor_ = nullptr;
};

class Descriptor {
 public:
  // Without elements the memory is contiguous, and operations carry their address.
  explicit Descriptor(std::vector<IovecElement> elements = {})
      : elements_(std::move(elements)), ends_(ends_of(elements_)) {}

  [[nodiscard]] static DescriptorRef make(std::vector<IovecElement> elements = {}) {
    return DescriptorRef(new Descriptor(std::move(elements)));
  }
  [[nodiscard]] static DescriptorRef copy_of(const DescriptorRef& original, std::vector<uint8_t> bytes) {
    DescriptorRef copy = make();
    copy->bytes_ = std::move(bytes);
    copy->original_ = original;
    return copy;
  }

  [[nodiscard]] IovecView list() const { return {elements_, ends_}; }
  [[nodiscard]] const uint8_t* bytes() const { return bytes_.data(); }

  void begin() { ++open_operations(); }
  void end() { --open_operations(); }
  [[nodiscard]] bool in_use() const { return open_operations_ > 0; }

 private:
  friend class DescriptorRef;
  [[nodiscard]] uint32_t& open_operations() { return original_ ? original_->open_operations_ : open_operations_; }

  std::vector<IovecElement> elements_;
  std::vector<uint64_t> ends_;
  std::vector<uint8_t> bytes_;  // the bytes of a copy
  DescriptorRef original_;  // none, unless this is a copy
  uint32_t open_operations_ = 0;
  uint32_t references_ = 0;
};

// True if the descriptor has a list that contains the range.
[[nodiscard]] inline bool list_contains(const DescriptorRef& descriptor, uint64_t offset, uint64_t length) {
  if (!descriptor || !descriptor->list().exists()) return false;
  const uint64_t list_bytes = descriptor->list().length();
  return offset <= list_bytes && length <= list_bytes - offset;
}

inline DescriptorRef::DescriptorRef(Descriptor* descriptor) : descriptor_(descriptor) { ++descriptor_->references_; }
inline DescriptorRef::DescriptorRef(const DescriptorRef& other) : descriptor_(other.descriptor_) {
  if (descriptor_ != nullptr) ++descriptor_->references_;
}
inline void DescriptorRef::reset() {
  Descriptor* const released = std::exchange(descriptor_, nullptr);
  if (released != nullptr && --released->references_ == 0) delete released;
}

}  // namespace spinloom::nic
