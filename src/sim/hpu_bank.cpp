#include "sim/hpu_bank.hpp"

#include <algorithm>

namespace spinloom::sim {
namespace {

enum Code : uint32_t { starts, stops };

uint32_t tie_of(uint64_t unit) { return static_cast<uint32_t>(unit) + 1; }

hpu::LatencyClass nic_latency() { return hpu::LatencyClass::nic_memory; }

}  // namespace

hpu::TimingParameters timing_of(const Profile& profile) {
  hpu::A15Parameters a15;
  const auto cycles = [](int64_t value) { return static_cast<uint32_t>(value); };
  a15.rename_width = cycles(profile.a15.rename_width);
  a15.window = cycles(profile.a15.window);
  a15.alus = cycles(profile.a15.alus);
  a15.multiply_cycles = cycles(profile.a15.multiply);
  a15.divide_cycles = cycles(profile.a15.divide);
  a15.load_cycles = cycles(profile.a15.load);
  a15.front_end_cycles = cycles(profile.a15.front_end);
  a15.predictor_entries = cycles(profile.a15.predictor_entries);
  a15.device_load_cycles = cycles(profile.a15.device_load);
  a15.device_store_cycles = cycles(profile.a15.device_store);
  a15.memory_cycles.fill(cycles(profile.hpu.memory_latency));
  return a15;
}

Result<std::unique_ptr<HpuBank>> HpuBank::create(EventQueue& events, HpuClient& client, const Profile& profile,
                                                 uint32_t hpus, uint32_t slice_cycles) {
  std::unique_ptr<HpuBank> bank(new HpuBank(events, client, Rate::cycle_of(profile.hpu.clock), hpus, slice_cycles));
  for (uint32_t index = 0; index < hpus; ++index) {
    SPL_ASSIGN(hpu::Core core, hpu::Core::create(timing_of(profile)));
    bank->units_.emplace_back(std::move(core));
  }
  return bank;
}

HpuBank::HpuBank(EventQueue& events, HpuClient& client, Rate cycle, uint32_t hpus, uint32_t slice_cycles)
    : events_(events), client_(client), cycle_(cycle), hpus_(hpus), slice_cycles_(slice_cycles) {}

uint64_t HpuBank::cycle_at_or_after(Time time) const {
  const int64_t floor = cycle_.units_in(time);
  return static_cast<uint64_t>(cycle_.time_of_cycles(floor) < time ? floor + 1 : floor);
}

void HpuBank::run(const nic::Her& her, const nic::Context& context, std::span<uint8_t> nic_memory, Time start) {
  SPL_ASSERT(her.hpu.value < units_.size(), "HPU ", her.hpu, " of ", units_.size());
  SPL_ASSERT(images_ != nullptr && context.image < images_->size(), "image ", context.image, " is not loaded");
  Unit& unit = units_[her.hpu.value];
  SPL_ASSERT(!unit.running, "HPU ", her.hpu, " already runs a handler");
  unit.running = true;
  const hpu::Image& image = (*images_)[context.image];

  using hpu::Region;
  const auto map = [&unit](const Region& region) {
    const Status mapped = unit.memory.map(region);
    SPL_ASSERT(mapped.ok(), mapped.error().message);
  };
  map(Region::image(image.base(), image.bytes()));
  map(Region::read_only(SPL_HPU_CONST_BASE, nic_memory.subspan(context.constants.offset, context.constants.length),
                        nic_latency()));
  map(Region::shared(SPL_HPU_STATE_BASE, nic_memory.subspan(context.state.offset, context.state.length)));
  map(Region::read_only(SPL_HPU_PACKET_BASE, {her.payload.bytes, her.payload.length},
                        hpu::LatencyClass::packet_buffer));
  map(Region::private_memory(SPL_HPU_STACK_BASE, unit.stack));
  map(Region::command_window());

  const auto entry = her.kind == nic::HandlerKind::completion ? context.completion_entry : context.payload_entry;
  SPL_ASSERT(entry.has_value(), "a HER without a handler");
  const nic::HandlerArguments arguments = nic::arguments_of(her, unit.stack);
  unit.her = her;
  unit.budget_cycles = context.budget_cycles;
  unit.start_cycle = cycle_at_or_after(start);
  unit.at_start = unit.core.counters();
  unit.called = false;

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
  unit.core.start(begin);
  events_.at(std::max(events_.now(), cycle_.time_of_cycles(static_cast<int64_t>(unit.start_cycle))), *this, starts,
             her.hpu.value, tie_of(her.hpu.value));
}

void HpuBank::on_event(uint32_t code, uint64_t argument) {
  Unit& unit = units_[argument];
  if (code == starts) return slice(argument);
  const uint64_t spent = unit.stop.cycle - unit.start_cycle;
  switch (unit.stop.kind) {
    case hpu::StopKind::returned: return finish(unit, nic::HandlerEnd::returned, "");
    case hpu::StopKind::fault: {
      const bool violation = unit.stop.fault.kind == hpu::FaultKind::load_violation ||
                             unit.stop.fault.kind == hpu::FaultKind::store_violation;
      return finish(unit, violation ? nic::HandlerEnd::segv : nic::HandlerEnd::fault, unit.stop.fault.describe());
    }
    case hpu::StopKind::call: {
      unit.answered = false;
      calling_ = argument;
      if (!unit.called) unit.first_call_cycle = unit.stop.cycle;
      unit.called = true;
      const nic::HandlerCall call = nic::decode_call(unit.core.command(), unit.memory);
      if (client_.on_handler_call(unit.her, call)) {
        return finish(unit, nic::HandlerEnd::fault,
                      text("made call ", call.call, " with options ", call.options, ", which the NIC does not have"));
      }
      if (!unit.answered) return;  // a blocking call
      break;
    }
    case hpu::StopKind::quantum:
    case hpu::StopKind::shared:
      if (spent > unit.budget_cycles) {
        return finish(unit, nic::HandlerEnd::budget,
                      text("ran ", spent, " cycles, its budget is ", unit.budget_cycles));
      }
      break;
  }
  slice(argument);
}

void HpuBank::slice(uint64_t index) {
  Unit& unit = units_[index];
  unit.stop = unit.core.run(unit.core.cycle() + slice_cycles_);
  const Time when = cycle_.time_of_cycles(static_cast<int64_t>(unit.stop.cycle));
  events_.at(std::max(when, events_.now()), *this, stops, index, tie_of(index));
}

void HpuBank::resume(nic::HerId her, uint32_t value) {
  uint64_t index = calling_;
  if (units_[index].her.id != her) {
    const auto waits = [her](const Unit& unit) { return unit.running && unit.her.id == her; };
    index = static_cast<uint64_t>(std::find_if(units_.begin(), units_.end(), waits) - units_.begin());
  }
  SPL_ASSERT(index < units_.size(), "HER ", her, " runs nowhere");
  Unit& unit = units_[index];
  SPL_ASSERT(unit.running && unit.stop.kind == hpu::StopKind::call, "HER ", her, " does not wait in a call");
  unit.core.resume_call(value, std::max(unit.stop.cycle, cycle_at_or_after(events_.now())));
  unit.answered = true;
}

void HpuBank::finish(Unit& unit, nic::HandlerEnd end, const std::string& reason) {
  unit.running = false;
  if (unit.core.busy()) unit.core.abandon();
  const hpu::Counters counters = unit.core.counters();
  HandlerStatistics& statistics = statistics_[static_cast<size_t>(unit.her.kind)];
  const uint64_t cycles = unit.stop.cycle - unit.start_cycle;
  ++statistics.handlers;
  statistics.cycles += cycles;
  statistics.cycles_max = std::max(statistics.cycles_max, cycles);
  const uint64_t before_call = unit.called ? unit.first_call_cycle - unit.start_cycle : cycles;
  statistics.first_call_cycles += before_call;
  statistics.first_call_cycles_min =
      statistics.handlers == 1 ? before_call : std::min(statistics.first_call_cycles_min, before_call);
  statistics.instructions += counters.instructions - unit.at_start.instructions;
  statistics.calls += counters.calls - unit.at_start.calls;
  statistics.loads += counters.loads - unit.at_start.loads;
  statistics.stores += counters.stores - unit.at_start.stores;
  statistics.mispredicts += counters.mispredicts - unit.at_start.mispredicts;
  busy_ += cycle_.time_of_cycles(static_cast<int64_t>(cycles));
  if (trace_ != nullptr) {
    const Track track = unit.her.kind == nic::HandlerKind::completion ? Track::completion : Track::payload;
    trace_->span({track, unit.her.hpu.value, unit.her.id.value,
                  cycle_.time_of_cycles(static_cast<int64_t>(unit.start_cycle)), events_.now()});
  }
  client_.on_handler_end(unit.her, end, unit.stop.value, reason);
}

}  // namespace spinloom::sim
