// FabricTransport::Peer - one peer of the transport: what waits for it, what it has not acknowledged, what is lent.
//
// Invariants: (1) `unacknowledged` holds packets in the order sent; (2) a loan is open from its message until the peer
//   returns it or is lost.
// Threads: the owner of the NIC. Time: none.
#pragma once

#include <optional>

#include "live/fabric/fabric_transport.hpp"
#include "live/node/waiting_send.hpp"

namespace spinloom::live {

struct FabricTransport::Waiting : WaitingSend {
  using WaitingSend::WaitingSend;
  bool as_pieces = false;  // its bytes leave in messages; it is not lent
  std::optional<FabricRegion> region;  // its registered memory, until the message that lends it has left
};

struct FabricTransport::Peer {
  nic::Rank rank;
  bool lost = false;
  bool in_contact = false;
  bool told_to_stop = false;  // this peer wants nothing but answers
  bool stopped = false;       // we want nothing but answers from it
  Outstanding outstanding_at_loss;               // the result of outstanding() at the time when the peer was lost

  std::deque<Waiting> answers;
  std::deque<Waiting> waiting;
  uint64_t next_sequence = 0;
  struct Sent {
    uint64_t sequence = 0;
    uint64_t bytes = 0;
    bool is_ack = false;
  };
  std::deque<Sent> unacknowledged;
  uint64_t unacknowledged_bytes = 0;
  struct Lent {
    FabricRegion region;
    SendCompletion completion;
    uint64_t bytes = 0;
  };
  std::map<uint64_t, Lent> lent;  // loans by name
  uint64_t next_loan = 1;

  uint64_t expected = 0;  // the sequence of its next message
  uint64_t acknowledged = 0;      // the value of `expected` that the peer has been sent last
  std::map<uint64_t, std::vector<uint8_t>> early;  // messages that have overtaken the expected one, by number
  Time gap_since{};  // the time since when the expected message has been missing, if `early` is not empty
  uint32_t resume_count = 0;
  uint32_t peer_resume_count = 0;
  struct Borrowed {
    wire::Loan loan;
    uint32_t reads = 0;
    bool returned = false;  // the client needs it no more
  };
  std::map<uint64_t, Borrowed> borrowed;  // the key is the address that the client knows
  std::deque<uint64_t> returns;           // names of loans whose return has not left yet

  Time heard_at{};  // the time of its latest message
  Time probed_at{};                      // the time of the last request for a sign of life
  Time acknowledge_at = Time::never();      // the latest time for the next acknowledgement

  [[nodiscard]] bool waits() const { return !answers.empty() || !waiting.empty() || !returns.empty(); }
};

}  // namespace spinloom::live
