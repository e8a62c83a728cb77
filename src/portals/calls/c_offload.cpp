// The C calls of offload engines, teams and schedules (spinloom/offload.h).
#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>

#include "portals/calls/convert.hpp"
#include "portals/calls/meet.hpp"
#include "portals/calls/offload.hpp"

namespace spinloom::calls {

using collective::Does;
using collective::Endpoint;

std::string& opening_error() {
  static thread_local std::string error;
  return error;
}

Status finish(spl_schedule& schedule) {
  if (schedule.offloaded) return {};
  spl_team& team = *schedule.team;
  if (!schedule.memory) collective::reduce_edges(schedule.graph);  // a user's may have an edge twice
  auto made = team.engine->endpoint->make(team.team, std::move(schedule.graph), schedule.is_cached,
                                          std::move(schedule.memory), schedule.number);
  if (!made) return made.error();
  schedule.offloaded = std::move(*made);
  return {};
}

namespace {

constexpr ptl_pt_index_t portal_usual = portals_each - 1;

collective::EndpointOptions options_of(const spl_oe_options* given, Process& process,
                                       const NetworkInterface& interface) {
  const spl_oe_options wanted = given != nullptr ? *given : spl_oe_options{};
  const auto or_most = [](uint32_t limit) { return limit != 0 ? limit : UINT32_MAX; };
  collective::EndpointOptions made;
  made.portal = portal_of(interface, wanted.portal != 0 ? wanted.portal : portal_usual);
  if (wanted.eager_bytes != 0) made.eager_bytes = wanted.eager_bytes;
  if (wanted.early_messages != 0) made.early_messages = wanted.early_messages;
  made.initiator = wanted.rendezvous == SPL_BY_SENDER ? collective::Initiator::sender : collective::Initiator::receiver;
  made.by_cpu = wanted.progress == SPL_BY_CPU;
  made.limits = {or_most(wanted.counters), or_most(wanted.triggered), or_most(wanted.entries)};
  made.ranks = process.host().size();
  made.atomic_bytes = process.host().atomic_bytes();
  made.unexpected_headers = static_cast<uint32_t>(interface.limits.max_unexpected_headers);
  made.call = [&process] { process.host().call(); };
  made.pause = [&process](Time deadline) {
    constexpr Time longest{1'000'000'000};
    process.host().wait(std::min(deadline, process.host().port().now() + longest));
    return !process.aborted();
  };
  return made;
}

Result<std::unique_ptr<spl_oe>> open(Process& process, ptl_handle_ni_t handle, const spl_oe_options* options) {
  NetworkInterface* const interface = process.interface_of(handle);
  if (interface == nullptr || !interface->logical() || !interface->matching()) {
    return fail(Code::invalid, "spl_oe_open: an offload engine needs a logical interface that matches");
  }
  const ptl_pt_index_t portal = options != nullptr && options->portal != 0 ? options->portal : portal_usual;
  if (portal >= portals_each || interface->portals[portal]) {
    return fail(Code::invalid, "spl_oe_open: portal table entry ", portal, " is in use or does not exist; choose ",
                "another one by spl_oe_options.portal, the same at all ranks");
  }
  if (options != nullptr) {
    constexpr uint64_t eager_most = 1 << 20;
    constexpr uint32_t early_most = 1 << 12;
    if (options->rendezvous > SPL_BY_SENDER || options->rendezvous < 0 || options->progress > SPL_BY_CPU ||
        options->progress < 0 || options->meeting > SPL_MEET_OTHERWISE || options->meeting < 0) {
      return fail(Code::invalid, "spl_oe_open: rendezvous is ", options->rendezvous, ", progress ", options->progress,
                  " and meeting ", options->meeting, "; each is 0 or 1");
    }
    if (options->eager_bytes > eager_most || options->early_messages > early_most) {
      return fail(Code::invalid, "spl_oe_open: eager_bytes is ", options->eager_bytes, ", at most ", eager_most,
                  ", early_messages ", options->early_messages, ", at most ", early_most,
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
                      {"spl_oe_open", endpoint.portal(), which, endpoint.options().call});
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

// Whose interface has been closed is closed, whatever was under way: its portal table entry is gone, and nothing comes.
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

// The node of each rank of the team, and which of them is this process.
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
      team.own = rank;
      is_member = true;
    }
    team.team.ranks.push_back(node.value);
  }
  if (is_member) return {};
  return fail(Code::invalid, "spl_team_make: this process is not one of the team's ", count, " ranks");
}

bool lacks_memory(const collective::Pieces& pieces) {
  return std::ranges::any_of(pieces, [](const nic::IovecElement& piece) { return piece.base == nullptr; });
}

// Adds an operation to a schedule that has not been posted.
spl_op add(const char* call, spl_schedule* schedule, collective::Vertex made) {
  if (schedule == nullptr) return SPL_OP_NONE;
  spl_oe* const engine = schedule->team->engine;
  if (schedule->offloaded) {
    engine->error = text(call, ": the schedule has been posted");
    return SPL_OP_NONE;
  }
  if (lacks_memory(made.from) || lacks_memory(made.to)) {
    engine->error = text(call, ": the memory is NULL, and has ",
                         collective::bytes_of(made.from) + collective::bytes_of(made.to), " B");
    return SPL_OP_NONE;
  }
  schedule->graph.operations.push_back(std::move(made));
  return static_cast<spl_op>(schedule->graph.operations.size() - 1);
}

spl_op refused(spl_schedule* schedule, const std::string& why) {
  if (schedule != nullptr) schedule->team->engine->error = why;
  return SPL_OP_NONE;
}

collective::Pieces pieces(const void* memory, uint64_t bytes) {
  if (bytes == 0) return {};
  return {{static_cast<uint8_t*>(const_cast<void*>(memory)), bytes}};
}

std::optional<collective::Pieces> pieces(const ptl_iovec_t* list, size_t count) {
  if (list == nullptr && count > 0) return {};
  return list_of(list, count, std::numeric_limits<int>::max());
}

spl_op add_message(const char* call, spl_schedule* schedule, collective::Vertex made, uint32_t tag) {
  using collective::Name;
  if (schedule == nullptr) return SPL_OP_NONE;
  if (made.peer >= schedule->team->team.ranks.size()) return refused(schedule, text(call, ": no rank ", made.peer));
  if (tag >= Name::tags) return refused(schedule, text(call, ": tag ", tag, "; tags are below ", Name::tags));
  uint32_t& number = schedule->messages[{made.peer, tag, made.what == Does::send}];
  if (number == Name::numbers) {
    return refused(schedule, text(call, ": more than ", Name::numbers, " messages with tag ", tag, "; use other tags"));
  }
  made.name.message = tag * Name::numbers + number++;
  return add(call, schedule, std::move(made));
}

spl_op add_one_sided(const char* call, spl_schedule* schedule, collective::Vertex made, const spl_target& target) {
  if (schedule == nullptr) return SPL_OP_NONE;
  if (target.rank >= schedule->team->team.ranks.size()) return refused(schedule, text(call, ": no rank ", target.rank));
  spl_oe* const engine = schedule->team->engine;
  const NetworkInterface* const interface = engine->process->interface_of(engine->interface);
  if (interface == nullptr || target.portal >= portals_each) {
    return refused(schedule, text(call, ": no portal table entry ", target.portal));
  }
  made.peer = target.rank;
  made.target = {portal_of(*interface, target.portal), target.bits, target.offset};
  return add(call, schedule, std::move(made));
}

// An Error unless atomics of the NIC can combine such elements.
Status check_elements(uint64_t bytes, ptl_op_t op, ptl_datatype_t type) {
  if (op > PTL_BXOR || type >= PTL_DATATYPE_LAST) return fail(Code::invalid, "no such operation or type of elements");
  const auto datatype = static_cast<nic::Datatype>(type);
  if (bytes % nic::bytes_of(datatype) != 0) {
    return fail(Code::invalid, bytes, " B are no whole elements of ", nic::bytes_of(datatype), " B");
  }
  return spin::check(static_cast<nic::AtomicOperation>(op), datatype, nic::bytes_of(datatype), false, UINT32_MAX);
}

Status find_edge(const char* call, spl_schedule* schedule, spl_op first, spl_op then) {
  const auto& operations = schedule->graph.operations;
  if (schedule->offloaded) return fail(Code::invalid, call, ": the schedule has been posted");
  if (then >= operations.size() || first >= then) {
    return fail(Code::invalid, call, ": ", first, " -> ", then, " of ", operations.size(),
                " operations; the first was made before the other");
  }
  if (operations[then].what != Does::receive) return {};
  return fail(Code::unsupported, call, ": a receive begins with its schedule; let what uses its data wait instead");
}

}  // namespace
}  // namespace spinloom::calls

using spinloom::Code;
using spinloom::fail;
using spinloom::Status;
using spinloom::calls::guarded;
using spinloom::calls::Process;
using spinloom::collective::Does;

extern "C" {

int spl_oe_open(ptl_handle_ni_t interface, const spl_oe_options* options, spl_oe** engine) {
  return spinloom::calls::enter("spl_oe_open", [&](Process& process) -> int {
    if (engine == nullptr) return PTL_ARG_INVALID;
    try {
      auto made = spinloom::calls::open(process, interface, options);
      if (!made) return spinloom::calls::told(nullptr, made.error());
      *engine = made->release();
      return PTL_OK;
    } catch (const std::bad_alloc&) {
      return spinloom::calls::told(nullptr, fail(Code::exhausted, "spl_oe_open: there is not so much memory"));
    }
  });
}

int spl_oe_close(spl_oe* engine) {
  if (engine == nullptr) return PTL_ARG_INVALID;
  return spinloom::calls::enter("spl_oe_close", [&](Process& process) -> int {
    const Status closed = spinloom::calls::close(process, *engine);
    if (!closed) {
      std::ignore = spinloom::calls::told(engine, closed.error());
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
    spl_team made;
    made.engine = engine;
    made.team.id = id;
    SPL_TRY(spinloom::calls::find_ranks(process, *engine, ranks, size, made));
    SPL_TRY(engine->endpoint->join(made.team));
    engine->teams.push_back(std::move(made));
    *team = &engine->teams.back();
    return {};
  });
}

int spl_team_free(spl_team* team) {
  if (team == nullptr) return PTL_ARG_INVALID;
  spl_oe* const engine = team->engine;
  return guarded("spl_team_free", engine, [&](Process&) -> Status {
    if (!team->schedules.empty()) return fail(Code::invalid, "spl_team_free: the team has schedules; free them first");
    engine->endpoint->part(team->team);
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

spl_op spl_send(spl_schedule* schedule, const void* from, uint64_t bytes, uint32_t to_rank, uint32_t tag) {
  return spinloom::calls::add_message(
      "spl_send", schedule, {.what = Does::send, .peer = to_rank, .from = spinloom::calls::pieces(from, bytes)}, tag);
}

spl_op spl_receive(spl_schedule* schedule, void* to, uint64_t bytes, uint32_t from_rank, uint32_t tag) {
  return spinloom::calls::add_message(
      "spl_receive", schedule, {.what = Does::receive, .peer = from_rank, .to = spinloom::calls::pieces(to, bytes)},
      tag);
}

spl_op spl_send_list(spl_schedule* schedule, const ptl_iovec_t* from, size_t count, uint32_t to_rank, uint32_t tag) {
  auto list = spinloom::calls::pieces(from, count);
  if (!list) return spinloom::calls::refused(schedule, "spl_send_list: a piece has no memory, or they are too many");
  return spinloom::calls::add_message("spl_send_list", schedule,
                                      {.what = Does::send, .peer = to_rank, .from = std::move(*list)}, tag);
}

spl_op spl_receive_list(spl_schedule* schedule, const ptl_iovec_t* to, size_t count, uint32_t from_rank, uint32_t tag) {
  auto list = spinloom::calls::pieces(to, count);
  if (!list) return spinloom::calls::refused(schedule, "spl_receive_list: a piece has no memory, or they are too many");
  return spinloom::calls::add_message("spl_receive_list", schedule,
                                      {.what = Does::receive, .peer = from_rank, .to = std::move(*list)}, tag);
}

spl_op spl_combine(spl_schedule* schedule, void* into, const void* from, uint64_t bytes, ptl_op_t op,
                   ptl_datatype_t type) {
  if (const Status good = spinloom::calls::check_elements(bytes, op, type); !good) {
    return spinloom::calls::refused(schedule, "spl_combine: " + good.error().message);
  }
  return spinloom::calls::add("spl_combine", schedule,
                              {.what = Does::combine,
                               .from = spinloom::calls::pieces(from, bytes),
                               .to = spinloom::calls::pieces(into, bytes),
                               .op = static_cast<spinloom::nic::AtomicOperation>(op),
                               .type = static_cast<spinloom::nic::Datatype>(type)});
}

spl_op spl_copy(spl_schedule* schedule, void* to, const void* from, uint64_t bytes) {
  return spinloom::calls::add(
      "spl_copy", schedule,
      {.what = Does::copy, .from = spinloom::calls::pieces(from, bytes), .to = spinloom::calls::pieces(to, bytes)});
}

spl_op spl_put(spl_schedule* schedule, const void* from, uint64_t bytes, spl_target target) {
  return spinloom::calls::add_one_sided("spl_put", schedule,
                                        {.what = Does::put, .from = spinloom::calls::pieces(from, bytes)}, target);
}

spl_op spl_get(spl_schedule* schedule, void* to, uint64_t bytes, spl_target target) {
  return spinloom::calls::add_one_sided("spl_get", schedule,
                                        {.what = Does::get, .to = spinloom::calls::pieces(to, bytes)}, target);
}

spl_op spl_atomic(spl_schedule* schedule, const void* from, uint64_t bytes, ptl_op_t op, ptl_datatype_t type,
                  spl_target target) {
  const Status good = spinloom::calls::check_elements(bytes, op, type);
  if (!good) return spinloom::calls::refused(schedule, "spl_atomic: " + good.error().message);
  return spinloom::calls::add_one_sided("spl_atomic", schedule,
                                        {.what = Does::atomic,
                                         .from = spinloom::calls::pieces(from, bytes),
                                         .op = static_cast<spinloom::nic::AtomicOperation>(op),
                                         .type = static_cast<spinloom::nic::Datatype>(type)},
                                        target);
}

int spl_after(spl_schedule* schedule, spl_op first, spl_op then) {
  if (schedule == nullptr) return PTL_ARG_INVALID;
  const Status found = spinloom::calls::find_edge("spl_after", schedule, first, then);
  if (!found) return spinloom::calls::told(schedule->team->engine, found.error());
  schedule->graph.operations[then].all.push_back(first);
  return PTL_OK;
}

int spl_after_any(spl_schedule* schedule, spl_op first, spl_op then) {
  if (schedule == nullptr) return PTL_ARG_INVALID;
  const Status found = spinloom::calls::find_edge("spl_after_any", schedule, first, then);
  if (!found) return spinloom::calls::told(schedule->team->engine, found.error());
  schedule->graph.operations[then].any.push_back(first);
  return PTL_OK;
}

int spl_cpu_dependent(spl_schedule* schedule, spl_op op) {
  if (schedule == nullptr) return PTL_ARG_INVALID;
  auto& operations = schedule->graph.operations;
  if (schedule->offloaded || op >= operations.size() || operations[op].what == Does::receive) {
    schedule->team->engine->error = "spl_cpu_dependent: no operation, or a receive, or the schedule has been posted";
    return PTL_ARG_INVALID;
  }
  operations[op].cpu_dependent = true;
  return PTL_OK;
}

int spl_schedule_post(spl_schedule* schedule) {
  if (schedule == nullptr) return PTL_ARG_INVALID;
  return guarded("spl_schedule_post", schedule->team->engine, [&](Process&) -> Status {
    SPL_TRY(spinloom::calls::finish(*schedule));
    return schedule->offloaded->post();
  });
}

int spl_schedule_start(spl_schedule* schedule) {
  if (schedule == nullptr) return PTL_ARG_INVALID;
  return guarded("spl_schedule_start", schedule->team->engine, [&](Process&) -> Status {
    SPL_TRY(spinloom::calls::finish(*schedule));
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
    using namespace spinloom::ptl;
    if (!schedule->offloaded) return {};
    Status result;
    const Blocked blocked{
        .call = "spl_schedule_wait", .counter = schedule->offloaded->done(), .test = schedule->offloaded->done_at()};
    const Waited waited = wait_until(process, blocked, PTL_TIME_FOREVER, [&] {
      const spinloom::Result<bool> ended = schedule->offloaded->test(true);
      if (!ended) result = ended.error();
      return !ended || *ended ? Look::ready : Look::nothing;
    });
    if (waited == Waited::aborted) return fail(Code::fault, "spl_schedule_wait: PtlAbort was called");
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
  bool is_quiet = true;
  const int code = guarded("spl_schedule_free", engine, [&](Process&) -> Status {
    if (schedule->offloaded) {
      const Status withdrawn = schedule->offloaded->withdraw();
      is_quiet = withdrawn.ok();
      SPL_TRY(withdrawn);
    }
    schedule->team->schedules.remove_if([schedule](const spl_schedule& one) { return &one == schedule; });
    return {};
  });
  return is_quiet ? code : static_cast<int>(PTL_IN_USE);
}

int spl_state(spl_schedule* schedule, spl_op op, int* state) {
  if (schedule == nullptr || state == nullptr) return PTL_ARG_INVALID;
  return guarded("spl_state", schedule->team->engine, [&](Process&) -> Status {
    const size_t count = schedule->offloaded ? schedule->offloaded->given() : schedule->graph.operations.size();
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

int spl_schedule_resources(const spl_schedule* schedule, spl_resources* taken) {
  if (schedule == nullptr || taken == nullptr || !schedule->offloaded) return PTL_ARG_INVALID;
  const spinloom::collective::Taken found = schedule->offloaded->taken();
  *taken = {found.descriptors, found.entries, found.triggered, found.counters, found.memory_bytes};
  return PTL_OK;
}

int spl_oe_resources(const spl_oe* engine, spl_resources* taken) {
  if (engine == nullptr || taken == nullptr) return PTL_ARG_INVALID;
  const spinloom::collective::Taken& found = engine->endpoint->taken();
  *taken = {found.descriptors, found.entries, found.triggered, found.counters, found.memory_bytes};
  return PTL_OK;
}

}  // extern "C"
