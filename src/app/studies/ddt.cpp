#include "app/studies/ddt.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include "app/studies/bandwidth.hpp"
#include "app/studies/calibrate.hpp"
#include "memory/layout/text.hpp"
#include "portals/interface/interface.hpp"
#include "portals/strategies/pieces.hpp"
#include "portals/strategies/receive.hpp"
#include "portals/strategies/unexpected.hpp"
#include "simulated/node/world.hpp"

namespace spinloom::app {
namespace {

void read_statistics(const DdtConfig& config, const simulated::Node& node, const strategies::Receive& receive,
                     DdtResult& result) {
  const simulated::HandlerStatistics& handlers = node.hpus().statistics(nic::HandlerKind::payload);
  result.handlers = handlers.handlers;
  result.handler_cycles = handlers.cycles;
  result.handler_cycles_max = handlers.cycles_max;
  result.handler_first_call_cycles = handlers.first_call_cycles;
  result.handler_first_call_cycles_min = handlers.first_call_cycles_min;
  result.handler_instructions = handlers.instructions;
  result.function_cycles = node.hpus().function_cycles();
  const Time last_dma_end = node.statistics().data_landed - config.profile.pcie.latency;
  result.processing_time_ps = (std::max(last_dma_end, node.hpus().last_end()) - node.statistics().first_byte).ps;
  result.dma_writes = node.statistics().dma_writes;
  result.dma_bytes = node.statistics().dma_bytes;
  result.dma_queue_peak = node.statistics().dma_queue_peak;
  result.writes_under_way_peak = node.writes_under_way().peak();
  result.writes_under_way_ps = node.writes_under_way().total().ps;
  result.host_line_fetches = node.statistics().host_line_fetches;
  result.host_line_writebacks = node.statistics().host_line_writebacks;
  result.packet_buffer_peak_bytes = node.nic().state().packet_buffer_peak;
  result.nic_memory_bytes = receive.nic_memory_bytes();
  result.nic_bytes_moved = receive.nic_bytes_moved();
  result.iovec_refills = node.statistics().iovec_refills;
  if (receive.plan()) result.prepared_blocks = receive.plan()->prepared_blocks;
  if (receive.plan() && receive.plan()->interval) {
    const strategies::Interval& interval = *receive.plan()->interval;
    result.checkpoints = interval.checkpoints;
    result.checkpoint_bytes = receive.plan()->checkpoint_bytes;
    result.paper_checkpoint_bytes = static_cast<uint64_t>(config.profile.checkpoint.paper_bytes);
    result.interval_packets = interval.packets;
    result.interval_exceeds_epsilon = interval.exceeds_epsilon;
    result.interval_memory_decided = interval.memory_decided;
  }
}

Result<DdtResult> receive_once(const DdtConfig& config, const LoadedImages& loaded, const strategies::Message& message,
                               const strategies::HandlerCost& cost) {
  const uint64_t seed = config.ordering.seed;
  SPL_ASSIGN(Destination destination, Destination::create(message, seed));
  const std::vector<uint8_t> packed = random_bytes(seed, "app.message", static_cast<size_t>(message.bytes));

  const simulated::Profile profile = config.preloaded ? preloaded(config.profile) : config.profile;
  SPL_ASSIGN(const auto world, simulated::World::create(profile, loaded.images, world_options(config)));
  simulated::Node& node = world->node(1);
  portals::Interface sender(world->node(0));
  portals::Interface receiver(node);

  SPL_ASSIGN(const nic::QueueId queue, receiver.eq_alloc(cell_queue_slots));
  SPL_ASSIGN(const nic::PortalIndex portal, receiver.pt_alloc(queue));
  strategies::NicFacts facts = facts_of(config);
  facts.interval_packets = config.interval_packets;
  SPL_ASSIGN(const auto receive, strategies::Receive::prepare(receiver, portal, queue, loaded.handlers, config.strategy,
                                                              message, facts, cost));
  DdtResult result;
  if (config.profile_handlers) node.profile_functions();
  node.record(config.trace ? &result.trace : nullptr, config.sample_dma_queue ? &result.dma_queue : nullptr);
  strategies::UnexpectedBuffer early(config.unexpected ? packed.size() : 0);
  if (config.unexpected) {
    SPL_TRY(early.post(receiver, portal));
  } else {
    SPL_TRY(receive->post(destination.base(), cell_match_bits));
  }
  portals::PutArguments put;
  put.local = packed.data();
  put.length = packed.size();
  put.target = node.rank();
  put.portal = portal;
  put.match_bits = cell_match_bits;
  SPL_TRY(sender.put(put));
  if (config.unexpected) {
    world->drain();  // the message lands before the receive is posted
    SPL_TRY(receive->post(destination.base(), cell_match_bits));
  }
  const Result<nic::Event> finished = receive->finish();
  if (!finished) return explain(finished.error(), node);

  result.time_ps = (node.now() - node.statistics().first_byte).ps;
  log_event(result.event_log, result.time_ps, *finished);
  world->drain();
  result.first_byte_ps = node.statistics().first_byte.ps;
  result.data_time_ps = (node.statistics().data_landed - node.statistics().first_byte).ps;
  result.size_bytes = message.bytes;
  result.blocks = message.blocks;
  const auto regions = layout::oracle::regions_per_packet(message.type, message.count, config.payload_bytes);
  result.pieces = strategies::count_pieces(message.blob, message.bytes, config.payload_bytes).writes;
  result.regions = regions.regions;
  result.packets = regions.packets;
  result.line_time_ps = config.profile.link.byte_time.time_of(Bytes{message.bytes}).ps;
  read_statistics(config, node, *receive, result);
  SPL_TRY(receive->release());

  SPL_TRY(destination.inject(config.inject, message, seed));
  SPL_TRY(destination.check(message, packed));
  result.destination = destination.bytes();
  return result;
}

}  // namespace

Result<DdtResult> run_ddt(const DdtConfig& config) {
  SPL_ASSIGN(const layout::Type type, layout::parse(config.type));
  SPL_TRY(Destination::check_span(type, config.count));
  SPL_ASSIGN(const strategies::Message message, strategies::make_message(type, config.count));
  if (message.bytes == 0) return fail(Code::unsupported, "the message has zero bytes: there is nothing to receive");
  if (config.strategy == strategies::Strategy::iovec && config.ordering.window > 1) {
    return fail(Code::unsupported, "a scatter list takes packets in order only; run iovec with --order in");
  }
  SPL_ASSIGN(const LoadedImages loaded, load_images(config.images));
  strategies::HandlerCost cost;
  if (config.cost) {
    cost = *config.cost;
  } else if (strategies::uses_checkpoints(config.strategy)) {
    SPL_ASSIGN(cost, calibrate(config));
  }
  return receive_once(config, loaded, message, cost);
}

}  // namespace spinloom::app
