// spinloom._core, the host model: predictions, and loops on the machine at hand to compare them with.
#include "app/bindings_support.hpp"
#include "app/host_probe.hpp"

namespace spinloom::app {
namespace {

nb::dict measure_host_unpack(const std::string& type, int64_t count, int repetitions) {
  Result<HostMeasure> outcome = [&] {
    const nb::gil_scoped_release release;
    return measure_unpack(type, count, repetitions);
  }();
  const HostMeasure measure = unwrap(std::move(outcome));
  nb::dict out;
  out["bytes"] = measure.bytes;
  out["blocks"] = measure.blocks;
  out["cold_ns"] = measure.cold_ns;
  return out;
}

nb::dict measure_host_rates(int repetitions) {
  Result<HostRates> outcome = [&] {
    const nb::gil_scoped_release release;
    return measure_rates(repetitions);
  }();
  const HostRates rates = unwrap(std::move(outcome));
  nb::dict out;
  out["line_bytes_per_ns"] = rates.line_bytes_per_ns;
  out["block_ns"] = rates.block_ns;
  return out;
}

nb::dict predict_host_unpack(const nb::dict& profile_dict, const std::string& type, int64_t count) {
  const sim::Profile profile = unwrap(sim::build_profile(profile_fields(profile_dict)));
  Result<HostPrediction> outcome = [&] {
    const nb::gil_scoped_release release;
    return predict_unpack(profile, type, count);
  }();
  const HostPrediction prediction = unwrap(std::move(outcome));
  nb::dict out;
  out["lines"] = prediction.lines;
  out["line_bytes"] = prediction.line_bytes;
  out["blocks"] = prediction.blocks;
  out["time_ps"] = prediction.time_ps;
  return out;
}

}  // namespace

void bind_host(nb::module_& module) {
  module.def("measure_host_unpack", &measure_host_unpack, nb::arg("type"), nb::arg("count"), nb::arg("repetitions"),
             "Measured host time of a cold unpack on this machine, bytes compared.");
  module.def("measure_host_rates", &measure_host_rates, nb::arg("repetitions"),
             "The two parameters of the host model as this machine has them.");
  module.def("predict_host_unpack", &predict_host_unpack, nb::arg("profile"), nb::arg("type"), nb::arg("count"),
             "What the host model of a profile says for the same message.");
}

}  // namespace spinloom::app
