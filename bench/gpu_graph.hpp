// GPU graph - the device's time of one launch among many, without the host's: a graph of launches behind each other.
//
// Contract: device_us(device, launches, body) captures `launches` calls of body(stream) into one graph and runs the
//   graph several times. The result is the shortest of these runs, divided by `launches`; 0 if the driver refuses to
//   capture. The caller's current context stays what it was.
// Threads: one. Time: host time around whole graphs.
#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "memory/gpu/device.hpp"

namespace spinloom::gpu {

template <class Body>
double device_us(const Device& device, int launches, Body&& body) {
  using Clock = std::chrono::steady_clock;
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) return 0;
  bool is_ok = body(nullptr).ok() && device.synchronise().ok();  // loads what it needs before the capture
  const auto call = [&](const char* name, auto... arguments) {
    auto* const function = reinterpret_cast<int (*)(decltype(arguments)...)>(dlsym(library, name));
    is_ok = is_ok && function != nullptr && function(arguments...) == 0;
  };
  void* context = nullptr;
  void* stream = nullptr;
  void* graph = nullptr;
  void* executable = nullptr;
  void* popped_context = nullptr;
  call("cuDevicePrimaryCtxRetain", &context, device.ordinal());
  call("cuCtxPushCurrent_v2", context);
  call("cuStreamCreate", &stream, 0U);
  call("cuStreamBeginCapture_v2", stream, 2);
  for (int i = 0; is_ok && i < launches; ++i) is_ok = body(stream).ok();
  call("cuStreamEndCapture", stream, &graph);
  call("cuGraphInstantiateWithFlags", &executable, graph, 0ULL);
  double best = 0;
  for (int round = 0; is_ok && round < 8; ++round) {
    const auto start = Clock::now();
    call("cuGraphLaunch", executable, stream);
    is_ok = is_ok && device.synchronise(stream).ok();
    const double spent = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
    if (round > 0) best = round == 1 ? spent : std::min(best, spent);
  }
  const bool measured = is_ok;
  if (executable != nullptr) call("cuGraphExecDestroy", executable);
  if (graph != nullptr) call("cuGraphDestroy", graph);
  if (stream != nullptr) call("cuStreamDestroy_v2", stream);
  if (context != nullptr) call("cuCtxPopCurrent_v2", &popped_context);
  return measured ? best / launches : 0;
}

}  // namespace spinloom::gpu
