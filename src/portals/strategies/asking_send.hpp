// AskingSend - a long message of an MPI library: its sender asks first, and NICs do the rest.
//
// Contract: prepare() makes ready for messages from one place in memory: an entry for answers and, if the message has
//   several blocks, a buffer to pack into or gather handlers on the NIC. start() puts a request with the message's
//   match bits. When it matches a receive of an Inbox, the receiver's NIC answers, and the sender's NIC sends the data
//   to where the receive's layout takes them; no CPU is needed. A request that comes before its receive waits in an
//   unexpected block, and the receiver's host answers when it posts the receive. finish() returns when the data have
//   been sent, so the message has matched; it returns an Error if the message failed.
//   Source: SC'17 sPIN paper, section 5.1. Its receiver gets the data; here it answers and the sender's NIC puts them,
//   because the reply to a get passes no handlers: neither end's layout would be moved by the NIC.
// Invariants: (1) an answer finds its entry by a number, the receive's data by another one: no order among messages and
//   no source is assumed, so receives may be for any source; (2) what prepare() takes is given back by release().
// Threads: the owner of the Interface. Time: that of its port. Preparing is not part of a message's time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "portals/strategies/send.hpp"

namespace spinloom::strategies {

class AskingSend {
 public:
  // `portal` has the same number in all processes, because answers and data go where requests went. `number` is below
  // 2^24 and no other send's of this process. `base`: the buffer address as given to MPI. Code::unsupported for a
  // streaming send and for a message of zero bytes or too many.
  static Result<std::unique_ptr<AskingSend>> prepare(portals::Interface& interface, nic::PortalIndex portal,
                                                     const std::vector<HandlerImage>& images, SendStrategy strategy,
                                                     const Message& message, const NicFacts& facts, const uint8_t* base,
                                                     uint32_t number);

  // Only one message may be between start() and finish().
  Status start(nic::Rank target, uint64_t match_bits);
  Status finish();
  Status release();

 private:
  AskingSend(portals::Interface& interface, nic::PortalIndex portal, const Message& message, const uint8_t* base,
             uint32_t number)
      : interface_(interface), portal_(portal), message_(message), base_(base), number_(number) {}

  Status prepare_entry(const std::vector<HandlerImage>& images);

  portals::Interface& interface_;
  nic::PortalIndex portal_;
  Message message_;
  const uint8_t* base_;
  uint32_t number_;
  std::optional<Plan> plan_;
  Installed installed_;  // gather handlers
  std::vector<uint8_t> packed_;  // the buffer, if the host packs; otherwise empty
  nic::ContextId context_;  // the entry's context, whose handlers take the answer
  nic::CounterId counter_;  // the entry's counter: what its handlers read, and 1 more when the data have been sent
  nic::EntryId entry_;
};

}  // namespace spinloom::strategies
