// Bindings of layouts and of messages to one simulated card; python/spinloom/common/core.py documents them.
//
// Contract: functions take and return dictionaries, and classes keep what later calls need; an Error becomes
//   spinloom.errors.Trouble. The interpreter lock is released while a cell runs.
#include <nanobind/nanobind.h>

#include "app/python/bindings_setup.hpp"
#include "app/python/python_text.hpp"
#include "app/studies/ddt.hpp"
#include "base/limits.hpp"
#include "base/printable.hpp"
#include "memory/layout/blob.hpp"
#include "memory/layout/oracle.hpp"
#include "memory/layout/text.hpp"

namespace nb = nanobind;

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

nb::dict describe(const std::string& text_form) {
  const layout::Type type = unwrap(layout::parse(text_form));
  const layout::oracle::BlockSummary blocks = layout::oracle::summarise(type, 1);
  const layout::Blob blob = unwrap(layout::Blob::build(type));
  nb::dict out;
  out["text"] = layout::print(type);
  out["size_bytes"] = type.size();
  out["lb_bytes"] = type.lb();
  out["extent_bytes"] = type.extent();
  out["true_lb_bytes"] = type.true_lb();
  out["true_extent_bytes"] = type.true_extent();
  out["blocks"] = blocks.blocks;
  out["block_bytes_min"] = blocks.bytes_min;
  out["block_bytes_max"] = blocks.bytes_max;
  out["blob_bytes"] = blob.bytes().size();
  return out;
}

void check_type(const std::string& text_form) { (void)unwrap(layout::parse(text_form)); }

void check_profile(const nb::dict& profile) { (void)unwrap(simulated::build_profile(profile_fields(profile))); }

}  // namespace

void bind_cards(nb::module_& module) {
  nb::set_leak_warnings(false);  // what a program holds until its end is no fault of its own
  static nb::object error_type = nb::module_::import_("spinloom.errors").attr("Trouble");
  module.attr("SpinloomError") = error_type;
  nb::register_exception_translator([](const std::exception_ptr& raised, void*) {
    try {
      std::rethrow_exception(raised);
    } catch (const Raised& trouble) {
      const nb::object instance = error_type(name_of(trouble.error.code), text_of(trouble.error.message));
      PyErr_SetObject(error_type.ptr(), instance.ptr());
    }
  });
  nb::dict known;
  known["hpu_count_max"] = limits::hpu_count_max;
  known["payload_bytes_max"] = limits::payload_bytes_max;
  known["rank_count_max"] = limits::rank_count_max;
  module.attr("limits") = known;
  bind_bandwidth(module);
  bind_explain(module);
  bind_handler(module);
  bind_host(module);
  bind_layout(module);
  bind_send(module);
  bind_share(module);
  bind_type(module);
  module.def("run_cell", &run_cell, nb::arg("config"), "One message of one datatype under one strategy, checked.");
  module.def("describe", &describe, nb::arg("text"), "Sizes, bounds and blocks of a datatype in text form.");
  module.def(
      "printable", [](const nb::bytes& text) { return printable({text.c_str(), text.size()}); }, nb::arg("text"),
      "What a terminal may show of it, as printable.py does it.");
  module.def("check_type", &check_type, nb::arg("text"), "Raises SpinloomError unless the text is a datatype.");
  module.def("check_profile", &check_profile, nb::arg("profile"),
             "Raises SpinloomError unless the fields make a profile.");
}

}  // namespace spinloom::app
