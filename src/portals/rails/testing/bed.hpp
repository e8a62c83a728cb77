// RailBed - for tests: ranks with several NICs each, every rail a loopback network of its own.
//
// Contract: open() makes a Rails for each rank. run_until() lets networks and ranks go on, in an order that the seed
//   chooses, until `done` is true; false: nothing goes on any more. kill_rail() cuts the rail between all ranks, as a
//   link that is lost: what is under way vanishes, and each NIC hears of the loss. mend_rail() brings it back.
// Threads: one owner. Time: that of the loopbacks, which models nothing.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/random.hpp"
#include "portals/rails/rails.hpp"
#include "portals/testbed/loopback.hpp"

namespace spinloom::rails {

class RailBed {
 public:
  struct Options {
    uint32_t ranks = 2;
    uint32_t rails = 2;
    uint64_t seed = 1;
    RailsOptions rails_options;
  };
  explicit RailBed(const Options& options) : options_(options), random_(options.seed) {
    for (uint32_t rail = 0; rail < options_.rails; ++rail) {
      testbed::LoopbackOptions loopback;
      loopback.ranks = options_.ranks;
      loopback.racy_seed = options_.seed + rail;
      loopback.headers_in_order = true;
      loopback.nic.payload_bytes = 4096;
      networks_.push_back(std::move(testbed::Loopback::create(loopback).value()));
      for (uint32_t rank = 0; rank < options_.ranks; ++rank) {
        interfaces_.push_back(std::make_unique<portals::Interface>(networks_[rail]->port(rank)));
      }
    }
  }

  Status open() {
    RailsOptions rails_options = options_.rails_options;
    rails_options.ranks = options_.ranks;
    rails_options.portals = {{60}, {61}, {62}};
    rails_options.pause = [] { return fail(Code::stalled, "tests do not wait inside"); };
    for (uint32_t rank = 0; rank < options_.ranks; ++rank) {
      std::vector<portals::Interface*> nics;
      for (uint32_t rail = 0; rail < options_.rails; ++rail) {
        nics.push_back(interfaces_[rail * options_.ranks + rank].get());
      }
      SPL_ASSIGN(auto rails, Rails::open(nics, rails_options));
      ranks_.push_back(std::move(rails));
    }
    return {};
  }

  [[nodiscard]] Rails& rank(uint32_t rank) { return *ranks_.at(rank); }

  bool run_until(const std::function<bool()>& done) {
    for (uint32_t idle = 0; idle < 2;) {
      if (done()) return true;
      bool has_moved = false;
      const uint64_t steps = 1 + random_.below(64);
      for (uint64_t step = 0; step < steps; ++step) {
        const uint32_t first = static_cast<uint32_t>(random_.below(options_.rails));
        bool stepped = false;
        for (uint32_t i = 0; i < options_.rails && !stepped; ++i) {
          const uint32_t rail = (first + i) % options_.rails;
          stepped = networks_[rail]->step();
        }
        has_moved = has_moved || stepped;
        if (!stepped) break;
      }
      const uint32_t first = static_cast<uint32_t>(random_.below(options_.ranks));
      for (uint32_t i = 0; i < options_.ranks; ++i) {
        const auto progress = ranks_[(first + i) % options_.ranks]->progress();
        if (!progress) {
          error_ = progress.error().message;
          return false;
        }
        // Only a round in which no rank has made progress shows that nothing goes on.
        has_moved = has_moved || *progress;
        if (has_moved && random_.below(2) == 0) break;
      }
      idle = has_moved ? 0 : idle + 1;
    }
    return done();
  }

  void kill_rail(uint32_t rail) { networks_[rail]->cut_links(); }
  void mend_rail(uint32_t rail) { networks_[rail]->mend_links(); }
  [[nodiscard]] const std::string& trouble() const { return error_; }
  [[nodiscard]] Random& random() { return random_; }
  [[nodiscard]] testbed::Loopback& network(uint32_t rail) { return *networks_[rail]; }

 private:
  Options options_;
  Random random_;
  std::vector<std::unique_ptr<testbed::Loopback>> networks_;
  std::vector<std::unique_ptr<portals::Interface>> interfaces_;  // one for each rail and rank
  std::vector<std::unique_ptr<Rails>> ranks_;
  std::string error_;
};

}  // namespace spinloom::rails
