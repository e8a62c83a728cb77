#include "simulated/node/hpu_bank.hpp"

#include <algorithm>
#include <array>

namespace spinloom::simulated {
namespace {

enum Step : uint32_t { starts, stops };

uint32_t tie_of(uint64_t unit) { return static_cast<uint32_t>(unit) + 1; }

// The latency class of a place for a pulp core; the memory that answers decides.
hpu::LatencyClass class_of(MemoryLevel level, hpu::LatencyClass outside_l1) {
  return level == MemoryLevel::l1 ? hpu::LatencyClass::scratchpad : outside_l1;
}

uint32_t narrow(int64_t value) { return static_cast<uint32_t>(value); }

hpu::PulpParameters pulp_of(const Profile& profile) {
  hpu::PulpParameters pulp;
  pulp.multiply_high_cycles = narrow(profile.pulp.multiply_high);
  pulp.divide_cycles = narrow(profile.pulp.divide);
  pulp.branch_taken_cycles = narrow(profile.pulp.branch_taken);
  pulp.jump_cycles = narrow(profile.pulp.jump);
  pulp.straddle_cycles = narrow(profile.pulp.straddle);
  pulp.load_use_cycles = narrow(profile.pulp.load_use);
  pulp.counter_cycles = narrow(profile.pulp.counter);
  pulp.device_cycles = narrow(profile.pulp.device);
  // The image's read-only data lies in handler memory.
  pulp.memory_cycles = {narrow(profile.pulp.l1), narrow(profile.pulp.l2_handler), narrow(profile.pulp.l2_packet),
                        narrow(profile.pulp.l2_handler)};
  pulp.atomic_near_cycles = narrow(profile.pulp.atomic_l1);
  pulp.atomic_far_cycles = narrow(profile.pulp.atomic_l2 - profile.pulp.l2_handler);
  return pulp;
}

}  // namespace

hpu::TimingParameters timing_of(const Profile& profile) {
  if (profile.clustered()) return pulp_of(profile);
  hpu::A15Parameters a15;
  a15.rename_width = narrow(profile.a15.rename_width);
  a15.window = narrow(profile.a15.window);
  a15.alus = narrow(profile.a15.alus);
  a15.multiply_cycles = narrow(profile.a15.multiply);
  a15.divide_cycles = narrow(profile.a15.divide);
  a15.float_units = narrow(profile.a15.float_units);
  a15.float_add_cycles = narrow(profile.a15.float_add);
  a15.float_multiply_cycles = narrow(profile.a15.float_multiply);
  a15.float_multiply_add_cycles = narrow(profile.a15.float_multiply_add);
  a15.float_divide_cycles = narrow(profile.a15.float_divide);
  a15.float_root_cycles = narrow(profile.a15.float_root);
  a15.float_compare_cycles = narrow(profile.a15.float_compare);
  a15.float_convert_cycles = narrow(profile.a15.float_convert);
  a15.float_move_cycles = narrow(profile.a15.float_move);
  a15.load_cycles = narrow(profile.a15.load);
  a15.front_end_cycles = narrow(profile.a15.front_end);
  a15.predictor_entries = narrow(profile.a15.predictor_entries);
  a15.device_load_cycles = narrow(profile.a15.device_load);
  a15.device_store_cycles = narrow(profile.a15.device_store);
  a15.device_answer_cycles = narrow(profile.a15.device_answer);
  a15.oldest_cycles = narrow(profile.a15.oldest);
  a15.memory_cycles.fill(narrow(profile.hpu.memory_latency));
  return a15;
}

Result<std::unique_ptr<HpuBank>> HpuBank::create(EventQueue& events, HpuClient& client, const Profile& profile,
                                                 uint32_t hpus, uint32_t slice_cycles) {
  const hpu::TimingParameters timing = timing_of(profile);
  SPL_TRY(hpu::Core::create(timing));  // reports wrong parameters now
  std::unique_ptr<HpuBank> bank(
      new HpuBank(events, client, Rate::cycle_of(profile.hpu.clock), hpus, slice_cycles, timing));
  bank->has_float_ = hpu::has_float(timing);
  if (profile.clustered()) {
    bank->ports_.emplace(profile);
    bank->latency_classes_ = {class_of(profile.pulp.constants, hpu::LatencyClass::nic_memory),
                              class_of(profile.pulp.state, hpu::LatencyClass::nic_memory),
                              class_of(profile.pulp.packets, hpu::LatencyClass::packet_buffer)};
  }
  return bank;
}

HpuBank::HpuBank(EventQueue& events, HpuClient& client, Rate cycle, uint32_t hpus, uint32_t slice_cycles,
                 const hpu::TimingParameters& timing)
    : events_(events),
      client_(client),
      cycle_(cycle),
      hpus_(hpus),
      slice_cycles_(slice_cycles),
      timing_(timing),
      units_(hpus) {}

Status HpuBank::check_image(uint32_t image) const {
  if (has_float_ || images_ == nullptr || image >= images_->size() || !(*images_)[image].needs_float()) return {};
  return fail(Code::unsupported,
              "the handler image is built for cores with floating point, which this NIC's cores (hpu.core = pulp) do "
              "not have: take a NIC with a15 cores, or handlers without float and double");
}

uint64_t HpuBank::cycle_at_or_after(Time time) const {
  const int64_t floor = cycle_.units_in(time);
  return static_cast<uint64_t>(cycle_.time_of_cycles(floor) < time ? floor + 1 : floor);
}

void HpuBank::run(const nic::Her& her, const nic::Context& context, std::span<uint8_t> nic_memory, Time start) {
  SPL_ASSERT(her.hpu.value < units_.size(), "HPU ", her.hpu, " of ", units_.size());
  SPL_ASSERT(images_ != nullptr && context.image < images_->size(), "image ", context.image, " is not loaded");
  Unit& unit = units_[her.hpu.value];
  SPL_ASSERT(!unit.is_running, "HPU ", her.hpu, " already runs a handler");
  unit.is_running = true;
  if (!unit.core) {
    auto core = hpu::Core::create(timing_);
    SPL_ASSERT(core.ok(), "the parameters were right when the bank was made");
    unit.core.emplace(std::move(*core));
    unit.stack.resize(limits::handler_stack_bytes);
  }
  const hpu::Image& image = (*images_)[context.image];

  using hpu::Region;
  const auto map = [&unit](const Region& region) {
    const Status mapped = unit.memory.map(region);
    SPL_ASSERT(mapped.ok(), mapped.error().message);
  };
  map(Region::image(image.base(), image.bytes()));
  // Reads of memory that all clusters share contend with each other; a cluster's own memory has enough banks.
  const auto map_read_only = [&](uint32_t base, std::span<const uint8_t> bytes, hpu::LatencyClass memory) {
    Region region = Region::read_only(base, bytes, memory);
    region.contended = ports_ && memory != hpu::LatencyClass::scratchpad;
    map(region);
  };
  map_read_only(SPL_HPU_CONST_BASE, nic_memory.subspan(context.constants.offset, context.constants.length),
                latency_classes_.constants);
  map(Region::shared(SPL_HPU_STATE_BASE, nic_memory.subspan(context.state.offset, context.state.length),
                     latency_classes_.state));
  if (her.writes_packet) {
    map(Region::shared(SPL_HPU_PACKET_BASE, {const_cast<uint8_t*>(her.payload.bytes), her.payload.length},
                       latency_classes_.packets));
  } else {
    map_read_only(SPL_HPU_PACKET_BASE, {her.payload.bytes, her.payload.length}, latency_classes_.packets);
  }
  unit.constants_offset = context.constants.offset;
  unit.state_offset = context.state.offset;
  map(Region::private_memory(SPL_HPU_STACK_BASE, unit.stack));
  map(Region::command_window());

  const auto entry = context.entry_of(her.kind);
  SPL_ASSERT(entry.has_value(), "a HER without a handler");
  const spin::HandlerArguments arguments = spin::arguments_of(her, unit.stack);
  unit.her = her;
  unit.budget_cycles = context.budget_cycles;
  unit.start_cycle = cycle_at_or_after(start);
  unit.at_start = unit.core->counters();
  unit.has_called = false;

  hpu::Start begin;
  begin.image = &image;
  begin.memory = &unit.memory;
  begin.pc = *entry;
  begin.arguments = arguments.registers;
  begin.stack_pointer = arguments.stack_pointer;
  begin.at_cycle = unit.start_cycle;
  begin.hpu = her.hpu.value;
  begin.vhpu = her.vhpu.value;
  begin.hpu_count = hpus_;
  begin.frame = spin::frame_registers_of(her);
  if (!functions_.empty()) begin.profile = &functions_[context.image];
  if (!instructions_.empty()) begin.instructions = &instructions_[context.image];
  unit.core->start(begin);
  events_.at(std::max(events_.now(), cycle_.time_of_cycles(static_cast<int64_t>(unit.start_cycle))), *this, starts,
             her.hpu.value, tie_of(her.hpu.value));
}

void HpuBank::on_event(uint32_t code, uint64_t argument) {
  Unit& unit = units_[argument];
  if (code == starts) return run_slice(argument);
  const uint64_t spent = unit.stop.cycle - unit.start_cycle;
  const bool ended = unit.stop.kind == hpu::StopKind::returned || unit.stop.kind == hpu::StopKind::fault;
  if (!ended && spent > unit.budget_cycles) {
    return finish(unit, nic::HandlerEnd::budget, text("ran ", spent, " cycles, its budget is ", unit.budget_cycles));
  }
  switch (unit.stop.kind) {
    case hpu::StopKind::returned: return finish(unit, nic::HandlerEnd::returned, "");
    case hpu::StopKind::fault: {
      const bool violation = unit.stop.fault.kind == hpu::FaultKind::load_violation ||
                             unit.stop.fault.kind == hpu::FaultKind::store_violation;
      return finish(unit, violation ? nic::HandlerEnd::segv : nic::HandlerEnd::fault, unit.stop.fault.describe());
    }
    case hpu::StopKind::call: {
      unit.is_answered = false;
      unit.is_asking = true;
      calling_unit_ = argument;
      if (!unit.has_called) unit.first_call_cycle = unit.stop.cycle;
      unit.has_called = true;
      const nic::HandlerCall call = spin::decode_call(unit.core->command(), unit.memory);
      unit.call = call.call;
      const bool stops = client_.on_handler_call(unit.her, call);
      unit.is_asking = false;
      if (stops) {
        return finish(unit, nic::HandlerEnd::fault,
                      text("made call ", call.call, " with options ", call.options, ", which the NIC does not have"));
      }
      if (!unit.is_answered) return;  // resume() continues the handler
      break;
    }
    case hpu::StopKind::shared:
      if (ports_) unit.core->delay_shared(granted_cycle(unit));
      break;
    case hpu::StopKind::quantum: break;
  }
  run_slice(argument);
}

// The cycle in which the access that stopped this HPU gets its port and bank.
uint64_t HpuBank::granted_cycle(const Unit& unit) {
  const uint32_t address = unit.stop.address;
  const hpu::AddressSpace::Access& access = unit.memory.access_of(address);
  uint64_t byte = address - access.base;
  if (access.base == SPL_HPU_CONST_BASE) byte += unit.constants_offset;
  if (access.base == SPL_HPU_STATE_BASE) byte += unit.state_offset;
  if (access.base == SPL_HPU_PACKET_BASE) byte += unit.her.offset;
  return ports_->grant(unit.her.hpu.value, access.latency_class, byte, unit.stop.atomic, unit.stop.cycle);
}

void HpuBank::run_slice(uint64_t index) {
  Unit& unit = units_[index];
  unit.stop = unit.core->run(unit.core->cycle() + slice_cycles_);
  const Time when = cycle_.time_of_cycles(static_cast<int64_t>(unit.stop.cycle));
  events_.at(std::max(when, events_.now()), *this, stops, index, tie_of(index));
}

void HpuBank::profile_functions() {
  SPL_ASSERT(images_ != nullptr, "images are installed before their functions can be profiled");
  for (const hpu::Image& image : *images_) functions_.emplace_back(image);
}

void HpuBank::profile_instructions() {
  SPL_ASSERT(images_ != nullptr, "images are installed before their instructions can be profiled");
  for (const hpu::Image& image : *images_) instructions_.emplace_back(image);
}

std::map<std::string, uint64_t> HpuBank::function_cycles() const {
  std::map<std::string, uint64_t> sum;
  for (const hpu::FunctionProfile& image : functions_) {
    for (const auto& [name, cycles] : image.cycles()) sum[name] += cycles;
  }
  return sum;
}

std::optional<uint32_t> HpuBank::hpu_of(nic::HerId her) const {
  if (!her.exists()) return std::nullopt;
  if (units_[calling_unit_].is_running && units_[calling_unit_].her.id == her)
    return static_cast<uint32_t>(calling_unit_);
  for (uint32_t index = 0; index < units_.size(); ++index) {
    if (units_[index].is_running && units_[index].her.id == her) return index;
  }
  return std::nullopt;
}

void HpuBank::resume(nic::HerId her, uint32_t value) {
  const std::optional<uint32_t> index = hpu_of(her);
  SPL_ASSERT(index.has_value(), "HER ", her, " runs nowhere");
  Unit& unit = units_[*index];
  SPL_ASSERT(unit.is_running && unit.stop.kind == hpu::StopKind::call, "HER ", her, " does not wait in a call");
  const uint64_t answered_cycle = std::max(unit.stop.cycle, cycle_at_or_after(events_.now()));
  if (trace_ != nullptr) {
    trace_->span({Track::call, *index, unit.call, cycle_.time_of_cycles(static_cast<int64_t>(unit.stop.cycle)),
                  cycle_.time_of_cycles(static_cast<int64_t>(answered_cycle))});
  }
  unit.core->resume_call(value, answered_cycle);
  unit.is_answered = true;
  if (!unit.is_asking) run_slice(*index);
}

void HpuBank::finish(Unit& unit, nic::HandlerEnd end, const std::string& reason) {
  unit.is_running = false;
  if (unit.core->busy()) unit.core->abandon();
  const hpu::Counters counters = unit.core->counters();
  HandlerStatistics& statistics = statistics_[static_cast<size_t>(unit.her.kind)];
  const uint64_t cycles = unit.stop.cycle - unit.start_cycle;
  ++statistics.handlers;
  statistics.cycles += cycles;
  statistics.cycles_max = std::max(statistics.cycles_max, cycles);
  statistics.cycles_min = statistics.handlers == 1 ? cycles : std::min(statistics.cycles_min, cycles);
  const uint64_t before_call = unit.has_called ? unit.first_call_cycle - unit.start_cycle : cycles;
  statistics.first_call_cycles += before_call;
  statistics.first_call_cycles_min =
      statistics.handlers == 1 ? before_call : std::min(statistics.first_call_cycles_min, before_call);
  statistics.instructions += counters.instructions - unit.at_start.instructions;
  statistics.calls += counters.calls - unit.at_start.calls;
  statistics.loads += counters.loads - unit.at_start.loads;
  statistics.stores += counters.stores - unit.at_start.stores;
  statistics.atomics += counters.atomics - unit.at_start.atomics;
  statistics.mispredicts += counters.mispredicts - unit.at_start.mispredicts;
  statistics.stalls.front_end += counters.stall_front_end - unit.at_start.stall_front_end;
  statistics.stalls.operand += counters.stall_operand - unit.at_start.stall_operand;
  statistics.stalls.unit += counters.stall_unit - unit.at_start.stall_unit;
  statistics.stalls.window += counters.stall_window - unit.at_start.stall_window;
  statistics.stalls.device += counters.stall_device - unit.at_start.stall_device;
  statistics.stalls.latency += counters.stall_latency - unit.at_start.stall_latency;
  busy_ += cycle_.time_of_cycles(static_cast<int64_t>(cycles));
  last_end_ = events_.now();
  if (trace_ != nullptr) {
    constexpr std::array<Track, spin::handler_kinds> tracks = {Track::header, Track::payload, Track::completion,
                                                               Track::header, Track::header};
    const Track track = tracks[static_cast<size_t>(unit.her.kind)];
    trace_->span({track, unit.her.hpu.value, unit.her.id.value,
                  cycle_.time_of_cycles(static_cast<int64_t>(unit.start_cycle)), events_.now()});
  }
  client_.on_handler_end(unit.her, end, unit.stop.value, cycles, reason);
}

}  // namespace spinloom::simulated
