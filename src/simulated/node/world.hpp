// World - one simulation: virtual time, networks, and some nodes that share handler images.
//
// A rank has one NIC, or one for each rail: rail 0 with the world's profile, and those of WorldOptions::more_rails.
// Each rail is a network of its own, with a node for each rank.
//
// Contract: make a World, take its nodes' ports, and run host programs against them one after the other. Each wait lets
//   virtual time go on for all. All modelled numbers are functions of the arguments.
// Threads: one owner; any number of Worlds side by side. Time: virtual.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "simulated/node/bridge.hpp"
#include "simulated/node/node.hpp"

namespace spinloom::simulated {

struct WorldOptions {
  uint32_t ranks = 2;
  NodeOptions node;
  Ordering ordering;
  std::optional<network::Config> network = {};  // none: all NICs of a rail are on one switch
  std::optional<BridgeConfig> bridge =
      {};  // none: all NICs of a rail are in one fabric; else each rail has its own gateways
  std::vector<Profile> more_rails = {};  // the profiles of further NICs of each rank
};

class World {
 public:
  // `profile` and `images` must outlive the world.
  static Result<std::unique_ptr<World>> create(const Profile& profile, const std::vector<hpu::Image>& images,
                                               const WorldOptions& options) {
    if (options.bridge.has_value()) {
      SPL_TRY(Bridge::check(*options.bridge, options.ranks));
      if (options.network.has_value()) return fail(Code::unsupported, "fabrics of a bridge have one switch each");
    }
    std::unique_ptr<World> world(new World(images, options));
    SPL_TRY(world->add_rail(profile, options));
    for (const Profile& more : world->more_rails_) SPL_TRY(world->add_rail(more, options));
    return world;
  }

  [[nodiscard]] uint32_t rails() const { return static_cast<uint32_t>(rails_.size()); }
  [[nodiscard]] Node& node(uint32_t rank, uint32_t rail = 0) { return *rails_.at(rail)->nodes.at(rank); }
  [[nodiscard]] const Node& node(uint32_t rank, uint32_t rail = 0) const { return *rails_.at(rail)->nodes.at(rank); }
  [[nodiscard]] Network& network() { return rails_.front()->network; }
  // Gives a switch of rail 0 processors: a node with the parts and prices of a NIC, whose ports are the switch's links.
  // The manager of the network chooses its program. Call it once for a switch at most.
  Result<Node*> equip(uint32_t at) {
    Network& rail_network = network();
    const Network::Switches& switches = rail_network.switches();
    if (!switches.has_value() || at >= switches->switches()) {
      return fail(Code::invalid, "there is no switch ", at, " to equip: the network has ",
                  switches.has_value() ? switches->switches() : 0, " switches");
    }
    const Profile& profile = rails_.front()->profile;
    SPL_ASSIGN(auto node,
               Node::create(events_, rail_network, profile, rail_network.rank_of_switch(at), node_, images_));
    return equipped_.emplace_back(std::move(node)).get();
  }
  [[nodiscard]] EventQueue& events() { return events_; }
  // Runs until nothing is under way.
  void drain() {
    while (events_.step()) {
    }
  }

 private:
  struct Rail {
    Rail(EventQueue& events, const Profile& profile_, const WorldOptions& options, Network::Switches switches)
        : profile(profile_), network(events, profile_, options.ordering, std::move(switches), options.bridge) {}
    const Profile& profile;
    Network network;
    std::vector<std::unique_ptr<Node>> nodes;  // one for each rank
  };

  World(const std::vector<hpu::Image>& images, const WorldOptions& options)
      : images_(images), node_(options.node), more_rails_(options.more_rails) {}
  Status add_rail(const Profile& profile, const WorldOptions& options) {
    SPL_ASSIGN(auto switches, Network::switches_of(profile, options.network, options.ranks));
    Rail& rail = *rails_.emplace_back(std::make_unique<Rail>(events_, profile, options, std::move(switches)));
    for (uint32_t rank = 0; rank < options.ranks; ++rank) {
      SPL_ASSIGN(auto node, Node::create(events_, rail.network, profile, nic::Rank{rank}, options.node, images_));
      rail.nodes.push_back(std::move(node));
    }
    return {};
  }

  const std::vector<hpu::Image>& images_;
  NodeOptions node_;
  std::vector<Profile> more_rails_;
  EventQueue events_;
  std::vector<std::unique_ptr<Rail>> rails_;
  std::vector<std::unique_ptr<Node>> equipped_;  // switches
};

}  // namespace spinloom::simulated
