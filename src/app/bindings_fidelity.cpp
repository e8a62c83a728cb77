// spinloom._core: schedules on the NICs of a profile.
#include "app/bindings_fidelity.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "app/bindings_goal_model.hpp"
#include "app/bindings_support.hpp"
#include "app/bindings_watched.hpp"
#include "goal/fidelity.hpp"

namespace spinloom::app {
namespace {

goal::Sample sample_of(const std::vector<uint32_t>& chosen, uint32_t ranks) {
  std::vector<bool> has(ranks);
  for (const uint32_t rank : chosen) {
    if (rank >= ranks) unwrap(Status(fail(Code::invalid, "rank ", rank, " is none: ranks are 0 to ", ranks - 1)));
    has[rank] = true;
  }
  return goal::Sample(std::move(has));
}

nb::dict run_on(const schedule::Schedule& made, const std::string& fidelity, const nb::dict& profile, uint64_t o_ps,
                const Ratio& O, uint64_t S_bytes, uint64_t unit_ps, const std::optional<nb::dict>& network,
                const std::optional<Noise>& noise, const std::optional<Ratio>& layout, const nb::object& progress,
                const std::optional<std::vector<uint32_t>>& ranks, uint64_t L_ps, uint64_t g_ps, const Ratio& G) {
  if (fidelity != "nic" && fidelity != "full") {
    unwrap(Status(fail(Code::invalid, "there is no fidelity \"", fidelity, "\" on NICs; there are nic and full")));
  }
  const sim::Profile nics = unwrap(sim::build_profile(profile_fields(profile)));
  goal::Model model{L_ps, o_ps, g_ps, rate("G", G), rate("O", O), S_bytes, unit_ps};
  if (network.has_value()) model.network = network_of(*network);
  if (noise.has_value()) model.noise = noise_of(*noise);
  if (layout.has_value()) model.layout = rate("layout", *layout);
  const goal::Fidelity chosen = fidelity == "nic" ? goal::Fidelity::nic : goal::Fidelity::full;
  return dict_of(watched(progress, [&](const goal::Watch& watch) {
    if (!ranks.has_value()) return goal::run_on(chosen, nics, made, model, nullptr, watch);
    return goal::run_sample(chosen, nics, made, model, sample_of(*ranks, made.ranks()), watch);
  }));
}

}  // namespace

void bind_fidelity(nb::module_& module) {
  module.def("run_goal_on", &run_on, nb::arg("schedule"), nb::arg("fidelity"), nb::arg("profile"), nb::arg("o_ps"),
             nb::arg("O") = Ratio(0, 1), nb::arg("S_bytes") = 65535, nb::arg("unit_ps") = 1000,
             nb::arg("network") = nb::none(), nb::arg("noise") = nb::none(), nb::arg("layout") = nb::none(),
             nb::arg("progress") = nb::none(), nb::arg("ranks") = nb::none(), nb::arg("L_ps") = 0, nb::arg("g_ps") = 0,
             nb::arg("G") = Ratio(0, 1),
             "Each rank's times of a Schedule on the NICs of a profile, as those of Schedule.run; \"nic\" or \"full\". "
             "\"full\" moves the bytes and raises SpinloomError if one is wrong. With ranks only those have NICs, and "
             "the others are at message level with L, g and G.");
}

}  // namespace spinloom::app
