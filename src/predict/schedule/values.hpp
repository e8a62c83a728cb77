// Values - a row of values that does not change: in memory of its own, or in a file that somebody else keeps mapped.
//
// Contract: a Values that is made of a vector has a copy of it; borrow() looks at values that outlive it and all its
//   copies.
// Threads: plain values. Time: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace spinloom::schedule {

template <class T>
class Values {
 public:
  Values() = default;
  Values(const std::vector<T>& values) : Values(std::span<const T>(values)) {}  // NOLINT: a vector is a row of values
  [[nodiscard]] static Values borrow(std::span<const T> values) {
    Values borrowed;
    borrowed.data_ = values.data();
    borrowed.size_ = static_cast<uint32_t>(values.size());
    return borrowed;
  }
  Values(const Values& other) : Values(other.owns_ ? Values(std::span<const T>(other)) : borrow(other)) {}
  Values(Values&& other) noexcept { swap(other); }
  Values& operator=(Values other) noexcept {
    swap(other);
    return *this;
  }
  ~Values() {
    if (owns_) std::allocator<T>().deallocate(const_cast<T*>(data_), size_);
  }

  [[nodiscard]] const T& operator[](size_t at) const { return data_[at]; }
  [[nodiscard]] const T* data() const { return data_; }
  [[nodiscard]] const T* begin() const { return data_; }
  [[nodiscard]] const T* end() const { return data_ + size_; }
  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] bool is_borrowed() const { return data_ != nullptr && !owns_; }
  bool operator==(const Values& other) const { return std::ranges::equal(*this, other); }

 private:
  explicit Values(std::span<const T> values) {
    if (values.empty()) return;
    T* const own = std::allocator<T>().allocate(values.size());
    std::uninitialized_copy(values.begin(), values.end(), own);
    data_ = own;
    size_ = static_cast<uint32_t>(values.size());
    owns_ = true;
  }
  void swap(Values& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(owns_, other.owns_);
  }

  const T* data_ = nullptr;
  uint32_t size_ = 0;
  bool owns_ = false;
};

}  // namespace spinloom::schedule
