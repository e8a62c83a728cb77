// Network - links between simulated NICs: line rate, latency, switches, and packets out of order when asked.
//
// Contract: each node injects its packets one after the other at the line rate and receives them one after the other
//   at the line rate; alone, the first byte arrives switch + wire later, the last byte payload * byte_time
//   after it; packets of several senders to one node queue at the switch. With Switches, a packet is at its first
//   switch switch + wire after it has left, goes on by the rules of simulated/network/network.hpp, and queues at its
//   last one. With a reorder window of N, the packets of a message leave in a seeded order in which no more than N
//   packets are in play at once; the first and the last packet keep their places (SC'19 paper, section 2.1.2: the
//   network delivers header and completion packets first and last) unless `reorder_all`.
//   A switch may have processors: a Receiver attached under the switch's own rank, rank_of_switch(). It gets the
//   packets that match the rules installed at the switch, and those addressed to its rank, when their first byte is at
//   the switch; what it injects leaves by the switch's link to the target's switch, to a neighbour or to a host, as
//   soon as that link is free, and has been sent when its last byte is on that link. All other packets pass as if it
//   were not there. With a bridge, the ranks are in several fabrics, each a switch of its own, and gateways pass
//   packets between them (bridge.hpp).
// Invariants: (1) every packet arrives exactly once; (2) the order of a message's packets depends on
//   (seed, sender, message, number of packets, window, reorder_all) only, never on what was sent before; (3) a packet
//   that a switch's processors send is never taken by the same switch.
// Threads: one owner. Time: virtual.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "nic/portals/action.hpp"
#include "nic/spin/slab.hpp"
#include "simulated/network/network.hpp"
#include "simulated/node/event_queue.hpp"
#include "simulated/node/flow_table.hpp"
#include "simulated/node/profile.hpp"
#include "simulated/node/resource.hpp"

namespace spinloom::simulated {

struct Ordering {
  uint32_t window = 1;  // packets of a message in play at once; 1: packets keep their order
  bool reorder_all = false;
  uint64_t seed = 1;
};

// The order in which the `count` packets of a message leave: element i is the index of the packet that leaves i-th.
[[nodiscard]] std::vector<uint32_t> departure_order(uint32_t count, const Ordering& ordering, nic::Rank source,
                                                    uint64_t message);

struct Arrival {
  nic::Packet packet;
  Time last_byte;
  std::vector<uint8_t> bytes;  // the payload as read from the sender's buffer
};

class Receiver {
 public:
  virtual void on_arrival(std::unique_ptr<Arrival> arrival) = 0;

 protected:
  ~Receiver() = default;
};

// Several fabrics and the gateways between them.
struct BridgeConfig {
  std::vector<uint32_t> fabric = {};  // the fabric of each rank
  uint32_t gateways = 1;
  bool stores = false;  // true: gateways store whole messages; false: packets go on as they come
  Time forward{};  // time of a gateway's processor for each packet
  Time hold_max{1'000'000'000};  // 1 ms: no part of a message is stored for longer
};
class Bridge;

class Network final : EventTarget {
 public:
  // The switches between the NICs' own links; none: one switch, at which packets wait only for the receiver's link.
  using Switches = std::optional<network::Network>;
  Network(EventQueue& events, const Profile& profile, const Ordering& ordering, Switches switches = {},
          const std::optional<BridgeConfig>& bridge = {});
  ~Network();
  // Makes the switches for `ranks` ranks, whose links to their switches are those of the profile. Only fixed routing is
  // accepted: headers of one rank to another match in the order in which they were sent, and no NIC here puts them in
  // order.
  static Result<Switches> switches_of(const Profile& profile, const std::optional<network::Config>& config,
                                      uint32_t ranks);

