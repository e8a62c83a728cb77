// Handlers: one at a time, each to its end, on the owner's thread.
#include <array>
#include <thread>
#include <utility>

#include "base/log.hpp"
#include "ethernet/device/card.hpp"

namespace spinloom::ethernet {
namespace {

constexpr std::array<const char*, spin::handler_kinds> kinds{"header", "payload", "completion", "initialise", "mail"};

}  // namespace

void Card::run_handlers() {
  const Stage before = stages_.enter(Stage::handlers);
  while (!handlers_to_run_.empty()) {
    const spin::Her her = handlers_to_run_.pop();
    run_handler(her);
    stages_.count(Stage::handlers, 1);
  }
  stages_.enter(before);
}

void Card::run_handler(const spin::Her& her) {
  const spin::Context& context = *nic_->context(her.context);
  const auto frame = spin::frame_of(her, context, {nic_memory_.bytes().data(), options_.limits.nic_memory_bytes},
                                    options_.limits.hpus);
  running_ = her.id;
  constexpr uint32_t per_context = spin::handler_kinds;
  running_handler_.store(1 + static_cast<uint32_t>(her.kind) + per_context * her.context.value,
                         std::memory_order_relaxed);
  waits_since_.reset();
  out_of_patience_ = false;
  spin::HandlerOutcome outcome = library_->run(frame, *this);
  if (out_of_patience_) outcome.end = spin::HandlerEnd::budget;
  if (outcome.end != spin::HandlerEnd::returned) report_fault(her, outcome.end);
  running_ = {};
  running_handler_.store(0, std::memory_order_relaxed);
  if (live::HandlerLibrary::is_native(context.image)) native_cycles_ += outcome.cycles;
  nic_->on_handler_done(her.id, outcome.end, outcome.code, actions_, outcome.cycles);
  perform();
}

// Logs the first fault of each context; all faults are counted.
void Card::report_fault(const spin::Her& her, spin::HandlerEnd end) {
  if (std::exchange(installed_[her.context.value].fault_reported, true)) return;
  const char* const why = out_of_patience_                  ? "waited too long for its host or for the wire"
                          : end == spin::HandlerEnd::segv   ? "touched memory that is not its own"
                          : end == spin::HandlerEnd::budget ? "ran past its budget"
                                                            : "faulted, or made a call that this NIC does not have";
  log::emit(log::Level::warning, "ethernet",
            text("context ", her.context, ": the ", kinds[static_cast<size_t>(her.kind)], " handler ", why,
                 " (state of ", nic_->context(her.context)->state.length, " B); later faults are only counted"));
}

std::string Card::running_handler() const {
  const uint32_t now = running_handler_.load(std::memory_order_relaxed);
  if (now == 0) return "";
  return text("the ", kinds[(now - 1) % kinds.size()], " handler of context ", (now - 1) / kinds.size());
}

std::optional<uint32_t> Card::call(const spin::HandlerCall& call) {
  call_answer_.reset();
  const bool polls = call.call == SPL_CALL_YIELD || call.call == SPL_CALL_DMA_TEST;
  if (polls && !work_while_handler_waits()) return std::nullopt;
  if (nic_->on_handler_call(running_, call, actions_)) return std::nullopt;
  perform();
  while (!call_answer_) {  // the handler waits for a frame to leave
    if (!work_while_handler_waits()) return std::nullopt;
  }
  return call_answer_;
}

// Called while a handler waits: its frames leave, its host gets the processor. Returns false if its first wait was too
// long ago, or a port has failed.
bool Card::work_while_handler_waits() {
  const auto now = std::chrono::steady_clock::now();
  if (!waits_since_) waits_since_ = now;
  (void)flush_wire();
  if (host_callback_) host_callback_();
  out_of_patience_ = port_error_ || now - *waits_since_ > options_.patience;
  if (!call_answer_) std::this_thread::yield();
  return !out_of_patience_;
}

}  // namespace spinloom::ethernet
