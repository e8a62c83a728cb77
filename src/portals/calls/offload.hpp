// Offload - the records behind the handles of spinloom/offload.h.
//
// Contract: an engine belongs to a logical matching interface of the Process, which it must not outlive. guarded()
//   finds the Process, and turns an Error into a return code and a sentence of the engine.
// Threads: the rank's. Time: that of the host.
#pragma once

#include <cstring>
#include <list>
#include <memory>
#include <new>
#include <string>

#include "portals/calls/call.hpp"
#include "portals/collective/call.hpp"
#include "portals/collective/offloaded.hpp"
#include "spinloom/offload.h"

struct spl_schedule {
  spl_team* team = nullptr;
  bool is_cached = false;
  uint32_t number = 0;  // in the team
  spinloom::collective::Graph graph;  // until it is posted
  std::map<std::tuple<uint32_t, uint32_t, bool>, uint32_t>
      messages;  // peer, tag, whether it is a send: how many so far
  std::unique_ptr<uint8_t[]> memory;
  std::unique_ptr<spinloom::collective::Offloaded> offloaded;
};

struct spl_team {
  spl_oe* engine = nullptr;
  uint32_t own = 0;  // the rank of this process
  spinloom::collective::Endpoint::Team team;
  std::list<spl_schedule> schedules;
};

struct spl_oe {
  spinloom::calls::Process* process = nullptr;
  ptl_handle_ni_t interface = PTL_INVALID_HANDLE;
  ptl_pt_index_t portal = 0;
  std::unique_ptr<spinloom::collective::Endpoint> endpoint;
  std::list<spl_team> teams;
  std::string error;
};

namespace spinloom::calls {

// The sentence of the latest spl_oe_open() that failed.
[[nodiscard]] std::string& opening_error();

inline int told(spl_oe* engine, const Error& error) {
  (engine != nullptr ? engine->error : opening_error()) = error.message;
  return code_of(error);
}

// Calls work(process) inside the library. work returns a Status.
template <class Work>
int guarded(const char* name, spl_oe* engine, Work work) {
  if (engine == nullptr) return PTL_ARG_INVALID;
  return enter(name, [&](Process& process) -> int {
    if (process.interface_of(engine->interface) == nullptr) {
      return told(engine, fail(Code::invalid, name, ": the engine's network interface has been closed"));
    }
    try {
      const Status status = work(process);
      return status ? static_cast<int>(PTL_OK) : told(engine, status.error());
    } catch (const std::bad_alloc&) {
      return told(engine, fail(Code::exhausted, name, ": there is not so much memory"));
    }
  });
}

// Makes the schedule's Offloaded from its graph.
[[nodiscard]] Status finish(spl_schedule& schedule);

}  // namespace spinloom::calls
