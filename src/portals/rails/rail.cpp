#include "portals/rails/rail.hpp"

#include <algorithm>
#include <utility>

namespace spinloom::rails {
namespace {

constexpr uint32_t queue_slots = 1 << 16;
constexpr Time stall_least{50'000'000'000};  // 50 ms
constexpr int64_t stall_times = 16;  // a rail stalls after so many times the time that its transfers should take

}  // namespace

Result<std::unique_ptr<Rail>> Rail::open(portals::Interface& interface, Options options) {
  std::unique_ptr<Rail> made(new Rail(interface, std::move(options)));
  made->reaches_ = made->options_.facts.reaches;
  made->reaches_.resize(made->options_.ranks, made->options_.facts.reaches.empty());
  made->pending_.resize(made->options_.ranks);
  SPL_ASSIGN(made->queue_, interface.eq_alloc(queue_slots));
  const RailPortals& portals = made->options_.portals;
  for (const nic::PortalIndex portal : {portals.tags, portals.words, portals.keys}) {
    made->spend();
    SPL_ASSIGN(const nic::PortalIndex taken, interface.pt_alloc(made->queue_, {.flow_control = false, .want = portal}));
    SPL_ASSERT(taken == portal, "another portal table entry than the wanted one");
  }
  return made;
}

Status Rail::close() {
  const RailPortals& portals = options_.portals;
  for (const nic::PortalIndex portal : {portals.tags, portals.words, portals.keys}) {
    spend();
    SPL_TRY(interface_.pt_free(portal));
  }
  for (const RailCounter counter : idle_counters_) SPL_TRY(interface_.ct_free(counter.id));
  idle_counters_.clear();
  return interface_.eq_free(queue_);
}

void Rail::begin(uint32_t rank, uint64_t bytes) {
  Pending& pending = pending_[rank];
  if (pending.transfers++ == 0) pending.since = interface_.port().now();
  pending.bytes += bytes;
  if (under_way_bytes_ == 0) measures_since_.reset();
  if (!measures_since_) measured_bytes_ = 0;
  under_way_bytes_ += bytes;
}

void Rail::failed(uint32_t rank, uint64_t bytes) {
  --pending_[rank].transfers;
  pending_[rank].bytes -= bytes;
  under_way_bytes_ -= bytes;
}

bool Rail::stalls(uint32_t rank) const {
  const Pending& pending = pending_[rank];
  if (pending.transfers == 0) return false;
  const Time expected = byte_time_.time_of(Bytes{static_cast<int64_t>(under_way_bytes_)});
  return interface_.port().now() - pending.since > std::max(stall_least, expected * stall_times);
}

// While a rail is busy, the bytes that it moves between the ends of two transfers took the time between these ends. An
// end for which no caller waited may have been long ago, and ends no measurement. A new measurement counts for a
// quarter.
// The time of a stall says nothing about the speed either: a rail that seemed so slow would get nothing ever again.
void Rail::ended(uint32_t rank, uint64_t bytes, bool seen_at_once) {
  if (stalls(rank)) {
    measures_since_.reset();
    measured_bytes_ = 0;
  }
  failed(rank, bytes);
  pending_[rank].since = interface_.port().now();
  carried_bytes_ += bytes;
  measured_bytes_ += bytes;
  if (!seen_at_once) return;
  const Time now = interface_.port().now();
  if (measures_since_) {
    measured_ += now - *measures_since_;
    earlier_bytes_ += measured_bytes_;
  }
  measures_since_ = now;
  measured_bytes_ = 0;
  if (earlier_bytes_ < learn_from_bytes || measured_.ps <= 0) return;
  constexpr int64_t unit_bytes = 1 << 20;
  const auto measured =
      static_cast<int64_t>(static_cast<__int128>(measured_.ps) * unit_bytes / static_cast<int64_t>(earlier_bytes_));
  const int64_t before = byte_time_.time_of(Bytes{unit_bytes}).ps;
  byte_time_ = Rate(std::max<int64_t>(learnt_ ? (3 * before + measured) / 4 : measured, 1), unit_bytes);
  learnt_ = true;
  measured_ = {};
  earlier_bytes_ = 0;
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
  spend();
  return interface_.put(put);
}

Result<RailCounter> Rail::take_counter() {
  if (!idle_counters_.empty()) {
    const RailCounter counter = idle_counters_.back();
    idle_counters_.pop_back();
    return counter;
  }
  spend();
  SPL_ASSIGN(const nic::CounterId made, interface_.ct_alloc(UINT32_MAX, true));
  return RailCounter{made, 0};
}

std::vector<RailLoad> loads_of(const std::vector<std::unique_ptr<Rail>>& rails, uint32_t rank) {
  std::vector<RailLoad> loads;
  const bool all_stall = std::all_of(rails.begin(), rails.end(),
                                     [&](const auto& rail) { return !rail->reaches(rank) || rail->stalls(rank); });
  for (const auto& rail : rails) {
    loads.push_back({rail->byte_time(), {}, rail->reaches(rank) && (all_stall || !rail->stalls(rank))});
  }
  level(loads);
  for (size_t rail = 0; rail < loads.size(); ++rail) {
    const Bytes under_way{static_cast<int64_t>(rails[rail]->under_way_bytes() + rails[rail]->promised_bytes())};
    loads[rail].free_after = loads[rail].byte_time.time_of(under_way);
  }
  return loads;
}

}  // namespace spinloom::rails
