#include "nic/wire/bridge_frame.hpp"

#include "base/byte_order.hpp"

namespace spinloom::wire {
namespace {

constexpr uint8_t bridge_version = 1;
constexpr uint8_t last_packet_flag = 1;

}  // namespace

void append_frame(const BridgeHeader& header, std::vector<uint8_t>& out) {
  const size_t start = out.size();
  out.resize(start + bridge_header_bytes);
  uint8_t* const to = out.data() + start;
  store_le(to, bridge_version);
  store_le(to + 1, static_cast<uint8_t>(header.kind));
  store_le(to + 2, static_cast<uint8_t>(header.traffic_class));
  store_le(to + 3, header.is_last_packet ? last_packet_flag : uint8_t{0});
  store_le(to + 4, header.source.value);
  store_le(to + 8, header.target.value);
  store_le(to + 12, header.resume_count);
  store_le(to + 16, header.sequence);
  store_le(to + 24, header.received[0]);
  store_le(to + 32, header.received[1]);
}

Result<BridgeFrame> read_frame(std::span<const uint8_t> bytes) {
  if (bytes.size() < bridge_header_bytes) {
    return fail(Code::invalid, "bridge frame: ", bytes.size(), " B, the least is ", bridge_header_bytes);
  }
  const uint8_t* const from = bytes.data();
  if (from[0] != bridge_version) {
    return fail(Code::invalid, "bridge frame: version ", int{from[0]}, ", this is version ", int{bridge_version});
  }
  if (from[1] > static_cast<uint8_t>(BridgeKind::leave_done)) {
    return fail(Code::invalid, "bridge frame: kind ", int{from[1]}, " does not exist");
  }
  if (from[2] > static_cast<uint8_t>(BridgeClass::answers) || from[3] > last_packet_flag) {
    return fail(Code::invalid, "bridge frame: class ", int{from[2]}, " or flags ", int{from[3]}, " do not exist");
  }
  BridgeFrame frame;
  BridgeHeader& header = frame.header;
  header.kind = static_cast<BridgeKind>(from[1]);
  header.traffic_class = static_cast<BridgeClass>(from[2]);
  header.is_last_packet = from[3] != 0;
  header.source.value = load_le<uint32_t>(from + 4);
  header.target.value = load_le<uint32_t>(from + 8);
  header.resume_count = load_le<uint32_t>(from + 12);
  header.sequence = load_le<uint64_t>(from + 16);
  header.received = {load_le<uint64_t>(from + 24), load_le<uint64_t>(from + 32)};
  frame.body = bytes.subspan(bridge_header_bytes);
  return frame;
}

}  // namespace spinloom::wire
