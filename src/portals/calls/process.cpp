#include "portals/calls/process.hpp"

#include <atomic>
#include <cstdio>
#include <tuple>
#include <utility>

namespace spinloom::calls {
namespace {

thread_local Process* entered_process = nullptr;
constinit Process::Seat shared_seat{nullptr};
thread_local constinit Process::Seat* own_seat = &shared_seat;
std::atomic<Process::Make> maker{nullptr};

}  // namespace

Process* Process::current() {
  return entered_process != nullptr ? entered_process : own_seat->load(std::memory_order_acquire);
}

void Process::serve_all_threads(Make make) { maker = make; }

void Process::forget_all_threads() {
  shared_seat = nullptr;
  *own_seat = nullptr;
}

void Process::sit(Seat* seat) { own_seat = seat != nullptr ? seat : &shared_seat; }

Process* Process::current_or_create() {
  Process* process = current();
  const Make make = maker;
  if (process != nullptr || make == nullptr) return process;
  process = make();
  *own_seat = process;
  return process;
}

portals::Interface& Process::portals_of(uint32_t rail) {
  if (rail == 0) return interface_;
  while (other_rails_.size() < rail) {
    const auto next = static_cast<uint32_t>(other_rails_.size() + 1);
    other_rails_.push_back(std::make_unique<portals::Interface>(host_.rail_port(next)));
  }
  return *other_rails_[rail - 1];
}

void Process::enter(Process* process) { entered_process = process; }

NetworkInterface* Process::owner_of(ptl_handle_any_t handle, Kind kind) {
  const HandleParts parts = decode(handle);
  NetworkInterface* const interface = parts.kind == kind ? interfaces_[parts.interface].get() : nullptr;
  return interface != nullptr && !interface->is_closing ? interface : nullptr;
}

NetworkInterface* Process::interface_of(ptl_handle_ni_t handle) {
  NetworkInterface* interface = owner_of(handle, Kind::interface);
  return interface != nullptr && interface->handle == handle ? interface : nullptr;
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
  const Entry* forgotten = entry(handle);
  if (forgotten == nullptr) return;
  entry_handles_.erase(forgotten->id.value);
  const Spin spin = forgotten->spin;
  owner_of(handle, Kind::entry)->entries.remove(handle);
  release(spin);
}

void Process::release(const Spin& spin) {
  if (spin.context.exists()) std::ignore = interface_.context_free(spin.context);
  if (spin.constants) std::ignore = interface_.memory_free(*spin.constants);
}

Status Process::submit_and_wait(const nic::CommandBody& body) {
  const uint64_t token = next_token_++;
  portals::Port& port = interface_.port();
  port.submit(nic::Command{body, {}, token});
  for (;;) {
    if (const auto answer = port.take_answer(token)) return *answer ? Status{} : Status{answer->error()};
    SPL_TRY(port.wait());
  }
}

// Describes a counter with its value, or an event queue; says so if the object has been freed.
std::string Process::describe_handle(ptl_handle_any_t handle) {
  char name[16];
  std::snprintf(name, sizeof name, "0x%x", static_cast<unsigned>(handle));
  if (const Counter* const found = counter(handle)) return text("counter ", name, " has ", describe_count(found->id));
  return queue(handle) != nullptr ? text("event queue ", name) : text(name, " is freed");
}

std::string Process::describe_count(nic::CounterId counter) const {
  const nic::CounterValue value = interface_.ct_get(counter);
  return text(value.success, " successes and ", value.failure, " failures");
}

std::string Process::describe_wait(const BlockedCall& blocked) {
  constexpr size_t shown_max = 8;
  std::string description = text("waits in ", blocked.call);
  if (blocked.purpose != nullptr) return text(description, " ", blocked.purpose);
  if (blocked.counter.exists()) {
    return text(description, " (test ", blocked.test, "; its counter has ", describe_count(blocked.counter), ")");
  }
  if (blocked.handles.empty()) return description;
  if (blocked.handles.size() > 1) description += text(" for one of ", blocked.handles.size());
  for (size_t i = 0; i < blocked.handles.size() && i < shown_max; ++i) {
    description += i == 0 ? " (" : "; ";
    if (blocked.tests != nullptr) description += text("test ", blocked.tests[i], ", ");
    description += describe_handle(blocked.handles[i]);
  }
  if (blocked.handles.size() > shown_max) description += "; ...";
  return description + ")";
}

std::string Process::describe_last_call() {
  if (*latest_call == 0) return "none";
  return look_call_ == call_count ? text(latest_call, " (", describe_handle(looked_handle_), ")")
                                  : std::string(latest_call);
}

std::string Process::describe_blocked() {
  if (blocked_ == nullptr) return text("is between two calls; the last one was ", describe_last_call());
  std::string description;
  for (const BlockedScope* scope = blocked_; scope != nullptr; scope = scope->next_) {
    description += text(description.empty() ? "" : "; another thread ", describe_wait(scope->blocked_));
  }
  return description;
}

std::string Process::describe_activity() {
  const bool makes_calls = std::exchange(reported_calls_, call_count) != call_count;
  return blocked_ == nullptr && makes_calls ? text("makes calls; the latest is ", describe_last_call())
                                            : describe_blocked();
}

}  // namespace spinloom::calls
