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
  bool has_ended = true;  // all ranks have
  bool is_cpu_time = false;
  std::vector<std::string> warnings;  // one for each rank whose trace is shorter than it should be
  std::string growth;  // the way in which the recording grew to more ranks; empty if it did not
};

Result<predict::PollMeaning> polls_named(std::string_view name) {
  if (name == "wait") return predict::PollMeaning::wait;
  if (name == "work") return predict::PollMeaning::work;
  if (name == "rule") return predict::PollMeaning::rule;
  return fail(Code::invalid, "polls are \"", name, "\"; there are wait, work, rule");
}

Result<Recording> recording_of(const std::vector<trace::RankTrace>& traces, const std::vector<std::string>& choices,
                               predict::PollMeaning polls = predict::PollMeaning::rule) {
  SPL_ASSIGN(const predict::Algorithms algorithms, predict::parse_choices(choices));
  Recording recording;
  SPL_ASSIGN(recording.script, predict::script_of(traces, algorithms, polls));
  recording.host = traces.front().host;
  recording.mpi = traces.front().mpi;
  recording.program = traces.front().program;
  recording.is_cpu_time = traces.front().is_cpu_time;
  for (const trace::RankTrace& rank_trace : traces) {
    recording.has_ended = recording.has_ended && rank_trace.has_ended;
    if (!rank_trace.warning.empty())
      recording.warnings.push_back(text("rank ", rank_trace.rank, ": ", rank_trace.warning));
  }
  return recording;
}

// Reads a recording, and grows it to `ranks` ranks unless `ranks` is 0.
Recording read(nb::handle folder, const std::vector<std::string>& choices, uint32_t ranks, const std::string& polls,
               bool strong) {
  const std::string directory = path_of(folder);
  return unwrap(without_lock([&]() -> Result<Recording> {
    SPL_ASSIGN(const predict::PollMeaning poll_rule, polls_named(polls));
    SPL_ASSIGN(std::vector<trace::RankTrace> traces, trace::read(directory));
    std::string growth;
    if (ranks != 0) {
      SPL_ASSIGN(predict::Grown grown,
                 predict::grow(traces, ranks, strong ? predict::Scaling::strong : predict::Scaling::weak));
      traces = std::move(grown.traces);
      growth = std::move(grown.description);
    }
    SPL_ASSIGN(Recording recording, recording_of(traces, choices, poll_rule));
    recording.growth = std::move(growth);
    return recording;
  }));
}

predict::SkeletonStep step_of(const nb::dict& fields) {
  static constexpr std::pair<std::string_view, predict::SkeletonStep::Kind> kinds[] = {
      {"compute", predict::SkeletonStep::Kind::compute},
      {"halo", predict::SkeletonStep::Kind::halo},
      {"alltoall", predict::SkeletonStep::Kind::alltoall},
      {"allreduce", predict::SkeletonStep::Kind::allreduce},
  };
  predict::SkeletonStep step;
  const auto name = nb::cast<std::string>(fields["kind"]);
  const auto* const kind = std::ranges::find(kinds, name, [](const auto& kind_name) { return kind_name.first; });
  if (kind == std::end(kinds)) unwrap(Status(fail(Code::invalid, "there is no step '", name, "'")));
  step.kind = kind->second;
  if (fields.contains("compute_ns")) step.compute_ns = nb::cast<uint64_t>(fields["compute_ns"]);
  if (fields.contains("bytes")) step.bytes = nb::cast<uint64_t>(fields["bytes"]);
  if (fields.contains("grid")) step.grid = nb::cast<std::vector<uint32_t>>(fields["grid"]);
  if (fields.contains("types")) {
    for (const nb::handle pair : nb::cast<nb::list>(fields["types"])) {
      step.types.push_back({nb::cast<std::string>(pair[0]), nb::cast<std::string>(pair[1])});
    }
  }
  return step;
}

Recording skeleton(uint32_t ranks, const nb::list& step_list, uint32_t repeats,
                   const std::vector<std::string>& choices) {
  std::vector<predict::SkeletonStep> steps;
  for (const nb::handle fields : step_list) steps.push_back(step_of(nb::cast<nb::dict>(fields)));
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
  for (const predict::RankScript& rank : script.ranks) {
    count += static_cast<uint64_t>(std::ranges::count_if(
        rank.actions, [](const predict::Action& action) { return action.is_collective && !action.is_blocking; }));
  }
  return count;
}

