// spinloom._core: the small experiments of the SC'17 sPIN paper.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "app/python/bindings_goal_model.hpp"
#include "app/python/bindings_setup.hpp"
#include "app/studies/study.hpp"

namespace spinloom::app {
namespace {

nb::dict run_study_cell(const nb::dict& settings) {
  StudyConfig config;
  static_cast<Setup&>(config) = setup_of(settings);
  config.experiment = unwrap(experiment_named(get_as<std::string>(settings, "experiment")));
  config.way = unwrap(study_way_named(get_as<std::string>(settings, "way")));
  if (settings.contains("bytes")) config.bytes = get_as<uint64_t>(settings, "bytes");
  if (settings.contains("ranks")) config.ranks = get_as<uint32_t>(settings, "ranks");
  if (settings.contains("offset")) config.offset = get_as<uint64_t>(settings, "offset");
  if (settings.contains("pieces")) {
    config.bytes = 0;
    for (const auto& [offset, bytes] : get_as<std::vector<std::pair<uint64_t, uint64_t>>>(settings, "pieces")) {
      config.pieces.push_back({offset, bytes});
    }
  }
  if (config.experiment >= Experiment::multicast) {
    if (settings.contains("network")) config.network = network_of(get_as<nb::dict>(settings, "network"));
    if (settings.contains("rounds")) config.rounds = get_as<int>(settings, "rounds");
    if (settings.contains("members")) config.members = get_as<std::vector<uint32_t>>(settings, "members");
  }
  Result<StudyResult> outcome = [&] {
    const nb::gil_scoped_release release;
    return run_study(config);
  }();
  const StudyResult result = unwrap(std::move(outcome));
  nb::dict out;
  out["time_ps"] = result.time_ps;
  out["handlers"] = result.handlers;
  out["handler_cycles"] = result.handler_cycles;
  if (config.experiment >= Experiment::multicast) {
    out["bound_ps"] = result.bound_ps;
    out["link_bytes"] = result.link_bytes;
    out["switches"] = result.switches;
  }
  out["checked"] = true;  // run_study reports times for compared bytes only
  return out;
}

}  // namespace

void bind_study(nb::module_& module) {
  module.def("run_study", &run_study_cell, nb::arg("config"),
             "Modelled time of one experiment of study.hpp, bytes compared.");
}

}  // namespace spinloom::app
