// The C calls of offload engines, teams and schedules (spinloom/offload.h); c_operations.cpp has those of operations.
#include <algorithm>
#include <tuple>

#include "portals/calls/convert.hpp"
#include "portals/calls/meet.hpp"
#include "portals/calls/offload.hpp"

namespace spinloom::calls {

using collective::Endpoint;

std::string& opening_error() {
  static thread_local std::string error;
  return error;
}

Status make_offloaded(spl_schedule& schedule) {
  if (schedule.offloaded) return {};
  spl_team& team = *schedule.team;
  if (!schedule.memory) collective::reduce_edges(schedule.graph);  // a user's graph may have edges too many
  auto offloaded = team.engine->endpoint->make(team.team, std::move(schedule.graph), schedule.is_cached,
                                               std::move(schedule.memory), schedule.number);
  if (!offloaded) return offloaded.error();
  schedule.offloaded = std::move(*offloaded);
  return {};
}

namespace {

constexpr ptl_pt_index_t portal_usual = portals_each - 1;

collective::EndpointOptions options_of(const spl_oe_options* arguments, Process& process,
                                       const NetworkInterface& interface) {
  const spl_oe_options wanted = arguments != nullptr ? *arguments : spl_oe_options{};
  const auto or_unlimited = [](uint32_t limit) { return limit != 0 ? limit : UINT32_MAX; };
  collective::EndpointOptions options;
  options.portal = portal_of(interface, wanted.portal != 0 ? wanted.portal : portal_usual);
  if (wanted.eager_bytes != 0) options.eager_bytes = wanted.eager_bytes;
  if (wanted.early_messages != 0) options.early_messages = wanted.early_messages;
  options.initiator =
      wanted.rendezvous == SPL_BY_SENDER ? collective::Initiator::sender : collective::Initiator::receiver;
  options.by_cpu = wanted.progress == SPL_BY_CPU;
  options.limits = {or_unlimited(wanted.counters), or_unlimited(wanted.triggered), or_unlimited(wanted.entries)};
  options.ranks = process.host().size();
  options.atomic_bytes = process.host().atomic_bytes();
  options.unexpected_headers = static_cast<uint32_t>(interface.limits.max_unexpected_headers);
  options.spend_call_time = [&process] { process.host().spend_call_time(); };
  options.pause = [&process](Time deadline) {
    constexpr Time longest{1'000'000'000};
    process.host().wait(std::min(deadline, process.host().port().now() + longest));
    return !process.is_aborted();
  };
  return options;
}

Result<std::unique_ptr<spl_oe>> open(Process& process, ptl_handle_ni_t handle, const spl_oe_options* options) {
  NetworkInterface* const interface = process.interface_of(handle);
  if (interface == nullptr || !interface->is_logical() || !interface->is_matching()) {
    return fail(Code::invalid, "spl_oe_open: an offload engine needs a logical interface that matches");
  }
  const ptl_pt_index_t portal = options != nullptr && options->portal != 0 ? options->portal : portal_usual;
  if (portal >= portals_each || interface->portals[portal]) {
    return fail(Code::invalid, "spl_oe_open: portal table entry ", portal, " is in use or does not exist; choose ",
                "another one by spl_oe_options.portal, the same at all ranks");
  }
  if (options != nullptr) {
    constexpr uint64_t eager_bytes_max = 1 << 20;
    constexpr uint32_t early_messages_max = 1 << 12;
    if (options->rendezvous > SPL_BY_SENDER || options->rendezvous < 0 || options->progress > SPL_BY_CPU ||
        options->progress < 0 || options->meeting > SPL_MEET_OTHERWISE || options->meeting < 0) {
      return fail(Code::invalid, "spl_oe_open: rendezvous is ", options->rendezvous, ", progress ", options->progress,
                  " and meeting ", options->meeting, "; each is 0 or 1");
    }
    if (options->eager_bytes > eager_bytes_max || options->early_messages > early_messages_max) {
      return fail(Code::invalid, "spl_oe_open: eager_bytes is ", options->eager_bytes, ", at most ", eager_bytes_max,
                  ", early_messages ", options->early_messages, ", at most ", early_messages_max,
                  ": memory is kept for all that may come early");
    }
  }
  auto engine = std::make_unique<spl_oe>();
  engine->process = &process;
  engine->interface = handle;
  engine->portal = portal;
  interface->portals[portal] = true;
  Endpoint::Meet all_meet;
  if (options == nullptr || options->meeting == SPL_MEET) {
    all_meet = [&process](Endpoint& endpoint, uint32_t which) {
      return meet_all(process, endpoint.interface(),
                      {"spl_oe_open", endpoint.portal(), which, endpoint.options().spend_call_time});
    };
  }
  auto opened = Endpoint::open(process.portals(), options_of(options, process, *interface), all_meet);
  if (!opened) {
    interface->portals[portal] = false;
    return opened.error();
  }
  engine->endpoint = std::move(*opened);
  return engine;
}

// Closes an engine. If its interface has been closed, this succeeds whatever was under way: the engine's portal table
// entry is gone, and nothing arrives.
Status close(Process& process, spl_oe& engine) {
  NetworkInterface* const interface = process.interface_of(engine.interface);
  for (const spl_team& team : engine.teams) {
    for (const spl_schedule& schedule : team.schedules) {
      if (interface != nullptr && schedule.offloaded && schedule.offloaded->is_under_way()) {
        return fail(Code::invalid, "spl_oe_close: a schedule is under way; wait for it first");
      }
    }
  }
  for (spl_team& team : engine.teams) {
    for (spl_schedule& schedule : team.schedules) {
      if (interface != nullptr && schedule.offloaded) SPL_TRY(schedule.offloaded->withdraw());
    }
  }
  engine.teams.clear();
  Status closed = engine.endpoint->close();
  if (interface == nullptr) return {};
  interface->portals[engine.portal] = false;
  return closed;
}

// Finds the node of each rank of the team, and the rank of this process. Returns an Error if a rank does not exist or
// comes twice, or if this process is not one of them.
Status find_ranks(Process& process, const spl_oe& engine, const ptl_rank_t* ranks, uint32_t size, spl_team& team) {
  const NetworkInterface& interface = *process.interface_of(engine.interface);
  const uint32_t count = ranks != nullptr ? size : static_cast<uint32_t>(interface.map.size());
  bool is_member = false;
  for (uint32_t rank = 0; rank < count; ++rank) {
    ptl_process_t member;
    member.rank = ranks != nullptr ? ranks[rank] : rank;
    const nic::Rank node = target_of(process, interface, member);
    if (node == nic::Rank::any()) {
      return fail(Code::invalid, "spl_team_make: rank ", member.rank, " is not one of the interface's ",
                  interface.map.size());
    }
    if (std::ranges::find(team.team.ranks, node.value) != team.team.ranks.end()) {
      return fail(Code::invalid, "spl_team_make: rank ", member.rank, " is in the list twice");
    }
    if (node == process.portals().rank()) {
      team.own_rank = rank;
      is_member = true;
    }
    team.team.ranks.push_back(node.value);
  }
  if (is_member) return {};
  return fail(Code::invalid, "spl_team_make: this process is not one of the team's ", count, " ranks");
}

}  // namespace
}  // namespace spinloom::calls

using spinloom::Code;
using spinloom::fail;
using spinloom::Status;
using spinloom::calls::guarded;
using spinloom::calls::Process;

extern "C" {

int spl_oe_open(ptl_handle_ni_t interface, const spl_oe_options* options, spl_oe** engine) {
  return spinloom::calls::enter("spl_oe_open", [&](Process& process) -> int {
    if (engine == nullptr) return PTL_ARG_INVALID;
    try {
      auto opened = spinloom::calls::open(process, interface, options);
      if (!opened) return spinloom::calls::record_error(nullptr, opened.error());
      *engine = opened->release();
      return PTL_OK;
    } catch (const std::bad_alloc&) {
      return spinloom::calls::record_error(nullptr, fail(Code::exhausted, "spl_oe_open: there is not so much memory"));
    }
  });
}

int spl_oe_close(spl_oe* engine) {
  if (engine == nullptr) return PTL_ARG_INVALID;
  return spinloom::calls::enter("spl_oe_close", [&](Process& process) -> int {
    const Status closed = spinloom::calls::close(process, *engine);
    if (!closed) {
      std::ignore = spinloom::calls::record_error(engine, closed.error());
      return PTL_IN_USE;
    }
    delete engine;
    return PTL_OK;
  });
}

const char* spl_oe_error(const spl_oe* engine) {
  return engine != nullptr ? engine->error.c_str() : spinloom::calls::opening_error().c_str();
}

int spl_team_make(spl_oe* engine, uint32_t id, const ptl_rank_t* ranks, uint32_t size, spl_team** team) {
  return guarded("spl_team_make", engine, [&](Process& process) -> Status {
    if (team == nullptr) return fail(Code::invalid, "spl_team_make: no place for the team");
    if (id > UINT16_MAX) return fail(Code::invalid, "spl_team_make: id ", id, "; ids are below 65536");
    for (const spl_team& other : engine->teams) {
      if (other.team.id == id) return fail(Code::invalid, "spl_team_make: there is a team ", id, " already");
    }
    spl_team new_team;
    new_team.engine = engine;
    new_team.team.id = id;
    SPL_TRY(spinloom::calls::find_ranks(process, *engine, ranks, size, new_team));
    SPL_TRY(engine->endpoint->join(new_team.team));
    engine->teams.push_back(std::move(new_team));
    *team = &engine->teams.back();
    return {};
  });
}

int spl_team_free(spl_team* team) {
  if (team == nullptr) return PTL_ARG_INVALID;
  spl_oe* const engine = team->engine;
  return guarded("spl_team_free", engine, [&](Process&) -> Status {
    if (!team->schedules.empty()) return fail(Code::invalid, "spl_team_free: the team has schedules; free them first");
    engine->endpoint->leave(team->team);
    engine->teams.remove_if([team](const spl_team& one) { return &one == team; });
    return {};
  });
}

int spl_schedule_make(spl_team* team, unsigned int flags, spl_schedule** schedule) {
  if (team == nullptr || schedule == nullptr || flags > SPL_CACHED) return PTL_ARG_INVALID;
  team->schedules.emplace_back();
  *schedule = &team->schedules.back();
  (*schedule)->team = team;
  (*schedule)->is_cached = flags == SPL_CACHED;
  (*schedule)->number = spinloom::collective::Endpoint::take_number(team->team, flags == SPL_CACHED);
  return PTL_OK;
}

int spl_schedule_post(spl_schedule* schedule) {
  if (schedule == nullptr) return PTL_ARG_INVALID;
  return guarded("spl_schedule_post", schedule->team->engine, [&](Process&) -> Status {
    SPL_TRY(spinloom::calls::make_offloaded(*schedule));
    return schedule->offloaded->post();
  });
}

int spl_schedule_start(spl_schedule* schedule) {
  if (schedule == nullptr) return PTL_ARG_INVALID;
  return guarded("spl_schedule_start", schedule->team->engine, [&](Process&) -> Status {
    SPL_TRY(spinloom::calls::make_offloaded(*schedule));
    return schedule->offloaded->start();
  });
}

int spl_schedule_test(spl_schedule* schedule, int* done) {
  if (schedule == nullptr || done == nullptr) return PTL_ARG_INVALID;
  *done = 0;
  return guarded("spl_schedule_test", schedule->team->engine, [&](Process& process) -> Status {
    if (!schedule->offloaded) {
      *done = 1;
      return {};
    }
    SPL_ASSIGN(bool ended, schedule->offloaded->test());
    if (!ended) {
      process.host().poll();
      SPL_ASSIGN(ended, schedule->offloaded->test());
    }
    *done = ended ? 1 : 0;
    return {};
  });
}

int spl_schedule_wait(spl_schedule* schedule) {
  if (schedule == nullptr) return PTL_ARG_INVALID;
  return guarded("spl_schedule_wait", schedule->team->engine, [&](Process& process) -> Status {
    using namespace spinloom::calls;
    if (!schedule->offloaded) return {};
    Status result;
    const BlockedCall blocked{.call = "spl_schedule_wait",
                              .counter = schedule->offloaded->done_counter(),
                              .test = schedule->offloaded->done_value()};
    const WaitResult waited = wait_until(process, blocked, PTL_TIME_FOREVER, [&] {
      const spinloom::Result<bool> ended = schedule->offloaded->test(true);
      if (!ended) result = ended.error();
      return !ended || *ended ? LookResult::ready : LookResult::nothing;
    });
    if (waited == WaitResult::aborted) return fail(Code::fault, "spl_schedule_wait: PtlAbort was called");
    return result;
  });
}

int spl_schedule_free(spl_schedule* schedule) {
  if (schedule == nullptr) return PTL_ARG_INVALID;
  if (schedule->offloaded && schedule->offloaded->is_under_way()) {
    schedule->team->engine->error = "spl_schedule_free: the schedule is under way; wait for it first";
    return PTL_IN_USE;
  }
  spl_oe* const engine = schedule->team->engine;
  bool is_withdrawn = true;
  const int code = guarded("spl_schedule_free", engine, [&](Process&) -> Status {
    if (schedule->offloaded) {
      const Status withdrawn = schedule->offloaded->withdraw();
      is_withdrawn = withdrawn.ok();
      SPL_TRY(withdrawn);
    }
    schedule->team->schedules.remove_if([schedule](const spl_schedule& one) { return &one == schedule; });
    return {};
  });
  return is_withdrawn ? code : static_cast<int>(PTL_IN_USE);
}

int spl_state(spl_schedule* schedule, spl_op op, int* state) {
  if (schedule == nullptr || state == nullptr) return PTL_ARG_INVALID;
  return guarded("spl_state", schedule->team->engine, [&](Process&) -> Status {
    const size_t count =
        schedule->offloaded ? schedule->offloaded->original_count() : schedule->graph.operations.size();
    if (op >= count) return fail(Code::invalid, "spl_state: operation ", op, " of ", count);
    *state = schedule->offloaded ? static_cast<int>(schedule->offloaded->state(op)) : SPL_CREATED;
    return {};
  });
}

int spl_enable(spl_schedule* schedule, spl_op op) {
  if (schedule == nullptr) return PTL_ARG_INVALID;
  return guarded("spl_enable", schedule->team->engine, [&](Process&) -> Status {
    if (!schedule->offloaded) return fail(Code::invalid, "spl_enable: the schedule has not been started");
    return schedule->offloaded->enable(op);
  });
}

int spl_disable(spl_schedule* schedule, spl_op op, int* held) {
  if (schedule == nullptr) return PTL_ARG_INVALID;
  return guarded("spl_disable", schedule->team->engine, [&](Process&) -> Status {
    if (!schedule->offloaded) return fail(Code::invalid, "spl_disable: the schedule has not been started");
    SPL_ASSIGN(const bool was_held, schedule->offloaded->disable(op));
    if (held != nullptr) *held = was_held ? 1 : 0;
    return {};
  });
}

int spl_schedule_resources(const spl_schedule* schedule, spl_resources* in_use) {
  if (schedule == nullptr || in_use == nullptr || !schedule->offloaded) return PTL_ARG_INVALID;
  const spinloom::collective::NicResources resources = schedule->offloaded->resources();
  *in_use = {resources.descriptors, resources.entries, resources.triggered, resources.counters, resources.memory_bytes};
  return PTL_OK;
}

int spl_oe_resources(const spl_oe* engine, spl_resources* in_use) {
  if (engine == nullptr || in_use == nullptr) return PTL_ARG_INVALID;
  const spinloom::collective::NicResources& resources = engine->endpoint->resources_in_use();
  *in_use = {resources.descriptors, resources.entries, resources.triggered, resources.counters, resources.memory_bytes};
  return PTL_OK;
}

}  // extern "C"
