// GpuPair - memory/gpu/pair.hpp for arrays of Python: a pair of processes, and moves that keep their arrays.
//
// Contract: the channel is the descriptor of a stream socket, which stays the caller's, or an object of Python with
//   send(bytes) and receive(patience_ms) -> bytes or None; an exception of that object ends the pair. begin() checks
//   what the calls of bindings_gpu.cpp check; it takes a GPU's array and pinned memory. A move keeps the pair and its
//   array until it is dropped. SPINLOOM_GPU=shim has no pairs.
// Threads: with the interpreter lock, which is released while a call waits; calls of one pair wait for each other.
// Time: host time.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "memory/gpu/pair.hpp"
#include "memory/layout/committed.hpp"

namespace spinloom::app {

namespace nb = nanobind;

struct GpuPairShared {
  explicit GpuPairShared(gpu::Pair connected) : pair(std::move(connected)) {}
  std::mutex mutex;
  gpu::Pair pair;
};

class GpuPairMove {
 public:
  GpuPairMove(std::shared_ptr<GpuPairShared> shared, gpu::PairMove move, nb::object array)
      : shared_(std::move(shared)), move_(std::move(move)), array_(std::move(array)) {}

  [[nodiscard]] bool test();
  void wait();
  [[nodiscard]] std::string way() const { return gpu::name_of(move_.way()); }

 private:
  std::shared_ptr<GpuPairShared> shared_;
  gpu::PairMove move_;
  nb::object array_;
};

class GpuPair {
 public:
  GpuPair(nb::object channel, int device, std::string way, int patience_ms);

  [[nodiscard]] std::string way() const { return gpu::name_of(shared_->pair.way()); }
  [[nodiscard]] const std::string& reason() const { return shared_->pair.reason(); }
  GpuPairMove begin(bool sends, const layout::Committed& layout, nb::object array, int64_t count, int64_t offset,
                    bool as_memory, uint64_t stream);

 private:
  std::shared_ptr<GpuPairShared> shared_;
};

}  // namespace spinloom::app
