#include "torture/frame_card.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "portals/interface/perform.hpp"
#include "spinloom/handler.h"

namespace spinloom::torture {
namespace {

// step() chooses among so many of the oldest items, unless these are handlers that may not run.
constexpr size_t overtaken_max = 64;
constexpr uint32_t running_handlers_max = 8;  // handlers under way, each waiting while the next runs

}  // namespace

// Forwards a running handler's calls to its engine.
class FrameCard::Calls final : public spin::HandlerCalls {
 public:
  Calls(FrameCard& card, spin::HerId her) : card_(card), her_(her) {}

  std::optional<uint32_t> call(const spin::HandlerCall& call) override {
    frames::Actions actions;
    if (card_.nic_->on_handler_call(her_, call, actions)) return std::nullopt;
    answer_.reset();
    card_.waiting_handlers_[her_.value] = this;
    if (call.call == SPL_CALL_SEND_FRAME && accepted(actions)) {
      card_.handler_frames_.emplace_back(call.local, call.local + call.length);
    }
    card_.perform(actions);
    while (!answer_) {
      if (card_.random_.chance(1, 4)) card_.owner_.on_handler_waits();
      const bool goes_on = card_.step();
      SPL_ASSERT(goes_on || answer_, "call ", call.call, " of HER ", her_, " has no answer");
    }
    card_.waiting_handlers_.erase(her_.value);
    return answer_;
  }
  void answer(uint32_t value) { answer_ = value; }

 private:
  [[nodiscard]] bool accepted(const frames::Actions& actions) const {
    return std::none_of(actions.list.begin(), actions.list.end(), [](const frames::Action& action) {
      const auto* const resume = std::get_if<spin::Resume>(&action);
      return resume != nullptr && resume->value == spin::DmaId::none_value;
    });
  }

