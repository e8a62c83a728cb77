#include "app/python/bindings_goal_model.hpp"

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string>

#include "app/python/bindings_support.hpp"

namespace spinloom::app {
namespace {

template <class Value>
void read_field(const nb::dict& fields, const char* name, Value& value) {
  if (fields.contains(name)) value = nb::cast<Value>(fields[name]);
}

network::Routing routing_named(const std::string& name) {
  if (name == "adaptive") return network::Routing::adaptive;
  if (name == "valiant") return network::Routing::valiant;
  if (name == "ugal") return network::Routing::ugal;
  if (name != "fixed") unwrap(Status(fail(Code::invalid, "there is no routing \"", name, "\"")));
  return network::Routing::fixed;
}

}  // namespace

Rate rate(const char* name, const Ratio& ratio) {
  if (ratio.first < 0 || ratio.second <= 0) {
    unwrap(Status(fail(Code::invalid, name, " is ", ratio.first, "/", ratio.second,
                       " ps for a byte, but a rate is not "
                       "negative and its denominator is positive")));
  }
  return {ratio.first, ratio.second};
}

network::Config network_of(const nb::dict& fields) {
  network::Config config;
  const auto form = nb::cast<std::string>(fields["form"]);
  if (form == "fat-tree") {
    network::FatTree tree;
    read_field(fields, "radix", tree.radix);
    read_field(fields, "levels", tree.levels);
    read_field(fields, "oversubscription", tree.oversubscription);
    config.topology = tree;
  } else if (form == "dragonfly") {
    network::Dragonfly dragonfly;
    read_field(fields, "hosts", dragonfly.hosts);
    read_field(fields, "routers", dragonfly.routers);
    read_field(fields, "globals", dragonfly.globals);
    read_field(fields, "groups", dragonfly.groups);
    config.topology = dragonfly;
  } else {
    network::Torus torus;
    read_field(fields, "sizes", torus.sizes);
    read_field(fields, "hosts", torus.hosts);
    config.topology = torus;
  }
  config.routing = routing_named(fields.contains("routing") ? nb::cast<std::string>(fields["routing"]) : "fixed");
  read_field(fields, "detour_seed", config.detour_seed);
  read_field(fields, "hop_ps", config.hop_ps);
  read_field(fields, "packet_bytes", config.packet_bytes);
  if (fields.contains("shuffle_seed")) config.shuffle_seed = nb::cast<uint64_t>(fields["shuffle_seed"]);
  return config;
}

goal::Noise noise_of(const Noise& noise) {
  const auto [period_ps, length_ps, seed, is_synchronised] = noise;
  return {period_ps, length_ps, seed, is_synchronised};
}

nb::dict dict_of(const goal::Outcome& outcome) {
  nb::dict out;
  out["finish_ps"] = outcome.finish_ps;
  out["compute_ps"] = outcome.compute_ps;
  out["overhead_ps"] = outcome.overhead_ps;
  out["makespan_ps"] = outcome.makespan_ps;
  out["events"] = outcome.events;
  return out;
}

nb::list spans_of(const schedule::Schedule& schedule, const goal::Record& record) {
  nb::list out;
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    const schedule::Program& program = schedule.program(rank);
    for (uint32_t number = 0; number < program.size(); ++number) {
      const schedule::Operation& operation = program.operation(number);
      const schedule::Shape& shape = schedule.shape(operation);
      const goal::OperationTimes& trace = record.of(rank, number);
      const bool receives = shape.kind == schedule::Kind::receive;
      if (shape.kind == schedule::Kind::arrived) continue;  // no CPU's
      out.append(
          nb::make_tuple(rank, shape.cpu, schedule.describe(rank, operation), trace.begin_ps, trace.cpu_end_ps,
                         shape.kind == schedule::Kind::compute ? -1 : int64_t{receives ? trace.partner_rank : rank},
                         receives ? trace.partner : number, number));
    }
  }
  return out;
}

nb::list messages_of(const schedule::Schedule& schedule, const goal::Record& record) {
  nb::list out;
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    const schedule::Program& program = schedule.program(rank);
    for (uint32_t number = 0; number < program.size(); ++number) {
      if (schedule.shape(program.operation(number)).kind != schedule::Kind::receive) continue;
      const goal::OperationTimes& receive = record.of(rank, number);
      if (receive.partner == goal::none) continue;
      const goal::OperationTimes& send = record.of(receive.partner_rank, receive.partner);
      const schedule::Program& sender = schedule.program(receive.partner_rank);
      out.append(nb::make_tuple(receive.partner_rank, receive.partner, rank, number, send.departed_ps,
                                receive.arrived_ps, schedule.shape(sender.operation(receive.partner)).size));
    }
  }
  return out;
}

}  // namespace spinloom::app
