#include "live/bridge/bridge_forwarder.hpp"

#include <algorithm>
#include <utility>

namespace spinloom::live {
namespace {

constexpr uint64_t whole_bytes_max = 16 << 10;  // the longest payload of an atomic, which is not cut into pieces
constexpr uint64_t frame_overhead_max = 512;  // headers of a bridge frame and of its packet

}  // namespace

BridgeForwarder::BridgeForwarder(uint32_t rank, uint32_t program_count, const BridgeRoutes& routes,
                                 const BridgeOptions& options, BridgeLinks& links)
    : rank_(rank),
      program_count_(program_count),
      routes_(routes),
      options_(options),
      links_(links),
      left_(routes.ranks()) {}

void BridgeForwarder::forward(Time now, nic::Rank hop, const wire::BridgeHeader& header,
                              std::span<const uint8_t> bytes) {
  const uint32_t source = header.source.value, target = header.target.value;
  const bool known = source < left_.size() && target < left_.size();
  if (!known || routes_.previous_hop(rank_, source, target) != hop.value || !routes_.next_hop(rank_, source, target)) {
    ++counts_.refused;
    return;
  }
  if (header.kind != wire::BridgeKind::source_unreachable) note_credit(header);
  const bool about_leaving = header.kind == wire::BridgeKind::leave_done || header.kind == wire::BridgeKind::leave;
  if (left_[target] && !about_leaving) {  // the target takes nothing more, but may have to hear of departures
    ++counts_.late;
    return;
  }
  if (header.kind != wire::BridgeKind::packet) return pass(source, target, bytes);
  if (!admit(header, bytes.size())) {
    ++counts_.refused;
    return;
  }
  if (!options_.stores) return pass(source, target, bytes);
  const FlowKey key{source, target, static_cast<uint8_t>(header.traffic_class)};
  Flow& flow = flows_[key];
  if (flow.held.empty() && header.is_last_packet) return pass(source, target, bytes);
  if (flow.held.empty()) flow.held_since = now;
  release_at_ = std::min(release_at_, flow.held_since + options_.hold_max);
  flow.held.emplace_back(bytes.begin(), bytes.end());
  flow.held_bytes += bytes.size();
  ++held_frames_;
  ++counts_.held;
  const bool half = flow.held_bytes * 2 >= options_.window_bytes || flow.held.size() * 2 >= options_.window_frames;
  if (header.is_last_packet || half) release(key, flow);
}

void BridgeForwarder::note_left(nic::Rank rank) {
  left_[rank.value] = true;
  std::erase_if(flows_, [&](const auto& one) {
    const auto& [key, flow] = one;
    if (std::get<1>(key) != rank.value) return false;
    for (const auto& [number, bytes] : flow.in_flight) in_flight_bytes_ -= bytes;
    held_frames_ -= flow.held.size();
    return true;
  });
}

uint64_t BridgeForwarder::whole_until(uint32_t source, uint32_t target, uint8_t of) const {
  const auto found = flows_.find({source, target, of});
  if (found == flows_.end()) return 0;
  uint64_t number = found->second.credited;
  while (found->second.in_flight.contains(number)) ++number;
  return number;
}

// Returns true if the frame is new, not too long, and inside its flow's window. The frame then counts against the
// window until credit for it comes by.
bool BridgeForwarder::admit(const wire::BridgeHeader& header, uint64_t bytes) {
  Flow& flow = flows_[{header.source.value, header.target.value, static_cast<uint8_t>(header.traffic_class)}];
  if (bytes > std::max(options_.piece_bytes, whole_bytes_max) + frame_overhead_max) return false;
  if (header.sequence < flow.credited || header.sequence - flow.credited >= options_.window_frames) return false;
  if (!flow.in_flight.emplace(header.sequence, bytes).second) return false;
  in_flight_bytes_ += bytes;
  counts_.in_flight_bytes_peak = std::max(counts_.in_flight_bytes_peak, in_flight_bytes_);
  return true;
}

// Reads the credit in a frame: its source has taken frames that its target sent through this gateway.
void BridgeForwarder::note_credit(const wire::BridgeHeader& header) {
  for (uint8_t of = 0; of < header.received.size(); ++of) {
    const auto found = flows_.find({header.target.value, header.source.value, of});
    if (found == flows_.end()) continue;
    Flow& flow = found->second;
    while (!flow.in_flight.empty() && flow.in_flight.begin()->first < header.received[of]) {
      in_flight_bytes_ -= flow.in_flight.begin()->second;
      flow.credited = flow.in_flight.begin()->first + 1;
      flow.in_flight.erase(flow.in_flight.begin());
    }
  }
}

void BridgeForwarder::release(const FlowKey& key, Flow& flow) {
  const std::vector<std::vector<uint8_t>> held = std::exchange(flow.held, {});
  held_frames_ -= held.size();
  flow.held_bytes = 0;
  for (const std::vector<uint8_t>& bytes : held) pass(std::get<0>(key), std::get<1>(key), bytes);
}

bool BridgeForwarder::on_timer(Time now) {
  if (now < release_at_) return false;
  release_at_ = Time::never();
  bool happened = false;
  for (auto& [key, flow] : flows_) {
    if (flow.held.empty()) continue;
    if (now >= flow.held_since + options_.hold_max) {
      release(key, flow);
      happened = true;
    } else {
      release_at_ = std::min(release_at_, flow.held_since + options_.hold_max);
    }
  }
  return happened;
}

void BridgeForwarder::pass(uint32_t source, uint32_t target, std::span<const uint8_t> bytes) {
  const auto next = routes_.next_hop(rank_, source, target);
  if (!next || !links_.pass(nic::Rank{*next}, bytes)) {
    ++counts_.late;
    return;
  }
  ++counts_.frames;
  counts_.bytes += bytes.size();
}

bool BridgeForwarder::all_left() const {
  for (uint32_t rank = 0; rank < program_count_; ++rank) {
    if (rank != rank_ && !left_[rank]) return false;
  }
  return true;
}

}  // namespace spinloom::live
