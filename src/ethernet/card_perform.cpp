// What the engine asks for.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/byte_order.hpp"
#include "base/log.hpp"
#include "ethernet/card.hpp"
#include "packet/ethernet.hpp"
#include "portals/perform.hpp"

namespace spinloom::ethernet {
namespace {

// Words of a short write are written whole, the first one last: a host that sees it sees the others.
void write_words(uint8_t* to, const uint8_t* from, uint64_t length) {
  for (uint64_t at = length; at > 0;) {
    at -= sizeof(uint64_t);
    uint64_t word = 0;
    std::memcpy(&word, from + at, sizeof word);
    std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(to + at)).store(word, std::memory_order_release);
  }
}

// A port refuses frames of other lengths with an Error.
bool fits(const port::FramePort& port, Bytes frame) {
  const size_t plain = packet::ethernet_header_bytes + port.mtu();
  if (frame.size() < packet::ethernet_header_bytes) return false;
  if (frame.size() <= plain) return true;
  return packet::is_vlan_tag(load_be<uint16_t>(frame.data() + 12)) && frame.size() <= plain + packet::vlan_tag_bytes;
}

}  // namespace

// In order. An action may add others, which moves the list: each is copied before it is performed.
void Card::perform() {
  const auto act = portals::Overloaded{
      [this](const frame::Resume& resume) {
        if (resume.her == running_) answer_ = resume.value;  // not one that has waited for too long
      },
      [this](const frame::RunHandler& run) { started_.push(run.her); },
      [](const frame::StoreLocal& store) { portals::perform(store); },
      [this](const frame::LocalAtomic& atomic) { answer_ = portals::perform(atomic); },
      [this](const frame::DmaRead& read) { nic_->on_dma_done(portals::perform(read), actions_); },
      [this](const frame::DmaAtomic& atomic) { nic_->on_dma_done(portals::perform(atomic), actions_); },
      [this](const frame::Initialised& end) { initialised_[end.context.value] = end.good; },
      [this](const auto& other) { perform(other); },
  };
  for (size_t next = 0; next < actions_.list.size(); ++next) {
    std::visit(
        [&act](const auto& action) {
          const auto copy = action;
          act(copy);
        },
        actions_.list[next]);
  }
  actions_.clear();
}

void Card::perform(const frame::StoreFrame& store) {
  uint8_t* const place = packet_memory_.bytes().data() + store.address;
  std::memcpy(place, store.bytes.bytes, store.bytes.length);
  nic_->on_stored(store.packet, place, actions_);
}

// A frame of a handler leaves at once, because its slot is free afterwards.
void Card::perform(const frame::ToHost& frame) {
  const Bytes bytes{frame.bytes.bytes, frame.bytes.length};
  if (host_ == nullptr || !fits(*host_, bytes)) {
    ++to_host_lost_;
    return;
  }
  to_host_.push_back(bytes);
  if (frame.by_handler) flush_host();
}

void Card::perform(const frame::Transmit& transmit) {
  const Bytes bytes{transmit.frame.bytes.bytes, transmit.frame.bytes.length};
  if (!fits(*wire_, bytes)) {
    ++unfit_;
    return left(transmit.frame);
  }
  leaving_.push_back(transmit.frame);
  leaving_bytes_.push_back(bytes);
}

void Card::left(const frame::EgressFrame& frame) {
  if (!frame.dma.exists()) --host_frames_open_;
  nic_->on_transmitted(frame, actions_);
}

void Card::perform(const frame::DmaWrite& write) {
  const bool words =
      write.source.length <= 16 && write.source.length % 8 == 0 && reinterpret_cast<uintptr_t>(write.host) % 8 == 0;
  if (words) {
    write_words(write.host, write.source.bytes, write.source.length);
  } else {
    std::memcpy(write.host, write.source.bytes, write.source.length);
  }
  if (write.blocking) nic_->on_dma_read(write.dma, actions_);
  nic_->on_dma_done(write.dma, actions_);
}

void Card::perform(const frame::DebugLine& line) {
  if (debug_) return debug_(line);
  log::emit(log::Level::warning, "ethernet", text("handler on HPU ", line.hpu, ": ", line.text, " ", line.value));
}

}  // namespace spinloom::ethernet
