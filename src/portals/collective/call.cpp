#include "portals/collective/call.hpp"

#include <algorithm>

#include "portals/collective/algorithms.hpp"
#include "portals/collective/choice.hpp"
#include "portals/collective/fault_tolerant.hpp"

namespace spinloom::collective {
namespace {

using enum Operation;

constexpr uint64_t segment_bytes_usual = 8192;

bool is_rooted(Operation operation) {
  return operation == bcast || operation == reduce || operation == gather || operation == gatherv ||
         operation == scatter || operation == scatterv;
}
bool is_neighborhood(Operation operation) { return name_of(operation).starts_with("neighbor"); }

std::vector<Part> parts_of(const std::vector<Call::Block>& blocks, Area area) {
  std::vector<Part> parts;
  for (const Call::Block& block : blocks)
    parts.push_back(algorithms::packed(block.bytes, {.at = block.at, .area = area}));
  return parts;
}

// These return the number of Blocks that a list of the call has.
size_t senders_of(const Call& call, uint32_t size) {
  return is_neighborhood(call.operation) ? call.sources.size() : size;
}
size_t receivers_of(const Call& call, uint32_t size) {
  return is_neighborhood(call.operation) ? call.destinations.size() : size;
}

Status check(const Call& call, uint32_t rank, uint32_t size) {
  if (rank >= size) return fail(Code::invalid, "rank ", rank, " of ", size, " ranks");
  if (is_rooted(call.operation) && call.root >= size) {
    return fail(Code::invalid, name_of(call.operation), ": root ", call.root, " of ", size, " ranks");
  }
  constexpr uint64_t bytes_max = uint64_t{1} << 44;
  const auto is_huge = [](const Call::Block& block) { return block.bytes > bytes_max || block.at > bytes_max; };
  if (call.bytes > bytes_max || std::ranges::any_of(call.sends, is_huge) ||
      std::ranges::any_of(call.receives, is_huge)) {
    return fail(Code::invalid, name_of(call.operation), " of more than ", bytes_max, " B");
  }
  const uint64_t element = nic::bytes_of(call.type);
  uint64_t remainders = call.bytes;
  for (const Call::Block& block : call.receives) remainders |= block.bytes % element;
  if (is_reduction(call.operation) && remainders % element != 0) {
    return fail(Code::invalid, name_of(call.operation), " of ", call.bytes, " B: elements have ", element, " B");
  }
  const auto is_no_rank = [&](int32_t peer) { return peer < -1 || peer >= static_cast<int32_t>(size); };
  if (std::ranges::any_of(call.sources, is_no_rank) || std::ranges::any_of(call.destinations, is_no_rank)) {
    return fail(Code::invalid, name_of(call.operation), ": a neighbour is not one of ", size, " ranks");
  }
  const auto fits = [&](const char* which, const std::vector<Call::Block>& blocks, size_t peers) -> Status {
    if (blocks.empty() || blocks.size() == peers) return {};
    return fail(Code::invalid, name_of(call.operation), " has ", blocks.size(), " blocks to ", which, ", and ", peers,
                " peers");
  };
  const bool sends_one_block =
      call.operation == gatherv || call.operation == allgatherv || call.operation == neighbor_allgatherv;
  SPL_TRY(fits("send", call.sends, sends_one_block ? 1 : receivers_of(call, size)));
  return fits("receive", call.receives, call.operation == scatterv ? 1 : senders_of(call, size));
}

// Chooses the algorithm of a call, and its segments.
Result<Candidate> choose_algorithm(const Call& call, uint32_t size) {
  if (!call.algorithm.empty()) {
    SPL_ASSIGN(const Algorithm* const named, find(call.operation, call.algorithm));
    return Candidate{named, 0, 0, false};
  }
  const uint64_t element = is_reduction(call.operation) ? nic::bytes_of(call.type) : 1;
  return choose(call.operation, {.ranks = size, .bytes = call.bytes, .element_bytes = element}, live_model);
}

// Returns an Error if this rank uses memory that is null.
Status check_memory(const Call& call, const std::vector<Round>& rounds) {
  const auto lacks = [&call](const Part& part) {
    const uint8_t* const area = part.place.area == Area::send ? call.send : call.receive;
    return part.bytes > 0 && part.place.area != Area::work && area == nullptr;
  };
  for (const Round& round : rounds) {
    bool is_lacking = false;
    for (const Leg& leg : round.legs) is_lacking |= lacks(leg.part);
    for (const Copy& copy : round.copies) is_lacking |= lacks(copy.from) || lacks(copy.to);
    for (const Combine& combine : round.combines) is_lacking |= lacks(combine.from) || lacks(combine.into);
    if (!is_lacking) continue;
    return fail(Code::invalid, name_of(call.operation), ": `", call.receive == nullptr ? "receive" : "send",
                "` is NULL, and this rank uses it");
  }
  return {};
}

// Returns the call as the algorithms read it. `segment_bytes`: the segments chosen with the algorithm, or 0; those of
// the call come first.
Collective collective_of(const Call& call, uint64_t segment_bytes, uint32_t rank, uint32_t size) {
  Collective collective;
  collective.rank = rank;
  collective.size = size;
  collective.root = call.root;
  const bool scatters = call.operation == scatter || call.operation == scatterv;
  const std::vector<Call::Block>& own = scatters ? call.receives : call.sends;
  const bool has_none = !own.empty() && std::ranges::all_of(own, [](const Call::Block& one) { return one.bytes == 0; });
  collective.in_place = (scatters ? call.receive : call.send) == nullptr && !has_none;
  collective.is_grid = call.is_grid;
  collective.element_bytes = is_reduction(call.operation) ? nic::bytes_of(call.type) : 1;
  collective.segment_bytes = call.segment_bytes != 0 ? call.segment_bytes
                             : segment_bytes != 0    ? segment_bytes
                                                     : segment_bytes_usual;
  collective.segment_bytes =
      std::max<uint64_t>(1, collective.segment_bytes / collective.element_bytes) * collective.element_bytes;
  collective.sources = call.sources;
  collective.destinations = call.destinations;
  const Area sent = (collective.in_place && !scatters) || call.operation == bcast ? Area::receive : Area::send;
  const std::vector<Part> regular = {algorithms::packed(call.bytes, {.area = Area::receive})};
  collective.sends = {algorithms::packed(call.bytes, {.area = sent})};
  collective.receives = regular;
  if (!call.sends.empty()) collective.sends = parts_of(call.sends, sent);
  if (!call.receives.empty()) collective.receives = parts_of(call.receives, Area::receive);
  if (call.operation == reduce_scatter && !call.receives.empty()) {
    collective.sends = parts_of(call.receives, sent);
    collective.receives = {algorithms::packed(call.receives[rank].bytes, {.area = Area::receive})};
  }
  return collective;
}

}  // namespace

bool has_lists(Operation operation) {
  return name_of(operation).ends_with("v") || name_of(operation).ends_with("w") || operation == reduce_scatter;
}
bool is_reduction(Operation operation) {
  return operation == reduce || operation == allreduce || operation == reduce_scatter ||
         operation == reduce_scatter_block || operation == scan || operation == exscan;
}

Result<CallGraph> make_call_graph(const Call& call, uint32_t rank, uint32_t size) {
  SPL_TRY(check(call, rank, size));
  if (call.operation == bcast && call.algorithm == fault_tolerant_name) {
    if (call.receive == nullptr && call.bytes > 0) return fail(Code::invalid, "bcast: `receive` is NULL");
    CallGraph call_graph;
    call_graph.algorithm = fault_tolerant_name;
    call_graph.memory.reset(new uint8_t[call.bytes + 1]);
    call_graph.graph = fault_tolerant_bcast(call.receive, call_graph.memory.get(), call.bytes, {rank, size, call.root});
    return call_graph;
  }
  SPL_ASSIGN(const Candidate candidate, choose_algorithm(call, size));
  CallGraph call_graph;
  call_graph.algorithm = candidate.algorithm->name;
  if (call.bytes == 0 && call.operation != barrier && !has_lists(call.operation)) return call_graph;
  Rounds rounds;
  candidate.algorithm->make(collective_of(call, candidate.segment_bytes, rank, size), rounds);
  const std::vector<Round> made_rounds = rounds.take();
  SPL_TRY(check_memory(call, made_rounds));
  call_graph.memory.reset(new uint8_t[work_bytes_of(made_rounds) + 1]);
  call_graph.graph = graph_of(made_rounds, {call.send, call.receive, call_graph.memory.get(), call.op, call.type});
  return call_graph;
}

}  // namespace spinloom::collective
