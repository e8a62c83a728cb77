// PairRing - pinned memory of the host that both processes of a pair have mapped: pieces for each direction, and
// counters by which they are handed over. For the floor only.
//
// Contract: make() makes the memory under a name in /dev/shm and writes a token there; join() maps it by that name and
//   checks the token, after which the maker calls unlink(). Both pin the memory for their devices. Lane 0 is written by
//   the maker of the ring, lane 1 by the other. `filled` counts the pieces of a lane that the reader got so far,
//   `freed` those that it gave back. The writer of the lane sets both to 0 before it offers a message, and a reader
//   touches them only from the offer to its answer.
// Invariants: (1) freed <= filled <= freed + pieces; (2) memory is taken as a whole when it is made, so that a full
//   /dev/shm is an Error and no SIGBUS later.
// Threads: a lane has one writer and one reader. Time: none.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "memory/gpu/device.hpp"

namespace spinloom::gpu {

struct PairRingShape {
  uint64_t piece_bytes = 0;
  uint32_t pieces = 0;  // pieces of one lane
};

class PairRing {
 public:
  struct Lane {
    alignas(64) std::atomic<uint64_t> filled;
    alignas(64) std::atomic<uint64_t> freed;
  };

  static Result<PairRing> make(const Device& device, const PairRingShape& shape, uint64_t token);
  static Result<PairRing> join(const Device& device, const PairRingShape& shape, uint64_t token,
                               const std::string& name);

  PairRing() = default;
  PairRing(PairRing&& other) noexcept { swap(other); }
  PairRing& operator=(PairRing&& other) noexcept {
    swap(other);
    return *this;
  }
  ~PairRing();

  void unlink();
  explicit operator bool() const { return start_ != nullptr; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const PairRingShape& shape() const { return shape_; }
  [[nodiscard]] Lane& lane(int number) const;
  [[nodiscard]] std::byte* piece(int lane, uint64_t number) const;
  // Returns the address at which kernels find the piece; null if they cannot reach it.
  [[nodiscard]] std::byte* piece_on_device(int lane, uint64_t number) const;

 private:
  struct Head;
  static Result<PairRing> map(const Device& device, const PairRingShape& shape, const std::string& name, bool creates);
  [[nodiscard]] Head& head() const;
  [[nodiscard]] size_t place_of(int lane, uint64_t number) const;
  void swap(PairRing& other) noexcept;

  std::shared_ptr<const Device::State> state_;
  PairRingShape shape_;
  std::string name_;
  bool is_named_ = false;
  bool is_pinned_ = false;
  std::byte* start_ = nullptr;
  std::byte* device_start_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace spinloom::gpu