  FrameCard& card_;
  spin::HerId her_;
  std::optional<uint32_t> answer_;
};

Result<std::unique_ptr<FrameCard>> FrameCard::make(const frames::Limits& limits, uint64_t seed,
                                                   spin::HandlerRunner& handlers, Owner& owner) {
  std::unique_ptr<FrameCard> card(new FrameCard(seed, handlers, owner));
  SPL_ASSIGN(card->nic_, frames::Nic::create(limits));
  card->nic_memory_.resize(limits.nic_memory_bytes);
  card->packet_memory_.resize(card->nic_->packet_memory().bytes());
  return card;
}

void FrameCard::arrive(FrameBytes frame) {
  current_frame_ = std::make_shared<const FrameBytes>(std::move(frame));
  frames::Actions actions;
  nic_->on_frame({spin::PayloadRef::Space::local, current_frame_->data(), current_frame_->size()}, actions);
  perform(actions);
}

bool FrameCard::send(FrameBytes frame, uint64_t token) {
  const uint64_t waiting = host_frames_.size() - departing_count(false);
  const FrameBytes& bytes = host_frames_[token] = std::move(frame);
  frames::Actions actions;
  const bool is_taken =
      nic_->on_host_frame({spin::PayloadRef::Space::local, bytes.data(), bytes.size()}, token, actions);
  if (is_taken != (waiting < nic_->limits().host_frames)) {
    owner_.on_trouble(text("a frame of the host is ", is_taken ? "taken" : "refused", ", and ", waiting, " wait"));
  }
  if (!is_taken) host_frames_.erase(token);
  perform(actions);
  return is_taken;
}

size_t FrameCard::departing_count(bool by_handlers) const {
  return static_cast<size_t>(std::ranges::count_if(
      departing_, [by_handlers](const frames::EgressFrame& frame) { return frame.dma.exists() == by_handlers; }));
}

// Checks that a frame for the wire has its turn, and begins its departure.
void FrameCard::begin_departure(const frames::EgressFrame& frame) {
  const bool by_handler = frame.dma.exists();
  const bool other_side_waits =
      by_handler ? host_frames_.size() > departing_count(false) : handler_frames_.size() > departing_count(true);
  const bool in_turn = nic_->limits().arbitration == frames::Arbitration::round_robin;
  if (other_side_waits && (in_turn ? by_handler == last_was_handler_ : !by_handler)) {
    owner_.on_trouble(by_handler ? "a handler's frame leaves before the host's turn"
                                 : "a frame of the host leaves before the handlers' turn");
  }
  last_was_handler_ = by_handler;
  departing_.push_back(frame);
  if (departing_.size() > nic_->limits().egress_depth) owner_.on_trouble("more frames leave at once than may");
  items_.emplace_back(Departure{});
}

Status FrameCard::initialise(spin::ContextId context) {
  frames::Actions actions;
  SPL_TRY(nic_->initialise(context, actions));
  perform(actions);
  return {};
}

Status FrameCard::invoke(spin::ContextId context, uint32_t message) {
  frames::Actions actions;
  SPL_TRY(nic_->invoke(context, message, actions));
  perform(actions);
  return {};
}

bool FrameCard::step() {
  const size_t window = std::min(items_.size(), overtaken_max);
  if (window == 0) return false;
  size_t chosen = random_.below(window);
  if (running_handlers_ >= running_handlers_max) {
    while (chosen < items_.size() && std::holds_alternative<frames::RunHandler>(items_[chosen])) ++chosen;
    if (chosen == items_.size()) {
      chosen = 0;
      while (chosen < items_.size() && std::holds_alternative<frames::RunHandler>(items_[chosen])) ++chosen;
    }
    if (chosen == items_.size()) return false;
  }
  ++steps_;
  const Item item = std::move(items_[chosen]);
  items_.erase(items_.begin() + static_cast<ptrdiff_t>(chosen));
  std::visit([this](const auto& one) { act(one); }, item);
  return true;
}

void FrameCard::perform(frames::Actions& actions) {
  const frames::Actions taken = std::move(actions);
  for (const frames::Action& action : taken.list) perform(action);
}

void FrameCard::perform(const frames::Action& action) {
  const auto access = [this](const auto& dma) {
    host_accesses_.emplace_back(dma);
    items_.emplace_back(AccessTurn{});
  };
  const auto resume = [this](spin::HerId her, uint32_t value) {
    const auto found = waiting_handlers_.find(her.value);
    SPL_ASSERT(found != waiting_handlers_.end(), "HER ", her, " is answered, but does not wait");
    found->second->answer(value);
  };
  const auto visitor = portals::Overloaded{
      [&](const frames::StoreFrame& store) { items_.emplace_back(FrameCopy{store, current_frame_}); },
      [&](const frames::ToHost& to_host) {
        owner_.on_to_host({to_host.bytes.bytes, to_host.bytes.length}, to_host.by_handler);
      },
      [&](const frames::Transmit& transmit) { begin_departure(transmit.frame); },
      [&](const frames::RunHandler& run) { items_.emplace_back(run); },
      [&](const spin::Resume& answer) { resume(answer.her, answer.value); },
      [&](const spin::DmaWrite& write) { access(write); },
      [&](const spin::DmaRead& read) { access(read); },
      [&](const spin::DmaAtomic& atomic) { access(atomic); },
      [&](const spin::LocalAtomic& atomic) { resume(atomic.her, portals::perform(atomic)); },
      [&](const spin::StoreLocal& store) { portals::perform(store); },
      [&](const spin::DebugLine&) {},
      [&](const frames::Initialised& done) { owner_.on_initialised(done.context, done.succeeded); },
  };
  std::visit(visitor, action);
}

void FrameCard::act(const FrameCopy& store) {
  uint8_t* const place = packet_memory_.data() + store.action.address;
  std::memcpy(place, store.frame->data(), store.frame->size());
  frames::Actions actions;
  nic_->on_stored(store.action.packet, place, actions);
  perform(actions);
}

void FrameCard::act(const AccessTurn&) {
  const HostAccess access = host_accesses_.front();
  host_accesses_.pop_front();
  const auto* const write = std::get_if<spin::DmaWrite>(&access);
  const spin::DmaId dma = std::visit([](const auto& one) { return portals::perform(one); }, access);
  items_.emplace_back(AccessDone{dma});
  if (write == nullptr || !write->blocking) return;
  frames::Actions actions;
  nic_->on_dma_read(dma, actions);
  perform(actions);
}

void FrameCard::act(const AccessDone& moved) {
  frames::Actions actions;
  nic_->on_dma_done(moved.dma, actions);
  perform(actions);
}

void FrameCard::act(const Departure&) {
  const frames::EgressFrame frame = departing_.front();
  departing_.pop_front();
  const FrameView bytes{frame.bytes.bytes, frame.bytes.length};
  const bool by_handler = frame.dma.exists();
  if (by_handler) {
    if (handler_frames_.empty() ||
        !std::equal(bytes.begin(), bytes.end(), handler_frames_.front().begin(), handler_frames_.front().end())) {
      owner_.on_trouble("a frame leaves that is not the one which a handler has sent");
    }
    if (!handler_frames_.empty()) handler_frames_.pop_front();
  }
  owner_.on_transmitted(bytes, by_handler, frame.host_token);
  if (!by_handler) host_frames_.erase(frame.host_token);
  frames::Actions actions;
  nic_->on_transmitted(frame, actions);
  perform(actions);
}

void FrameCard::act(const frames::RunHandler& run) {
  const spin::Context* const context = nic_->context(run.her.context);
  SPL_ASSERT(context != nullptr, "a handler of context ", run.her.context, " starts, which does not exist");
  owner_.on_started(run.her);
  Calls calls(*this, run.her.id);
  ++running_handlers_;
  const spin::HandlerOutcome outcome =
      runner_.run(spin::frame_of(run.her, *context, nic_memory_, nic_->limits().hpus), calls);
  --running_handlers_;
  items_.emplace_back(HandlerDone{run.her, outcome});
}

void FrameCard::act(const HandlerDone& done) {
  owner_.on_ended(done.her);
  frames::Actions actions;
  nic_->on_handler_done(done.her.id, done.outcome.end, done.outcome.code, actions, done.outcome.cycles);
  perform(actions);
}

}  // namespace spinloom::torture
