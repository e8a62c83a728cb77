#include "app/studies/calibrate.hpp"

#include <algorithm>

namespace spinloom::app {
namespace {

constexpr int64_t gamma_many = 16;
constexpr int64_t packets_few = 32;
constexpr int64_t packets_many = 96;

Result<int64_t> total_cycles(const DdtConfig& config, int64_t packets, int64_t blocks_per_packet) {
  const int64_t block = calibration_payload_bytes / blocks_per_packet;
  DdtConfig run = config;
  run.type = text("hvector(", packets * blocks_per_packet, ", ", block, ", ", 2 * block, "B, byte)");
  run.count = 1;
  run.strategy = strategies::Strategy::rw_cp;
  run.hpus = 1;
  run.payload_bytes = calibration_payload_bytes;
  run.ordering = {};
  run.inject = Inject::none;
  run.trace = false;
  run.sample_dma_queue = false;
  run.cost = strategies::HandlerCost{};
  SPL_ASSIGN(const DdtResult result, run_ddt(run));
  return static_cast<int64_t>(result.handler_cycles);
}

// Cycles of one handler, without the warm-up of the first handlers.
Result<int64_t> cycles_per_handler(const DdtConfig& config, int64_t blocks_per_packet) {
  SPL_ASSIGN(const int64_t few, total_cycles(config, packets_few, blocks_per_packet));
  SPL_ASSIGN(const int64_t many, total_cycles(config, packets_many, blocks_per_packet));
  return div_ceil(many - few, packets_many - packets_few);
}

}  // namespace

Result<strategies::HandlerCost> calibrate(const DdtConfig& config) {
  SPL_ASSIGN(const int64_t single, cycles_per_handler(config, 1));
  SPL_ASSIGN(const int64_t several, cycles_per_handler(config, gamma_many));
  const int64_t block_cycles = std::max<int64_t>(div_ceil(several - single, gamma_many - 1), 0);
  const auto& scheduler = config.profile.scheduler;
  const Rate cycle = Rate::cycle_of(config.profile.hpu.clock);
  strategies::HandlerCost cost;
  cost.block = cycle.time_of_cycles(block_cycles);
  cost.fixed = cycle.time_of_cycles(std::max<int64_t>(single - block_cycles, 0)) +
               Rate::cycle_of(scheduler.clock).time_of_cycles(scheduler.start_cycles + scheduler.finish_cycles);
  return cost;
}

}  // namespace spinloom::app
