#include "ethernet/port/frame_port.hpp"

#include "base/byte_order.hpp"
#include "nic/packet/ethernet.hpp"

namespace spinloom::port {

size_t FramePort::frame_bytes_max() const { return mtu() + packet::ethernet_header_bytes + packet::vlan_tag_bytes; }

bool FramePort::accepts(Bytes frame) const {
  const size_t plain = mtu() + packet::ethernet_header_bytes;
  if (frame.size() < packet::ethernet_header_bytes) return false;
  if (frame.size() <= plain) return true;
  return frame.size() <= plain + packet::vlan_tag_bytes && packet::is_vlan_tag(load_be<uint16_t>(frame.data() + 12));
}

Status FramePort::check_lengths(std::span<const Bytes> frames) const {
  for (const Bytes frame : frames) {
    if (accepts(frame)) continue;
    return fail(Code::invalid, "a frame of ", frame.size(), " bytes cannot be sent over ", description(),
                ": frames have ", packet::ethernet_header_bytes, " to ", mtu() + packet::ethernet_header_bytes,
                " bytes, and ", packet::vlan_tag_bytes, " more with a VLAN tag");
  }
  return {};
}

packet::MacAddress mac_for(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char letter : name) hash = (hash ^ static_cast<uint8_t>(letter)) * 0x100000001b3;
  packet::MacAddress out{{0x02, 0x53, 0x4c, 0, 0, 0}};
  for (size_t i = 3; i < out.bytes.size(); ++i) out.bytes[i] = static_cast<uint8_t>(hash >> (8 * i));
  return out;
}

}  // namespace spinloom::port
