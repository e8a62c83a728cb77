#include "simulated/node/frame_node.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "simulated/node/frame_codes.hpp"

namespace spinloom::simulated {
namespace {

constexpr int64_t frame_overhead_bytes = 24;  // preamble, checksum and gap
constexpr uint64_t frame_bytes_min = 60;    // shorter frames are padded

frames::Limits frame_limits_of(const Profile& profile, const FrameNodeOptions& options) {
  frames::Limits limits = options.limits;
  limits.hpus = static_cast<uint32_t>(profile.hpu.count);
  limits.message_queues = static_cast<uint32_t>(profile.scheduler.messages);
  limits.nic_memory_bytes = static_cast<uint64_t>(profile.memory.state_bytes);
  return limits;
}

}  // namespace

Result<std::unique_ptr<FrameNode>> FrameNode::create(EventQueue& events, const Profile& profile, FrameHost& host,
                                                     const std::vector<hpu::Image>& images,
                                                     const FrameNodeOptions& options) {
  if (options.slice_cycles == 0) return fail(Code::invalid, "a slice has at least one cycle");
  std::unique_ptr<FrameNode> node(new FrameNode(events, profile, host));
  SPL_ASSIGN(node->nic_, frames::Nic::create(frame_limits_of(profile, options)));
  const auto packet_bytes = node->nic_->packet_memory().bytes();
  if (packet_bytes > static_cast<uint64_t>(profile.memory.packet_buffer_bytes)) {
    return fail(Code::invalid, "the packet slots take ", packet_bytes,
                " B, the NIC has memory.packet_buffer_bytes = ", profile.memory.packet_buffer_bytes);
  }
  node->packet_memory_.resize(packet_bytes);
  SPL_ASSIGN(node->hpus_, HpuBank::create(events, *node, profile, node->nic_->limits().hpus, options.slice_cycles));
  node->hpus_->install(images);
  return node;
}

FrameNode::FrameNode(EventQueue& events, const Profile& profile, FrameHost& host)
    : events_(events),
      profile_(profile),
      host_(host),
      scheduler_cycle_(Rate::cycle_of(profile.scheduler.clock)),
      nic_memory_(static_cast<size_t>(profile.memory.state_bytes)),
      pcie_(profile),
      fabric_(profile, static_cast<uint32_t>(profile.hpu.count)) {}

Time FrameNode::cable_time(uint64_t bytes) const {
  return profile_.link.byte_time.time_of(
      Bytes{static_cast<int64_t>(std::max(bytes, frame_bytes_min)) + frame_overhead_bytes});
}

void FrameNode::send_from_far(FrameBytes frame) {
  const Service cable = cable_in_.serve(events_.now(), cable_time(frame.size()));
  const uint32_t slot = arriving_.take(std::make_shared<const FrameBytes>(std::move(frame)));
  events_.at(cable.end + profile_.link.wire, *this, at_the_nic, slot);
}

void FrameNode::on_arrival(uint32_t slot) {
  stages_ = {};
  stages_.arrived = events_.now();
  events_.at(matching_.serve(events_.now(), profile_.match.header).end, *this, match_ends, slot);
}

void FrameNode::on_matched(uint32_t slot) {
  current_frame_ = std::move(arriving_[slot]);
  arriving_.give_back(slot);
  stages_.matched = events_.now();
  frames::Actions actions;
  nic_->on_frame({spin::PayloadRef::Space::local, current_frame_->data(), current_frame_->size()}, actions);
  perform(actions);
  current_frame_ = nullptr;
}

// Serves the copy of a frame to packet memory. With frame.ingress_*, it takes
// min + ceil((n - bytes_min) * (max - min) / (bytes_max - bytes_min)) cycles; else the fabric's time.
Service FrameNode::ingress(Time now, uint64_t bytes) {
  const auto& rule = profile_.frame;
  if (!profile_.has_ingress()) return fabric_.packet_in(now, static_cast<int64_t>(bytes));
  const int64_t beyond = std::clamp(static_cast<int64_t>(bytes), rule.bytes_min, rule.bytes_max) - rule.bytes_min;
  const int64_t more = div_ceil(beyond * (rule.ingress_max - rule.ingress_min), rule.bytes_max - rule.bytes_min);
  return ingress_.serve(now, cycles(rule.ingress_min + more));
}

void FrameNode::on_stored(uint32_t slot) {
  const FrameCopy copy = std::move(frame_copies_[slot]);
  frame_copies_.give_back(slot);
  stages_.stored = events_.now();
  uint8_t* const place = packet_memory_.data() + copy.address;
  std::memcpy(place, copy.frame->data(), copy.frame->size());
  frames::Actions actions;
  nic_->on_stored(copy.packet, place, actions);
  perform(actions);
}

bool FrameNode::send_from_host(FrameBytes frame) {
  const uint32_t token = from_host_.take(std::make_shared<const FrameBytes>(std::move(frame)));
  const FrameBytes& bytes = *from_host_[token];
  frames::Actions actions;
  if (!nic_->on_host_frame({spin::PayloadRef::Space::local, bytes.data(), bytes.size()}, token, actions)) {
    from_host_.give_back(token);
    return false;
  }
  perform(actions);
  return true;
}

// Called when the last byte of a frame is on the cable.
void FrameNode::on_left(uint32_t slot) {
  const frames::EgressFrame frame = leaving_[slot];
  leaving_.give_back(slot);
  const uint32_t delivery = deliveries_.take(FrameBytes(frame.bytes.bytes, frame.bytes.bytes + frame.bytes.length));
  events_.at(events_.now() + profile_.link.wire, *this, at_far_end, delivery);
  if (!frame.dma.exists()) from_host_.give_back(static_cast<uint32_t>(frame.host_token));
  frames::Actions actions;
  nic_->on_transmitted(frame, actions);
  perform(actions);
}

void FrameNode::write_nic(uint64_t offset, std::vector<uint8_t> bytes) {
  SPL_ASSERT(offset <= nic_memory_.size() && bytes.size() <= nic_memory_.size() - offset, "NIC memory at ", offset);
  const Service link = pcie_.command(events_.now(), static_cast<int64_t>(bytes.size()));
  events_.at(link.end + profile_.host.command_latency, *this, nic_written, nic_writes_.take(offset, std::move(bytes)));
}

void FrameNode::on_event(uint32_t code, uint64_t argument) {
  const auto slot = static_cast<uint32_t>(argument);
  switch (static_cast<FrameCode>(code)) {
    case at_the_nic: return on_arrival(slot);
    case match_ends: return on_matched(slot);
    case frame_stored: return on_stored(slot);
    case frame_left: return on_left(slot);
    case at_far_end:
    case at_the_stack: {
      const FrameBytes frame = std::move(deliveries_[slot]);
      deliveries_.give_back(slot);
      if (code == at_far_end) return host_.on_far_frame(frame);
      return host_.on_stack_frame(frame);
    }
    case handler_is_done: return on_handler_done(slot);
    case write_read: return on_source_read(slot);
    case write_landed: return on_write_landed(slot);
    case write_known: return on_write_known(slot);
    case host_fetched: return on_fetched(slot);
    case nic_written: {
      const NicWrite write = std::move(nic_writes_[slot]);
      nic_writes_.give_back(slot);
      std::memcpy(nic_memory_.data() + write.offset, write.bytes.data(), write.bytes.size());
      return;
    }
  }
  SPL_ASSERT(false, "event code ", code);
}

}  // namespace spinloom::simulated
