// World - one simulation: virtual time, a network, and some nodes that share a profile and handler images.
//
// Contract: make a World, take its ports, run host programs against them one after the other. Each wait lets virtual
//   time go on for everybody. All modelled numbers are functions of the arguments.
// Threads: one owner; any number of Worlds side by side. Time: virtual.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sim/node.hpp"

namespace spinloom::sim {

struct WorldOptions {
  uint32_t ranks = 2;
  NodeOptions node;
  Ordering ordering;
  std::optional<network::Config> network = {};  // none: all NICs are on one switch
};

class World {
 public:
  // `profile` and `images` must outlive the world.
  static Result<std::unique_ptr<World>> create(const Profile& profile, const std::vector<hpu::Image>& images,
                                               const WorldOptions& options) {
    SPL_ASSIGN(auto switches, Network::switches_of(profile, options.network, options.ranks));
    std::unique_ptr<World> world(new World(profile, images, options, std::move(switches)));
    for (uint32_t rank = 0; rank < options.ranks; ++rank) {
      SPL_ASSIGN(auto node,
                 Node::create(world->events_, world->network_, profile, nic::Rank{rank}, options.node, images));
      world->nodes_.push_back(std::move(node));
    }
    return world;
  }

  [[nodiscard]] Node& node(uint32_t rank) { return *nodes_.at(rank); }
  [[nodiscard]] const Node& node(uint32_t rank) const { return *nodes_.at(rank); }
  [[nodiscard]] Network& network() { return network_; }
  // Gives a switch of the network an execution context: the parts and prices of a NIC, its ports the switch's links.
  // Its program is that of whoever manages the network. Once for a switch.
  Result<Node*> equip(uint32_t at) {
    const Network::Switches& switches = network_.switches();
    if (!switches.has_value() || at >= switches->switches()) {
      return fail(Code::invalid, "there is no switch ", at, " to equip: the network has ",
                  switches.has_value() ? switches->switches() : 0, " switches");
    }
    SPL_ASSIGN(auto node, Node::create(events_, network_, profile_, network_.rank_of_switch(at), node_, images_));
    return equipped_.emplace_back(std::move(node)).get();
  }
  [[nodiscard]] EventQueue& events() { return events_; }
  // Runs until nothing is under way.
  void drain() {
    while (events_.step()) {
    }
  }

 private:
  World(const Profile& profile, const std::vector<hpu::Image>& images, const WorldOptions& options,
        Network::Switches switches)
      : profile_(profile),
        images_(images),
        node_(options.node),
        network_(events_, profile, options.ordering, std::move(switches)) {}

  const Profile& profile_;
  const std::vector<hpu::Image>& images_;
  NodeOptions node_;
  EventQueue events_;
  Network network_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::unique_ptr<Node>> equipped_;  // switches
};

}  // namespace spinloom::sim
