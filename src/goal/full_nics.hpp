// FullNics - Nics as simulated nodes: packets on links, packet buffers, DMA over PCIe; real bytes move.
//
// Contract: as Nics. Every rank has a sim::Node from the beginning, with the profile's packets and HPUs.
// Threads: one owner. Time: modelled.
#pragma once

#include <memory>
#include <optional>

#include "goal/nics.hpp"
#include "sim/profile.hpp"
#include "sim/world.hpp"

namespace spinloom::goal {

class FullNics final : public Nics {
 public:
  // `network`: what is between the NICs; none: one switch.
  static Result<std::unique_ptr<FullNics>> create(const sim::Profile& profile, uint32_t ranks, const Setup& setup,
                                                  const std::optional<network::Config>& network = {});

  [[nodiscard]] sim::EventQueue& clock() override { return world_->events(); }
  [[nodiscard]] portals::Port& port(uint32_t rank) override { return world_->node(rank); }
  void watch(Watcher watcher) override;
  void release(uint32_t) override {}
  [[nodiscard]] uint64_t atomic_bytes_most() const override { return atomic_bytes_of(profile_); }
  [[nodiscard]] Status trouble() const override;

 private:
  FullNics(const sim::Profile& profile, uint32_t ranks);

  sim::Profile profile_;
  uint32_t ranks_;
  const std::vector<hpu::Image> images_;  // none
  std::unique_ptr<sim::World> world_;
};

}  // namespace spinloom::goal
