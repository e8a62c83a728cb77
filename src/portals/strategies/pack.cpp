#include "portals/strategies/pack.hpp"

#include <utility>

#include "memory/layout/copy.hpp"
#include "portals/strategies/unpack.hpp"

namespace spinloom::strategies {

Status pack(const Message& message, const uint8_t* first, std::span<uint8_t> packed) {
  const auto* const base = reinterpret_cast<const std::byte*>(first) - message.blob.true_lb();
  return layout::pack(message.blob, 1, base, 0, message.bytes, std::as_writable_bytes(packed));
}

portals::HostWork pack_work(const Message& message) {
  portals::HostWork work = unpack_work(message, portals::HostWork::Kind::interpret);
  work.touches = [unpacked = std::move(work.touches)](const portals::HostWork::Touch& touch) {
    unpacked([&](uint64_t address, uint64_t length, bool is_write) { touch(address, length, !is_write); });
  };
  return work;
}

portals::HostWork post_work(uint64_t walked_blocks) {
  portals::HostWork work;
  work.kind = portals::HostWork::Kind::post;
  work.blocks.listed = walked_blocks;
  return work;
}

}  // namespace spinloom::strategies
