// spinloom._core: the host model's predictions, and loops on this machine to compare them with.
#include "app/measure/host_probe.hpp"
#include "app/python/bindings_profile.hpp"
#include "app/python/bindings_support.hpp"

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
  out["start_ns"] = rates.start_ns;
  out["streamed_line_ns"] = rates.streamed_line_ns;
  out["strided_line_ns"] = rates.strided_line_ns;
  out["scattered_line_ns"] = rates.scattered_line_ns;
  out["refilled_line_ns"] = rates.refilled_line_ns;
  out["vector_block_ns"] = rates.vector_block_ns;
  out["list_block_ns"] = rates.list_block_ns;
  out["best_vector_block_ns"] = rates.best_vector_block_ns;
  out["best_list_block_ns"] = rates.best_list_block_ns;
  out["segment_block_ns"] = rates.segment_block_ns;
  return out;
}

nb::dict predict_host_unpack(const nb::dict& profile_dict, const std::string& type, int64_t count) {
  const simulated::Profile profile = profile_of(profile_dict);
  Result<HostPrediction> outcome = [&] {
    const nb::gil_scoped_release release;
    return predict_unpack(profile, type, count);
  }();
  const HostPrediction prediction = unwrap(std::move(outcome));
  nb::dict out;
  const simulated::HostCost& cost = prediction.cost;
  out["lines_streamed"] = cost.lines_streamed;
  out["lines_strided"] = cost.lines_strided;
  out["lines_scattered"] = cost.lines_scattered;
  out["lines_refilled"] = cost.lines_refilled;
  out["refilled_streamed"] = cost.refilled_streamed;
  out["refilled_strided"] = cost.refilled_strided;
  out["lines_evicted"] = cost.lines_evicted;
  out["vector_blocks"] = prediction.blocks.in_vectors;
  out["list_blocks"] = prediction.blocks.listed;
  out["lines_ps"] = cost.lines.ps;
  out["blocks_ps"] = cost.blocks.ps;
  out["time_ps"] = cost.total().ps;
  return out;
}

}  // namespace

void bind_host(nb::module_& module) {
  module.def("measure_host_unpack", &measure_host_unpack, nb::arg("type"), nb::arg("count"), nb::arg("repetitions"),
             "Measured host time of a cold unpack on this machine, bytes compared.");
  module.def("measure_host_rates", &measure_host_rates, nb::arg("repetitions"),
             "The parameters of the host model as this machine has them, in ns.");
  module.def("predict_host_unpack", &predict_host_unpack, nb::arg("profile"), nb::arg("type"), nb::arg("count"),
             "What the host model of a profile says for the same message.");
}

}  // namespace spinloom::app
