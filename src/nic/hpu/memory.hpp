// AddressSpace - the memory of one handler: a few regions in a 32-bit address space, checked at every access.
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
  read_only,  // NIC memory or packet that handlers only read: ends a slice only if contended
  shared,     // writable NIC memory that other HPUs may access: every access ends a slice
  private_,   // the HPU's own scratchpad: arguments and stack
  device,     // the command window
};

// The memory that answers; a timing model has one latency for each.
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
  bool contended = false;  // every access ends a slice, so that the driver can model its port and bank

  // Make the usual regions. The const_cast inside is safe by invariant 3 of AddressSpace.
  static Region image(uint32_t base, std::span<const uint8_t> bytes);
  static Region read_only(uint32_t base, std::span<const uint8_t> bytes, LatencyClass latency_class);
  static Region shared(uint32_t base, std::span<uint8_t> bytes, LatencyClass latency_class = LatencyClass::nic_memory);
  static Region private_memory(uint32_t base, std::span<uint8_t> bytes);
  static Region command_window();
};

class AddressSpace {
 public:
  // Puts the region into its window, replacing what was there (a new packet, for example).
  Status map(const Region& region);
  // Empties the window that holds the address.
  void unmap(uint32_t address) {
    regions_[window_of(address)] = Region{};
    accesses_[window_of(address)] = Access{};
  }

  // The region of the address's window, which need not contain the address. Never null.
  [[nodiscard]] const Region& window(uint32_t address) const { return regions_[window_of(address)]; }

  // Bytes for a checked access, or null: no region, out of its bounds, no permission, or a device.
  [[nodiscard]] const uint8_t* read(uint32_t address, uint32_t bytes) const {
    const Access& access = access_of(address);
    return access.may_read(address, bytes) ? access.at(address) : nullptr;
  }
  [[nodiscard]] uint8_t* write(uint32_t address, uint32_t bytes) const {
    const Access& access = access_of(address);
    return access.may_write(address, bytes) ? access.at(address) : nullptr;
  }

  // The part of a region that the interpreter reads at each access: one compare says whether the access is legal.
  struct Access {
    uint8_t* bytes = nullptr;
    uint32_t base = 0;
    uint32_t read_size = 0;   // zero when not readable or a device
    uint32_t write_size = 0;
    RegionKind kind = RegionKind::none;
    LatencyClass latency_class = LatencyClass::scratchpad;
    bool ordered = false;  // shared or contended: accesses of all cores happen in the order of virtual time

    [[nodiscard]] bool may_read(uint32_t address, uint32_t count) const {
      return uint64_t{address - base} + count <= read_size;
    }
    [[nodiscard]] bool may_write(uint32_t address, uint32_t count) const {
      return uint64_t{address - base} + count <= write_size;
    }
    [[nodiscard]] uint8_t* at(uint32_t address) const { return bytes + (address - base); }
  };
  [[nodiscard]] const Access& access_of(uint32_t address) const { return accesses_[window_of(address)]; }

 private:
  static constexpr unsigned window_bits = 28;
  static constexpr uint32_t window_of(uint32_t address) { return address >> window_bits; }

  std::array<Region, 16> regions_{};
  std::array<Access, 16> accesses_{};
};

static_assert((SPL_HPU_IMAGE_BASE >> 28) == 1 && (SPL_HPU_CONST_BASE >> 28) == 2 && (SPL_HPU_STATE_BASE >> 28) == 3 &&
                  (SPL_HPU_PACKET_BASE >> 28) == 4 && (SPL_HPU_STACK_BASE >> 28) == 5 &&
                  (SPL_HPU_COMMAND_BASE >> 28) == 6,
              "each region of the map has a 256 MiB window of its own");
static_assert((SPL_HPU_RETURN_PC >> 28) == 0, "the return address lies in a window without a region");

}  // namespace spinloom::hpu
