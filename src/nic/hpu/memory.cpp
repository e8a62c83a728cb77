#include "nic/hpu/memory.hpp"

#include <ios>

namespace spinloom::hpu {
namespace {

Region make(uint32_t base, const uint8_t* bytes, size_t size, RegionKind kind, LatencyClass latency_class) {
  SPL_ASSERT(size <= UINT32_MAX, "a region of ", size, " B");
  Region region;
  region.base = base;
  region.size = static_cast<uint32_t>(size);
  region.bytes = const_cast<uint8_t*>(bytes);
  region.kind = kind;
  region.latency_class = latency_class;
  region.readable = true;
  return region;
}

}  // namespace

Region Region::image(uint32_t base, std::span<const uint8_t> bytes) {
  Region region = make(base, bytes.data(), bytes.size(), RegionKind::image, LatencyClass::image);
  region.executable = true;
  return region;
}

Region Region::read_only(uint32_t base, std::span<const uint8_t> bytes, LatencyClass latency_class) {
  return make(base, bytes.data(), bytes.size(), RegionKind::read_only, latency_class);
}

Region Region::shared(uint32_t base, std::span<uint8_t> bytes, LatencyClass latency_class) {
  Region region = make(base, bytes.data(), bytes.size(), RegionKind::shared, latency_class);
  region.writable = true;
  return region;
}

Region Region::private_memory(uint32_t base, std::span<uint8_t> bytes) {
  Region region = make(base, bytes.data(), bytes.size(), RegionKind::private_, LatencyClass::scratchpad);
  region.writable = true;
  return region;
}

Region Region::command_window() {
  Region region =
      make(SPL_HPU_COMMAND_BASE, nullptr, SPL_CMD_WINDOW_BYTES, RegionKind::device, LatencyClass::scratchpad);
  region.writable = true;
  return region;
}

Status AddressSpace::map(const Region& region) {
  if (region.kind == RegionKind::none) return fail(Code::invalid, "a region to map must have a kind");
  const uint64_t end = uint64_t{region.base} + region.size;
  const uint64_t window_end = (uint64_t{window_of(region.base)} + 1) << window_bits;
  if (end > window_end) {
    return fail(Code::invalid, "region at 0x", std::hex, region.base, std::dec, " of ", region.size,
                " B crosses its window's end at 0x", std::hex, window_end, "; map at most 256 MiB a region");
  }
  if (region.kind == RegionKind::device) {
    SPL_ASSERT(region.bytes == nullptr, "a device region has no bytes");
  } else if (region.size > 0 && region.bytes == nullptr) {
    return fail(Code::invalid, "region at 0x", std::hex, region.base, std::dec, " of ", region.size, " B has no bytes");
  }
  const bool has_bytes = region.bytes != nullptr;
  Access access;
  access.bytes = region.bytes;
  access.base = region.base;
  access.read_size = region.readable && has_bytes ? region.size : 0;
  access.write_size = region.writable && has_bytes ? region.size : 0;
  access.kind = region.kind;
  access.latency_class = region.latency_class;
  access.ordered = region.contended || region.kind == RegionKind::shared;
  regions_[window_of(region.base)] = region;
  accesses_[window_of(region.base)] = access;
  return {};
}

}  // namespace spinloom::hpu
