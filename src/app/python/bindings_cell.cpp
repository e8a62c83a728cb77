// spinloom._core: a message of one datatype to a simulated NIC (nics/sweep.py). The interpreter lock is released while
// it runs.
#include <nanobind/nanobind.h>

#include "app/python/bindings_profile.hpp"
#include "app/python/bindings_setup.hpp"
#include "app/studies/ddt.hpp"

namespace spinloom::app {
namespace {

DdtConfig config_of(const nb::dict& config) {
  DdtConfig out;
  static_cast<Setup&>(out) = setup_of(config);
  out.type = get_as<std::string>(config, "type");
  out.count = get_as<int64_t>(config, "count");
  out.strategy = unwrap(strategies::strategy_named(get_as<std::string>(config, "strategy")));
  if (config.contains("unexpected")) out.unexpected = get_as<bool>(config, "unexpected");
  if (config.contains("preloaded")) out.preloaded = get_as<bool>(config, "preloaded");
  if (config.contains("interval_packets")) out.interval_packets = get_as<uint64_t>(config, "interval_packets");
  if (config.contains("profile_handlers")) out.profile_handlers = get_as<bool>(config, "profile_handlers");
  if (config.contains("trace")) out.trace = get_as<bool>(config, "trace");
  if (config.contains("sample_dma_queue")) out.sample_dma_queue = get_as<bool>(config, "sample_dma_queue");
  return out;
}

// Adds recorded times, which count from the first byte at the NIC, as time_ps does.
void add_recorded(const DdtConfig& config, const DdtResult& result, nb::dict& row) {
  if (config.preloaded) row["processing_time_ps"] = result.processing_time_ps;
  if (config.profile_handlers) {
    nb::dict functions;
    for (const auto& [name, cycles] : result.function_cycles) functions[python_string(name)] = cycles;
    row["function_cycles"] = functions;
  }
  if (config.trace) add_trace(row, result.trace, result.first_byte_ps);
  if (config.sample_dma_queue) {
    nb::list points;
    for (const simulated::DepthSeries::Point& point : result.dma_queue.points()) {
      points.append(nb::make_tuple(point.start.ps - result.first_byte_ps, point.depth));
    }
    row["dma_queue"] = points;
  }
}

nb::dict run_cell(const nb::dict& settings) {
  const DdtConfig config = config_of(settings);
  Result<DdtResult> outcome = [&] {
    const nb::gil_scoped_release release;
    return run_ddt(config);
  }();
  const DdtResult result = unwrap(std::move(outcome));
  nb::dict row;
  row["size_bytes"] = result.size_bytes;
  row["blocks"] = result.blocks;
  row["packets"] = result.packets;
  row["pieces"] = result.pieces;
  row["blocks_per_packet"] = ratio(static_cast<uint64_t>(result.regions), static_cast<uint64_t>(result.packets));
  row["time_ps"] = result.time_ps;
  row["data_time_ps"] = result.data_time_ps;
  row["line_time_ps"] = result.line_time_ps;
  row["handler_cycles_per_packet"] = ratio(result.handler_cycles, result.handlers);
  row["handler_cycles_max"] = result.handler_cycles_max;
  row["handler_first_call_cycles_per_packet"] = ratio(result.handler_first_call_cycles, result.handlers);
  row["handler_first_call_cycles_min"] = result.handler_first_call_cycles_min;
  row["handler_instructions_per_packet"] = ratio(result.handler_instructions, result.handlers);
  row["nic_memory_bytes"] = result.nic_memory_bytes;
  row["nic_bytes_moved"] = result.nic_bytes_moved;
  row["iovec_refills"] = result.iovec_refills;
  row["dma_writes"] = result.dma_writes;
  row["dma_bytes"] = result.dma_bytes;
  row["dma_queue_peak"] = result.dma_queue_peak;
  row["writes_under_way_peak"] = result.writes_under_way_peak;
  row["writes_under_way_mean"] =
      ratio(static_cast<uint64_t>(result.writes_under_way_ps), static_cast<uint64_t>(result.data_time_ps));
  row["packet_buffer_peak_bytes"] = result.packet_buffer_peak_bytes;
  row["host_line_fetches"] = result.host_line_fetches;
  row["host_line_writebacks"] = result.host_line_writebacks;
  row["prepared_blocks"] = result.prepared_blocks;
  row["checkpoints"] = result.checkpoints;
  row["checkpoint_bytes"] = result.checkpoint_bytes;
  row["paper_checkpoint_bytes"] = result.paper_checkpoint_bytes;
  row["interval_packets"] = result.interval_packets;
  row["interval_exceeds_epsilon"] = result.interval_exceeds_epsilon;
  row["interval_memory_decided"] = result.interval_memory_decided;
  add_recorded(config, result, row);
  row["checked"] = true;  // run_ddt reports numbers for compared bytes only
  row["destination"] = bytes_of(result.destination);
  row["event_log"] = bytes_of(result.event_log);
  return row;
}

void check_profile(const nb::dict& profile) { (void)profile_of(profile); }

}  // namespace

void bind_cell(nb::module_& module) {
  module.def("run_cell", &run_cell, nb::arg("config"), "One message of one datatype under one strategy, checked.");
  module.def("check_profile", &check_profile, nb::arg("profile"),
             "Raises SpinloomError unless the fields make a profile.");
}

}  // namespace spinloom::app
