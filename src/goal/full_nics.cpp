#include "goal/full_nics.hpp"

#include <algorithm>
#include <utility>

namespace spinloom::goal {

FullNics::FullNics(const sim::Profile& profile, uint32_t ranks) : profile_(profile), ranks_(ranks) {
  profile_.memory.state_bytes = std::min<int64_t>(profile_.memory.state_bytes, 4096);  // nobody runs handlers
}

Result<std::unique_ptr<FullNics>> FullNics::create(const sim::Profile& profile, uint32_t ranks, const Setup& setup,
                                                   const std::optional<network::Config>& network) {
  std::unique_ptr<FullNics> made(new FullNics(profile, ranks));
  sim::WorldOptions options;
  options.ranks = ranks;
  options.network = network;
  options.node.hpus = static_cast<uint32_t>(profile.hpu.count);
  options.node.payload_bytes = static_cast<uint32_t>(profile.link.payload);
  SPL_ASSIGN(made->world_, sim::World::create(made->profile_, made->images_, options));
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    for (const nic::Command& command : setup(rank)) made->world_->node(rank).submit(command);
  }
  made->world_->drain();
  return made;
}

void FullNics::watch(Watcher watcher) {
  for (uint32_t rank = 0; rank < ranks_; ++rank) world_->node(rank).watch([watcher, rank] { watcher(rank); });
}

Status FullNics::trouble() const {
  for (uint32_t rank = 0; rank < ranks_; ++rank) SPL_TRY(trouble_of(rank, world_->node(rank).nic()));
  return {};
}

}  // namespace spinloom::goal
