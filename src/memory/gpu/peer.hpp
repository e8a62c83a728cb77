// Peer - memory of a GPU that another process has allocated, mapped here by CUDA IPC.
//
// Contract: export_memory() names the allocation that holds a pointer and the pointer's place in it: 88 bytes that any
//   channel may carry. PeerMemory::open() maps it in this process, on `device`; the address is good for loads and
//   stores of a plan. Handles stay mapped in a cache, because mapping takes far longer than a launch. Once `open_max`
//   are mapped, the least recently used one that no PeerMemory holds goes first. If a mapping fails, the cache drops
//   all handles of that process that no PeerMemory holds, and tries again. The exporter must keep the memory until the
//   peer is done.
// Invariants: (1) an address is valid as long as its PeerMemory lives; (2) a mapping is used for the allocation alone
//   that it was made for: drivers may name one that was freed and its successor alike; (3) a process cannot open what
//   it exported itself: that is an Error.
// Threads: any. Time: host time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/result.hpp"
#include "memory/gpu/device.hpp"

namespace spinloom::gpu {

struct PeerHandle {
  std::array<std::byte, 64> handle{};
  uint64_t offset = 0;  // place of the pointer in its allocation
  uint64_t allocation_id = 0;  // names the allocation, and no other that the process makes; 0: the driver gave none
  uint64_t process = 0;  // the process that exported it: its id, and above it the namespace of ids
};
static_assert(sizeof(PeerHandle) == 88);

Result<PeerHandle> export_memory(const void* pointer);

class PeerMemory {
 public:
  static constexpr int open_max = 64;
  static Result<PeerMemory> open(const Device& device, const PeerHandle& handle);
  // Does the same without the cache: the memory is unmapped when its last PeerMemory goes.
  static Result<PeerMemory> open_uncached(const Device& device, const PeerHandle& handle);

  // Unmaps the memory of one process that no PeerMemory holds: what it frees stays taken while it is mapped here.
  static void unmap_unused(uint64_t process);

  [[nodiscard]] std::byte* data() const { return data_; }

 private:
  struct Mapping;
  friend class PeerCache;
  PeerMemory(std::shared_ptr<const Mapping> mapping, std::byte* data) : mapping_(std::move(mapping)), data_(data) {}

  std::shared_ptr<const Mapping> mapping_;
  std::byte* data_ = nullptr;
};

}  // namespace spinloom::gpu