  void attach(nic::Rank rank, Receiver& receiver);
  // `receiver` takes the packets to ranks that are not attached. No link at their end makes them wait.
  void attach_others(Receiver& receiver) { default_receiver_ = &receiver; }
  // Sends as inject() does, but from a rank that is not attached: its packets are on its link from `ready` on, in
  // message order, even if packets of other calls are on it.
  void enter(std::vector<nic::Packet> packets, Time ready, std::function<void()> sent);
  [[nodiscard]] const Switches& switches() const { return switches_; }
  [[nodiscard]] const Bridge* bridge() const { return bridge_.get(); }  // null: all ranks are in one fabric
  [[nodiscard]] bool is_switch(nic::Rank rank) const {
    return switches_.has_value() && rank.value >= switches_->ranks() &&
           rank.value - switches_->ranks() < switches_->switches();
  }
  [[nodiscard]] nic::Rank rank_of_switch(uint32_t at_switch) const { return nic::Rank{switches_->ranks() + at_switch}; }
  // Installs a rule at a switch. Refused if the switch has no processors, or if headers may come late: a message's
  // header decides if the rule takes its packets.
  Status install(uint32_t at_switch, const FlowRule& rule);
  // Bytes of payload that have begun to cross links so far. carried_bytes(): each link between switches.
  // delivered_bytes(): all links to hosts.
  [[nodiscard]] const std::vector<uint64_t>& carried_bytes() const { return carried_bytes_; }
  [[nodiscard]] uint64_t delivered_bytes() const { return delivered_bytes_; }
  // Sends the packets of one message, in message order, from `ready` on. Each payload is read when its packet leaves;
  // `sent` runs when the last packet has left.
  void inject(nic::Rank source, std::vector<nic::Packet> packets, Time ready, std::function<void()> sent);

 private:
  struct Departure {
    nic::Packet packet;
    std::function<void()> sent;  // called after the last packet of the message
  };
  struct Crossing {
    std::unique_ptr<Arrival> arrival;
    uint32_t switch_number = 0;
  };
  enum Code : uint32_t { departs, leaves, sent_all, crosses, arrives };
  void on_event(uint32_t code, uint64_t argument) override;
  void depart(uint32_t slot);
  // Sends a packet of a switch's processors.
  void leave(uint32_t slot);
  void cross(uint32_t slot);
  // Takes a packet from its switch towards its target, and returns the time at which its first byte is on the link.
  Time forward(uint32_t slot);
  [[nodiscard]] bool is_taken(const Crossing& crossing);
  // True if a receiver is attached under this rank.
  [[nodiscard]] bool is_attached(uint32_t rank) const {
    return rank < receivers_.size() && receivers_[rank] != nullptr;
  }
  void inject_on(Resource& link, std::vector<nic::Packet> packets, const std::vector<uint32_t>& order, Time ready,
                 std::function<void()> sent);
  Time eject(Time head, std::unique_ptr<Arrival> arrival);
  [[nodiscard]] std::unique_ptr<Arrival> arrival_of(const nic::Packet& packet) const;
  Time drop(std::unique_ptr<Arrival> arrival, const char* why) const;
  void arrive(std::unique_ptr<Arrival> arrival);
  [[nodiscard]] Time duration_of(const nic::Packet& packet) const;

  EventQueue& events_;
  decltype(Profile::link) link_;
  Ordering ordering_;
  Switches switches_;
  std::unique_ptr<Bridge> bridge_;
  std::vector<Resource> injectors_;  // each rank's link into the switch
  std::vector<Resource> ejectors_;  // each rank's link out of the switch
  std::vector<Receiver*> receivers_;  // one for each rank
  Receiver* default_receiver_ = nullptr;
  std::vector<FlowTable> flows_;  // one for each switch
  std::vector<uint64_t> carried_bytes_;  // one for each link between switches
  uint64_t delivered_bytes_ = 0;
  nic::Slab<Departure> departures_;
  nic::Slab<Crossing> crossings_;
  nic::Slab<std::unique_ptr<Arrival>> arrivals_;
};

}  // namespace spinloom::simulated
