#include "app/studies/frame_machine.hpp"

#include <algorithm>
#include <cstring>

#include "ethernet/device/rule_text.hpp"
#include "spinloom/frame.h"

namespace spinloom::app {
namespace {

// A flag of spinloom/frame.h as the host reads it.
uint64_t flag_at(const uint8_t* place) {
  uint64_t flag = 0;
  std::memcpy(&flag, place, sizeof flag);
  return flag;
}

}  // namespace

Result<std::unique_ptr<FrameMachine>> FrameMachine::create(const Setup& setup, simulated::FrameHost& host,
                                                           const FrameMachineOptions& options) {
  SPL_ASSIGN(auto loaded, load_images(setup.images));
  const auto hpus = static_cast<uint32_t>(setup.profile.hpu.count);
  if (hpus > SPL_HOST_HPUS) {
    return fail(Code::unsupported, "hpu.count is ", hpus, ", only ", SPL_HOST_HPUS, " HPUs can ask the host");
  }
  std::unique_ptr<FrameMachine> machine(new FrameMachine(std::move(loaded), hpus, options.buffer_bytes));
  simulated::FrameNodeOptions node;
  node.slice_cycles = setup.slice_cycles;
  SPL_ASSIGN(machine->node_,
             simulated::FrameNode::create(machine->events_, setup.profile, host, machine->loaded_.images, node));
  if (options.image.empty()) return machine;
  const auto& handlers = machine->loaded_.handlers;
  const auto image = std::find_if(handlers.begin(), handlers.end(),
                                  [&](const strategies::HandlerImage& each) { return each.name == options.image; });
  if (image == handlers.end()) {
    return fail(Code::environment, "there is no handler image ", options.image, "; 'make setup' builds it");
  }
  constexpr uint64_t alignment = 64;
  machine->state_offset_ = div_ceil(options.constants.size(), alignment) * alignment;
  frames::ContextOptions context;
  context.handlers.image = image->index;
  context.handlers.header_entry = image->header_entry;
  context.handlers.payload_entry = image->payload_entry;
  context.handlers.completion_entry = image->completion_entry;
  context.handlers.constants = {0, options.constants.size()};
  context.handlers.state = {machine->state_offset_, options.state_bytes};
  context.handlers.handler_host_start = reinterpret_cast<uint64_t>(machine->memory_.data());
  context.handlers.handler_host_length = machine->memory_.size();
  frames::Nic& nic = machine->node_->nic();
  SPL_TRY(nic.install(spin::ContextId{0}, context));
  std::copy(options.constants.begin(), options.constants.end(), machine->node_->nic_memory().begin());
  SPL_ASSIGN(auto rules, ethernet::rule_set_named(options.rules));
  SPL_TRY(nic.configure({std::move(rules)}));
  SPL_TRY(nic.activate(spin::ContextId{0}));
  return machine;
}

std::optional<uint32_t> FrameMachine::page_of_request(const uint8_t* place) const {
  if (place < memory_.data() || place >= memory_.data() + uint64_t{pages_} * page_bytes) return std::nullopt;
  const auto offset = static_cast<uint64_t>(place - memory_.data());
  if (offset % page_bytes != 0) return std::nullopt;
  return static_cast<uint32_t>(offset / page_bytes);
}

std::optional<uint32_t> FrameMachine::take_request(uint32_t hpu) {
  const uint64_t flag = flag_at(page(hpu));
  if (SPL_HOST_FLAG_ID(flag) == newest_request_[hpu]) return std::nullopt;
  newest_request_[hpu] = SPL_HOST_FLAG_ID(flag);
  return SPL_HOST_FLAG_LENGTH(flag);
}

void FrameMachine::answer(uint32_t hpu, uint32_t value) {
  const uint64_t flag = SPL_HOST_FLAG(newest_request_[hpu], value, hpu);
  std::vector<uint8_t> bytes(sizeof flag);
  std::memcpy(bytes.data(), &flag, sizeof flag);
  node_->write_nic(state_offset_ + offsetof(struct spl_host_data, response) + hpu * sizeof flag, std::move(bytes));
}

Status FrameMachine::check() const {
  const frames::Nic& nic = node_->nic();
  if (const uint64_t faults = nic.count(frames::Count::handler_faults); faults > 0) {
    return fail(Code::fault, faults, " handlers did not return: ", node_->handler_trouble());
  }
  if (const uint64_t failed = nic.count(frames::Count::handler_failed); failed > 0) {
    return fail(Code::fault, failed, " handlers said FAIL");
  }
  return {};
}

}  // namespace spinloom::app
