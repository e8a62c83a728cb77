// Test hosts - three simulated ranks with the shipped handlers.
//
// Contract: a fixture for tests of objects over the Portals calls; each rank has an Interface in `hosts_`.
// Threads: tests run in one thread. Time: modelled.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "app/studies/setup.hpp"
#include "app/studies/testing/images.hpp"
#include "portals/interface/interface.hpp"
#include "portals/strategies/inbox.hpp"
#include "simulated/node/testing/profile.hpp"
#include "simulated/node/world.hpp"

namespace spinloom::app {

class ThreeHosts : public testing::Test {
 protected:
  static constexpr uint32_t ranks = 3;
  static constexpr strategies::HandlerCost cost{Time{100'000}, Time{20'000}};

  void SetUp() override {
    setup_.profile = simulated::test_profile();
    setup_.images = test_images(SPINLOOM_HANDLERS);
    setup_.hpus = 4;
    loaded_ = std::move(*load_images(setup_.images));
    simulated::WorldOptions options = world_options(setup_);
    options.ranks = ranks;
    world_ = std::move(*simulated::World::create(setup_.profile, loaded_.images, options));
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      hosts_.push_back(std::make_unique<portals::Interface>(world_->node(rank)));
    }
  }

  std::unique_ptr<strategies::Inbox> inbox_of(uint32_t rank, const strategies::Inbox::Options& options) {
    return std::move(*strategies::Inbox::create({*hosts_[rank], loaded_.handlers, facts_of(setup_), cost}, options));
  }

  app::Setup setup_;
  LoadedImages loaded_;
  std::unique_ptr<simulated::World> world_;
  std::vector<std::unique_ptr<portals::Interface>> hosts_;
};

}  // namespace spinloom::app
