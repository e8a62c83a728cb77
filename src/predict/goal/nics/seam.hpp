// Seam - messages between ranks at message level, which are an Engine's, and ranks that have NICs.
//
// Contract: what leaves a NIC of the message model at t is on the wire, at the link into the switch, at t + L - i, and
//   packets go on from there. A packet whose first byte would be at a NIC at t is one of the message model at
//   t + i - wire; that NIC takes its bytes as they come, one packet after the other, each byte for G, g behind the
//   last. i is what one byte needs from a link to a host that knows of it: switch, wire, matching, memory, PCIe, its
//   event. So a message of one byte takes the same time as at message level, in both directions.
//   Requests and answers of a rendezvous, gets, atomics and their replies cross as what they are for NICs: a put
//   without bytes, a get, its reply. One NIC engine without time, the proxy, sends and receives them in the name of all
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

class Seam final : public MessageSink, public PacketSink, simulated::EventTarget {
 public:
  // Returns an error if L is shorter than the time that a byte needs.
  static Result<std::unique_ptr<Seam>> create(Engine& engine, Job& job, const simulated::Profile& profile,
                                              uint64_t L_ps);

  void on_message(uint64_t at_ps, const Event& message) override;
  void on_packet(std::unique_ptr<simulated::Arrival> arrival, Time head) override;
  [[nodiscard]] Status trouble() const;

 private:
  using OperationOrMessage = std::pair<uint32_t, uint64_t>;  // its rank and its number
  // A message to a rank at message level. It comes in several packets; the Engine gets it as one event.
  struct Incoming {
    Event event;
    uint64_t total_bytes = 0;
    uint64_t arrived_bytes = 0;
  };
  // Bytes that a rank at message level has asked for, until their reply has come.
  struct PendingRead {
    Incoming incoming;
    uint8_t mask = 0;  // each byte comes xored with it
    simulated::ZeroedBytes memory;
  };

  Seam(Engine& engine, Job& job, const simulated::Profile& profile, Time out);
  void on_event(uint32_t code, uint64_t slot) override;
  void dispatch(std::unique_ptr<simulated::Arrival> arrival);
  void on_put(nic::Packet packet);
  void on_atomic(std::unique_ptr<simulated::Arrival> arrival);
  void on_get(std::unique_ptr<simulated::Arrival> arrival);
  void on_reply(const nic::Packet& packet);
  // Returns true if all of the message has come.
  bool receive_part(Incoming& incoming, uint64_t bytes);
  void check(const nic::Packet& packet, uint32_t number);
  [[nodiscard]] Event event_of(const nic::Packet& packet, uint32_t number, MessageKind message_kind) const;
  [[nodiscard]] uint64_t window_begin(const nic::Packet& packet) const;
  void submit_one_sided(const Event& message, Time at);
  // Answers the packets that were held for this operation.
  void answer_held(OperationOrMessage id, Time at);
  [[nodiscard]] nic::ReplyTo begin_read(const Event& event, uint64_t bytes, uint8_t mask);
  void finish_read(uint32_t slot);
  // The proxy does these in the name of a rank, and moves `at` on to when its link is free again.
  void submit(uint32_t rank, const nic::CommandBody& command, Time& at);
  void process(const nic::Packet& packet, Time at);
  void perform(uint32_t rank, nic::Actions& actions, Time& at);

  Engine& engine_;
  Job& job_;
  const simulated::Profile& profile_;
  const Time out_latency_;  // L less i: from a NIC of the message model to the wire
  const Time in_latency_;  // i less the wire: from the arrival at a NIC to one of the message model
  nic::Nic proxy_;
  nic::Slab<std::unique_ptr<simulated::Arrival>> arrivals_;
  std::map<OperationOrMessage, Incoming> incoming_;  // the key is the message
  std::map<OperationOrMessage, Incoming> partial_atomics_;  // atomics of which not all parts have come, by operation
  // The packets that are answered later, by operation.
  std::map<OperationOrMessage, std::vector<std::unique_ptr<simulated::Arrival>>> held_packets_;
  nic::Slab<PendingRead> pending_reads_;
  std::map<uint64_t, uint32_t> pending_reads_by_request_;  // the key is the number that the reply gives back
  uint32_t newest_read_ = 0;
};

}  // namespace spinloom::goal
