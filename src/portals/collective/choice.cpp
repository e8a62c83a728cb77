#include "portals/collective/choice.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "portals/collective/algorithms.hpp"

namespace spinloom::collective {
namespace {

uint64_t limited(Picoseconds time) {
  return static_cast<uint64_t>(std::min<Picoseconds>(time, std::numeric_limits<uint64_t>::max()));
}

Candidate candidate(const Algorithm& algorithm, const FormOf& form, Question ask, const Model& model) {
  const auto time = [&](uint64_t segment_bytes) {
    ask.segment_bytes = segment_bytes;
    return limited(2 * Picoseconds{model.o_ps} + (ask.ranks < 2 ? 0 : form.form(model, ask)));
  };
  Candidate made{&algorithm, 0, 0, form.is_near};
  if (!algorithm.segments) {
    made.time_ps = time(UINT64_MAX);
    return made;
  }
  made.segment_bytes = std::max<uint64_t>(ask.bytes, 1);
  made.time_ps = time(made.segment_bytes);
  for (uint64_t each = std::max(segment_bytes_least, std::bit_ceil(ask.element_bytes)); each < ask.bytes; each *= 2) {
    if (each % ask.element_bytes != 0) continue;
    if (const uint64_t takes = time(each); takes < made.time_ps) {
      made.time_ps = takes;
      made.segment_bytes = each;
    }
  }
  return made;
}

}  // namespace

std::vector<Candidate> candidates(Operation operation, const Question& ask, const Model& model) {
  std::vector<Candidate> found;
  for (const Algorithm& one : algorithms_of(operation)) {
    if (const FormOf* const form = form_of(operation, one.name)) found.push_back(candidate(one, *form, ask, model));
  }
  return found;
}

Candidate choose(Operation operation, const Question& ask, const Model& model) {
  const std::vector<Candidate> all = candidates(operation, ask, model);
  if (all.empty()) return {&algorithms_of(operation).front(), 0, 0, true};
  return *std::ranges::min_element(all, {}, &Candidate::time_ps);
}

Result<std::vector<Round>> rounds_of(const Algorithm& algorithm, const Question& ask, uint32_t root, uint32_t rank) {
  const Operation operation = algorithm.operation;
  if (form_of(operation, algorithm.name) == nullptr) {
    return fail(Code::unsupported, name_of(operation), " by ", algorithm.name,
                ": who sends how much to whom differs from call to call");
  }
  if (root >= ask.ranks) {
    return fail(Code::invalid, "root ", root, " of ", ask.ranks, " ranks: give a number below ", ask.ranks);
  }
  const uint64_t bytes = operation == Operation::barrier ? 0 : ask.bytes;
  Collective call;
  call.rank = rank;
  call.size = ask.ranks;
  call.root = root;
  call.segment_bytes = std::max<uint64_t>(ask.segment_bytes, 1);
  call.element_bytes = ask.element_bytes;
  call.receives = {algorithms::packed(bytes, {.area = Area::receive})};
  call.sends = {algorithms::packed(bytes, {.area = operation == Operation::bcast ? Area::receive : Area::send})};
  Rounds rounds;
  algorithm.make(call, rounds);
  return rounds.take();
}

Graph unread_graph_of(std::span<const Round> rounds) {
  // No two areas overlap, because they lie far from each other.
  constexpr uint64_t far = uint64_t{1} << 60;
  Setting setting;
  setting.send = reinterpret_cast<uint8_t*>(far);
  setting.receive = reinterpret_cast<uint8_t*>(2 * far);
  setting.work = reinterpret_cast<uint8_t*>(3 * far);
  return graph_of(rounds, setting);
}

Result<std::vector<Graph>> graphs_of(const Algorithm& algorithm, const Question& ask, uint32_t root) {
  std::vector<Graph> graphs;
  uint64_t operations = 0;
  for (uint32_t rank = 0; rank < ask.ranks; ++rank) {
    SPL_ASSIGN(const std::vector<Round> done, rounds_of(algorithm, ask, root, rank));
    for (const Round& one : done) operations += one.legs.size() + one.copies.size() + one.combines.size();
    if (operations > operations_most) {
      return fail(Code::overflow, name_of(algorithm.operation), " by ", algorithm.name, " of ", ask.ranks,
                  " ranks: more than ", operations_most,
                  " operations of all ranks; take fewer ranks or longer segments");
    }
    graphs.push_back(unread_graph_of(done));
  }
  return graphs;
}

}  // namespace spinloom::collective
