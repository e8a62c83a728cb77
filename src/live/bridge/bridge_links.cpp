#include "live/bridge/bridge_links.hpp"

#include <cstring>
#include <tuple>
#include <utility>

namespace spinloom::live {

bool BridgeLinks::pass(nic::Rank peer, std::span<const uint8_t> frame) {
  Transport* const link = to(peer);
  if (link == nullptr) return false;
  nic::Send send;
  nic::Packet& packet = send.packet;
  packet.operation = nic::Operation::reply;
  packet.source = rank_;
  packet.target = peer;
  packet.message = uint64_t{1} << 63 | passed_++;  // names that the engine gives do not have this bit
  packet.answers = mark;
  packet.message_length = frame.size();
  packet.payload = {nic::PayloadRef::Space::local, frame.data(), frame.size()};
  send.last = true;
  send.at_once = true;
  std::ignore = link->send(send);  // nobody waits for the reading
  return true;
}

std::optional<std::span<const uint8_t>> BridgeLinks::collect(const nic::Packet& carrier) {
  const nic::PayloadRef& payload = carrier.payload;
  const uint64_t length = carrier.message_length;
  const bool inside = carrier.offset <= length && payload.length <= length - carrier.offset;
  if (!inside || length > frame_bytes_max || payload.space == nic::PayloadRef::Space::peer) return std::nullopt;
  if (payload.length == length) return std::span<const uint8_t>(payload.bytes, payload.length);
  if (carrier.source.value >= incomplete_.size()) return std::nullopt;
  std::map<uint64_t, IncompleteFrame>& incomplete = incomplete_[carrier.source.value];
  auto found = incomplete.find(carrier.message);
  if (found == incomplete.end()) {
    if (incomplete.size() >= incomplete_max) return std::nullopt;
    found = incomplete.try_emplace(carrier.message).first;
    found->second.bytes.resize(length);
  }
  IncompleteFrame& frame = found->second;
  if (frame.bytes.size() != length || payload.length == 0) return std::nullopt;
  std::memcpy(frame.bytes.data() + carrier.offset, payload.bytes, payload.length);
  frame.bytes_arrived += payload.length;
  if (frame.bytes_arrived < length) return std::nullopt;
  complete_frame_ = std::move(frame.bytes);
  incomplete.erase(found);
  return std::span<const uint8_t>(complete_frame_);
}

}  // namespace spinloom::live
