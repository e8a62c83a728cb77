// Transport - carries packets between this process's NIC and some of its peers.
//
// Contract: send() takes over one Send action, whose contents it may move away. It returns whether the bytes have
//   been read; if not, the client hears sent() once they have. poll() takes what has come and moves on what can go
//   on. The client learns of packets by arrived(), and of peers that are gone by lost(). Transports stack: one that
//   traces or disturbs is the client of the one below it.
// Invariants: (1) packets of one sender arrive in the order sent, except that answers may overtake others; (2) a
//   payload of space `local` stays valid until arrived() returns. A payload of space `peer` is an address for fetch().
//   It stays valid until arrived() returns or, where arrived() says that it is still needed, until return_loan(); (3)
//   after lost() nothing comes from that peer, and sent() is called for everything that was sent to it, as if it had
//   been read, until reconnected(): the client was disconnected from the peer, and the peer is there again; (4) what a
//   handler sends never waits for a peer: it is copied where it cannot leave at once, unless it lies in an outbound
//   slot (Send::slot). Short replies are copied likewise (portals/interface/data_order.hpp); (5) a peer that was told
//   to stop soon sends nothing but answers.
// Threads: the owner of the NIC. Time: none, except for what timer() asks for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "nic/portals/action.hpp"
#include "nic/portals/quick.hpp"

namespace spinloom::live {

// The call that the engine expects when the payload of a Send has been read.
struct SendCompletion {
  uint64_t message = 0;
  nic::OutboundSlotId slot;
  // The engine waits for the call: on_packet_left(slot) if there is a slot, else on_packet_sent(message).
  bool is_expected = false;
};

[[nodiscard]] inline SendCompletion completion_of(const nic::Send& send) {
  return {send.packet.message, send.slot,
          send.slot.exists() || (send.last && !send.at_once && send.packet.operation != nic::Operation::ack)};
}

// Packets to a peer that this process still holds: they wait here, their memory is lent, or the peer has not
// acknowledged them. A packet that is in a channel of shared memory is not outstanding.
struct Outstanding {
  uint64_t packets = 0;
  uint64_t control_packets = 0;  // those among `packets` (such as acks) that nobody misses when their sender leaves
  uint64_t bytes = 0;
  uint64_t progress = 0;  // changes whenever the peer has gone on with our packets, or with a reply
  uint64_t replies = 0;   // replies of the peer that are still to come
  bool may_write = false;  // the peer may be writing to this process's memory
  bool is_awaited = false;  // the peer has not come yet
  bool is_lost = false;  // the peer is lost, and the other fields are as they were at that time
  bool operator==(const Outstanding&) const = default;
};

// The end of a message that needed no turn of its target.
struct DirectEnd {
  bool has_answer = false;
  nic::Packet answer;  // the packet that the target's NIC would have sent; its payload is `bytes`
  std::vector<uint8_t> bytes;
};

class TransportClient {
 public:
  virtual ~TransportClient() = default;
  // Returns whether the payload is not needed any more. A payload of space `peer` may still be needed; then
  // return_loan(loan) follows.
  [[nodiscard]] virtual bool arrived(class Transport& from, const nic::Packet& packet, uint64_t loan) = 0;
  virtual void sent(const SendCompletion& completion) = 0;
  // A fetch_with_help() has ended; `succeeded` is true if all bytes have been copied.
  virtual void fetched(uint64_t token, bool succeeded) = 0;
  virtual void lost(nic::Rank peer) = 0;
  // True if nothing is left of what was under way with a lost peer, so that the peer may come back.
  [[nodiscard]] virtual bool is_disconnected(nic::Rank) const { return false; }
  virtual void reconnected(nic::Rank) {}
};

class Transport {
 public:
  virtual ~Transport() = default;
  [[nodiscard]] virtual const char* name() const = 0;
  [[nodiscard]] virtual bool send(nic::Send& send) = 0;
  // Sends a short put of which no sent() follows, if it can leave at once. False: nothing has happened.
  [[nodiscard]] virtual bool send_small(const nic::QuickPut&, uint64_t /*message*/) { return false; }
  // Does the whole message at once, in its target's memory, if all that came before it there is done and the target has
  // published the entry (direct_memory.hpp). False: nothing has happened, but that bytes of a put may be there already.
  [[nodiscard]] virtual bool access_directly(const nic::Send&, DirectEnd&) { return false; }
  [[nodiscard]] virtual bool put_directly(const nic::QuickPut&) { return false; }
  // Says that nothing of what has come from any peer is under way any more.
  virtual void note_settled() {}
  [[nodiscard]] virtual bool has_ended(nic::Rank) const { return false; }
  // Between cork() and uncork(), which may nest, what is sent may wait, to leave together. The caller of cork() calls
  // nothing but send() before uncork().
  virtual void cork() {}
  virtual void uncork() {}
  // Returns whether anything happened.
  virtual bool poll() = 0;
  // True if poll() would find something that has come.
  [[nodiscard]] virtual bool has_news() const = 0;
  // Says that nobody polls from now on, so that news must wake somebody.
  virtual void arm() {}
  // Says that the payload that the peer has lent under this name is not needed any more.
  virtual void return_loan(nic::Rank peer, uint64_t loan) = 0;
  // Asks the peer to send nothing but answers, or to go on.
  virtual void set_stopped(nic::Rank peer, bool stopped) = 0;
  // Copies bytes of a payload out of the peer's memory, while the payload arrives or is still needed.
  [[nodiscard]] virtual Status fetch(nic::Rank peer, uint64_t address, uint8_t* to, uint64_t length) = 0;
  // Begins the same copy without waiting for its end: with the help of the peer, which copies a part, or by the
  // network. Returns false where that is not possible or not worth it. The client hears of the end by fetched(token),
  // which may come inside this call. A return_loan() for the payload before that takes effect at the end of the copy.
  [[nodiscard]] virtual bool fetch_with_help(nic::Rank, uint64_t /*address*/, uint8_t* /*to*/, uint64_t /*length*/,
                                             uint64_t /*token*/) {
    return false;
  }
  // True if more packets to this peer wait for room than this transport lets wait.
  [[nodiscard]] virtual bool congested(nic::Rank peer) const = 0;
  // True if nothing waits to be sent or read any more.
  [[nodiscard]] virtual bool drained() const = 0;
  [[nodiscard]] virtual Outstanding outstanding(nic::Rank peer) const = 0;
  // Says that something of this peer that waited here for room has gone on.
  virtual void note_resumed(nic::Rank) {}
  // Returns a text for people: the way to the peer, and the reason for it.
  [[nodiscard]] virtual std::string describe(nic::Rank peer) = 0;
  // The latest time for the next poll().
  [[nodiscard]] virtual Time timer() const { return Time::never(); }
  // Tells the peers that this process leaves the job.
  virtual void say_goodbye() = 0;
};

}  // namespace spinloom::live
