#include "portals/image_runner.hpp"

#include "nic/handler_abi.hpp"

namespace spinloom::portals {

namespace {

// An outgoing packet is the handler's to fill.
hpu::Region packet_region(const HandlerFrame& frame) {
  using hpu::LatencyClass;
  using hpu::Region;
  if (!frame.her.outbound) return Region::read_only(SPL_HPU_PACKET_BASE, frame.packet, LatencyClass::packet_buffer);
  const std::span<uint8_t> filled{const_cast<uint8_t*>(frame.packet.data()), frame.packet.size()};
  return Region::shared(SPL_HPU_PACKET_BASE, filled, LatencyClass::packet_buffer);
}

}  // namespace

Result<std::unique_ptr<ImageHandlers>> ImageHandlers::create() {
  SPL_ASSIGN(hpu::Core core, hpu::Core::create(hpu::FunctionalParameters{}));
  return std::unique_ptr<ImageHandlers>(new ImageHandlers(std::move(core)));
}

// A core that is in the middle of a handler cannot start another: a new one takes its place.
HandlerOutcome ImageHandlers::stop_running(nic::HandlerEnd end) {
  auto fresh = hpu::Core::create(hpu::FunctionalParameters{});
  SPL_ASSERT(fresh.ok(), fresh.error().message);
  core_ = std::move(*fresh);
  return {end, 0};
}

uint32_t ImageHandlers::add(hpu::Image image) {
  images_.push_back(std::move(image));
  return static_cast<uint32_t>(images_.size() - 1);
}

HandlerOutcome ImageHandlers::run(const HandlerFrame& frame, HandlerCalls& calls) {
  const nic::Context& context = *frame.context;
  const auto entry = context.entry_of(frame.her.kind);
  SPL_ASSERT(entry.has_value(), "HER ", frame.her.id, " has no handler");
  if (context.image >= images_.size()) return {nic::HandlerEnd::fault, 0};
  const hpu::Image& image = images_[context.image];

  using hpu::Region;
  for (const Region& region : {Region::image(image.base(), image.bytes()),
                               Region::read_only(SPL_HPU_CONST_BASE, frame.constants, hpu::LatencyClass::nic_memory),
                               Region::shared(SPL_HPU_STATE_BASE, frame.state), packet_region(frame),
                               Region::private_memory(SPL_HPU_STACK_BASE, stack_), Region::command_window()}) {
    const Status mapped = memory_.map(region);
    SPL_ASSERT(mapped.ok(), mapped.error().message);
  }
  const nic::HandlerArguments arguments = nic::arguments_of(frame.her, stack_);
  hpu::Start start;
  start.image = &image;
  start.memory = &memory_;
  start.pc = *entry;
  start.arguments = arguments.registers;
  start.stack_pointer = arguments.stack_pointer;
  start.at_cycle = core_.cycle();
  start.hpu = frame.her.hpu.value;
  start.vhpu = frame.her.vhpu.value;
  start.hpu_count = frame.hpu_count;
  core_.start(start);
  const uint64_t budget_end = start.at_cycle + context.budget_cycles;
  for (;;) {
    const hpu::Stop stop = core_.run(budget_end);
    switch (stop.kind) {
      case hpu::StopKind::returned: return {nic::HandlerEnd::returned, stop.value};
      case hpu::StopKind::fault: {
        const bool violation =
            stop.fault.kind == hpu::FaultKind::load_violation || stop.fault.kind == hpu::FaultKind::store_violation;
        return {violation ? nic::HandlerEnd::segv : nic::HandlerEnd::fault, 0};
      }
      case hpu::StopKind::call: {
        const auto answer = calls.call(nic::decode_call(core_.command(), memory_));
        if (!answer) return stop_running(nic::HandlerEnd::fault);
        core_.resume_call(*answer, stop.cycle);
        break;
      }
      case hpu::StopKind::shared:  // handlers run one at a time here, so it is its turn
      case hpu::StopKind::quantum: break;
    }
    if (core_.cycle() >= budget_end) return stop_running(nic::HandlerEnd::budget);
  }
}

}  // namespace spinloom::portals
