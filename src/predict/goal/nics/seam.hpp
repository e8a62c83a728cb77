// Seam - messages between ranks at message level, which are an Engine's, and ranks that have NICs.
//
// Contract: what leaves a NIC of the message model at t is on the wire, at the link into the switch, at t + L - i, and
//   packets go on from there. A packet whose first byte would be at a NIC at t is one of the message model at
//   t + i - wire; that NIC takes its bytes as they come, one packet after the other, each byte for G, g behind the
//   last. i is what one byte needs from a link to a host that knows of it: switch, wire, matching, memory, PCIe, its
//   event. So a message of one byte takes the same time as at message level, in both directions.
//   Requests and answers of a rendezvous, gets, atomics and their replies cross as what they are for NICs: a put
//   without bytes, a get, its reply. One NIC engine without time, the envoy, sends and receives them in the name of all
//   ranks at message level, at the times that the Engine gives.
// Invariants: (1) all bytes of messages that cross are checked: those of puts when they come, those of replies when all
//   have, those in windows at the end; (2) memory: that of messages under way.
// Threads: one owner. Time: modelled, that of both.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "nic/portals/nic.hpp"
#include "nic/spin/slab.hpp"
#include "predict/goal/model/engine.hpp"
#include "predict/goal/nics/commands.hpp"
#include "predict/goal/nics/host.hpp"
#include "predict/goal/nics/nics.hpp"

namespace spinloom::goal {

class Seam final : public Border, public Beyond, simulated::EventTarget {
 public:
  // Returns an error if L is shorter than the time that a byte needs.
  static Result<std::unique_ptr<Seam>> create(Engine& engine, Job& job, const simulated::Profile& profile,
                                              uint64_t L_ps);

  void leaves(uint64_t at_ps, const Event& message) override;
  void on_packet(std::unique_ptr<simulated::Arrival> arrival, Time head) override;
  [[nodiscard]] Status trouble() const;

 private:
  using Key = std::pair<uint32_t, uint64_t>;  // of an operation or a message: its rank, its number
  // A message to a rank at message level, which comes in several packets and then is an event of its Engine.
  struct Incoming {
    Event event;
    uint64_t total = 0;
    uint64_t there = 0;
  };
  // Bytes that such a rank has asked for.
  struct Asked {
    Incoming incoming;
    uint8_t mask = 0;
    simulated::ZeroedBytes memory;
  };

  Seam(Engine& engine, Job& job, const simulated::Profile& profile, Time out);
  void on_event(uint32_t code, uint64_t slot) override;
  void take(std::unique_ptr<simulated::Arrival> arrival);
  void take_put(nic::Packet packet);
  void take_atomic(std::unique_ptr<simulated::Arrival> arrival);
  void take_get(std::unique_ptr<simulated::Arrival> arrival);
  void take_reply(const nic::Packet& packet);
  // Returns true if all of the message has come.
  bool take_part(Incoming& incoming, uint64_t bytes);
  void check(const nic::Packet& packet, uint32_t number);
  [[nodiscard]] Event event_of(const nic::Packet& packet, uint32_t number, Carried carried) const;
  [[nodiscard]] uint64_t window_begin(const nic::Packet& packet) const;
  void one_sided(const Event& message, Time at);
  void answer(Key asked, Time at);
  [[nodiscard]] nic::ReplyTo ask(const Event& event, uint64_t bytes, uint8_t mask);
  void answered(uint32_t slot);
  // The envoy does these in the name of a rank.
  void say(uint32_t rank, const nic::CommandBody& command, Time& at);
  void hear(const nic::Packet& packet, Time at);
  void perform(uint32_t rank, nic::Actions& actions, Time& at);

  Engine& engine_;
  Job& job_;
  const simulated::Profile& profile_;
  const Time out_;  // from a NIC of the message model to the wire
  const Time in_;  // from a NIC to one of the message model
  nic::Nic envoy_;
  nic::Slab<std::unique_ptr<simulated::Arrival>> arrivals_;
  std::map<Key, Incoming> incoming_;  // by message
  std::map<Key, Incoming> parts_;  // by operation: atomics of which not all parts have come
  std::map<Key, std::vector<std::unique_ptr<simulated::Arrival>>> held_;  // by operation: packets to be answered later
  nic::Slab<Asked> asked_;
  std::map<uint64_t, uint32_t> asked_by_name_;
  uint32_t newest_asked_ = 0;
};

}  // namespace spinloom::goal
