#include "nic/hpu/timing.hpp"

#include <bit>
#include <span>

namespace spinloom::hpu {
namespace {

struct Range {
  const char* name;
  uint32_t value;
  uint32_t low;
  uint32_t high;
};

Status check_ranges(std::span<const Range> ranges) {
  for (const Range& range : ranges) {
    if (range.value < range.low || range.value > range.high) {
      return fail(Code::invalid, "HPU profile: ", range.name, " is ", range.value, ", it must be ", range.low, " to ",
                  range.high);
    }
  }
  return {};
}

Status check_power_of_two(const char* name, uint32_t value) {
  if (std::has_single_bit(value)) return {};
  return fail(Code::invalid, "HPU profile: ", name, " is ", value, ", it must be a power of two");
}

Status check_a15(const A15Parameters& p) {
  // The upper bounds are those of the model's tables (timing_a15.hpp, calendar.hpp).
  const Range ranges[] = {
      {"rename_width", p.rename_width, 1, 8},
      {"window", p.window, 1, 256},
      {"retire_width", p.retire_width, 1, 8},
      {"alus", p.alus, 1, 4},
      {"multipliers", p.multipliers, 1, 4},
      {"float_units", p.float_units, 1, 4},
      {"float_add_cycles", p.float_add_cycles, 1, 64},
      {"float_multiply_cycles", p.float_multiply_cycles, 1, 64},
      {"float_multiply_add_cycles", p.float_multiply_add_cycles, 1, 64},
      {"float_divide_cycles", p.float_divide_cycles, 1, 64},
      {"float_root_cycles", p.float_root_cycles, 1, 64},
      {"float_compare_cycles", p.float_compare_cycles, 1, 64},
      {"float_convert_cycles", p.float_convert_cycles, 1, 64},
      {"float_move_cycles", p.float_move_cycles, 1, 64},
      {"load_units", p.load_units, 1, 4},
      {"store_units", p.store_units, 1, 4},
      {"alu_cycles", p.alu_cycles, 1, 64},
      {"multiply_cycles", p.multiply_cycles, 1, 64},
      {"divide_cycles", p.divide_cycles, 1, 64},
      {"load_cycles", p.load_cycles, 1, 64},
      {"store_cycles", p.store_cycles, 1, 64},
      {"memory_cycles of the scratchpad", p.memory_cycles[0], 0, 1000},
      {"memory_cycles of NIC memory", p.memory_cycles[1], 0, 1000},
      {"memory_cycles of the packet buffer", p.memory_cycles[2], 0, 1000},
      {"memory_cycles of the image", p.memory_cycles[3], 0, 1000},
      {"misaligned_cycles", p.misaligned_cycles, 0, 1000},
      {"front_end_cycles", p.front_end_cycles, 0, 64},
      {"predictor_entries", p.predictor_entries, 1, 1u << 20},
      {"indirect_entries", p.indirect_entries, 1, 1u << 16},
      {"return_stack", p.return_stack, 1, 256},
      {"device_store_cycles", p.device_store_cycles, 1, 1000},
      {"device_answer_cycles", p.device_answer_cycles, 1, 1000},
      {"oldest_cycles", p.oldest_cycles, 0, 1000},
      {"device_load_cycles", p.device_load_cycles, 1, 1000},
  };
  SPL_TRY(check_ranges(ranges));
  SPL_TRY(check_power_of_two("predictor_entries", p.predictor_entries));
  SPL_TRY(check_power_of_two("indirect_entries", p.indirect_entries));
  return {};
}

Status check_pulp(const PulpParameters& p) {
  const Range ranges[] = {
      {"multiply_high_cycles", p.multiply_high_cycles, 1, 64},
      {"divide_cycles", p.divide_cycles, 1, 64},
      {"branch_taken_cycles", p.branch_taken_cycles, 1, 64},
      {"jump_cycles", p.jump_cycles, 1, 64},
      {"straddle_cycles", p.straddle_cycles, 0, 64},
      {"load_use_cycles", p.load_use_cycles, 0, 64},
      {"counter_cycles", p.counter_cycles, 1, 64},
      {"device_cycles", p.device_cycles, 1, 1000},
      {"memory_cycles of the cluster's memory", p.memory_cycles[0], 1, 1000},
      {"memory_cycles of handler memory", p.memory_cycles[1], 1, 1000},
      {"memory_cycles of packets", p.memory_cycles[2], 1, 1000},
      {"memory_cycles of the image", p.memory_cycles[3], 1, 1000},
      {"atomic_near_cycles", p.atomic_near_cycles, 1, 1000},
      {"atomic_far_cycles", p.atomic_far_cycles, 0, 1000},
  };
  return check_ranges(ranges);
}

}  // namespace

Status check(const TimingParameters& parameters) {
  if (const auto* a15 = std::get_if<A15Parameters>(&parameters)) return check_a15(*a15);
  if (const auto* pulp = std::get_if<PulpParameters>(&parameters)) return check_pulp(*pulp);
  return {};
}

}  // namespace spinloom::hpu
