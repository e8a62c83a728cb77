// The least time of a message that goes through the switches of a tree and is stored in each.
#include <algorithm>

#include "app/studies/collective_run.hpp"

namespace spinloom::app {
namespace {

// Returns the time from a put of `bytes` between two NICs at one switch until the target's host can know of it.
Result<Time> put_time(const StudyConfig& config, uint64_t bytes) {
  simulated::WorldOptions options = world_options(config);
  const std::vector<hpu::Image> no_images;
  SPL_ASSIGN(const auto world, simulated::World::create(config.profile, no_images, options));
  SPL_ASSIGN(const Side from, Side::make(world->node(0)));
  SPL_ASSIGN(const Side to, Side::make(world->node(1)));
  std::vector<uint8_t> memory(bytes);
  SPL_ASSIGN(std::ignore, to.interface->me_append(to.portal, to.entry(memory, 1)));
  world->drain();
  const Time start = world->events().now();
  const std::vector<uint8_t> message(bytes);
  SPL_TRY(from.interface->put(from.put(message, to, 1)));
  SPL_TRY(to.wait_for(bytes));
  return world->events().now() - start;
}

// Returns the time from a packet's first byte at a switch until the first instruction of its handler.
Time storing_time(const StudyConfig& config, uint64_t bytes, bool is_header) {
  const simulated::Profile& profile = config.profile;
  const auto length = static_cast<int64_t>(bytes);
  simulated::Fabric fabric(profile, config.hpus);
  const Time matched = is_header ? profile.match.header : profile.match.packet;
  const Time last_byte = profile.link.byte_time.time_of(Bytes{length});
  const int64_t cycles = profile.scheduler.dispatch_cycles + profile.scheduler.start_cycles;
  const Time copied = fabric.packet_in(std::max(matched, last_byte), length).end;
  return fabric.packet_to_hpu(copied, 0, length) + Rate::cycle_of(profile.scheduler.clock).time_of_cycles(cycles);
}

}  // namespace

// Returns T = put + (s - 1) hop + s storing, where s is `switches_on_path`: the switches that the message goes through.
// Sums of an all-reduce go up to the top and down again.
Result<Time> collective_bound(const StudyConfig& config, const SwitchTree& tree) {
  const uint32_t depth = tree.depth();
  const int64_t switches_on_path = config.experiment == Experiment::allreduce ? 2 * int64_t{depth} - 1 : depth;
  const uint64_t last_packet_bytes = (config.bytes - 1) % config.payload_bytes + 1;
  SPL_ASSIGN(const Time put, put_time(config, config.bytes));
  const Time hop{static_cast<int64_t>(config.network->hop_ps)};
  return put + hop * (switches_on_path - 1) +
         storing_time(config, last_packet_bytes, last_packet_bytes == config.bytes) * switches_on_path;
}

}  // namespace spinloom::app
