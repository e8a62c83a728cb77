// spinloom._core: schedules in GOAL, and the light engine that runs them.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <span>
#include <string_view>
#include <tuple>

#include "app/python/bindings_fidelity.hpp"
#include "app/python/bindings_goal_model.hpp"
#include "app/python/bindings_support.hpp"
#include "app/python/bindings_watched.hpp"
#include "memory/layout/blob.hpp"
#include "predict/goal/loggopsim/loggopsim.hpp"
#include "predict/goal/model/critical_path.hpp"
#include "predict/goal/model/model.hpp"
#include "predict/goal/model/repeat.hpp"
#include "predict/goal/patterns/patterns.hpp"
#include "predict/schedule/check.hpp"
#include "predict/schedule/goal.hpp"
#include "predict/schedule/misread.hpp"
#include "predict/schedule/schedule_file.hpp"
#include "simulated/network/network.hpp"

namespace spinloom::app {
namespace {

using schedule::Schedule;

using Tags = std::optional<std::pair<uint32_t, uint32_t>>;

goal::TagsApart tags_of(const Tags& tags) {
  return tags.has_value() ? goal::TagsApart{tags->first, tags->second} : goal::TagsApart();
}

std::string_view view(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

Schedule read(const nb::bytes& bytes) {
  return watched(nb::none(),
                 [source = view(bytes)](const goal::Watch& watch) { return schedule::read_schedule(source, watch); });
}

Schedule open(const std::string& path) {
  return watched(nb::none(), [&](const goal::Watch& watch) { return schedule::open_schedule(path, watch); });
}

// Calls `write`, and gives what it writes to `take` part by part. After an exception of `take`, or Ctrl-C, later parts
// are dropped, and the exception is thrown at the end.
template <class Write>
auto pass_parts(const nb::object& take, const Write& write) {
  std::optional<nb::python_error> stopped;
  const schedule::ByteSink take_part = [&](std::string_view bytes) {
    const nb::gil_scoped_acquire lock;
    if (stopped.has_value()) return;
    try {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      take(nb::bytes(bytes.data(), bytes.size()));
    } catch (nb::python_error& error) {
      stopped.emplace(std::move(error));
    }
  };
  const Status status = without_lock([&] { return write(take_part); });
  if (stopped.has_value()) throw std::move(*stopped);
  unwrap(status);
}

nb::dict count(const Schedule& schedule) {
  const schedule::Count counts =
      watched(nb::none(), [&](const goal::Watch& watch) { return Result(schedule::count(schedule, watch)); });
  nb::dict out;
  out["ranks"] = schedule.ranks();
  out["operations"] = schedule.operations();
  out["sends"] = counts.sends;
  out["receives"] = counts.receives;
  out["computations"] = counts.computations;
  out["puts"] = counts.puts;
  out["gets"] = counts.gets;
  out["atomics"] = counts.atomics;
  out["arrivals"] = counts.arrivals;
  out["edges"] = counts.edges;
  out["sent_bytes"] = counts.sent_bytes;
  out["one_sided_bytes"] = counts.one_sided_bytes;
  out["layouts"] = schedule.layouts().size();
  out["layout_ends"] = counts.layout_ends;
  out["cpus"] = counts.cpus;
  out["nics"] = counts.nics;
  out["cpu_largest"] = counts.cpu_largest;
  out["nic_largest"] = counts.nic_largest;
  out["programs"] = schedule.programs().size();
  out["memory_bytes"] = schedule.memory_bytes();
  return out;
}

nb::dict network_size(const nb::dict& fields, uint32_t ranks) {
  const auto network = unwrap(network::Network::make(network_of(fields), {}, ranks));
  nb::dict out;
  out["switches"] = network.switches();
  out["links"] = network.links();
  return out;
}

constexpr const char* step_names[] = {"computation", "send", "receive", "latency", "bytes", "queue"};

nb::list path_of(const std::vector<goal::Step>& steps) {
  nb::list out;
  for (const goal::Step& step : steps) {
    out.append(nb::make_tuple(step.begin_ps, step.end_ps, step_names[static_cast<size_t>(step.kind)], step.rank,
                              step.operation));
  }
  return out;
}

nb::list waits_of(const std::vector<goal::Wait>& waits) {
  nb::list out;
  for (const goal::Wait& wait : waits) {
    out.append(nb::make_tuple(wait.rank, wait.operation, wait.begin_ps, wait.end_ps, wait.waited_for,
                              step_names[static_cast<size_t>(wait.cause)], wait.cause_rank, wait.cause_ps));
  }
  return out;
}

// Returns, by rank and operation: true for a receive that was posted after its message or request had come.
std::vector<std::vector<bool>> late_of(const Schedule& schedule, const goal::Record& record) {
  std::vector<std::vector<bool>> late(schedule.ranks());
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    late[rank].resize(schedule.program(rank).size());
    for (uint32_t number = 0; number < late[rank].size(); ++number)
      late[rank][number] = record.of(rank, number).is_late;
  }
  return late;
}

nb::dict run(const Schedule& schedule, uint64_t L_ps, uint64_t o_ps, uint64_t g_ps, const Ratio& G, const Ratio& O,
             uint64_t S_bytes, uint64_t unit_ps, const std::optional<nb::dict>& network,
             const std::optional<Noise>& noise, bool record, const nb::object& progress,
             const std::optional<Ratio>& layout, bool late, bool keep, const Tags& apart) {
  goal::Model model{L_ps, o_ps, g_ps, rate("G", G), rate("O", O), S_bytes, unit_ps};
  if (network.has_value()) model.network = network_of(*network);
  if (layout.has_value()) model.layout = rate("layout", *layout);
  if (noise.has_value()) model.noise = noise_of(*noise);
  model.tags_apart = tags_of(apart);
  auto shared = std::make_shared<goal::Record>();
  goal::Record& run_record = *shared;
  const goal::Outcome outcome = watched(progress, [&](const goal::Watch& watch) {
    return goal::run(schedule, model, record || late || keep ? &run_record : nullptr, watch);
  });
  nb::dict out = dict_of(outcome);
  if (late) out["late"] = late_of(schedule, run_record);
  if (keep) out["kept"] = KeptRecord{shared};
  if (record) {
    out["path"] = path_of(goal::critical_path(schedule, model, run_record));
    out["spans"] = spans_of(schedule, run_record);
    out["waits"] = waits_of(goal::waits(schedule, model, run_record));
    out["messages"] = messages_of(schedule, run_record);
  }
  return out;
}

nb::dict run_loggopsim(const Schedule& schedule, uint64_t L, uint64_t o, uint64_t g, uint64_t G, uint64_t O, uint64_t S,
                       const nb::object& progress, const Tags& apart) {
  const goal::LogGopSimParameters parameters{
      .L = L, .o = o, .g = g, .G = G, .O = O, .S = S, .tags_apart = tags_of(apart)};
  const goal::LogGopSimOutcome outcome =
      watched(progress, [&](const goal::Watch& watch) { return goal::run_loggopsim(schedule, parameters, watch); });
  nb::dict out;
  out["host_times"] = outcome.host_times;
  out["makespan"] = outcome.makespan;
  out["events"] = outcome.events;
  return out;
}

// Checks that the bytes of layouts are layouts of the sizes that they claim, then all else. schedule::check() alone
// takes layouts as mere bytes.
Status check_with_layouts(const Schedule& schedule, const goal::Watch& watch) {
  for (size_t number = 0; number < schedule.layouts().size(); ++number) {
    const schedule::Layout& layout = schedule.layouts()[number];
    const auto blob = layout::Blob::validate(std::as_bytes(std::span(layout.blob)));
    if (!blob) return fail(blob.error().code, "layout ", number, ": ", blob.error().message);
    int64_t bytes = 0;
    if (layout.count >= 0 && !__builtin_mul_overflow(blob->size(), layout.count, &bytes) &&
        static_cast<uint64_t>(bytes) == layout.bytes) {
      continue;
    }
    return fail(Code::invalid, "layout ", number, ": ", layout.count, " elements of ", blob->size(),
                " B are said to be ", layout.bytes, " B");
  }
  return schedule::check(schedule, watch);
}

// Returns all operations, every repetition of a program written out: for drawings of small schedules.
nb::list graph(const Schedule& schedule) {
  const Schedule unrolled = schedule.unrolled();
  nb::list ranks;
  for (uint32_t rank = 0; rank < unrolled.ranks(); ++rank) {
    const schedule::Program& program = unrolled.program(rank);
    nb::list operations;
    for (uint32_t number = 0; number < program.size(); ++number) {
      const schedule::Operation& operation = program.operations[number];
      const schedule::Shape& shape = unrolled.shape(operation);
      nb::list edges;
      for (const schedule::Edge edge : program.edges_of(number)) {
        edges.append(nb::make_tuple(edge.to(), edge.awaits() == schedule::Awaits::end ? "end" : "start",
                                    edge.join() == schedule::Join::first));
      }
      nb::object peer = nb::none();
      if (schedule::has_peer(shape.kind) && unrolled.peer(rank, operation) != schedule::any) {
        peer = nb::int_(unrolled.peer(rank, operation));
      }
      operations.append(nb::make_tuple(unrolled.describe(rank, operation), schedule::name_of(shape.kind), peer,
                                       int64_t{shape.tag}, edges));
    }
    ranks.append(operations);
  }
  return ranks;
}

std::vector<std::string> words(const Schedule& schedule) {
  std::vector<bool> kinds(schedule::kinds);
  bool waits_for_end = false;
  bool waits_for_start = false;
  for (const schedule::Program& program : schedule.programs()) {
    for (const schedule::Operation& operation : program.operations)
      kinds[static_cast<size_t>(schedule.shape(operation).kind)] = true;
    for (const schedule::Edge edge : program.edges) {
      if (edge.join() == schedule::Join::all) continue;
      (edge.awaits() == schedule::Awaits::end ? waits_for_end : waits_for_start) = true;
    }
  }
  std::vector<std::string> words;
  if (waits_for_end) words.emplace_back("anyof");
  if (waits_for_start) words.emplace_back("ianyof");
  for (auto kind = static_cast<uint32_t>(schedule::Kind::put); kind < schedule::kinds; ++kind) {
    if (kinds[kind]) words.emplace_back(schedule::name_of(static_cast<schedule::Kind>(kind)));
  }
  if (!schedule.layouts().empty()) words.emplace_back("layout");
  return words;
}

nb::bytes bytes_of_text(const Result<std::string>& result) {
  const std::string content = unwrap(Result<std::string>(result));
  return nb::bytes(content.data(), content.size());
}

}  // namespace

void bind_goal(nb::module_& module) {
  bind_fidelity(module);
  const nb::class_<KeptRecord> kept(module, "Kept", "When each operation of a run began and ended.");
  nb::class_<Schedule>(module, "Schedule", "Who does what after what, for each rank.")
      .def("count", &count, "What it holds, as a dictionary.")
      .def(
          "check",
          [](const Schedule& schedule) {
            watched(nb::none(), [&](const goal::Watch& watch) { return check_with_layouts(schedule, watch); });
          },
          "Raises SpinloomError with a sentence for the first trouble.")
      .def("run", &run, nb::arg("L_ps"), nb::arg("o_ps"), nb::arg("g_ps"), nb::arg("G"), nb::arg("O") = Ratio(0, 1),
           nb::arg("S_bytes") = 65535, nb::arg("unit_ps") = 1000, nb::arg("network") = nb::none(),
           nb::arg("noise") = nb::none(), nb::arg("record") = false, nb::arg("progress") = nb::none(),
           nb::arg("layout") = nb::none(), nb::arg("late") = false, nb::arg("keep") = false,
           nb::arg("apart") = nb::none(),
           "Each rank's times by our own model, in picoseconds. G and O are (numerator, denominator) of ps for a byte, "
           "unit_ps is what computations are counted in, network what goal_network.parse() gives, noise (period_ps, "
           "length_ps, seed, together), layout what a CPU takes for each byte that a layout scatters. With record: "
           "path, the steps (begin, end, what, rank, operation) of the critical path, spans, what CPUs did, messages, "
           "and "
           "waits of CPUs: (rank, operation that ends it, begin, end, rank that it waited for, and what took longest "
           "meanwhile: what, rank, ps). "
           "With keep: kept, for Waits.times(). apart: the first and the last tag of those that a receive of any tag "
           "does not take. "
           "progress is called now and then with how many operations have begun.")
      .def("run_loggopsim", &run_loggopsim, nb::arg("L"), nb::arg("o"), nb::arg("g"), nb::arg("G"), nb::arg("O"),
           nb::arg("S"), nb::arg("progress") = nb::none(), nb::arg("apart") = nb::none(),
           "Each rank's time by the rules of LogGOPSim of 2023, in the unit of the parameters; apart as of run().")
      .def(
          "text", [](const Schedule& schedule) { return bytes_of_text(schedule::print_goal(schedule)); },
          "As GOAL text.")
      .def(
          "binary", [](const Schedule& schedule) { return bytes_of_text(schedule::write_goal_binary(schedule)); },
          "In the binary form of LogGOPSim of 2023.")
      .def(
          "own", [](const Schedule& schedule) { return bytes_of_text(schedule::write_schedule(schedule)); },
          "In our own form, which loses nothing.")
      .def(
          "write_own",
          [](const Schedule& schedule, const nb::object& take) {
            pass_parts(take, [&](const schedule::ByteSink& take_part) {
              schedule::write_schedule(schedule, take_part);
              return Status();
            });
          },
          nb::arg("take"), "The same, part by part: take(bytes).")
      .def(
          "repeated",
          [](const Schedule& schedule, uint32_t times) {
            return unwrap(without_lock([&] { return goal::repeat(schedule, times); }));
          },
          nb::arg("times"), "The same so many times: a rank begins again when all of its operations have ended.")
      .def(
          "write_apart",
          [](const Schedule& schedule, uint32_t times, uint64_t least, uint64_t most, uint64_t seed,
             const nb::object& take) {
            pass_parts(take, [&](const schedule::ByteSink& take_part) {
              return goal::repeat_with_pauses(schedule, times, {least, most, seed}, take_part);
            });
          },
          nb::arg("times"), nb::arg("least"), nb::arg("most"), nb::arg("seed"), nb::arg("take"),
          "As repeated(), written out in our own form, with a random computation of each rank behind each time: "
          "take(bytes), part by part.")
      .def("graph", &graph,
           "Of each rank a list of operations: (what it is, kind, peer or None, tag, edges), and edges "
           "are (operation that waits, 'end' or 'start', whether it waits for the first of several).")
      .def(
          "misread",
          [](const Schedule& schedule) {
            const schedule::Misread misread = without_lock([&] { return schedule::misread(schedule); });
            return nb::make_tuple(misread.edges, misread.receivers);
          },
          "What LogGOPSim takes otherwise: (dependencies between CPUs, ranks that receive on another CPU than was "
          "sent on).")
      .def("words", &words, "What of it GOAL does not have, as words of the text; 'layout' if it has any.");
  module.def("read_goal", &read, nb::arg("bytes"), "A Schedule from our own form, GOAL text or its binary forms.");
  module.def("open_goal", &open, nb::arg("path"),
             "The same from a file; operations of our own form stay in it, mapped: it must stay as it is.");
  module.def(
      "goal_pattern",
      [](std::string_view name, uint32_t ranks, uint64_t bytes, std::optional<uint32_t> radix,
         std::optional<uint64_t> segment_bytes, const std::vector<uint32_t>& grid) {
        return unwrap(
            without_lock([&] { return goal::make_pattern(name, ranks, bytes, {radix, segment_bytes, grid}); }));
      },
      nb::arg("name"), nb::arg("ranks"), nb::arg("bytes"), nb::arg("radix") = nb::none(),
      nb::arg("segment_bytes") = nb::none(), nb::arg("grid") = std::vector<uint32_t>(),
      "The Schedule of a collective operation.");
  module.def("network_size", &network_size, nb::arg("network"), nb::arg("ranks"),
             "How many switches and links a network has; goal_network.parse() gives its fields.");
  module.def(
      "goal_patterns",
      [] {
        nb::dict patterns;
        for (const goal::PatternName& one : goal::pattern_names()) {
          patterns[nb::str(one.name.data(), one.name.size())] = nb::str(one.about.data(), one.about.size());
        }
        return patterns;
      },
      "What each pattern is, by name.");
}

}  // namespace spinloom::app
