// The C call of collective operations (spinloom/offload.h).
#include "portals/calls/offload.hpp"

namespace spinloom::calls {
namespace {

using collective::Call;
using collective::Operation;

static_assert(static_cast<int>(Operation::exscan) == SPL_EXSCAN &&
                  static_cast<int>(Operation::alltoallw) == SPL_ALLTOALLW,
              "operations have the same numbers in C");

std::vector<Call::Block> blocks_of(const uint64_t* bytes, const uint64_t* at, size_t count) {
  std::vector<Call::Block> blocks;
  uint64_t next = 0;
  for (size_t i = 0; i < count; ++i) {
    blocks.push_back({bytes[i], at != nullptr ? at[i] : next});
    next += bytes[i];
  }
  return blocks;
}

std::vector<int32_t> peers_of(const uint32_t* peers, uint32_t count) {
  std::vector<int32_t> made;
  for (uint32_t i = 0; i < count; ++i) made.push_back(static_cast<int32_t>(peers[i]));
  return made;
}

Result<Call> call_of(const spl_call& given, const spl_team& team) {
  if (given.operation < 0 || given.operation > SPL_EXSCAN) {
    return fail(Code::invalid, "spl_collective: no operation ", given.operation);
  }
  if (given.op > PTL_BXOR || given.type >= PTL_DATATYPE_LAST) {
    return fail(Code::invalid, "spl_collective: operation ", int{given.op}, " on elements of type ", int{given.type});
  }
  if ((given.sources > 0 && given.source == nullptr) || (given.destinations > 0 && given.destination == nullptr)) {
    return fail(Code::invalid, "spl_collective: neighbours without a list");
  }
  Call call;
  call.operation = static_cast<Operation>(given.operation);
  if (given.algorithm != nullptr) call.algorithm = given.algorithm;
  call.root = given.root;
  call.send = static_cast<uint8_t*>(const_cast<void*>(given.send));
  call.receive = static_cast<uint8_t*>(given.receive);
  call.bytes = given.bytes;
  call.op = static_cast<nic::AtomicOperation>(given.op);
  call.type = static_cast<nic::Datatype>(given.type);
  call.segment_bytes = given.segment_bytes;
  call.sources = peers_of(given.source, given.sources);
  call.destinations = peers_of(given.destination, given.destinations);
  const std::string_view name = collective::name_of(call.operation);
  const bool is_neighborhood = name.starts_with("neighbor");
  const size_t size = team.team.ranks.size();
  const bool one_sent = call.operation == Operation::gatherv || call.operation == Operation::allgatherv ||
                        call.operation == Operation::neighbor_allgatherv;
  const bool one_received = call.operation == Operation::scatterv;
  if (given.send_bytes != nullptr) {
    call.sends = blocks_of(given.send_bytes, given.send_at, one_sent ? 1 : is_neighborhood ? given.destinations : size);
  }
  if (given.receive_bytes != nullptr) {
    call.receives = blocks_of(given.receive_bytes, given.receive_at,
                              one_received      ? 1
                              : is_neighborhood ? given.sources
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
    SPL_ASSIGN(const spinloom::collective::Call wanted, spinloom::calls::call_of(*call, *team));
    SPL_ASSIGN(auto made,
               spinloom::collective::make(wanted, team->own, static_cast<uint32_t>(team->team.ranks.size())));
    const spinloom::collective::Endpoint::Team before = team->team;
    spl_schedule one;
    one.team = team;
    one.is_cached = flags == SPL_CACHED;
    one.number = spinloom::collective::Endpoint::take_number(team->team, one.is_cached);
    one.graph = std::move(made.graph);
    one.memory = std::move(made.memory);
    SPL_TRY(spinloom::calls::finish(one));
    if (const Status posted = one.offloaded->post(); !posted) {
      team->team = before;  // the call may be made again, and has the same number then
      return posted;
    }
    team->schedules.push_back(std::move(one));
    *schedule = &team->schedules.back();
    return {};
  });
}
