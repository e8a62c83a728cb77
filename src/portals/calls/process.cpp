#include "portals/calls/process.hpp"

#include <atomic>
#include <cstdio>
#include <tuple>
#include <utility>

namespace spinloom::calls {
namespace {

thread_local Process* entered = nullptr;
constinit Process::Seat of_all_threads{nullptr};
thread_local constinit Process::Seat* own_seat = &of_all_threads;
std::atomic<Process::Make> maker{nullptr};

}  // namespace

Process* Process::current() { return entered != nullptr ? entered : own_seat->load(std::memory_order_acquire); }

void Process::serve_all_threads(Make make) { maker = make; }

void Process::forget_all_threads() {
  of_all_threads = nullptr;
  *own_seat = nullptr;
}

void Process::sit(Seat* seat) { own_seat = seat != nullptr ? seat : &of_all_threads; }

Process* Process::current_or_made() {
  Process* found = current();
  const Make make = maker;
  if (found != nullptr || make == nullptr) return found;
  found = make();
  *own_seat = found;
  return found;
}

portals::Interface& Process::portals_of(uint32_t rail) {
  if (rail == 0) return interface_;
  while (more_rails_.size() < rail) {
    const auto next = static_cast<uint32_t>(more_rails_.size() + 1);
    more_rails_.push_back(std::make_unique<portals::Interface>(host_.rail_port(next)));
  }
  return *more_rails_[rail - 1];
}

void Process::enter(Process* process) { entered = process; }

NetworkInterface* Process::owner_of(ptl_handle_any_t handle, Kind kind) {
  const HandleParts parts = decode(handle);
  NetworkInterface* const found = parts.kind == kind ? interfaces_[parts.interface].get() : nullptr;
  return found != nullptr && !found->closing ? found : nullptr;
}

NetworkInterface* Process::interface_of(ptl_handle_ni_t handle) {
  NetworkInterface* found = owner_of(handle, Kind::interface);
  return found != nullptr && found->handle == handle ? found : nullptr;
}

Queue* Process::queue(ptl_handle_eq_t handle) {
  const NetworkInterface* owner = owner_of(handle, Kind::queue);
  return owner == nullptr ? nullptr : owner->queues.find(handle);
}

Counter* Process::counter(ptl_handle_ct_t handle) {
  const NetworkInterface* owner = owner_of(handle, Kind::counter);
  return owner == nullptr ? nullptr : owner->counters.find(handle);
}

Descriptor* Process::descriptor(ptl_handle_md_t handle) {
  const NetworkInterface* owner = owner_of(handle, Kind::descriptor);
  return owner == nullptr ? nullptr : owner->descriptors.find(handle);
}

Entry* Process::entry(ptl_handle_me_t handle) {
  const NetworkInterface* owner = owner_of(handle, Kind::entry);
  return owner == nullptr ? nullptr : owner->entries.find(handle);
}

ptl_handle_me_t Process::remember_entry(NetworkInterface& interface, Entry&& entry) {
  const uint32_t id = entry.id.value;
  if (const auto older = entry_handles_.find(id); older != entry_handles_.end()) forget_entry(older->second);
  const ptl_handle_me_t handle = interface.entries.add(std::move(entry));
  if (handle != PTL_INVALID_HANDLE) entry_handles_[id] = handle;
  return handle;
}

void Process::forget_entry(ptl_handle_me_t handle) {
  const Entry* found = entry(handle);
  if (found == nullptr) return;
  entry_handles_.erase(found->id.value);
  const Spin spin = found->spin;
  owner_of(handle, Kind::entry)->entries.remove(handle);
  release(spin);
}

void Process::release(const Spin& spin) {
  if (spin.context.exists()) std::ignore = interface_.context_free(spin.context);
  if (spin.constants) std::ignore = interface_.memory_free(*spin.constants);
}

Status Process::ask(const nic::CommandBody& body) {
  const uint64_t token = next_token_++;
  portals::Port& port = interface_.port();
  port.submit(nic::Command{body, {}, token});
  for (;;) {
    if (const auto answer = port.take_answer(token)) return *answer ? Status{} : Status{answer->error()};
    SPL_TRY(port.wait());
  }
}

// Describes a counter with its value, or an event queue; says so if the object has been freed.
std::string Process::state_of(ptl_handle_any_t handle) {
  char name[16];
  std::snprintf(name, sizeof name, "0x%x", static_cast<unsigned>(handle));
  if (const Counter* const found = counter(handle)) return text("counter ", name, " has ", count_of(found->id));
  return queue(handle) != nullptr ? text("event queue ", name) : text(name, " is freed");
}

std::string Process::count_of(nic::CounterId counter) const {
  const nic::CounterValue value = interface_.ct_get(counter);
  return text(value.success, " successes and ", value.failure, " failures");
}

std::string Process::wait_of(const Blocked& blocked) {
  constexpr size_t shown_max = 8;
  std::string said = text("waits in ", blocked.call);
  if (blocked.words != nullptr) return text(said, " ", blocked.words);
  if (blocked.counter.exists()) {
    return text(said, " (test ", blocked.test, "; its counter has ", count_of(blocked.counter), ")");
  }
  if (blocked.handles.empty()) return said;
  if (blocked.handles.size() > 1) said += text(" for one of ", blocked.handles.size());
  for (size_t i = 0; i < blocked.handles.size() && i < shown_max; ++i) {
    said += i == 0 ? " (" : "; ";
    if (blocked.tests != nullptr) said += text("test ", blocked.tests[i], ", ");
    said += state_of(blocked.handles[i]);
  }
  if (blocked.handles.size() > shown_max) said += "; ...";
  return said + ")";
}

std::string Process::last_call() {
  if (*call == 0) return "none";
  return looked_in_ == calls ? text(call, " (", state_of(looked_at_), ")") : std::string(call);
}

std::string Process::blocked() {
  if (blocked_ == nullptr) return text("is between two calls; the last one was ", last_call());
  std::string said;
  for (const Blocking* one = blocked_; one != nullptr; one = one->next_) {
    said += text(said.empty() ? "" : "; another thread ", wait_of(one->blocked_));
  }
  return said;
}

std::string Process::doing() {
  const bool goes_on = std::exchange(told_calls_, calls) != calls;
  return blocked_ == nullptr && goes_on ? text("makes calls; the latest is ", last_call()) : blocked();
}

}  // namespace spinloom::calls
