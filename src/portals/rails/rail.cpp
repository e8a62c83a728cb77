#include "portals/rails/rail.hpp"

#include <algorithm>
#include <utility>

namespace spinloom::rails {
namespace {

constexpr uint32_t queue_slots = 1 << 16;
constexpr Time stall_min{50'000'000'000};  // 50 ms
constexpr int64_t stall_factor = 16;  // a rail stalls after so many times the time that its transfers should take

}  // namespace

Result<std::unique_ptr<Rail>> Rail::open(portals::Interface& interface, Options options) {
  std::unique_ptr<Rail> rail(new Rail(interface, std::move(options)));
  rail->reaches_ = rail->options_.facts.reaches;
  rail->reaches_.resize(rail->options_.ranks, rail->options_.facts.reaches.empty());
  rail->peer_loads_.resize(rail->options_.ranks);
  SPL_ASSIGN(rail->queue_, interface.eq_alloc(queue_slots));
  const RailPortals& portals = rail->options_.portals;
  for (const nic::PortalIndex portal : {portals.tags, portals.words, portals.keys}) {
    rail->spend_call_time();
    SPL_ASSIGN(const nic::PortalIndex allocated,
               interface.pt_alloc(rail->queue_, {.flow_control = false, .index = portal}));
    SPL_ASSERT(allocated == portal, "another portal table entry than the wanted one");
  }
  return rail;
}

Status Rail::close() {
  const RailPortals& portals = options_.portals;
  for (const nic::PortalIndex portal : {portals.tags, portals.words, portals.keys}) {
    spend_call_time();
    SPL_TRY(interface_.pt_free(portal));
  }
  for (const RailCounter counter : idle_counters_) SPL_TRY(interface_.ct_free(counter.id));
  idle_counters_.clear();
  return interface_.eq_free(queue_);
}

void Rail::begin_transfer(uint32_t rank, uint64_t bytes) {
  PeerLoad& load = peer_loads_[rank];
  if (load.transfers++ == 0) load.since = interface_.port().now();
  load.bytes += bytes;
  if (under_way_bytes_ == 0) measuring_since_.reset();
  if (!measuring_since_) ended_bytes_ = 0;
  under_way_bytes_ += bytes;
}

void Rail::fail_transfer(uint32_t rank, uint64_t bytes) {
  --peer_loads_[rank].transfers;
  peer_loads_[rank].bytes -= bytes;
  under_way_bytes_ -= bytes;
}

bool Rail::is_stalled(uint32_t rank) const {
  const PeerLoad& load = peer_loads_[rank];
  if (load.transfers == 0) return false;
  const Time expected = byte_time_.time_of(Bytes{static_cast<int64_t>(under_way_bytes_)});
  return interface_.port().now() - load.since > std::max(stall_min, expected * stall_factor);
}

// While a rail is busy, the bytes that it moves between the ends of two transfers took the time between these ends. An
// end for which no caller waited may have been long ago, and ends no measurement. A new measurement counts for a
// quarter.
// The time of a stall says nothing about the speed either: a rail that seemed so slow would get nothing ever again.
void Rail::end_transfer(uint32_t rank, uint64_t bytes, bool seen_at_once) {
  if (is_stalled(rank)) {
    measuring_since_.reset();
    ended_bytes_ = 0;
  }
  fail_transfer(rank, bytes);
  peer_loads_[rank].since = interface_.port().now();
  carried_bytes_ += bytes;
  ended_bytes_ += bytes;
  if (!seen_at_once) return;
  const Time now = interface_.port().now();
  if (measuring_since_) {
    busy_time_ += now - *measuring_since_;
    busy_bytes_ += ended_bytes_;
  }
  measuring_since_ = now;
  ended_bytes_ = 0;
  if (busy_bytes_ < learn_from_bytes || busy_time_.ps <= 0) return;
  constexpr int64_t unit_bytes = 1 << 20;
  const auto measured_ps =
      static_cast<int64_t>(static_cast<__int128>(busy_time_.ps) * unit_bytes / static_cast<int64_t>(busy_bytes_));
  const int64_t learnt_ps = byte_time_.time_of(Bytes{unit_bytes}).ps;
  byte_time_ =
      Rate(std::max<int64_t>(has_learnt_speed_ ? (3 * learnt_ps + measured_ps) / 4 : measured_ps, 1), unit_bytes);
  has_learnt_speed_ = true;
  busy_time_ = {};
  busy_bytes_ = 0;
}

Status Rail::tell(uint32_t rank, uint64_t match_bits, uint64_t word, uint64_t user_ptr) {
  nic::Put put;
  put.target = {rank};
  put.portal = portals().keys;
  put.match_bits = match_bits;
  put.hdr_data = word;
  put.ack_request = nic::AckRequest::ack;
  put.queue = queue_;
  put.event_send_disable = true;
  put.event_success_disable = true;
  put.user_ptr = user_ptr;
  spend_call_time();
  return interface_.put(put);
}

Result<RailCounter> Rail::take_counter() {
  if (!idle_counters_.empty()) {
    const RailCounter counter = idle_counters_.back();
    idle_counters_.pop_back();
    return counter;
  }
  spend_call_time();
  SPL_ASSIGN(const nic::CounterId id, interface_.ct_alloc(UINT32_MAX, true));
  return RailCounter{id, 0};
}

std::vector<RailLoad> loads_of(const std::vector<std::unique_ptr<Rail>>& rails, uint32_t rank) {
  std::vector<RailLoad> loads;
  const bool all_stall = std::all_of(rails.begin(), rails.end(),
                                     [&](const auto& rail) { return !rail->reaches(rank) || rail->is_stalled(rank); });
  for (const auto& rail : rails) {
    loads.push_back({rail->byte_time(), {}, rail->reaches(rank) && (all_stall || !rail->is_stalled(rank))});
  }
  level_speeds(loads);
  for (size_t rail = 0; rail < loads.size(); ++rail) {
    const Bytes under_way{static_cast<int64_t>(rails[rail]->under_way_bytes() + rails[rail]->reserved_bytes())};
    loads[rail].free_after = loads[rail].byte_time.time_of(under_way);
  }
  return loads;
}

}  // namespace spinloom::rails
