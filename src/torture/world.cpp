#include "torture/world.hpp"

#include <cstdio>

namespace spinloom::torture {
namespace {

nic::NicLimits limits_of(const Config& config) {
  nic::NicLimits limits;
  limits.payload_bytes = config.payload_bytes;
  limits.hpus = config.hpus;
  limits.packet_buffer_bytes = uint64_t{config.packet_buffer_packets} * config.payload_bytes;
  limits.nic_memory_bytes = 1 << 16;
  limits.early_packets = config.early_packets;
  limits.handler_messages = config.handler_messages;
  limits.outbound_packets = 4;
  limits.unexpected_headers = config.unexpected_headers;
  limits.at_once_bytes = config.at_once_bytes;
  return limits;
}

}  // namespace

Result<std::unique_ptr<World>> World::make(const Config& config, uint64_t seed, bool trace) {
  SPL_TRY(check(config));
  std::unique_ptr<World> world(new World(config, seed, trace));
  world->handlers = std::make_unique<Handlers>(world->faults);
  world->links = std::make_unique<LossyLinks>(world->config, seed, world->faults, trace);
  testbed::LoopbackOptions options;
  options.ranks = config.ranks;
  options.nic = limits_of(config);
  options.handlers = &world->handlers->runner();
  options.racy_seed = seed;
  options.links = world->links.get();
  options.steps_max = 2'000'000;
  SPL_ASSIGN(world->loopback, testbed::Loopback::create(options));
  world->hosts.resize(config.ranks);
  for (uint32_t rank = 0; rank < config.ranks; ++rank) SPL_TRY(world->open(rank));
  return world;
}

Status World::open(uint32_t rank) {
  Host& host = hosts[rank];
  host.interface = std::make_unique<portals::Interface>(loopback->port(rank));
  portals::Interface& interface = *host.interface;
  SPL_ASSIGN(host.arrivals, interface.eq_alloc(1 << 16));
  SPL_ASSIGN(host.departures, interface.eq_alloc(1 << 16));
  SPL_ASSIGN(host.sent, interface.ct_alloc());
  SPL_ASSIGN(host.landed, interface.ct_alloc());
  SPL_ASSIGN(host.portal, interface.pt_alloc(host.arrivals));
  SPL_ASSIGN(host.overflow, interface.pt_alloc(host.arrivals));
  nic::TableSetup few_headers;
  few_headers.table = crowd_table;
  few_headers.headers_max = crowd_headers;
  interface.table_setup(few_headers);
  portals::PortalOptions flow;
  flow.flow_control = true;
  SPL_ASSIGN(host.flow, interface.pt_alloc(host.arrivals, flow));
  if (config.weights[static_cast<size_t>(Work::unexpected)] == 0) return {};
  host.waiting_room = Region(uint64_t{config.messages + 64} * config.size_max);
  nic::Entry entry;
  entry.start = host.waiting_room.data();
  entry.length = host.waiting_room.size();
  entry.ignore_bits = UINT64_MAX;
  entry.options.op_get = true;
  entry.options.manage_local = true;
  SPL_ASSIGN(host.waiting_room_entry, interface.me_append(host.overflow, entry, nic::ListKind::overflow));
  return {};
}

void World::kill(uint32_t rank) {
  note(text("rank ", rank, " dies"));
  ++count_of(faults, Fault::peer_dead);
  hosts[rank].dead = true;
  links->kill(rank);
  loopback->kill(rank);
}

void World::note(const std::string& line) const {
  if (trace) std::printf("%s\n", line.c_str());
}

Status World::check_quiet() {
  for (uint32_t rank = 0; rank < hosts.size(); ++rank) {
    if (hosts[rank].dead) continue;
    check_invariants(rank);
    const nic::NicState state = loopback->nic(rank).state();
    if (state.messages_open > 0 || state.dmas_open > 0 || state.hpus_busy > 0 || state.hers_waiting > 0 ||
        state.packet_buffer_used > 0 || state.early_packets > 0 || state.messages_outgoing > 0 ||
        state.outbound_packets > 0 || state.unexpected_headers > 0 || state.triggered_waiting > 0 ||
        state.refused_packets > 0 || state.failed_commands > 0 || state.nic_memory_used > 0) {
      return fail(Code::mismatch, "not everything came back: ", loopback->nic(rank).describe_waiting(), ", ",
                  state.unexpected_headers, " unexpected headers, ", state.nic_memory_used, " B of NIC memory");
    }
  }
  SPL_TRY(links->check_stages());
  if (!links->idle()) return fail(Code::mismatch, "links are not idle: ", links->describe_waiting());
  return {};
}

void World::check_invariants(uint32_t rank) const {
  if (hosts[rank].dead) return;
  loopback->nic(rank).check_invariants();
  links->check_invariants(rank);
  hosts[rank].interface->check_invariants();
}

}  // namespace spinloom::torture
