// Links - carries packets between the ranks of a loopback driver that does not hand them over at once.
//
// Contract: send() takes a packet. The link may read its bytes until it calls on_left() for the packet's slot or, for a
//   packet without a slot, on_sent() after the last packet of the message; it calls each once. It calls neither for an
//   acknowledgement (Operation::ack), nor for a packet that leaves at once (Send::at_once), whose bytes it reads within
//   send(). step() does one thing that is due, or returns false if nothing is under way. The link calls Ends at its
//   ends; Ends::on_arrival() copies the payload. Headers from one rank to another arrive in the order sent.
// Threads: one owner. Time: the links' own.
#pragma once

#include <cstdint>

#include "nic/portals/action.hpp"

namespace spinloom::testbed {

class Links {
 public:
  class Ends {
   public:
    virtual ~Ends() = default;
    virtual void on_arrival(uint32_t rank, const nic::Packet& packet) = 0;
    virtual void on_sent(uint32_t rank, uint64_t message) = 0;
    virtual void on_left(uint32_t rank, nic::OutboundSlotId slot) = 0;
    virtual void on_lost(uint32_t rank, nic::Rank peer) = 0;
  };

  virtual ~Links() = default;
  virtual void send(uint32_t rank, const nic::Send& send, Ends& ends) = 0;
  virtual bool step(Ends& ends) = 0;
};

}  // namespace spinloom::testbed
