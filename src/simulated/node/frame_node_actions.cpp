// Performs the engine's actions on timed resources, and reports their ends to the engine.
#include <algorithm>
#include <cstring>
#include <utility>

#include "portals/interface/perform.hpp"
#include "simulated/node/frame_codes.hpp"
#include "simulated/node/frame_node.hpp"

namespace spinloom::simulated {

void FrameNode::perform(frames::Actions& actions) {
  for (frames::Action& action : actions.list) {
    std::visit([this](const auto& request) { perform(request); }, action);
  }
}

void FrameNode::perform(const frames::StoreFrame& store) {
  const Service copy = ingress(events_.now(), store.bytes.length);
  events_.at(copy.end, *this, frame_stored, frame_copies_.take(store.packet, store.address, current_frame_));
}

void FrameNode::perform(const frames::ToHost& request) {
  FrameBytes bytes(request.bytes.bytes, request.bytes.bytes + request.bytes.length);
  const Service link = pcie_.write(events_.now(), static_cast<int64_t>(bytes.size()));
  events_.at(link.end + pcie_.latency(), *this, at_the_stack, deliveries_.take(std::move(bytes)));
}

void FrameNode::perform(const frames::Transmit& transmit) {
  const auto length = static_cast<int64_t>(transmit.frame.bytes.length);
  Time ready;
  if (transmit.frame.dma.exists()) {
    ready = fabric_.send(events_.now(), length);
  } else {
    const Time asked = pcie_.write(events_.now(), 0).end + pcie_.latency();
    ready = pcie_.command(asked, length).end + pcie_.latency();
  }
  const Service cable = cable_out_.serve(ready, cable_time(transmit.frame.bytes.length));
  events_.at(cable.end, *this, frame_left, leaving_.take(transmit.frame));
}

// Starts a handler after the scheduler's time until it has the task, the copy of the frame to the cluster, and the
// scheduler's time until the first instruction.
void FrameNode::perform(const frames::RunHandler& run) {
  const spin::Context* context = nic_->context(run.her.context);
  SPL_ASSERT(context != nullptr, "HER ", run.her.id, " has no context");
  const Time chosen = events_.now() + cycles(profile_.scheduler.dispatch_cycles);
  const Time there = fabric_.packet_to_hpu(chosen, run.her.hpu.value, static_cast<int64_t>(run.her.payload.length));
  const Time start = there + cycles(profile_.scheduler.start_cycles);
  stages_.started = start;
  hpus_->run(run.her, *context, nic_memory_, start);
}

bool FrameNode::on_handler_call(const spin::Her& her, const spin::HandlerCall& call) {
  frames::Actions actions;
  const bool stop = nic_->on_handler_call(her.id, call, actions);
  perform(actions);
  return stop;
}

void FrameNode::on_handler_end(const spin::Her& her, spin::HandlerEnd end, uint32_t code, uint64_t cycles_spent,
                               const std::string& reason) {
  if (end != spin::HandlerEnd::returned) handler_trouble_ = reason;
  stages_.ended = events_.now();
  const uint32_t slot = ended_handlers_.take(her.id, end, code, cycles_spent);
  events_.at(events_.now() + cycles(profile_.scheduler.finish_cycles), *this, handler_is_done, slot);
}

void FrameNode::on_handler_done(uint32_t slot) {
  const EndedHandler ended = ended_handlers_[slot];
  ended_handlers_.give_back(slot);
  frames::Actions actions;
  nic_->on_handler_done(ended.her, ended.end, ended.code, actions, ended.cycles);
  perform(actions);
}

void FrameNode::perform(const spin::DmaWrite& write) {
  const auto length = static_cast<int64_t>(write.source.length);
  const Service read = fabric_.to_host(events_.now(), hpus_->hpu_of(write.her), length);
  const Service link = pcie_.write(read.end, length);
  stages_.read = read.end;
  const uint32_t slot = writes_.take(write, FrameBytes{});
  if (write.blocking) events_.at(read.end, *this, write_read, slot);
  events_.at(link.end + pcie_.latency(), *this, write_landed, slot);
}

void FrameNode::on_source_read(uint32_t slot) {
  auto& [write, read] = writes_[slot];
  read.assign(write.source.bytes, write.source.bytes + write.source.length);
  write.source.bytes = read.data();
  frames::Actions actions;
  nic_->on_dma_read(write.dma, actions);
  perform(actions);
}

void FrameNode::on_write_landed(uint32_t slot) {
  const spin::DmaWrite& write = writes_[slot].write;
  (void)portals::perform(write);
  stages_.landed = events_.now();
  events_.at(events_.now() + pcie_.latency(), *this, write_known, slot);
  if (write.source.length > 0) host_.on_host_write(write.host, write.source.length);
}

void FrameNode::on_write_known(uint32_t slot) {
  const spin::DmaId dma = writes_[slot].write.dma;
  writes_.give_back(slot);
  frames::Actions actions;
  nic_->on_dma_done(dma, actions);
  perform(actions);
}

void FrameNode::fetch(const HostFetch& request, uint64_t bytes) {
  const auto length = static_cast<int64_t>(bytes);
  const Time asked = pcie_.write(events_.now(), 0).end + pcie_.latency();
  const Time here = fabric_.from_host(pcie_.command(asked, length).end + pcie_.latency(), length);
  events_.at(here, *this, host_fetched, fetches_.take(request));
}

void FrameNode::on_fetched(uint32_t slot) {
  const HostFetch request = fetches_[slot];
  fetches_.give_back(slot);
  const spin::DmaId dma = std::visit([](const auto& fetch) { return portals::perform(fetch); }, request);
  frames::Actions actions;
  nic_->on_dma_done(dma, actions);
  perform(actions);
}

void FrameNode::perform(const spin::LocalAtomic& atomic) { hpus_->resume(atomic.her, portals::perform(atomic)); }

void FrameNode::perform(const spin::StoreLocal& store) { portals::perform(store); }

}  // namespace spinloom::simulated
