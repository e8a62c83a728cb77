#include "nic/spin/image_runner.hpp"

#include <algorithm>

#include "nic/spin/handler_abi.hpp"

namespace spinloom::spin {

namespace {

// An outgoing packet is writable, because the handler fills it; so is a frame. No other handler has it meanwhile.
hpu::Region packet_region(const HandlerFrame& frame) {
  using hpu::Region;
  if (!frame.her.writes_packet)
    return Region::read_only(SPL_HPU_PACKET_BASE, frame.packet, hpu::LatencyClass::packet_buffer);
  const std::span<uint8_t> filled{const_cast<uint8_t*>(frame.packet.data()), frame.packet.size()};
  return Region::private_memory(SPL_HPU_PACKET_BASE, filled);
}

// Runs one slice of a budget, which may be long: between slices the runner asks whether the handler has been given up.
hpu::Stop run_slice(hpu::Core& core, uint64_t budget_end) {
  constexpr uint64_t slice_cycles = 1 << 20;
  return core.run(std::min(budget_end, core.cycle() + slice_cycles));
}

}  // namespace

Result<std::unique_ptr<ImageHandlers::Machine>> ImageHandlers::make_machine() {
  SPL_ASSIGN(hpu::Core core, hpu::Core::create(hpu::FunctionalParameters{}));
  return std::make_unique<Machine>(std::move(core));
}

Result<std::unique_ptr<ImageHandlers>> ImageHandlers::create() {
  std::unique_ptr<ImageHandlers> handlers(new ImageHandlers);
  SPL_ASSIGN(std::unique_ptr<Machine> machine, make_machine());
  handlers->idle_.push_back(std::move(machine));
  return handlers;
}

uint32_t ImageHandlers::add(hpu::Image image) {
  const std::lock_guard lock(pool_mutex_);
  images_.push_back(std::move(image));
  return static_cast<uint32_t>(images_.size() - 1);
}

const hpu::Image& ImageHandlers::image(uint32_t number) const {
  const std::lock_guard lock(pool_mutex_);
  return images_.at(number);
}

HandlerOutcome ImageHandlers::run(const HandlerFrame& frame, HandlerCalls& calls) {
  std::unique_ptr<Machine> machine;
  const hpu::Image* image = nullptr;
  {
    const std::lock_guard lock(pool_mutex_);
    if (frame.context->image >= images_.size()) return {HandlerEnd::fault, 0};
    image = &images_[frame.context->image];
    if (!idle_.empty()) {
      machine = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (machine == nullptr) {
    auto created = make_machine();
    SPL_ASSERT(created.ok(), created.error().message);
    machine = std::move(*created);
  }
  const HandlerOutcome outcome = run_on(*machine, *image, frame, calls);
  if (machine->core.busy()) machine->core.abandon();
  const std::lock_guard lock(pool_mutex_);
  idle_.push_back(std::move(machine));
  return outcome;
}

hpu::Stop ImageHandlers::run_shared_access(Machine& machine, uint32_t address) {
  const auto line = reinterpret_cast<uintptr_t>(machine.memory.read(address, 1)) / 64;
  const std::lock_guard lock(line_mutexes_[line % line_mutexes_.size()]);
  return machine.core.run(machine.core.cycle());
}

HandlerOutcome ImageHandlers::run_on(Machine& machine, const hpu::Image& image, const HandlerFrame& frame,
                                     HandlerCalls& calls) {
  const Context& context = *frame.context;
  const auto entry = context.entry_of(frame.her.kind);
  SPL_ASSERT(entry.has_value(), "HER ", frame.her.id, " has no handler");
  using hpu::Region;
  for (const Region& region : {Region::image(image.base(), image.bytes()),
                               Region::read_only(SPL_HPU_CONST_BASE, frame.constants, hpu::LatencyClass::nic_memory),
                               Region::shared(SPL_HPU_STATE_BASE, frame.state), packet_region(frame),
                               Region::private_memory(SPL_HPU_STACK_BASE, machine.stack), Region::command_window()}) {
    const Status mapped = machine.memory.map(region);
    SPL_ASSERT(mapped.ok(), mapped.error().message);
  }
  const HandlerArguments arguments = arguments_of(frame.her, machine.stack);
  hpu::Start start;
  start.image = &image;
  start.memory = &machine.memory;
  start.pc = *entry;
  start.arguments = arguments.registers;
  start.stack_pointer = arguments.stack_pointer;
  start.at_cycle = machine.core.cycle();
  start.hpu = frame.her.hpu.value;
  start.vhpu = frame.her.vhpu.value;
  start.hpu_count = frame.hpu_count;
  start.frame = frame_registers_of(frame.her);
  machine.core.start(start);
  const uint64_t budget_end = start.at_cycle + context.budget_cycles;
  hpu::Stop stop = run_slice(machine.core, budget_end);
  for (;;) {
    switch (stop.kind) {
      case hpu::StopKind::returned: return {HandlerEnd::returned, stop.value, stop.cycle - start.at_cycle};
      case hpu::StopKind::fault: {
        const bool violation =
            stop.fault.kind == hpu::FaultKind::load_violation || stop.fault.kind == hpu::FaultKind::store_violation;
        return {violation ? HandlerEnd::segv : HandlerEnd::fault, 0};
      }
      case hpu::StopKind::call: {
        const auto answer = calls.call(decode_call(machine.core.command(), machine.memory));
        if (!answer) return {HandlerEnd::fault, 0};
        if (calls.budget_used()) return {HandlerEnd::budget, 0};
        machine.core.resume_call(*answer, stop.cycle);
        break;
      }
      case hpu::StopKind::shared:
      case hpu::StopKind::quantum: break;
    }
    if (machine.core.cycle() >= budget_end) return {HandlerEnd::budget, 0};
    if (calls.given_up()) return {HandlerEnd::fault, 0};
    stop = stop.kind == hpu::StopKind::shared ? run_shared_access(machine, stop.address)
                                              : run_slice(machine.core, budget_end);
  }
}

}  // namespace spinloom::spin
