// The C call of collective operations (spinloom/offload.h).
#include "portals/calls/offload.hpp"

namespace spinloom::calls {
namespace {

using collective::Call;
using collective::Operation;

static_assert(static_cast<int>(Operation::exscan) == SPL_EXSCAN &&
                  static_cast<int>(Operation::alltoallw) == SPL_ALLTOALLW,
              "operations have the same numbers in C");

std::vector<Call::Block> blocks_of(const uint64_t* bytes, const uint64_t* offsets, size_t count) {
  std::vector<Call::Block> blocks;
  uint64_t next_offset = 0;
  for (size_t i = 0; i < count; ++i) {
    blocks.push_back({bytes[i], offsets != nullptr ? offsets[i] : next_offset});
    next_offset += bytes[i];
  }
  return blocks;
}

std::vector<int32_t> peers_of(const uint32_t* peers, uint32_t count) {
  std::vector<int32_t> ranks;
  for (uint32_t i = 0; i < count; ++i) ranks.push_back(static_cast<int32_t>(peers[i]));
  return ranks;
}

Result<Call> call_of(const spl_call& arguments, const spl_team& team) {
  if (arguments.operation < 0 || arguments.operation > SPL_EXSCAN) {
    return fail(Code::invalid, "spl_collective: no operation ", arguments.operation);
  }
  if (arguments.op > PTL_BXOR || arguments.type >= PTL_DATATYPE_LAST) {
    return fail(Code::invalid, "spl_collective: operation ", int{arguments.op}, " on elements of type ",
                int{arguments.type});
  }
  if ((arguments.sources > 0 && arguments.source == nullptr) ||
      (arguments.destinations > 0 && arguments.destination == nullptr)) {
    return fail(Code::invalid, "spl_collective: neighbours without a list");
  }
  Call call;
  call.operation = static_cast<Operation>(arguments.operation);
  if (arguments.algorithm != nullptr) call.algorithm = arguments.algorithm;
  call.root = arguments.root;
  call.send = static_cast<uint8_t*>(const_cast<void*>(arguments.send));
  call.receive = static_cast<uint8_t*>(arguments.receive);
  call.bytes = arguments.bytes;
  call.op = static_cast<nic::AtomicOperation>(arguments.op);
  call.type = static_cast<nic::Datatype>(arguments.type);
  call.segment_bytes = arguments.segment_bytes;
  call.sources = peers_of(arguments.source, arguments.sources);
  call.destinations = peers_of(arguments.destination, arguments.destinations);
  const std::string_view name = collective::name_of(call.operation);
  const bool is_neighborhood = name.starts_with("neighbor");
  const size_t size = team.team.ranks.size();
  const bool sends_one_block = call.operation == Operation::gatherv || call.operation == Operation::allgatherv ||
                               call.operation == Operation::neighbor_allgatherv;
  const bool receives_one_block = call.operation == Operation::scatterv;
  if (arguments.send_bytes != nullptr) {
    call.sends = blocks_of(arguments.send_bytes, arguments.send_at,
                           sends_one_block   ? 1
                           : is_neighborhood ? arguments.destinations
                                             : size);
  }
  if (arguments.receive_bytes != nullptr) {
    call.receives = blocks_of(arguments.receive_bytes, arguments.receive_at,
                              receives_one_block ? 1
                              : is_neighborhood  ? arguments.sources
                                                 : size);
  }
  return call;
}

}  // namespace
}  // namespace spinloom::calls

extern "C" int spl_collective(spl_team* team, const spl_call* call, unsigned int flags, spl_schedule** schedule) {
  if (team == nullptr || call == nullptr || schedule == nullptr || flags > SPL_CACHED) return PTL_ARG_INVALID;
  using spinloom::Status;
  return spinloom::calls::guarded("spl_collective", team->engine, [&](spinloom::calls::Process&) -> Status {
    SPL_ASSIGN(const spinloom::collective::Call cpp_call, spinloom::calls::call_of(*call, *team));
    SPL_ASSIGN(auto call_graph, spinloom::collective::make_call_graph(cpp_call, team->own_rank,
                                                                      static_cast<uint32_t>(team->team.ranks.size())));
    const spinloom::collective::Endpoint::Team team_before = team->team;
    spl_schedule new_schedule;
    new_schedule.team = team;
    new_schedule.is_cached = flags == SPL_CACHED;
    new_schedule.number = spinloom::collective::Endpoint::take_number(team->team, new_schedule.is_cached);
    new_schedule.graph = std::move(call_graph.graph);
    new_schedule.memory = std::move(call_graph.memory);
    SPL_TRY(spinloom::calls::make_offloaded(new_schedule));
    if (const Status posted = new_schedule.offloaded->post(); !posted) {
      team->team = team_before;  // the call may be made again, and has the same number then
      return posted;
    }
    team->schedules.push_back(std::move(new_schedule));
    *schedule = &team->schedules.back();
    return {};
  });
}
