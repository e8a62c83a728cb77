// AddressSpace - what one handler may touch: a few regions in a 32-bit address space, checked at every access.
//
// Contract: the driver maps regions (spinloom/hpu_map.h names the addresses), the core asks for bytes. An
//   access that is not wholly inside one region with the right permission finds nothing and is a fault of
//   the handler, never of the host. Regions refer to the driver's bytes; they must outlive the mapping.
// Invariants:
//   1. there is at most one region in each 256 MiB window of addresses, so a look-up is one table access;
//   2. a region does not cross its window, so base + size never wraps (it may be 2^32 for the last one);
//   3. bytes of a region that is not writable are never written through this class;
//   4. a device region has no bytes: the core answers it itself.
// Threads: one owner (the HPU's driver); several address spaces may refer to the same bytes.
// Time: none; latency_class says which entry of a timing model's table prices an access.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/result.hpp"
#include "spinloom/hpu_map.h"

namespace spinloom::hpu {

enum class RegionKind : uint8_t {
  none,       // an empty window
  image,      // text and read-only data
  read_only,  // NIC memory or packet that handlers only read: never ends a slice
  shared,     // writable NIC memory that other HPUs may access: every access ends a slice
  private_,   // the HPU's own scratchpad: arguments and stack
  device,     // the command window
};

// Which memory answers; a timing model has one latency for each.
enum class LatencyClass : uint8_t { scratchpad, nic_memory, packet_buffer, image };
inline constexpr unsigned latency_class_count = 4;

struct Region {
  uint32_t base = 0;
  uint32_t size = 0;  // bytes; zero is legal (an empty payload) and makes every access a fault
  uint8_t* bytes = nullptr;
  RegionKind kind = RegionKind::none;
  LatencyClass latency_class = LatencyClass::scratchpad;
  bool readable = false;
  bool writable = false;
  bool executable = false;

  // The usual regions. The const_cast inside is safe by invariant 3.
  static Region image(uint32_t base, std::span<const uint8_t> bytes);
  static Region read_only(uint32_t base, std::span<const uint8_t> bytes, LatencyClass latency_class);
  static Region shared(uint32_t base, std::span<uint8_t> bytes);
  static Region private_memory(uint32_t base, std::span<uint8_t> bytes);
  static Region command_window();
};

class AddressSpace {
 public:
  // Puts the region into its window, replacing what was there (a new packet, for example).
  Status map(const Region& region);
  // Empties the window that holds the address.
  void unmap(uint32_t address) { windows_[window_of(address)] = Region{}; }

  // The region of the address's window; it need not contain the address. Never null.
  [[nodiscard]] const Region& window(uint32_t address) const { return windows_[window_of(address)]; }

  [[nodiscard]] static bool contains(const Region& region, uint32_t address, uint32_t bytes) {
    return uint64_t{address - region.base} + bytes <= region.size;
  }
  // Bytes for a checked access, or null: no region, out of its bounds, no permission, or a device.
  [[nodiscard]] const uint8_t* read(uint32_t address, uint32_t bytes) const {
    const Region& region = window(address);
    if (!region.readable || !contains(region, address, bytes) || region.bytes == nullptr) return nullptr;
    return region.bytes + (address - region.base);
  }
  [[nodiscard]] uint8_t* write(uint32_t address, uint32_t bytes) const {
    const Region& region = window(address);
    if (!region.writable || !contains(region, address, bytes) || region.bytes == nullptr) return nullptr;
    return region.bytes + (address - region.base);
  }

 private:
  static constexpr unsigned window_bits = 28;
  static constexpr uint32_t window_of(uint32_t address) { return address >> window_bits; }

  std::array<Region, 16> windows_{};
};

static_assert((SPL_HPU_IMAGE_BASE >> 28) == 1 && (SPL_HPU_CONST_BASE >> 28) == 2 && (SPL_HPU_STATE_BASE >> 28) == 3 &&
                  (SPL_HPU_PACKET_BASE >> 28) == 4 && (SPL_HPU_STACK_BASE >> 28) == 5 &&
                  (SPL_HPU_COMMAND_BASE >> 28) == 6,
              "each region of the map has a 256 MiB window of its own");
static_assert((SPL_HPU_RETURN_PC >> 28) == 0, "the return address lies in a window without a region");

}  // namespace spinloom::hpu
