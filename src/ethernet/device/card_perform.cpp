// Performs the actions of the engine.
#include <atomic>
#include <cstring>
#include <type_traits>

#include "base/log.hpp"
#include "ethernet/device/card.hpp"
#include "portals/interface/perform.hpp"

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

template <class Action>
constexpr bool adds_no_actions = std::is_same_v<Action, frames::RunHandler> || std::is_same_v<Action, frames::Resume>;

}  // namespace

// Performs the actions in order. An action that may add others, which moves the list, is copied first.
void Card::perform() {
  const auto perform_one = portals::Overloaded{
      [this](const frames::Resume& resume) {
        // The handler may have been stopped for waiting too long.
        if (resume.her == running_) call_answer_ = resume.value;
      },
      [this](const frames::RunHandler& run) { handlers_to_run_.push(run.her); },
      [](const frames::StoreLocal& store) { portals::perform(store); },
      [this](const frames::LocalAtomic& atomic) { call_answer_ = portals::perform(atomic); },
      [this](const frames::DmaRead& read) { nic_->on_dma_done(portals::perform(read), actions_); },
      [this](const frames::DmaAtomic& atomic) { nic_->on_dma_done(portals::perform(atomic), actions_); },
      [this](const frames::Initialised& end) { initialised_[end.context.value] = end.succeeded; },
      [this](const auto& other) { perform(other); },
  };
  for (size_t next = 0; next < actions_.list.size(); ++next) {
    std::visit(
        [&perform_one]<class Action>(const Action& action) {
          if constexpr (adds_no_actions<Action>) return perform_one(action);
          const auto copy = action;
          perform_one(copy);
        },
        actions_.list[next]);
  }
  actions_.clear();
}

void Card::perform(const frames::StoreFrame& store) {
  uint8_t* const place = packet_memory_.bytes().data() + store.address;
  std::memcpy(place, store.bytes.bytes, store.bytes.length);
  nic_->on_stored(store.packet, place, actions_);
}

// A frame of a handler leaves at once, because its slot is free afterwards.
void Card::perform(const frames::ToHost& frame) {
  const Bytes bytes{frame.bytes.bytes, frame.bytes.length};
  if (host_ == nullptr || !host_->accepts(bytes)) {
    ++to_host_lost_;
    return;
  }
  to_host_.push_back(bytes);
  if (frame.by_handler) flush_host();
}

void Card::perform(const frames::Transmit& transmit) {
  const Bytes bytes{transmit.frame.bytes.bytes, transmit.frame.bytes.length};
  if (!wire_->accepts(bytes)) {
    ++unsendable_frames_;
    return finish_egress(transmit.frame, false);
  }
  egress_.push_back(transmit.frame);
  egress_bytes_.push_back(bytes);
}

void Card::finish_egress(const frames::EgressFrame& frame, bool sent) {
  if (!frame.dma.exists()) --host_frames_in_nic_;
  sent ? nic_->on_transmitted(frame, actions_) : nic_->on_not_sent(frame, actions_);
}

void Card::perform(const frames::DmaWrite& write) {
  const bool is_short_words =
      write.source.length <= 16 && write.source.length % 8 == 0 && reinterpret_cast<uintptr_t>(write.host) % 8 == 0;
  if (is_short_words) {
    write_words(write.host, write.source.bytes, write.source.length);
  } else {
    std::memcpy(write.host, write.source.bytes, write.source.length);
  }
  if (write.blocking) nic_->on_dma_read(write.dma, actions_);
  nic_->on_dma_done(write.dma, actions_);
}

void Card::perform(const frames::DebugLine& line) {
  if (debug_) return debug_(line);
  log::emit(log::Level::warning, "ethernet", text("handler on HPU ", line.hpu, ": ", line.text, " ", line.value));
}

}  // namespace spinloom::ethernet