nb::dict facts(const Recording& recording) {
  nb::dict out;
  out["ranks"] = recording.script.ranks.size();
  out["host"] = text_of(recording.host);
  out["mpi"] = text_of(recording.mpi);
  out["program"] = text_of(recording.program);
  out["ended"] = recording.has_ended;
  out["is_cpu_time"] = recording.is_cpu_time;
  out["how"] = recording.growth;
  nb::list warnings;
  for (const std::string& warning : recording.warnings) warnings.append(text_of(warning));
  out["warnings"] = warnings;
  out["algorithms"] = recording.script.algorithms;
  nb::dict left_out;
  for (const auto& [what, note] : recording.script.left_out) {
    left_out[python_string(what)] = nb::make_tuple(note.count, note.time_ns);
  }
  out["left_out"] = left_out;
  nb::list ranks;
  for (const predict::RankScript& rank_script : recording.script.ranks) {
    nb::dict rank;
    rank["total_ns"] = rank_script.recorded.total_ns;
    rank["compute_ns"] = rank_script.recorded.compute_ns;
    rank["fixed_ns"] = rank_script.recorded.fixed_ns;
    rank["communication_ns"] = rank_script.recorded.communication_ns;
    rank["between_ns"] = rank_script.recorded.between_polls_ns;
    rank["polled_ns"] = rank_script.recorded.polled_ns;
    rank["is_cut"] = rank_script.cut_event != UINT32_MAX;
    ranks.append(rank);
  }
  out["offloadable"] = offloadable(recording.script);
  out["recorded"] = ranks;
  return out;
}

nb::list layouts(const Recording& recording) {
  std::vector<std::string> texts;
  for (const layout::Blob& blob : recording.script.layouts)
    texts.push_back(layout::print(unwrap(layout::type_of(blob))));
  nb::list out;
  for (const predict::LayoutUse& use : predict::layout_uses(recording.script)) {
    nb::dict row;
    row["layout"] = use.layout;
    row["type"] = texts[use.layout];
    row["count"] = use.count;
    row["side"] = name_of(use.side);
    row["bytes"] = use.bytes;
    row["messages"] = use.messages;
    row["copies"] = use.copies;
    out.append(row);
  }
  return out;
}

// Returns a dict for each kind of message or own copy: the bytes of one; `sent` and `received` as (number of a layout,
// count), or None where the bytes are one block; how many messages and copies there are.
nb::list pairs(const Recording& recording) {
  const auto end = [](const predict::DataLayout& data_layout) -> nb::object {
    if (data_layout.type == trace::none) return nb::none();
    return nb::make_tuple(data_layout.type, data_layout.count);
  };
  nb::list out;
  for (const predict::PairUse& use : predict::pair_uses(recording.script)) {
    nb::dict row;
    row["bytes"] = use.bytes;
    row["sent"] = end(use.sent);
    row["received"] = end(use.received);
    row["messages"] = use.messages;
    row["copies"] = use.copies;
    out.append(row);
  }
  return out;
}

