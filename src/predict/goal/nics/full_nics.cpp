#include "predict/goal/nics/full_nics.hpp"

#include <algorithm>
#include <utility>

namespace spinloom::goal {
namespace {

simulated::Profile without_handlers(simulated::Profile profile) {
  profile.memory.state_bytes = std::min<int64_t>(profile.memory.state_bytes, 4096);
  return profile;
}

}  // namespace

FullNics::FullNics(const simulated::Profile& profile, simulated::Network::Switches switches)
    : profile_(without_handlers(profile)), network_(clock_, profile_, {}, std::move(switches)) {}

Result<std::unique_ptr<FullNics>> FullNics::create(const simulated::Profile& profile, uint32_t ranks,
                                                   const Setup& setup, const std::optional<network::Config>& network,
                                                   const Sample& sample) {
  SPL_ASSIGN(auto switches, simulated::Network::switches_of(profile, network, ranks));
  std::unique_ptr<FullNics> nics(new FullNics(profile, std::move(switches)));
  simulated::NodeOptions options;
  options.hpus = static_cast<uint32_t>(profile.hpu.count);
  options.payload_bytes = static_cast<uint32_t>(profile.link.payload);
  nics->nodes_.resize(ranks);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    if (!sample.has(rank)) continue;
    SPL_ASSIGN(nics->nodes_[rank], simulated::Node::create(nics->clock_, nics->network_, nics->profile_,
                                                           nic::Rank{rank}, options, nics->images_));
    for (const nic::Command& command : setup(rank)) nics->nodes_[rank]->submit(command);
  }
  while (nics->clock_.step()) {
  }
  return nics;
}

void FullNics::watch(Watcher watcher) {
  for (uint32_t rank = 0; rank < nodes_.size(); ++rank) {
    if (nodes_[rank] != nullptr) nodes_[rank]->watch([watcher, rank] { watcher(rank); });
  }
}

void FullNics::connect(PacketSink& sink) {
  sink_ = &sink;
  network_.attach_others(*this);
}

void FullNics::inject(std::vector<nic::Packet> packets, Time at, std::function<void()> sent) {
  network_.enter(std::move(packets), at, std::move(sent));
}

nic::NicLimits FullNics::limits_outside() const {
  nic::NicLimits limits;
  limits.payload_bytes = static_cast<uint32_t>(profile_.link.payload);
  return limits;
}

Status FullNics::trouble() const {
  for (uint32_t rank = 0; rank < nodes_.size(); ++rank) {
    if (nodes_[rank] != nullptr) SPL_TRY(trouble_of(rank, nodes_[rank]->nic()));
  }
  return {};
}

}  // namespace spinloom::goal
