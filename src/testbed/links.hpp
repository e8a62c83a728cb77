// Links - what carries packets between the ranks of a loopback driver, where they do not just arrive.
//
// Contract: send() takes a packet whose bytes may be read until the link says sent() or left() for it, once each; an
//   acknowledgement (Operation::ack) has neither. step() performs one thing that is due, or returns false where nothing
//   is under way. Ends hears what happens at either end of a link. arrive() copies the payload. Headers from one rank
//   to another arrive in the order sent.
// Threads: one owner. Time: the links' own.
#pragma once

#include <cstdint>

#include "nic/action.hpp"

namespace spinloom::testbed {

class Links {
 public:
  class Ends {
   public:
    virtual ~Ends() = default;
    virtual void arrive(uint32_t rank, const nic::Packet& packet) = 0;
    virtual void sent(uint32_t rank, uint64_t message) = 0;
    virtual void left(uint32_t rank, nic::OutboundSlotId slot) = 0;
    virtual void lost(uint32_t rank, nic::Rank peer) = 0;
  };

  virtual ~Links() = default;
  virtual void send(uint32_t rank, const nic::Send& send, Ends& ends) = 0;
  virtual bool step(Ends& ends) = 0;
};

}  // namespace spinloom::testbed
