// spinloom._core: algorithms of collective operations, their time by a model, and their needs of a NIC.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string_view>
#include <tuple>
#include <vector>

#include "app/python/bindings_goal_model.hpp"
#include "app/python/bindings_support.hpp"
#include "portals/collective/choice.hpp"
#include "portals/collective/needs.hpp"
#include "portals/collective/play.hpp"
#include "portals/collective/table1.hpp"
#include "portals/collective/table1_ours.hpp"
#include "predict/goal/patterns/offloaded.hpp"

namespace spinloom::app {
namespace {

collective::Model model_of(const nb::dict& fields) {
  const auto time = [&](const char* name) { return nb::cast<uint64_t>(fields[name]); };
  const auto per_byte = [&](const char* name) { return rate(name, nb::cast<Ratio>(fields[name])); };
  return {.o_ps = time("o_ps"),
          .L_ps = time("L_ps"),
          .g_ps = time("g_ps"),
          .h_ps = time("h_ps"),
          .m_ps = time("m_ps"),
          .z_ps = time("z_ps"),
          .a_ps = time("a_ps"),
          .G = per_byte("G"),
          .A = per_byte("A")};
}

collective::CallShape shape_of(uint32_t ranks, uint64_t bytes, uint64_t element_bytes, uint64_t segment_bytes = 0) {
  if (element_bytes == 0) unwrap(Status(fail(Code::invalid, "elements of 0 B: give 1 B or more")));
  return {ranks, bytes, element_bytes, segment_bytes == 0 ? UINT64_MAX : segment_bytes};
}

nb::str as_text(std::string_view text) { return nb::str(text.data(), text.size()); }

// Adds the paper's Table 1 entries for the algorithm, or None.
void add_table1(const collective::Algorithm& algorithm, uint32_t ranks, uint64_t bytes, nb::dict& row) {
  const auto rows = collective::table1();
  const auto found = std::ranges::find_if(rows, [&](const collective::Table1Row& entry) {
    return entry.operation == algorithm.operation && entry.algorithm == algorithm.name;
  });
  const auto add = [&](const char* name, collective::Formula collective::Table1Row::* formula) {
    row[name] = found == rows.end() ? nb::object(nb::none()) : nb::int_(((*found).*formula).value(ranks, bytes));
  };
  add("table1_entries", &collective::Table1Row::entries);
  add("table1_triggered", &collective::Table1Row::triggered);
  add("table1_counters", &collective::Table1Row::counters);
  add("table1_memory_bytes", &collective::Table1Row::memory);
}

nb::list candidates(std::string_view operation, uint32_t ranks, uint64_t bytes, uint64_t element_bytes,
                    const nb::dict& fields) {
  nb::list out;
  const collective::CallShape shape = shape_of(ranks, bytes, element_bytes);
  for (const auto& candidate :
       collective::candidates(unwrap(collective::operation_named(operation)), shape, model_of(fields))) {
    nb::dict row;
    row["algorithm"] = as_text(candidate.algorithm->name);
    row["segment_bytes"] = candidate.segment_bytes;
    row["time_ps"] = candidate.time_ps;
    row["is_near"] = candidate.is_near;
    add_table1(*candidate.algorithm, ranks, bytes, row);
    out.append(row);
  }
  return out;
}

nb::str choose(std::string_view operation, uint32_t ranks, uint64_t bytes, uint64_t element_bytes,
               const nb::dict& fields) {
  const collective::CallShape shape = shape_of(ranks, bytes, element_bytes);
  return as_text(
      collective::choose(unwrap(collective::operation_named(operation)), shape, model_of(fields)).algorithm->name);
}

// The operations of all ranks, kept for later questions about them.
struct Offloaded {
  std::vector<collective::Graph> ranks;
};

Offloaded make(std::string_view operation, std::string_view algorithm, uint32_t ranks, uint64_t bytes,
               uint64_t element_bytes, uint64_t segment_bytes, uint32_t root) {
  const auto* const chosen = unwrap(collective::find(unwrap(collective::operation_named(operation)), algorithm));
  const collective::CallShape shape = shape_of(ranks, bytes, element_bytes, segment_bytes);
  return {unwrap(without_lock([&] { return collective::graphs_of(*chosen, shape, root); }))};
}

// Returns the largest needs of any rank.
nb::dict resources(const Offloaded& offloaded, uint64_t atomic_bytes) {
  collective::Needs largest_needs;
  for (const collective::Graph& graph : offloaded.ranks)
    largest_needs.take_maxima(collective::needs_of(graph, atomic_bytes));
  nb::dict out;
  out["entries"] = largest_needs.entries;
  out["triggered"] = largest_needs.triggered;
  out["counters"] = largest_needs.counters;
  out["memory_bytes"] = largest_needs.own_bytes;
  return out;
}

nb::dict count_beside_paper(uint64_t counted, const collective::Formula& paper, const collective::Formula& own,
                            uint32_t ranks, uint64_t bytes) {
  const collective::Formula& ours = own.value == nullptr ? paper : own;
  nb::dict out;
  out["counted"] = counted;
  out["paper"] = as_text(paper.text);
  out["paper_count"] = paper.value(ranks, bytes);
  out["ours"] = as_text(ours.text);
  out["ours_count"] = ours.value(ranks, bytes);
  return out;
}

nb::list table1(uint32_t ranks, uint64_t bytes) {
  if (ranks < 2 || bytes == 0) unwrap(Status(fail(Code::invalid, "Table I is of 2 ranks and 1 B or more")));
  nb::list out;
  const auto rows = collective::table1();
  for (size_t number = 0; number < rows.size(); ++number) {
    const collective::Table1Row& row = rows[number];
    const collective::Table1Ours& ours = collective::table1_ours()[number];
    const auto counted = unwrap(without_lock([&] { return collective::table1_count(row, ranks, bytes); }));
    nb::dict entry;
    entry["operation"] = as_text(name_of(row.operation));
    entry["algorithm"] = as_text(row.name);
    entry["from_ranks"] = ours.from_ranks;
    entry["why"] = as_text(ours.reason);
    entry["entries"] = count_beside_paper(counted.entries, row.entries, ours.entries, ranks, bytes);
    entry["triggered"] = count_beside_paper(counted.triggered, row.triggered, ours.triggered, ranks, bytes);
    entry["counters"] = count_beside_paper(counted.counters, row.counters, ours.counters, ranks, bytes);
    entry["memory_bytes"] = count_beside_paper(counted.memory_bytes, row.memory, ours.memory, ranks, bytes);
    out.append(entry);
  }
  return out;
}

// The operations that the schedules of all ranks may have; more would take more memory than machines have.
constexpr uint64_t scheduled_max = uint64_t{1} << 27;

schedule::Schedule make_schedule(std::string_view operation, std::string_view name, uint32_t ranks, uint64_t bytes,
                                 uint64_t element_bytes, uint64_t segment_bytes, uint32_t root) {
  const auto* const chosen = unwrap(collective::find(unwrap(collective::operation_named(operation)), name));
  const collective::CallShape shape = shape_of(ranks, bytes, element_bytes, segment_bytes);
  const auto make_all = [&]() -> Result<schedule::Schedule> {
    uint64_t operations = 0;
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      SPL_ASSIGN(const auto rounds, collective::rounds_of(*chosen, shape, root, rank));
      for (const auto& round : rounds) operations += round.legs.size() + round.copies.size() + round.combines.size();
      if (operations <= scheduled_max) continue;
      return fail(Code::overflow, operation, " by ", name, " of ", ranks, " ranks: more than ", scheduled_max,
                  " operations of all ranks; take fewer ranks");
    }
    return goal::offloaded(ranks, [&](uint32_t rank) -> Result<collective::Graph> {
      SPL_ASSIGN(const auto rounds, collective::rounds_of(*chosen, shape, root, rank));
      return collective::unread_graph_of(rounds);
    });
  };
  return unwrap(without_lock(make_all));
}

using Message = std::tuple<uint32_t, uint32_t, uint64_t, uint64_t, uint64_t>;

std::vector<Message> messages(const Offloaded& offloaded, const nb::dict& fields) {
  std::vector<collective::PlayedMessage> sent;
  std::ignore = unwrap(collective::play(offloaded.ranks, model_of(fields), &sent));
  std::vector<Message> out;
  for (const auto& message : sent)
    out.emplace_back(message.source, message.target, message.bytes, message.left_ps, message.landed_ps);
  return out;
}

}  // namespace

