// spinloom._core: pings and SLMP messages to a station with an Ethernet NIC.
#include <nanobind/stl/vector.h>

#include "app/python/bindings_setup.hpp"
#include "app/studies/frame_ping.hpp"
#include "app/studies/frame_slmp.hpp"
#include "memory/layout/oracle.hpp"
#include "memory/layout/text.hpp"
#include "spinloom/frame.h"

namespace spinloom::app {
namespace {

Time time_in(const nb::dict& config, const char* key) { return Time{get_as<int64_t>(config, key)}; }

nb::dict ping(const nb::dict& settings) {
  PingConfig config;
  static_cast<Setup&>(config) = setup_of(settings);
  config.way = unwrap(ping_way_named(get_as<std::string>(settings, "way")));
  config.udp = get_as<bool>(settings, "udp");
  config.image = get_as<std::string>(settings, "image");
  config.payload_bytes = get_as<uint32_t>(settings, "bytes");
  config.pings = get_as<uint32_t>(settings, "pings");
  config.far_stack_time = time_in(settings, "far_stack");
  config.host_answer_time = time_in(settings, "host_answer");
  config.poll_time = time_in(settings, "poll");
  config.word_time = time_in(settings, "word");
  config.call_time = time_in(settings, "call");
  const PingResult result = unwrap(without_lock([&] { return run_ping(config); }));
  nb::dict out;
  out["round_trips_ps"] = result.round_trips_ps;
  out["handlers"] = result.handlers;
  out["handler_cycles"] = result.handler_cycles;
  out["to_send_cycles"] = result.to_send_cycles;
  out["compared"] = true;  // no round trip stands here whose answer was not compared
  return out;
}

nb::dict slmp(const nb::dict& settings) {
  SlmpConfig config{setup_of(settings), unwrap(layout::parse(get_as<std::string>(settings, "type")))};
  config.count = get_as<int64_t>(settings, "count");
  config.messages = get_as<uint32_t>(settings, "messages");
  config.image = get_as<std::string>(settings, "image");
  config.window = get_as<uint32_t>(settings, "window");
  config.packet_bytes = get_as<uint32_t>(settings, "packet_bytes");
  config.send_time = time_in(settings, "send");
  config.far_stack_time = time_in(settings, "far_stack");
  config.sleep_time = time_in(settings, "sleep");
  config.ready_time = time_in(settings, "ready");
  config.compute_time = time_in(settings, "compute");
  config.poll_time = time_in(settings, "poll");
  config.call_time = time_in(settings, "call");
  const SlmpResult result = unwrap(without_lock([&] { return run_slmp(config); }));
  nb::dict out;
  out["time_ps"] = result.compared ? nb::cast(result.time_ps) : nb::none();
  out["compared"] = result.compared;
  out["bytes"] = result.bytes;
  out["packets"] = result.packets;
  out["lost"] = result.lost;
  out["sleeps"] = result.sleeps;
  out["handlers"] = result.handlers;
  out["handler_cycles"] = result.handler_cycles;
  out["handler_cycles_max"] = result.handler_cycles_max;
  out["pieces"] = result.pieces;
  out["slots_peak"] = result.slots_peak;
  out["acks"] = result.acks;
  out["ack_second_ps"] = result.ack_second_ps;
  out["ack_last_ps"] = result.ack_last_ps;
  out["compute_ps"] = result.compute_ps;
  out["poll_ps"] = result.poll_ps;
  out["polls"] = result.polls;
  return out;
}

// Describes a context for a live NIC: there, host memory begins with pages and a ring of notices, and the messages'
// memory comes behind them.
nb::dict context_for_types(const std::string& type, int64_t count, uint32_t messages) {
  constexpr uint64_t rooms_offset = (SPL_HOST_BYTES + uint64_t{4095}) & ~uint64_t{4095};
  const auto prepared = unwrap(without_lock([&]() -> Result<std::pair<DdtContext, layout::oracle::Reach>> {
    SPL_ASSIGN(const layout::Type parsed, layout::parse(type));
    SPL_ASSIGN(const strategies::Message message, strategies::make_message(parsed, count));
    SPL_ASSIGN(DdtContext context, ddt_context(message, messages, rooms_offset, true));
    return std::pair{std::move(context), message.reach};
  }));
  const DdtContext& context = prepared.first;
  nb::dict out;
  out["constants"] = nb::bytes(context.constants.data(), context.constants.size());
  out["state_bytes"] = context.state_bytes;
  out["first"] = context.rooms_offset + DdtContext::guard;
  out["stride"] = context.host_bytes;
  out["span"] = prepared.second.last - prepared.second.first;
  return out;
}

}  // namespace

void bind_frame(nb::module_& module) {
  module.def("run_ping", &ping, nb::arg("config"), "Modelled round trips of pings, answers compared.");
  module.def("run_slmp", &slmp, nb::arg("config"), "Modelled time of messages over SLMP, bytes compared.");
  module.def(
      "ddt_context", &context_for_types, nb::arg("type"), nb::arg("count"), nb::arg("messages"),
      "What a live NIC's context needs whose handlers unpack so many messages, and where they lie in host memory.");
}

}  // namespace spinloom::app
