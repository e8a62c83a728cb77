// spinloom._core: several datatypes on one NIC whose memory they share.
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "app/python/bindings_setup.hpp"
#include "app/studies/delivery.hpp"
#include "app/studies/exchange.hpp"
#include "app/studies/mix.hpp"
#include "app/studies/share.hpp"

namespace spinloom::app {
namespace {

// Reads {"type", "count", "offload", "priority", "epsilon": None or [numerator, denominator]}.
SharedType shared_type_of(const nb::dict& fields) {
  SharedType out;
  out.type = get_as<std::string>(fields, "type");
  out.count = get_as<int64_t>(fields, "count");
  out.attributes.offload = get_as<bool>(fields, "offload");
  out.attributes.priority = get_as<int32_t>(fields, "priority");
  if (const nb::object epsilon = get(fields, "epsilon"); !epsilon.is_none()) {
    if (!nb::isinstance<nb::sequence>(epsilon) || nb::len(epsilon) != 2) {
      throw Raised{fail(Code::invalid, "config: \"epsilon\" is not a ratio")};
    }
    out.attributes.epsilon = {nb::cast<int64_t>(epsilon[0]), nb::cast<int64_t>(epsilon[1])};
  }
  return out;
}

std::unique_ptr<Share> open_share(const nb::dict& settings) {
  ShareConfig config;
  static_cast<Setup&>(config) = setup_of(settings);
  config.strategy = unwrap(strategies::strategy_named(get_as<std::string>(settings, "strategy")));
  for (const auto& type : get_as<nb::list>(settings, "types")) {
    config.types.push_back(shared_type_of(nb::cast<nb::dict>(type)));
  }
  Result<std::unique_ptr<Share>> opened = [&] {
    const nb::gil_scoped_release release;
    return Share::create(std::move(config));
  }();
  return unwrap(std::move(opened));
}

nb::dict receive(Share& share, size_t type) {
  if (type >= share.type_count()) {
    throw Raised{fail(Code::invalid, "there is no type ", type, ", there are ", share.type_count())};
  }
  Result<SharedMessage> outcome = [&] {
    const nb::gil_scoped_release release;
    return share.receive(type);
  }();
  const SharedMessage message = unwrap(std::move(outcome));
  nb::dict row;
  row["served"] = name_of(message.served);
  row["message"] = message.fallback;
  row["evictions"] = message.evictions;
  row["nic_memory_bytes"] = message.nic_memory_bytes;
  row["nic_memory_in_use_bytes"] = message.nic_memory_in_use;
  row["prepared_blocks"] = message.prepared_blocks;
  row["size_bytes"] = message.size_bytes;
  row["time_ps"] = message.time_ps;
  row["checked"] = true;  // receive() reports numbers for compared bytes only
  row["destination"] = bytes_of(message.destination);
  row["event_log"] = bytes_of(message.event_log);
  return row;
}

// Takes {"types": as in share(), "strategy": a name or None, "rounds", "at_once", "early": [numerator, denominator]}
// beside the setup.
nb::dict mix(const nb::dict& settings) {
  MixConfig config;
  static_cast<Setup&>(config) = setup_of(settings);
  if (const nb::object strategy = get(settings, "strategy"); !strategy.is_none()) {
    config.strategy = unwrap(strategies::strategy_named(nb::cast<std::string>(strategy)));
  }
  for (const auto& type : get_as<nb::list>(settings, "types")) {
    config.types.push_back(shared_type_of(nb::cast<nb::dict>(type)));
  }
  config.rounds = get_as<uint64_t>(settings, "rounds");
  config.at_once = get_as<uint64_t>(settings, "at_once");
  const nb::object early = get(settings, "early");
  config.early_numerator = nb::cast<uint64_t>(early[0]);
  config.early_denominator = nb::cast<uint64_t>(early[1]);
  Result<MixResult> outcome = [&] {
    const nb::gil_scoped_release release;
    return run_mix(config);
  }();
  const MixResult result = unwrap(std::move(outcome));
  nb::dict out;
  nb::list messages;
  for (const MixedMessage& message : result.messages) {
    nb::dict row;
    row["type"] = message.type;
    row["by"] = strategies::name_of(message.completion.unpack_path);
    row["strategy"] = strategies::name_of(message.completion.strategy);
    row["fallback"] = message.completion.fallback;
    row["bytes"] = message.completion.bytes;
    row["landing_ps"] = message.landing_ps;
    row["time_ps"] = message.time_ps;
    row["host_busy_ps"] = message.host_busy_ps;
    messages.append(row);
  }
  out["messages"] = messages;
  out["nic_bytes"] = result.nic_bytes;
  out["nic_memory_peak_bytes"] = result.nic_memory_peak_bytes;
  out["hits"] = result.statistics.hits;
  out["evictions"] = result.statistics.evictions;
  out["destinations"] = bytes_of(result.destinations);
  return out;
}

// Takes {"sent", "sent_count", "received", "received_count", "send": the sender's strategy, "strategy": the receive's
// or None, "asks", "late", "any_source"} beside the setup.
nb::dict delivery(const nb::dict& settings) {
  DeliveryConfig config;
  static_cast<Setup&>(config) = setup_of(settings);
  config.sent = get_as<std::string>(settings, "sent");
  config.sent_count = get_as<int64_t>(settings, "sent_count");
  config.received = get_as<std::string>(settings, "received");
  config.received_count = get_as<int64_t>(settings, "received_count");
  config.send = unwrap(strategies::send_strategy_named(get_as<std::string>(settings, "send")));
  if (const nb::object strategy = get(settings, "strategy"); !strategy.is_none()) {
    config.strategy = unwrap(strategies::strategy_named(nb::cast<std::string>(strategy)));
  }
  config.asks = get_as<bool>(settings, "asks");
  config.late = get_as<bool>(settings, "late");
  config.any_source = get_as<bool>(settings, "any_source");
  Result<DeliveryResult> outcome = [&] {
    const nb::gil_scoped_release release;
    return deliver(config);
  }();
  const DeliveryResult result = unwrap(std::move(outcome));
  nb::dict out;
  out["size_bytes"] = result.size_bytes;
  out["by"] = strategies::name_of(result.completion.unpack_path);
  out["strategy"] = strategies::name_of(result.completion.strategy);
  out["time_ps"] = result.time_ps;
  out["landing_ps"] = result.landing_ps;
  out["sent_ps"] = result.sent_ps;
  out["sender_busy_ps"] = result.sender_busy_ps;
  out["receiver_busy_ps"] = result.receiver_busy_ps;
  out["destination"] = bytes_of(result.destination);
  return out;
}

// Takes {"strategy", "peers": [{"type", "count"}, ...]} beside the setup.
nb::dict exchange(const nb::dict& settings) {
  ExchangeConfig config;
  static_cast<Setup&>(config) = setup_of(settings);
  config.strategy = unwrap(strategies::strategy_named(get_as<std::string>(settings, "strategy")));
  for (const auto& item : get_as<nb::list>(settings, "peers")) {
    const auto peer = nb::cast<nb::dict>(item);
    config.peers.push_back({get_as<std::string>(peer, "type"), get_as<int64_t>(peer, "count")});
  }
  Result<ExchangeResult> outcome = [&] {
    const nb::gil_scoped_release release;
    return run_exchange(config);
  }();
  const ExchangeResult result = unwrap(std::move(outcome));
  nb::dict out;
  out["time_ps"] = result.time_ps;
  out["bytes"] = result.bytes;
  out["packets"] = result.packets;
  out["code_bytes"] = result.code_bytes;
  out["packet_buffer_peak_bytes"] = result.packet_buffer_peak_bytes;
  nb::list series;
  for (const simulated::DepthSeries::Point& point : result.packet_buffer.points()) {
    series.append(nb::make_tuple(point.start.ps - result.first_byte_ps, point.depth));
  }
  out["packet_buffer"] = series;
  nb::list peers;
  for (const PeerResult& item : result.peers) {
    nb::dict peer;
    peer["size_bytes"] = item.size_bytes;
    peer["blocks"] = item.blocks;
    peer["fallback"] = item.fallback;
    peer["program_bytes"] = item.program_bytes;
    peer["state_bytes"] = item.state_bytes;
    peer["destination"] = bytes_of(item.destination);
    peers.append(peer);
  }
  out["peers"] = peers;
  return out;
}

}  // namespace

void bind_share(nb::module_& module) {
  nb::class_<Share>(module, "Share", "Messages of several datatypes on one NIC whose memory they share.")
      .def("receive", &receive, nb::arg("type"), "Brings one message of that type, checked.");
  module.def("mix", &mix, nb::arg("config"), "Messages of several types, some before their receive, checked.");
  module.def("delivery", &delivery, nb::arg("config"),
             "One message between two processes, with or without asking first, to a receive in time or late, checked.");
  module.def("exchange", &exchange, nb::arg("config"), "Messages of many peers at once into one NIC, checked.");
  module.def("share", &open_share, nb::arg("config"), "A simulated NIC for the types of the config.");
}

}  // namespace spinloom::app
