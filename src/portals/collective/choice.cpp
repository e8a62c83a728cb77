#include "portals/collective/choice.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "portals/collective/algorithms.hpp"

namespace spinloom::collective {
namespace {

uint64_t saturated(Picoseconds time) {
  return static_cast<uint64_t>(std::min<Picoseconds>(time, std::numeric_limits<uint64_t>::max()));
}

Candidate evaluate(const Algorithm& algorithm, const NamedForm& form, CallShape shape, const Model& model) {
  const auto time_with = [&](uint64_t segment_bytes) {
    shape.segment_bytes = segment_bytes;
    return saturated(2 * Picoseconds{model.o_ps} + (shape.ranks < 2 ? 0 : form.form(model, shape)));
  };
  Candidate result{&algorithm, 0, 0, form.is_near};
  if (!algorithm.is_segmented) {
    result.time_ps = time_with(UINT64_MAX);
    return result;
  }
  result.segment_bytes = std::max<uint64_t>(shape.bytes, 1);
  result.time_ps = time_with(result.segment_bytes);
  for (uint64_t segment_bytes = std::max(segment_bytes_min, std::bit_ceil(shape.element_bytes));
       segment_bytes < shape.bytes; segment_bytes *= 2) {
    if (segment_bytes % shape.element_bytes != 0) continue;
    if (const uint64_t time_ps = time_with(segment_bytes); time_ps < result.time_ps) {
      result.time_ps = time_ps;
      result.segment_bytes = segment_bytes;
    }
  }
  return result;
}

}  // namespace

std::vector<Candidate> candidates(Operation operation, const CallShape& shape, const Model& model) {
  std::vector<Candidate> all;
  for (const Algorithm& algorithm : algorithms_of(operation)) {
    if (const NamedForm* const form = form_of(operation, algorithm.name))
      all.push_back(evaluate(algorithm, *form, shape, model));
  }
  return all;
}

Candidate choose(Operation operation, const CallShape& shape, const Model& model) {
  const std::vector<Candidate> all = candidates(operation, shape, model);
  if (all.empty()) return {&algorithms_of(operation).front(), 0, 0, true};
  return *std::ranges::min_element(all, {}, &Candidate::time_ps);
}

Result<std::vector<Round>> rounds_of(const Algorithm& algorithm, const CallShape& shape, uint32_t root, uint32_t rank) {
  const Operation operation = algorithm.operation;
  if (form_of(operation, algorithm.name) == nullptr) {
    return fail(Code::unsupported, name_of(operation), " by ", algorithm.name,
                ": who sends how much to whom differs from call to call");
  }
  if (root >= shape.ranks) {
    return fail(Code::invalid, "root ", root, " of ", shape.ranks, " ranks: give a number below ", shape.ranks);
  }
  const uint64_t bytes = operation == Operation::barrier ? 0 : shape.bytes;
  Collective call;
  call.rank = rank;
  call.size = shape.ranks;
  call.root = root;
  call.segment_bytes = std::max<uint64_t>(shape.segment_bytes, 1);
  call.element_bytes = shape.element_bytes;
  call.receives = {algorithms::packed(bytes, {.area = Area::receive})};
  call.sends = {algorithms::packed(bytes, {.area = operation == Operation::bcast ? Area::receive : Area::send})};
  Rounds rounds;
  algorithm.make(call, rounds);
  return rounds.take();
}

Graph unread_graph_of(std::span<const Round> rounds) {
  // No two areas overlap, because they lie far from each other.
  constexpr uint64_t area_distance = uint64_t{1} << 60;
  CallArguments arguments;
  arguments.send = reinterpret_cast<uint8_t*>(area_distance);
  arguments.receive = reinterpret_cast<uint8_t*>(2 * area_distance);
  arguments.work = reinterpret_cast<uint8_t*>(3 * area_distance);
  return graph_of(rounds, arguments);
}

Result<std::vector<Graph>> graphs_of(const Algorithm& algorithm, const CallShape& shape, uint32_t root) {
  std::vector<Graph> graphs;
  uint64_t operations = 0;
  for (uint32_t rank = 0; rank < shape.ranks; ++rank) {
    SPL_ASSIGN(const std::vector<Round> rounds, rounds_of(algorithm, shape, root, rank));
    for (const Round& round : rounds) operations += round.legs.size() + round.copies.size() + round.combines.size();
    if (operations > operations_max) {
      return fail(Code::overflow, name_of(algorithm.operation), " by ", algorithm.name, " of ", shape.ranks,
                  " ranks: more than ", operations_max,
                  " operations of all ranks; take fewer ranks or longer segments");
    }
    graphs.push_back(unread_graph_of(rounds));
  }
  return graphs;
}

}  // namespace spinloom::collective
