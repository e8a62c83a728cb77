// spinloom._core: recorded programs as schedules at other prices.
#include <nanobind/stl/map.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "app/python/bindings_goal_model.hpp"
#include "app/python/bindings_support.hpp"
#include "app/python/python_text.hpp"
#include "memory/layout/blob_type.hpp"
#include "memory/layout/text.hpp"
#include "predict/program/grow.hpp"
#include "predict/program/layout_uses.hpp"
#include "predict/program/schedule_of.hpp"
#include "predict/program/skeleton.hpp"
#include "predict/trace/reader.hpp"

namespace spinloom::app {
namespace {

using predict::Costs;
using predict::Script;
using predict::Side;

// A Script, and facts about the recording from which it was made.
struct Recording {
  Script script;
  std::string host;
  std::string mpi;
  std::string program;
  bool ended = true;  // of all ranks
  bool is_cpu_time = false;
  std::vector<std::string> warnings;  // of ranks whose traces are shorter than they should be
  std::string growth;  // how the recording grew to more ranks; empty if it did not
};

Result<predict::Polls> polls_named(std::string_view name) {
  if (name == "wait") return predict::Polls::wait;
  if (name == "work") return predict::Polls::work;
  if (name == "rule") return predict::Polls::rule;
  return fail(Code::invalid, "polls are \"", name, "\"; there are wait, work, rule");
}

Result<Recording> recording_of(const std::vector<trace::RankTrace>& traces, const std::vector<std::string>& choices,
                               predict::Polls polls = predict::Polls::rule) {
  SPL_ASSIGN(const predict::Algorithms algorithms, predict::choose(choices));
  Recording made;
  SPL_ASSIGN(made.script, predict::script_of(traces, algorithms, polls));
  made.host = traces.front().host;
  made.mpi = traces.front().mpi;
  made.program = traces.front().program;
  made.is_cpu_time = traces.front().is_cpu_time;
  for (const trace::RankTrace& one : traces) {
    made.ended = made.ended && one.ended;
    if (!one.warning.empty()) made.warnings.push_back(text("rank ", one.rank, ": ", one.warning));
  }
  return made;
}

// Reads a recording, and grows it to `ranks` ranks unless `ranks` is 0.
Recording read(nb::handle folder, const std::vector<std::string>& choices, uint32_t ranks, const std::string& polls,
               bool strong) {
  const std::string directory = path_of(folder);
  return unwrap(without_lock([&]() -> Result<Recording> {
    SPL_ASSIGN(const predict::Polls between, polls_named(polls));
    SPL_ASSIGN(std::vector<trace::RankTrace> traces, trace::read(directory));
    std::string how;
    if (ranks != 0) {
      SPL_ASSIGN(predict::Grown grown,
                 predict::grow(traces, ranks, strong ? predict::Scaling::strong : predict::Scaling::weak));
      traces = std::move(grown.traces);
      how = std::move(grown.how);
    }
    SPL_ASSIGN(Recording made, recording_of(traces, choices, between));
    made.growth = std::move(how);
    return made;
  }));
}

predict::SkeletonStep step_of(const nb::dict& given) {
  static constexpr std::pair<std::string_view, predict::SkeletonStep::Kind> kinds[] = {
      {"compute", predict::SkeletonStep::Kind::compute},
      {"halo", predict::SkeletonStep::Kind::halo},
      {"alltoall", predict::SkeletonStep::Kind::alltoall},
      {"allreduce", predict::SkeletonStep::Kind::allreduce},
  };
  predict::SkeletonStep step;
  const auto name = nb::cast<std::string>(given["kind"]);
  const auto* const kind = std::ranges::find(kinds, name, [](const auto& one) { return one.first; });
  if (kind == std::end(kinds)) unwrap(Status(fail(Code::invalid, "there is no step '", name, "'")));
  step.kind = kind->second;
  if (given.contains("compute_ns")) step.compute_ns = nb::cast<uint64_t>(given["compute_ns"]);
  if (given.contains("bytes")) step.bytes = nb::cast<uint64_t>(given["bytes"]);
  if (given.contains("grid")) step.grid = nb::cast<std::vector<uint32_t>>(given["grid"]);
  if (given.contains("types")) {
    for (const nb::handle both : nb::cast<nb::list>(given["types"])) {
      step.types.push_back({nb::cast<std::string>(both[0]), nb::cast<std::string>(both[1])});
    }
  }
  return step;
}

Recording skeleton(uint32_t ranks, const nb::list& given, uint32_t repeats, const std::vector<std::string>& choices) {
  std::vector<predict::SkeletonStep> steps;
  for (const nb::handle one : given) steps.push_back(step_of(nb::cast<nb::dict>(one)));
  return unwrap(without_lock([&]() -> Result<Recording> {
    SPL_ASSIGN(const std::vector<trace::RankTrace> traces, predict::make_skeleton(ranks, steps, repeats));
    return recording_of(traces, choices);
  }));
}

const char* name_of(Side side) { return side == Side::send ? "send" : "receive"; }

Side side_of(const nb::handle& name) { return nb::cast<std::string>(name) == "send" ? Side::send : Side::receive; }

// Returns the number of non-blocking and persistent collective operations of all ranks.
uint64_t offloadable(const Script& script) {
  uint64_t count = 0;
  for (const predict::RankScript& one : script.ranks) {
    count += static_cast<uint64_t>(std::ranges::count_if(
        one.actions, [](const predict::Action& action) { return action.is_collective && !action.is_blocking; }));
  }
  return count;
}

nb::dict facts(const Recording& made) {
  nb::dict out;
  out["ranks"] = made.script.ranks.size();
  out["host"] = text_of(made.host);
  out["mpi"] = text_of(made.mpi);
  out["program"] = text_of(made.program);
  out["ended"] = made.ended;
  out["is_cpu_time"] = made.is_cpu_time;
  out["how"] = made.growth;
  nb::list warnings;
  for (const std::string& one : made.warnings) warnings.append(text_of(one));
  out["warnings"] = warnings;
  out["algorithms"] = made.script.algorithms;
  nb::dict left_out;
  for (const auto& [what, note] : made.script.left_out) {
    left_out[python_string(what)] = nb::make_tuple(note.count, note.time_ns);
  }
  out["left_out"] = left_out;
  nb::list ranks;
  for (const predict::RankScript& one : made.script.ranks) {
    nb::dict rank;
    rank["total_ns"] = one.recorded.total_ns;
    rank["compute_ns"] = one.recorded.compute_ns;
    rank["fixed_ns"] = one.recorded.fixed_ns;
    rank["communication_ns"] = one.recorded.communication_ns;
    rank["between_ns"] = one.recorded.between_ns;
    rank["polled_ns"] = one.recorded.polled_ns;
    rank["is_cut"] = one.cut_event != UINT32_MAX;
    ranks.append(rank);
  }
  out["offloadable"] = offloadable(made.script);
  out["recorded"] = ranks;
  return out;
}

nb::list layouts(const Recording& made) {
  std::vector<std::string> texts;
  for (const layout::Blob& blob : made.script.layouts) texts.push_back(layout::print(unwrap(layout::type_of(blob))));
  nb::list out;
  for (const predict::LayoutUse& use : predict::layout_uses(made.script)) {
    nb::dict one;
    one["layout"] = use.layout;
    one["type"] = texts[use.layout];
    one["count"] = use.count;
    one["side"] = name_of(use.side);
    one["bytes"] = use.bytes;
    one["messages"] = use.messages;
    one["copies"] = use.copies;
    out.append(one);
  }
  return out;
}

// Returns a dict for each kind of message or own copy: the bytes of one; `sent` and `received` as (number of a layout,
// count), or None where the bytes are one block; how many messages and copies there are.
nb::list pairs(const Recording& made) {
  const auto end = [](const predict::Lie& lie) -> nb::object {
    if (lie.layout == trace::none) return nb::none();
    return nb::make_tuple(lie.layout, lie.count);
  };
  nb::list out;
  for (const predict::PairUse& use : predict::pair_uses(made.script)) {
    nb::dict one;
    one["bytes"] = use.bytes;
    one["sent"] = end(use.sent);
    one["received"] = end(use.received);
    one["messages"] = use.messages;
    one["copies"] = use.copies;
    out.append(one);
  }
  return out;
}

predict::Lie lie_of(const nb::handle& given) {
  if (given.is_none()) return {};
  return {nb::cast<int64_t>(given[1]), nb::cast<uint32_t>(given[0])};
}

Rate rate_of(const nb::dict& costs, const char* name) {
  if (!costs.contains(name)) return {0, 1};
  const nb::sequence ratio = nb::cast<nb::sequence>(costs[name]);
  return {nb::cast<int64_t>(ratio[0]), nb::cast<int64_t>(ratio[1])};
}

// Reads {"messages": [(bytes, send, receive, way)], "layouts": [(layout, count, side, cpu, nic, busy)], "host_layouts":
// [(layout, count, side, cpu)], "pairs": [(bytes, sent, received, send cpu, receive cpu, own block or None)],
// "unknown_layout", "copy", "combine": (numerator, denominator) of ps for a byte, ...}. All but the first three keys
// may be missing. Times are in ps.
Costs costs_of(const nb::dict& given) {
  Costs out;
  for (const nb::handle point : nb::cast<nb::list>(given["messages"])) {
    out.messages.push_back({nb::cast<uint64_t>(point[0]), nb::cast<uint64_t>(point[1]), nb::cast<uint64_t>(point[2]),
                            nb::cast<uint64_t>(point[3])});
  }
  const auto key = [](const nb::handle& one) {
    return Costs::LayoutKey{nb::cast<uint32_t>(one[0]), nb::cast<int64_t>(one[1]), side_of(one[2])};
  };
  for (const nb::handle one : nb::cast<nb::list>(given["layouts"])) {
    out.layouts[key(one)] = {nb::cast<uint64_t>(one[3]), nb::cast<uint64_t>(one[4]), nb::cast<uint64_t>(one[5])};
  }
  for (const nb::handle one : nb::cast<nb::list>(given["host_layouts"])) {
    out.host_layouts[key(one)] = nb::cast<uint64_t>(one[3]);
  }
  if (given.contains("pairs")) {
    for (const nb::handle one : nb::cast<nb::list>(given["pairs"])) {
      predict::PairPrice& price = out.pairs[{nb::cast<uint64_t>(one[0]), lie_of(one[1]), lie_of(one[2])}];
      price = {nb::cast<uint64_t>(one[3]), nb::cast<uint64_t>(one[4]), {}};
      if (!one[5].is_none()) price.own_ps = nb::cast<uint64_t>(one[5]);
    }
  }
  if (given.contains("late")) {
    out.late = {nb::cast<uint64_t>(given["late"][0]), nb::cast<uint64_t>(given["late"][1])};
  }
  out.unknown_layout = rate_of(given, "unknown_layout");
  out.copy = rate_of(given, "copy");
  out.combine = rate_of(given, "combine");
  if (given.contains("handshake_bytes")) out.handshake_bytes = nb::cast<uint64_t>(given["handshake_bytes"]);
  if (given.contains("fetches") && nb::cast<bool>(given["fetches"])) out.handshake = predict::Handshake::fetch;
  if (given.contains("nic_answers") && nb::cast<bool>(given["nic_answers"])) out.handshake = predict::Handshake::nic;
  if (given.contains("offloaded")) {
    const auto how = nb::cast<nb::dict>(given["offloaded"]);
    out.offloaded = {.create_ps = nb::cast<uint64_t>(how["create_ps"]),
                     .is_cached = nb::cast<bool>(how["cached"]),
                     .match_ps = nb::cast<uint64_t>(how["match_ps"]),
                     .own = rate_of(how, "own"),
                     .combine_ps = nb::cast<uint64_t>(how["combine_ps"]),
                     .combine = rate_of(how, "combine"),
                     .test_ps = nb::cast<uint64_t>(how["test_ps"])};
  }
  if (given.contains("scale")) {
    out.scale_numerator = nb::cast<uint64_t>(given["scale"][0]);
    out.scale_denominator = nb::cast<uint64_t>(given["scale"][1]);
  }
  if (given.contains("unit_ps")) out.unit_ps = nb::cast<uint64_t>(given["unit_ps"]);
  if (given.contains("one_cpu")) out.one_cpu = nb::cast<bool>(given["one_cpu"]);
  return out;
}

// The operations of a schedule that meet messages or their requests, by rank and leg.
struct Receives {
  std::vector<std::vector<uint32_t>> operations;

