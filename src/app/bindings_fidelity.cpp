// spinloom._core: schedules on the NICs of a profile.
#include "app/bindings_fidelity.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <tuple>

#include "app/bindings_goal_model.hpp"
#include "app/bindings_support.hpp"
#include "goal/fidelity.hpp"

namespace spinloom::app {
namespace {

nb::dict run_on(const schedule::Schedule& made, const std::string& fidelity, const nb::dict& profile, uint64_t o_ps,
                const Ratio& O, uint64_t S_bytes, uint64_t unit_ps, const std::optional<nb::dict>& network,
                const std::optional<Noise>& noise) {
  if (fidelity != "nic" && fidelity != "full") {
    unwrap(Status(fail(Code::invalid, "there is no fidelity \"", fidelity, "\" on NICs; there are nic and full")));
  }
  const sim::Profile nics = unwrap(sim::build_profile(profile_fields(profile)));
  goal::Model model{.o_ps = o_ps, .O = rate("O", O), .S_bytes = S_bytes, .unit_ps = unit_ps};
  if (network.has_value()) model.network = network_of(*network);
  if (noise.has_value()) model.noise = noise_of(*noise);
  const goal::Fidelity chosen = fidelity == "nic" ? goal::Fidelity::nic : goal::Fidelity::full;
  return dict_of(unwrap(without_lock([&] { return goal::run_on(chosen, nics, made, model); })));
}

}  // namespace

void bind_fidelity(nb::module_& module) {
  module.def("run_goal_on", &run_on, nb::arg("schedule"), nb::arg("fidelity"), nb::arg("profile"), nb::arg("o_ps"),
             nb::arg("O") = Ratio(0, 1), nb::arg("S_bytes") = 65535, nb::arg("unit_ps") = 1000,
             nb::arg("network") = nb::none(), nb::arg("noise") = nb::none(),
             "Each rank's times of a Schedule on the NICs of a profile, as those of Schedule.run; \"nic\" or \"full\". "
             "\"full\" moves the bytes and raises SpinloomError if one is wrong.");
}

}  // namespace spinloom::app
