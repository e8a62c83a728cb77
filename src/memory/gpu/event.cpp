#include "memory/gpu/event.hpp"

#include <cstring>
#include <memory>
#include <utility>

#include "memory/gpu/device_state.hpp"

namespace spinloom::gpu {
namespace {

constexpr unsigned event_without_timing = 2;
constexpr unsigned event_between_processes = 4;

}  // namespace

Result<Event> Event::make(const Device& device, bool is_shared) {
  const Device::State& state = device.state();
  const ContextGuard guard(*state.driver, state.context);
  SPL_CUDA(*state.driver, guard.result(), "to use device ", state.ordinal);
  Event made;
  const unsigned flags = event_without_timing | (is_shared ? event_between_processes : 0);
  SPL_CUDA(*state.driver, state.driver->event_create(&made.event_, flags), "to make an event on device ",
           state.ordinal);
  made.state_ = device.shared_state();
  return made;
}

Result<Event> Event::open(const Device& device, const EventHandle& handle) {
  const Device::State& state = device.state();
  const ContextGuard guard(*state.driver, state.context);
  SPL_CUDA(*state.driver, guard.result(), "to use device ", state.ordinal);
  IpcHandle raw{};
  std::memcpy(raw.bytes, handle.data(), sizeof raw.bytes);
  Event opened;
  SPL_CUDA(*state.driver, state.driver->ipc_open_event(&opened.event_, raw), "to open an event of another process");
  opened.state_ = device.shared_state();
  return opened;
}

Event::~Event() {
  if (event_ == nullptr) return;
  const ContextGuard guard(*state_->driver, state_->context);
  (void)state_->driver->event_destroy(event_);
}

void Event::swap(Event& other) noexcept {
  std::swap(state_, other.state_);
  std::swap(event_, other.event_);
}

Result<EventHandle> Event::handle() const {
  const ContextGuard guard(*state_->driver, state_->context);
  SPL_CUDA(*state_->driver, guard.result(), "to use device ", state_->ordinal);
  IpcHandle raw{};
  SPL_CUDA(*state_->driver, state_->driver->ipc_get_event(&raw, event_), "to give an event to another process");
  EventHandle handle;
  std::memcpy(handle.data(), raw.bytes, sizeof raw.bytes);
  return handle;
}

Status Event::record(Stream stream) const {
  const ContextGuard guard(*state_->driver, state_->context);
  SPL_CUDA(*state_->driver, guard.result(), "to use device ", state_->ordinal);
  SPL_CUDA(*state_->driver, state_->driver->event_record(event_, stream), "to mark a stream of device ",
           state_->ordinal);
  return {};
}

Result<bool> Event::is_reached() const {
  const ContextGuard guard(*state_->driver, state_->context);
  SPL_CUDA(*state_->driver, guard.result(), "to use device ", state_->ordinal);
  const int result = state_->driver->event_query(event_);
  if (result == cuda_not_ready) return false;
  SPL_CUDA(*state_->driver, result, "to ask for a stream of device ", state_->ordinal);
  return true;
}

Status Event::synchronise() const {
  const ContextGuard guard(*state_->driver, state_->context);
  SPL_CUDA(*state_->driver, guard.result(), "to use device ", state_->ordinal);
  SPL_CUDA(*state_->driver, state_->driver->event_synchronize(event_), "to wait for a stream of device ",
           state_->ordinal);
  return {};
}

Status Event::make_wait(Stream stream) const {
  const ContextGuard guard(*state_->driver, state_->context);
  SPL_CUDA(*state_->driver, guard.result(), "to use device ", state_->ordinal);
  SPL_CUDA(*state_->driver, state_->driver->stream_wait(stream, event_, 0), "to let a stream of device ",
           state_->ordinal, " wait");
  return {};
}

}  // namespace spinloom::gpu
