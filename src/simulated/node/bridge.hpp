// Bridge - gateways between two or more simulated fabrics: each has a link into every fabric, and passes packets on.
//
// Contract: every rank is in one fabric. A packet to a rank of another fabric crosses its own, arrives at a gateway at
//   the line rate, takes `forward` of the gateway's processor, and leaves by the gateway's link into the target's
//   fabric.
//     cut-through:        the processor begins at the packet's first byte;
//     store-and-forward:  it begins when the last byte of the message's last packet is there, or `hold_max` after the
//                         first packet has come. So a message whose sender waits for others does not wait for ever.
//   Pairs of ranks are spread over the gateways. With L = switch + wire, G = byte_time, f = forward, a message that is
//   alone on equal links arrives at these times:
//     direct         first byte L,          last byte L + n G;
//     cut-through    first byte 2 L + f,    last byte 2 L + f + n G           for a packet of n bytes;
//     k packets      last packet's first byte 2 L + f + (k - 1) max(n G, f);
//     stored         the message's last byte 2 L + f + 2 N G                  for N bytes in packets with f <= n G.
// Invariants: (1) packets of one rank to another keep their order; (2) every packet leaves exactly once.
// Threads: one owner. Time: virtual.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "nic/spin/slab.hpp"
#include "simulated/node/event_queue.hpp"
#include "simulated/node/network.hpp"
#include "simulated/node/profile.hpp"
#include "simulated/node/resource.hpp"

namespace spinloom::simulated {

struct BridgeStatistics {
  uint64_t packets = 0;
  uint64_t bytes = 0;
  uint64_t held_bytes_peak = 0;  // the most bytes that all gateways have stored at a time
  Time busy{};  // the busy time of all gateways' processors
};

class Bridge final : EventTarget {
 public:
  // Takes a packet that is back on a link at this moment; its first byte is at the switch `link.switch + link.wire`
  // later.
  using Deliver = std::function<void(std::unique_ptr<Arrival> arrival)>;

  Bridge(EventQueue& events, const Profile& profile, const BridgeConfig& config, Deliver deliver);
  [[nodiscard]] static Status check(const BridgeConfig& config, uint32_t ranks);

  // True if the two are in different fabrics.
  [[nodiscard]] bool separates(nic::Rank a, nic::Rank b) const { return fabric_of(a) != fabric_of(b); }
  // Takes a packet whose first byte comes to its gateway at `head`, or later if others are before it.
  void take(Time head, std::unique_ptr<Arrival> arrival);
  [[nodiscard]] BridgeStatistics statistics() const;

 private:
  using Pair = std::pair<uint32_t, uint32_t>;
  using MessageKey = std::tuple<uint32_t, uint32_t, uint64_t, bool>;  // source, target, message, is an answer
  struct Gateway {
    std::vector<Resource> in, out;  // one for each fabric
    Resource processor;
  };
  struct Message {
    MessageKey key;
    uint64_t come_bytes = 0;
    bool is_whole = false;
    Time deadline;  // the time at which the message goes on even if it is not whole
    std::vector<std::unique_ptr<Arrival>> packets;
  };
  enum Code : uint32_t { comes, leaves, is_due };

  void on_event(uint32_t code, uint64_t argument) override;
  [[nodiscard]] uint32_t fabric_of(nic::Rank rank) const {
    return rank.value < config_.fabric.size() ? config_.fabric[rank.value] : 0;
  }
  [[nodiscard]] Gateway& gateway_of(const nic::Packet& packet);
  [[nodiscard]] Time duration_of(const nic::Packet& packet) const;
  void store(std::unique_ptr<Arrival> arrival);
  void release(const Pair& pair);
  void forward(std::unique_ptr<Arrival> arrival);

  EventQueue& events_;
  decltype(Profile::link) link_;
  BridgeConfig config_;
  Deliver deliver_;
  std::vector<Gateway> gateways_;
  std::map<Pair, std::deque<Message>> stored_messages_;
  std::set<MessageKey> passing_;  // messages of which a part has left before the rest was there
  nic::Slab<std::unique_ptr<Arrival>> arrivals_;
  nic::Slab<Pair> deadlines_;
  uint64_t held_bytes_ = 0;
  BridgeStatistics statistics_;
};

}  // namespace spinloom::simulated
