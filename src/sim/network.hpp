// Network - links between simulated NICs: line rate, latency, and packets out of order when asked.
//
// Contract: each node injects its packets one after the other at the line rate and receives them one after the other
//   at the line rate; alone, the first byte arrives switch + wire later, the last byte payload * byte_time
//   after it; packets of several senders to one node queue at the switch. With a reorder window of N, the packets
//   of a message leave in a seeded order in which no more than N packets are in play at once; the first and
//   the last packet keep their places (SC'19 paper, section 2.1.2: the network delivers header and completion
//   packets first and last) unless `reorder_all`.
// Invariants: (1) every packet arrives exactly once; (2) the order of a message's packets depends on
//   (seed, sender, message, number of packets, window) only, never on what was sent before.
// Threads: one owner. Time: virtual.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "nic/action.hpp"
#include "nic/slab.hpp"
#include "sim/event_queue.hpp"
#include "sim/profile.hpp"
#include "sim/resource.hpp"

namespace spinloom::sim {

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

class Network final : EventTarget {
 public:
  Network(EventQueue& events, const Profile& profile, const Ordering& ordering);

  void attach(nic::Rank rank, Receiver& receiver);
  // Sends the packets of one message, in message order, from `ready` on. Each payload is read when its packet leaves;
  // `sent` runs when the last packet has left.
  void inject(nic::Rank source, std::vector<nic::Packet> packets, Time ready, std::function<void()> sent);

 private:
  struct Departure {
    nic::Packet packet;
    std::function<void()> sent;  // after the last packet of the message
  };
  enum Code : uint32_t { departs, sent_all, arrives };
  void on_event(uint32_t code, uint64_t argument) override;
  [[nodiscard]] Time duration_of(const nic::Packet& packet) const;

  EventQueue& events_;
  decltype(Profile::link) link_;
  Ordering ordering_;
  std::vector<Resource> injectors_;   // by rank: the link into the switch
  std::vector<Resource> ejectors_;    // by rank: the link out of the switch
  std::vector<Receiver*> receivers_;  // by rank
  nic::Slab<Departure> departures_;
  nic::Slab<std::unique_ptr<Arrival>> arrivals_;
};

}  // namespace spinloom::sim
