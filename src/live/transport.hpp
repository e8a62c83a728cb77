// Transport - carries packets between this process's NIC and some of its peers.
//
// Contract: send() takes one Send action over, which it may move from, and answers whether its bytes have been read; if
//   not, the client hears sent() when they have. poll() looks for what came and what can go on; the client hears of
//   packets by arrived(), of peers that are gone by lost(). Transports stack: one that traces or disturbs is client of
//   the one below it.
// Invariants: (1) packets of one sender arrive in the order sent, but that answers may overtake others; (2) a payload
//   of space `local` stays until arrived() returns; one of space `peer` is an address that fetch() takes until then, or
//   until taken() where arrived() said that it is still needed; (3) after lost() nothing comes from that peer, and what
//   was sent to it is told by sent(), as if it had been read; (4) what a handler sends never waits for a peer: it is
//   copied where it cannot leave at once, and so are short replies (portals/data_order.hpp); (5) a peer that was told
//   to stop sends nothing but answers from soon on.
// Threads: the owner of the NIC. Time: none but what timer() asks for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "nic/action.hpp"
#include "nic/quick.hpp"

namespace spinloom::live {

// What the engine wants to hear when a Send has been read.
struct Reading {
  uint64_t message = 0;
  nic::OutboundSlotId slot;
  bool told = false;  // the engine waits for on_packet_sent(message)
};

[[nodiscard]] inline Reading reading_of(const nic::Send& send) {
  return {send.packet.message, send.slot,
          send.slot.exists() || (send.last && !send.at_once && send.packet.operation != nic::Operation::ack)};
}

// What was sent to a peer and has not come out on its side, in the channel or the network.
struct Untaken {
  uint64_t packets = 0;
  uint64_t notes = 0;  // of these: acknowledgements and the like, which bring no one anything when their sender leaves
  uint64_t bytes = 0;
  uint64_t moved = 0;  // another number whenever the peer has gone on with what it was sent
  bool writes = false;  // the peer may be writing to this process's memory
  bool gone = false;  // the peer is; then the rest says how it was when it went
  bool operator==(const Untaken&) const = default;
};

class TransportClient {
 public:
  virtual ~TransportClient() = default;
  // Whether the payload is done with; one of a peer's may still be needed, then taken(loan) follows.
  [[nodiscard]] virtual bool arrived(class Transport& from, const nic::Packet& packet, uint64_t loan) = 0;
  virtual void sent(const Reading& reading) = 0;
  // The end of fetch_with_help(), and whether all bytes are there.
  virtual void fetched(uint64_t token, bool well) = 0;
  virtual void lost(nic::Rank peer) = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  [[nodiscard]] virtual const char* name() const = 0;
  [[nodiscard]] virtual bool send(nic::Send& send) = 0;
  // A short put, if it can leave now: in one step, and nobody will hear of its end. False: nothing has happened.
  [[nodiscard]] virtual bool send_small(const nic::QuickPut&, uint64_t /*message*/) { return false; }
  // Whether anything happened.
  virtual bool poll() = 0;
  // Whether poll() would find something that has come.
  [[nodiscard]] virtual bool has_news() const = 0;
  // Nobody polls from now on: what comes must wake somebody.
  virtual void arm() {}
  // The peer's payload of this name is not needed any more.
  virtual void taken(nic::Rank peer, uint64_t loan) = 0;
  // The peer is asked to send nothing but answers, or to go on.
  virtual void stop(nic::Rank peer, bool stopped) = 0;
  // Bytes of the peer's memory, of a payload that arrives now or is still needed.
  [[nodiscard]] virtual Status fetch(nic::Rank peer, uint64_t address, uint8_t* to, uint64_t length) = 0;
  // The same, if it is worth it that the peer copies a part: the client hears of the end by fetched(token), maybe at
  // once, and what is taken() meanwhile counts from then on.
  [[nodiscard]] virtual bool fetch_with_help(nic::Rank, uint64_t /*address*/, uint8_t* /*to*/, uint64_t /*length*/,
                                             uint64_t /*token*/) {
    return false;
  }
  // What is sent to this peer waits for room.
  [[nodiscard]] virtual bool congested(nic::Rank peer) const = 0;
  // Nothing is on its way out any more.
  [[nodiscard]] virtual bool drained() const = 0;
  [[nodiscard]] virtual Untaken untaken(nic::Rank peer) const = 0;
  // Something of the peer's that waited here for room has gone on.
  virtual void moved(nic::Rank) {}
  // How a peer is reached, and why so: for people.
  [[nodiscard]] virtual std::string describe(nic::Rank peer) = 0;
  // The latest moment for the next poll().
  [[nodiscard]] virtual Time timer() const { return Time::never(); }
  // This process leaves the job.
  virtual void say_goodbye() = 0;
};

}  // namespace spinloom::live