predict::DataLayout data_layout_of(const nb::handle& layout_and_count) {
  if (layout_and_count.is_none()) return {};
  return {nb::cast<int64_t>(layout_and_count[1]), nb::cast<uint32_t>(layout_and_count[0])};
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
Costs costs_of(const nb::dict& fields) {
  Costs out;
  for (const nb::handle point : nb::cast<nb::list>(fields["messages"])) {
    out.message_costs.push_back({nb::cast<uint64_t>(point[0]), nb::cast<uint64_t>(point[1]),
                                 nb::cast<uint64_t>(point[2]), nb::cast<uint64_t>(point[3])});
  }
  const auto key = [](const nb::handle& entry) {
    return Costs::LayoutKey{nb::cast<uint32_t>(entry[0]), nb::cast<int64_t>(entry[1]), side_of(entry[2])};
  };
  for (const nb::handle entry : nb::cast<nb::list>(fields["layouts"])) {
    out.layout_costs[key(entry)] = {nb::cast<uint64_t>(entry[3]), nb::cast<uint64_t>(entry[4]),
                                    nb::cast<uint64_t>(entry[5])};
  }
  for (const nb::handle entry : nb::cast<nb::list>(fields["host_layouts"])) {
    out.host_layout_ps[key(entry)] = nb::cast<uint64_t>(entry[3]);
  }
  if (fields.contains("pairs")) {
    for (const nb::handle entry : nb::cast<nb::list>(fields["pairs"])) {
      predict::PairCost& price =
          out.pair_costs[{nb::cast<uint64_t>(entry[0]), data_layout_of(entry[1]), data_layout_of(entry[2])}];
      price = {nb::cast<uint64_t>(entry[3]), nb::cast<uint64_t>(entry[4]), {}};
      if (!entry[5].is_none()) price.own_block_ps = nb::cast<uint64_t>(entry[5]);
    }
  }
  if (fields.contains("late")) {
    out.late_receives = {nb::cast<uint64_t>(fields["late"][0]), nb::cast<uint64_t>(fields["late"][1])};
  }
  out.unknown_layout_rate = rate_of(fields, "unknown_layout");
  out.copy_rate = rate_of(fields, "copy");
  out.combine_rate = rate_of(fields, "combine");
  if (fields.contains("handshake_bytes")) out.handshake_bytes = nb::cast<uint64_t>(fields["handshake_bytes"]);
  if (fields.contains("fetches") && nb::cast<bool>(fields["fetches"])) out.handshake = predict::Handshake::fetch;
  if (fields.contains("nic_answers") && nb::cast<bool>(fields["nic_answers"])) out.handshake = predict::Handshake::nic;
  if (fields.contains("offloaded")) {
    const auto offload = nb::cast<nb::dict>(fields["offloaded"]);
    out.offload = {.create_ps = nb::cast<uint64_t>(offload["create_ps"]),
                   .is_cached = nb::cast<bool>(offload["cached"]),
                   .match_ps = nb::cast<uint64_t>(offload["match_ps"]),
                   .own_block_rate = rate_of(offload, "own"),
                   .combine_latency_ps = nb::cast<uint64_t>(offload["combine_ps"]),
                   .combine_rate = rate_of(offload, "combine"),
                   .test_ps = nb::cast<uint64_t>(offload["test_ps"])};
  }
  if (fields.contains("scale")) {
    out.scale_numerator = nb::cast<uint64_t>(fields["scale"][0]);
    out.scale_denominator = nb::cast<uint64_t>(fields["scale"][1]);
  }
  if (fields.contains("unit_ps")) out.compute_unit_ps = nb::cast<uint64_t>(fields["unit_ps"]);
  if (fields.contains("one_cpu")) out.uses_one_cpu = nb::cast<bool>(fields["one_cpu"]);
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

  [[nodiscard]] std::vector<uint64_t> times(const schedule::Schedule& schedule, const KeptRecord& kept) const {
    return predict::waited_ps(schedule, calls, *kept.record);
  }
};

nb::tuple schedule_with_receives(const Recording& recording, const nb::dict& cost_fields,
                                 const predict::LateReceives& late) {
  const Costs costs = costs_of(cost_fields);
  predict::PricedSchedule priced =
      unwrap(without_lock([&] { return predict::schedule_of(recording.script, costs, late); }));
  nb::list bills;
  for (const predict::Bill& bill : priced.bills) {
    nb::dict row;
    row["compute_ps"] = bill.compute_ps;
    row["messages_ps"] = bill.messages_ps;
    row["layouts_ps"] = bill.layouts_ps;
    row["combine_ps"] = bill.combine_ps;
    row["nic_ps"] = bill.nic_ps;
    row["sent_messages"] = bill.sent_messages;
    row["sent_bytes"] = bill.sent_bytes;
    row["received_bytes"] = bill.received_bytes;
    bills.append(row);
  }
  return nb::make_tuple(nb::cast(std::move(priced.schedule)), bills, Receives{std::move(priced.receives)},
                        BoundWaits{std::move(priced.waits)});
}

nb::tuple schedule(const Recording& recording, const nb::dict& cost_fields) {
  const nb::tuple schedule_and_more = schedule_with_receives(recording, cost_fields, {});
  return nb::make_tuple(schedule_and_more[0], schedule_and_more[1]);
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
