// Offload - the records behind the handles of spinloom/offload.h.
//
// Contract: an engine belongs to a logical matching interface of a Process, and must not outlive the Process. guarded()
//   finds the Process, and turns an Error into a return code and the text of spl_oe_error().
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
  uint32_t number = 0;  // the schedule's number in the team
  spinloom::collective::Graph graph;  // the graph until make_offloaded() moves it into `offloaded`
  // The number of messages so far, by peer, tag and direction (true: send).
  std::map<std::tuple<uint32_t, uint32_t, bool>, uint32_t> message_counts;
  std::unique_ptr<uint8_t[]>
      memory;  // the own memory of a collective operation's algorithm; null for a graph of the user
  std::unique_ptr<spinloom::collective::Offloaded> offloaded;
};

struct spl_team {
  spl_oe* engine = nullptr;
  uint32_t own_rank = 0;  // the rank of this process in the team
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

// The message of the latest spl_oe_open() of this thread that failed.
[[nodiscard]] std::string& opening_error();

inline int record_error(spl_oe* engine, const Error& error) {
  (engine != nullptr ? engine->error : opening_error()) = error.message;
  return code_of(error);
}

// Calls work(process) inside the library; work returns a Status. Returns an error code if the engine is null or its
// interface has been closed.
template <class Work>
int guarded(const char* name, spl_oe* engine, Work work) {
  if (engine == nullptr) return PTL_ARG_INVALID;
  return enter(name, [&](Process& process) -> int {
    if (process.interface_of(engine->interface) == nullptr) {
      return record_error(engine, fail(Code::invalid, name, ": the engine's network interface has been closed"));
    }
    try {
      const Status status = work(process);
      return status ? static_cast<int>(PTL_OK) : record_error(engine, status.error());
    } catch (const std::bad_alloc&) {
      return record_error(engine, fail(Code::exhausted, name, ": there is not so much memory"));
    }
  });
}

// Makes the schedule's Offloaded from its graph, unless it exists already.
[[nodiscard]] Status make_offloaded(spl_schedule& schedule);

}  // namespace spinloom::calls