  // Returns the late receives by rank and leg. `late` is by rank and operation, as Schedule.run(late=True) gives it.
  [[nodiscard]] predict::LateReceives late(const std::vector<std::vector<bool>>& late) const {
    predict::LateReceives found(operations.size());
    for (size_t rank = 0; rank < operations.size(); ++rank) {
      for (const uint32_t operation : operations[rank]) {
        found[rank].push_back(operation != predict::no_operation && late[rank][operation]);
      }
    }
    return found;
  }
};

// Calls of a schedule that wait for collective operations.
struct BoundWaits {
  predict::Waits calls;

  [[nodiscard]] std::vector<uint64_t> times(const schedule::Schedule& made, const Kept& kept) const {
    return predict::waited_ps(made, calls, *kept.record);
  }
};

nb::tuple schedule_with_receives(const Recording& made, const nb::dict& given, const predict::LateReceives& late) {
  const Costs costs = costs_of(given);
  predict::Priced priced = unwrap(without_lock([&] { return predict::schedule_of(made.script, costs, late); }));
  nb::list bills;
  for (const predict::Bill& bill : priced.bills) {
    nb::dict one;
    one["compute_ps"] = bill.compute_ps;
    one["messages_ps"] = bill.messages_ps;
    one["layouts_ps"] = bill.layouts_ps;
    one["combine_ps"] = bill.combine_ps;
    one["nic_ps"] = bill.nic_ps;
    one["sent_messages"] = bill.sent_messages;
    one["sent_bytes"] = bill.sent_bytes;
    one["received_bytes"] = bill.received_bytes;
    bills.append(one);
  }
  return nb::make_tuple(nb::cast(std::move(priced.schedule)), bills, Receives{std::move(priced.receives)},
                        BoundWaits{std::move(priced.waits)});
}

nb::tuple schedule(const Recording& made, const nb::dict& given) {
  const nb::tuple all = schedule_with_receives(made, given, {});
  return nb::make_tuple(all[0], all[1]);
}

}  // namespace

void bind_predict(nb::module_& module) {
  nb::class_<Recording>(module, "Recording", "A recorded program, its messages matched.")
      .def("facts", &facts, "What was recorded, for each rank, and what of it is not replayed.")
      .def("layouts", &layouts, "Which layouts are moved, how often.")
      .def("pairs", &pairs, "What messages have at their ends: bytes, (layout, count) sent and received, how many.")
      .def("schedule", &schedule, nb::arg("costs"), "(Schedule, bills of the ranks) at given costs.")
      .def("schedule_with_receives", &schedule_with_receives, nb::arg("costs"), nb::arg("late"),
           "(Schedule, bills, Receives, Waits) at given costs, with receives that a run has found late; none: [].");
  nb::class_<Receives>(module, "Receives", "Which operations of a Schedule meet messages.")
      .def("late", &Receives::late, nb::arg("late"), "Which receives were late, from what a run says of operations.");
  nb::class_<BoundWaits>(module, "Waits", "Calls of a Schedule that wait for collective operations.")
      .def("times", &BoundWaits::times, nb::arg("schedule"), nb::arg("kept"),
           "ps that each rank was in them, from what a run has kept.");
  module.def("skeleton_recording", &skeleton, nb::arg("ranks"), nb::arg("steps"), nb::arg("repeats"),
             nb::arg("algorithms"),
             "The Recording of a program that nobody ran. Steps: {'kind': 'compute', 'compute_ns'}, {'kind': 'halo', "
             "'grid', 'types': [(sent, received)], 'compute_ns'}, {'kind': 'alltoall', 'types'}, {'kind': 'allreduce', "
             "'bytes'}.");
  module.def(
      "read_recording", &read, nb::arg("directory"), nb::arg("algorithms"), nb::arg("ranks") = 0,
      nb::arg("polls") = "rule", nb::arg("strong") = false,
      "The Recording in a directory of traces, on more ranks if asked; algorithms: 'allreduce=ring', ...; polls: "
      "what lies between polls in vain, 'wait', 'work' or by 'rule'; strong: more ranks share what there was.");
}

}  // namespace spinloom::app