void bind_collective(nb::module_& module) {
  module.def(
      "collective_operations",
      [] {
        std::vector<std::string> names;
        for (uint32_t number = 0; number < collective::operation_count; ++number) {
          const auto operation = static_cast<collective::Operation>(number);
          if (collective::form_of(operation, collective::algorithms_of(operation).front().name) != nullptr) {
            names.emplace_back(name_of(operation));
          }
        }
        return names;
      },
      "The names of the operations whose algorithms have closed forms.");
  module.def(
      "collective_candidates", &candidates, nb::arg("operation"), nb::arg("ranks"), nb::arg("bytes"),
      nb::arg("element_bytes"), nb::arg("model"),
      "The algorithms for so many ranks as dictionaries: algorithm, segment_bytes (0: none), time_ps by the closed "
      "form, is_near, and what Table I of the FFLIB paper says: table1_entries, .. _triggered, .. _counters, .. "
      "_memory_bytes. model: o_ps, L_ps, g_ps, h_ps, m_ps, z_ps, a_ps, and G and A as (numerator, denominator) of ps "
      "for a "
      "byte.");
  module.def("collective_choice", &choose, nb::arg("operation"), nb::arg("ranks"), nb::arg("bytes"),
             nb::arg("element_bytes"), nb::arg("model"), "The algorithm that is fastest by its closed form.");
  module.def(
      "collective_table1", &table1, nb::arg("ranks"), nb::arg("bytes"),
      "Table I of the FFLIB paper beside what our endpoints take, a dictionary for each of its 13 rows: operation, "
      "algorithm, why they differ, and entries, triggered, counters and memory_bytes, each with what was counted, the "
      "paper's formula and ours (as texts and numbers); ours is what is counted from from_ranks on.");
  nb::class_<Offloaded>(module, "Offloaded", "What all ranks do for a collective operation.")
      .def(
          "operations",
          [](const Offloaded& offloaded) {
            uint64_t operations = 0;
            for (const collective::Graph& graph : offloaded.ranks) operations += graph.operations.size();
            return operations;
          },
          "How many, of all ranks.")
      .def("resources", &resources, nb::arg("atomic_bytes"),
           "The most of any rank, whose NIC combines so many bytes at once: entries (descriptors, too), triggered, "
           "counters, "
           "memory_bytes.")
      .def("messages", &messages, nb::arg("model"),
           "By the model: (from, to, bytes, left_ps, landed_ps) of each message, as they land.")
      .def(
          "time_ps",
          [](const Offloaded& offloaded, const nb::dict& fields) {
            return unwrap(collective::play(offloaded.ranks, model_of(fields)));
          },
          nb::arg("model"), "The time by the model, played message by message.")
      .def(
          "schedule", [](const Offloaded& offloaded) { return unwrap(goal::offloaded(offloaded.ranks)); },
          "As a Schedule of triggered operations.");
  module.def("collective_offloaded", &make, nb::arg("operation"), nb::arg("algorithm"), nb::arg("ranks"),
             nb::arg("bytes"), nb::arg("element_bytes") = 1, nb::arg("segment_bytes") = 0, nb::arg("root") = 0,
             "An Offloaded by the names of an operation and an algorithm.");
  module.def("collective_schedule", &make_schedule, nb::arg("operation"), nb::arg("algorithm"), nb::arg("ranks"),
             nb::arg("bytes"), nb::arg("element_bytes") = 1, nb::arg("segment_bytes") = 0, nb::arg("root") = 0,
             "A Schedule of triggered operations of many ranks, rank by rank: of those that do alike it is small.");
}

}  // namespace spinloom::app
