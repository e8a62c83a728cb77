#include "app/studies/send.hpp"

#include <algorithm>
#include <span>

#include "memory/layout/oracle.hpp"
#include "memory/layout/text.hpp"
#include "portals/interface/interface.hpp"
#include "portals/strategies/pieces.hpp"
#include "simulated/node/world.hpp"

namespace spinloom::app {
namespace {

// The sender's memory: every byte that the message touches, and its bytes as the oracle packs them.
struct Source {
  std::vector<uint8_t> bytes;
  std::vector<uint8_t> packed;
  int64_t first = 0;

  [[nodiscard]] const uint8_t* base() const { return bytes.data() - first; }
};

Result<Source> make_source(const strategies::Message& message, uint64_t seed) {
  Source source;
  source.first = message.reach.first;
  source.bytes = random_bytes(seed, "app.source", static_cast<size_t>(message.reach.last - message.reach.first));
  source.packed.resize(static_cast<size_t>(message.bytes));
  SPL_TRY(layout::oracle::pack(message.type, message.count, reinterpret_cast<const std::byte*>(source.base()),
                               std::as_writable_bytes(std::span(source.packed))));
  return source;
}

// Returns an Error if the count is negative or the message is too large for simulated memory. The type of a send may
// name a byte twice, unlike that of a receive.
Status check_memory(const layout::Type& type, int64_t count) {
  if (count < 0) return fail(Code::invalid, "count is ", count, ", it must not be negative");
  SPL_TRY(layout::oracle::check_count(type, count));
  const layout::oracle::Reach reach = layout::oracle::reach(type, count);
  const int64_t needed = std::max(reach.last - reach.first, type.size() * count);
  if (needed <= limits::destination_bytes_max) return {};
  return fail(Code::overflow, "the message needs ", needed, " B of memory at one end, a simulated one holds at most ",
              limits::destination_bytes_max, " B (destination_bytes_max)");
}

void read_statistics(const simulated::Node& node, const strategies::Send& send, SendResult& result) {
  const simulated::HandlerStatistics& handlers = node.hpus().statistics(nic::HandlerKind::payload);
  result.handlers = handlers.handlers;
  result.handler_cycles = handlers.cycles;
  result.handler_cycles_max = handlers.cycles_max;
  result.handler_instructions = handlers.instructions;
  const simulated::NodeStatistics& statistics = node.statistics();
  result.host_busy_ps = statistics.host_busy.ps;
  result.dma_reads = statistics.dma_reads;
  result.dma_read_bytes = statistics.dma_read_bytes;
  result.dma_reads_peak = statistics.dma_reads_peak;
  result.host_line_fetches = statistics.host_line_fetches;
  result.host_line_writebacks = statistics.host_line_writebacks;
  result.outbound_packets_peak = node.nic().state().outbound_packets_peak;
  result.host_calls = send.calls();
  if (!send.plan()) return;
  result.nic_memory_bytes = send.plan()->nic_memory_bytes();
  result.prepared_blocks = send.plan()->prepared_blocks;
}

Result<SendResult> send_once(const SendConfig& config, const LoadedImages& loaded, const strategies::Message& message) {
  const uint64_t seed = config.ordering.seed;
  SPL_ASSIGN(const Source source, make_source(message, seed));
  SPL_ASSIGN(const layout::Type byte, layout::primitive("byte"));
  SPL_ASSIGN(const strategies::Message landing, strategies::make_message(byte, message.bytes));
  SPL_ASSIGN(Destination destination, Destination::create(landing, seed));

  SPL_ASSIGN(const auto world, simulated::World::create(config.profile, loaded.images, world_options(config)));
  simulated::Node& node = world->node(0);
  portals::Interface sender(node);
  portals::Interface receiver(world->node(1));
  SPL_ASSIGN(const nic::QueueId arrivals, receiver.eq_alloc(cell_queue_slots));
  SPL_ASSIGN(const nic::PortalIndex portal, receiver.pt_alloc(arrivals));
  SPL_ASSIGN(const nic::QueueId departures, sender.eq_alloc(cell_queue_slots));
  nic::Entry entry;
  entry.start = destination.base();
  entry.length = static_cast<uint64_t>(message.bytes);
  entry.match_bits = cell_match_bits;
  entry.options.use_once = true;
  entry.options.event_unlink_disable = true;
  SPL_TRY(receiver.me_append(portal, entry));
  SPL_ASSIGN(const auto send, strategies::Send::prepare(sender, departures, loaded.handlers, config.strategy, message,
                                                        facts_of(config)));
  SendResult result;
  node.record(config.trace ? &result.trace : nullptr, nullptr);
  node.reset_statistics();
  const Time called = node.now();
  result.called_ps = called.ps;

  portals::PutArguments put;
  put.target = world->node(1).rank();
  put.portal = portal;
  put.match_bits = cell_match_bits;
  SPL_TRY(send->start(source.base(), put));
  const Result<nic::Event> finished = send->finish();
  if (!finished) return explain(finished.error(), node);
  result.free_time_ps = (node.now() - called).ps;
  log_event(result.event_log, result.free_time_ps, *finished);
  SPL_ASSIGN(const nic::Event arrived, receiver.eq_wait(arrivals));
  log_event(result.event_log, (node.now() - called).ps, arrived);
  if (arrived.fail != nic::Fail::ok) {
    return fail(Code::fault, "the message failed at the receiver: ", nic::name_of(arrived.fail));
  }
  world->drain();

  result.send_time_ps = (world->node(1).statistics().data_landed - called).ps;
  result.size_bytes = message.bytes;
  result.blocks = message.blocks;
  const auto regions = layout::oracle::regions_per_packet(message.type, message.count, config.payload_bytes);
  result.pieces = strategies::count_pieces(message.blob, message.bytes, config.payload_bytes).writes;
  result.regions = regions.regions;
  result.packets = regions.packets;
  result.line_time_ps = config.profile.link.byte_time.time_of(Bytes{message.bytes}).ps;
  read_statistics(node, *send, result);
  SPL_TRY(send->release());

  SPL_TRY(destination.inject(config.inject, landing, seed));
  SPL_TRY(destination.check(landing, source.packed));
  result.destination = destination.bytes();
  return result;
}

}  // namespace

Result<SendResult> run_send(const SendConfig& config) {
  SPL_ASSIGN(const layout::Type type, layout::parse(config.type));
  SPL_TRY(check_memory(type, config.count));
  SPL_ASSIGN(const strategies::Message message, strategies::make_message(type, config.count));
  if (message.bytes == 0) return fail(Code::unsupported, "the message has zero bytes: there is nothing to send");
  SPL_ASSIGN(const LoadedImages loaded, load_images(config.images));
  return send_once(config, loaded, message);
}

}  // namespace spinloom::app
