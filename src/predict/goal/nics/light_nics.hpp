// LightNics - Nics that carry every message as one packet of any size, without its bytes; the engine is the same.
//
// Contract: as Nics. A rank's NIC is made when its port is asked for or its first packet comes, and forgotten when its
//   host has been released and it is quiet. What takes time, by the profile:
//   - commands, reads of what is sent, events: as in simulated::Node;
//   - a message keeps links at both ends busy for its bytes, or for the gaps of its packets if they are longer; its
//     first byte comes after switch and wire; with Switches it goes on as simulated/network/network.hpp says, as one
//     packet;
//   - the matching unit takes one message after the other, match.header each, match.packet an answer;
//   - its bytes go to the host packet by packet behind the link, out of packet memory and over PCIe;
//   - an atomic reads what is in host memory over PCIe first.
// Invariants: (1) a message takes what it takes in FullNics, if nothing else happens; (2) a NIC that is
//   forgotten was in the state in which it is made, but for its counters, which nobody reads any more.
// Threads: one owner. Time: modelled.
#pragma once

#include <deque>
#include <memory>
#include <variant>
#include <vector>

#include "nic/spin/slab.hpp"
#include "portals/interface/mailbox.hpp"
#include "predict/goal/model/sample.hpp"
#include "predict/goal/nics/nics.hpp"
#include "simulated/node/pcie.hpp"
#include "simulated/node/profile.hpp"
#include "simulated/node/resource.hpp"

namespace spinloom::goal {

class LightNics final : public Nics, simulated::EventTarget {
 public:
  LightNics(const simulated::Profile& profile, uint32_t ranks, Setup setup, Sample sample = {},
            simulated::Network::Switches switches = {});
  ~LightNics() override;

  [[nodiscard]] simulated::EventQueue& clock() override { return clock_; }
  [[nodiscard]] portals::Port& port(uint32_t rank) override;
  void watch(Watcher watcher) override { watcher_ = std::move(watcher); }
  void release(uint32_t rank) override;
  void connect(PacketSink& sink) override { sink_ = &sink; }
  void inject(std::vector<nic::Packet> packets, Time at, std::function<void()> sent) override;
  [[nodiscard]] nic::NicLimits limits_outside() const override;
  [[nodiscard]] uint64_t atomic_bytes_max() const override { return atomic_bytes_of(profile_); }
  [[nodiscard]] Status trouble() const override;
  // The number of NICs now, and the largest number at one time.
  [[nodiscard]] uint32_t nic_count() const { return nic_count_; }
  [[nodiscard]] uint32_t nic_count_max() const { return nic_count_most_; }

 private:
  class Node;
  // The kinds of events of a rank. Those up to `crosses` concern messages that it has sent, the others its NIC.
  enum EventCode : uint32_t {
    departs,  // the first byte of a message is on the link
    crosses,  // it is at a switch
    arrives,  // it is at the target's NIC
    matched,  // the matching unit has finished with a message
    landed,  // a DMA into host memory is complete
    operands,  // the operands of an atomic have come over PCIe
    read,  // the NIC has read all bytes of a message that it sends
    readable,  // the host can read an event, a counter or an answer
    commanded,  // a command of the host is at the NIC
    continues,  // the engine has asked to be called again
    may_be_dropped  // the host of the rank has been released
  };
  struct Message {
    nic::Packet packet;
    Time last_byte;
    uint32_t at = 0;  // the switch where its head is
  };
  struct Operands {
    nic::DmaId dma;
    int64_t bytes = 0;
  };
  using Delivery = std::variant<nic::PostEvent, nic::PostCounter, nic::Answer>;
  using Content = std::variant<std::monostate, Message, nic::DmaId, Operands, uint64_t, Delivery, nic::Command>;
  struct PendingEvent {
    uint32_t rank = 0;
    Content content;
  };

  void on_event(uint32_t code, uint64_t slot) override;
  // The head of the message is at a switch, maybe that of its target.
  void cross(Message& message, uint32_t source);
  // Serves the link to the target with a message whose head is at its last switch at `head`.
  void arrive_at_target(Message& message, Time head);
  void handle(EventCode code, Node& node, Content& content);
  [[nodiscard]] Node& node(uint32_t rank);
  void schedule_at(Time at, EventCode code, uint32_t rank, Content content);
  void perform(Node& node, nic::Actions& actions, const Message* message);
  void perform(Node& node, const nic::Send& send);
  void perform(Node& node, const nic::DmaWrite& write, const Message* message);
  void perform(Node& node, const nic::ApplyAtomic& atomic, const Message* message);
  void deliver(Node& node, Delivery delivery, int64_t bytes);
  void match_next(Node& node);
  void drop_if_quiet(uint32_t rank);
  [[nodiscard]] int64_t packet_count(int64_t bytes) const { return div_ceil(bytes, profile_.link.payload); }
  [[nodiscard]] int64_t last_packet_bytes(int64_t bytes) const {
    return bytes - (packet_count(bytes) - 1) * profile_.link.payload;
  }
  // The time from the first byte of a message to its last, and the time until the next message may follow on the link.
  [[nodiscard]] Time line_time(int64_t bytes) const;
  [[nodiscard]] Time link_time(int64_t bytes) const;
  [[nodiscard]] Time read_time(int64_t bytes) const;
  [[nodiscard]] Time send_time(int64_t bytes) const;
  [[nodiscard]] Time port_time(int64_t bytes) const;

  const simulated::Profile profile_;
  const Setup setup_;
  const Sample sample_;
  simulated::Network::Switches switches_;
  PacketSink* sink_ = nullptr;
  simulated::EventQueue clock_;
  Watcher watcher_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<bool> released_;
  nic::Slab<PendingEvent> pending_events_;
  std::vector<Status> troubles_;
  uint32_t nic_count_ = 0;
  uint32_t nic_count_most_ = 0;
};

}  // namespace spinloom::goal
