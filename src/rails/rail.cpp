#include "rails/rail.hpp"

#include <algorithm>

namespace spinloom::rails {
namespace {

constexpr uint32_t queue_slots = 1 << 16;

}  // namespace

Result<std::unique_ptr<Rail>> Rail::open(portals::Interface& interface, Options options) {
  std::unique_ptr<Rail> made(new Rail(interface, std::move(options)));
  made->reaches_ = made->options_.facts.reaches;
  made->reaches_.resize(made->options_.ranks, made->options_.facts.reaches.empty());
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

void Rail::begin(uint64_t bytes) {
  if (under_way_bytes_ == 0) busy_since_ = interface_.port().now();
  under_way_bytes_ += bytes;
}

// Many transfers may be seen to end at once, so single ones say little. A new measurement counts for a quarter.
void Rail::ended(uint64_t bytes) {
  under_way_bytes_ -= bytes;
  carried_bytes_ += bytes;
  moved_bytes_ += bytes;
  const Time now = interface_.port().now();
  const Time taken = busy_ + (now - busy_since_);
  if (under_way_bytes_ == 0) busy_ = taken;
  if (moved_bytes_ < learn_from_bytes || taken.ps <= 0) return;
  constexpr int64_t unit_bytes = 1 << 20;
  const auto measured =
      static_cast<int64_t>(static_cast<__int128>(taken.ps) * unit_bytes / static_cast<int64_t>(moved_bytes_));
  const int64_t before = byte_time_.time_of(Bytes{unit_bytes}).ps;
  byte_time_ = Rate(std::max<int64_t>(learnt_ ? (3 * before + measured) / 4 : measured, 1), unit_bytes);
  learnt_ = true;
  busy_since_ = now;
  busy_ = {};
  moved_bytes_ = 0;
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

}  // namespace spinloom::rails
