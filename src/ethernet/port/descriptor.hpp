// Descriptor and Mapping - a file descriptor that is closed, and memory that is unmapped, when their owner ends.
//
// Contract: number() is -1, and bytes() is empty, when there is none. Threads: one owner each. Time: none.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <span>
#include <utility>

namespace spinloom::port {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }

  [[nodiscard]] int number() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

class Mapping {
 public:
  Mapping() = default;
  // Maps memory that the kernel shares, behind `descriptor` at `offset`, or private memory if `descriptor` is -1. It is
  // empty if the kernel refuses.
  Mapping(int descriptor, size_t bytes, int64_t offset) {
    const int flags = descriptor < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED | MAP_POPULATE;
    void* const place = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, descriptor, offset);
    if (place != MAP_FAILED) bytes_ = {static_cast<uint8_t*>(place), bytes};
  }
  Mapping(Mapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping() {
    if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
  }

  [[nodiscard]] std::span<uint8_t> bytes() const { return bytes_; }
  [[nodiscard]] uint8_t* data() const { return bytes_.data(); }
  explicit operator bool() const { return !bytes_.empty(); }

 private:
  std::span<uint8_t> bytes_;
};

}  // namespace spinloom::port
