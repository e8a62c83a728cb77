// spinloom._core: one cell of the sender's side, checked.
#include <nanobind/nanobind.h>

#include "app/python/bindings_setup.hpp"
#include "app/studies/send.hpp"

namespace nb = nanobind;

namespace spinloom::app {
namespace {

nb::dict run_send_cell(const nb::dict& settings) {
  SendConfig config;
  static_cast<Setup&>(config) = setup_of(settings);
  config.type = get_as<std::string>(settings, "type");
  config.count = get_as<int64_t>(settings, "count");
  config.strategy = unwrap(strategies::send_strategy_named(get_as<std::string>(settings, "strategy")));
  if (settings.contains("trace")) config.trace = get_as<bool>(settings, "trace");
  Result<SendResult> outcome = [&] {
    const nb::gil_scoped_release release;
    return run_send(config);
  }();
  const SendResult result = unwrap(std::move(outcome));
  nb::dict row;
  row["size_bytes"] = result.size_bytes;
  row["blocks"] = result.blocks;
  row["packets"] = result.packets;
  row["pieces"] = result.pieces;
  row["blocks_per_packet"] = ratio(static_cast<uint64_t>(result.regions), static_cast<uint64_t>(result.packets));
  row["send_time_ps"] = result.send_time_ps;
  row["free_time_ps"] = result.free_time_ps;
  row["host_busy_ps"] = result.host_busy_ps;
  row["line_time_ps"] = result.line_time_ps;
  row["host_calls"] = result.host_calls;
  row["handler_cycles_per_packet"] = ratio(result.handler_cycles, result.handlers);
  row["handler_cycles_max"] = result.handler_cycles_max;
  row["handler_instructions_per_packet"] = ratio(result.handler_instructions, result.handlers);
  row["nic_memory_bytes"] = result.nic_memory_bytes;
  row["dma_reads"] = result.dma_reads;
  row["dma_read_bytes"] = result.dma_read_bytes;
  row["dma_reads_peak"] = result.dma_reads_peak;
  row["outbound_packets_peak"] = result.outbound_packets_peak;
  row["host_line_fetches"] = result.host_line_fetches;
  row["host_line_writebacks"] = result.host_line_writebacks;
  row["prepared_blocks"] = result.prepared_blocks;
  if (config.trace) add_trace(row, result.trace, result.called_ps);
  row["checked"] = true;  // run_send reports numbers for compared bytes only
  row["destination"] = bytes_of(result.destination);
  row["event_log"] = bytes_of(result.event_log);
  return row;
}

}  // namespace

void bind_send(nb::module_& module) {
  module.def("run_send_cell", &run_send_cell, nb::arg("config"),
             "One message of one datatype, sent under one strategy, checked.");
}

}  // namespace spinloom::app
