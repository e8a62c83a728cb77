// Receive - one datatype receive under a strategy, built on the Portals calls only.
//
// Contract: prepare() installs what the strategy needs (NIC memory, an execution context) or a host buffer;
//   post() appends a use-once entry for one message; finish() waits for its event and, for host strategies,
//   unpacks. A prepared receive may be posted again for the next message: the handlers' state (rw-cp's checkpoints,
//   hpu-local's segments) is put back first, which is the strategy's own cost between messages. A caller with several
//   messages under way appends entry() and calls unpack() itself, in place of post() and finish().
// Invariants: (1) the NIC memory taken is given back by release(); (2) the destination is written by the NIC's
//   DMA or by the host's unpack, never in another way.
// Threads: the owner of the Interface. Time: whatever drives the port.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "portals/interface/interface.hpp"
#include "portals/strategies/installed.hpp"
#include "portals/strategies/plan.hpp"

namespace spinloom::strategies {

class Receive {
 public:
  // The Interface and the queue outlive the receive. `queue` belongs to `portal`. `planned` is the result of plan() for
  // the same arguments, if the caller already has it. `family` is put before the name of the plan's handler image: it
  // names images that have the plan's handlers within others (handlers/receive.h). After an Error nothing is left on
  // the NIC.
  static Result<std::unique_ptr<Receive>> prepare(portals::Interface& interface, nic::PortalIndex portal,
                                                  nic::QueueId queue, const std::vector<HandlerImage>& images,
                                                  Strategy strategy, const Message& message, const NicFacts& facts,
                                                  const HandlerCost& cost, std::optional<Plan> planned = {},
                                                  std::string_view family = {});

  // `base` is the buffer address as given to MPI. Under iovec, post() makes the scatter list, whose addresses are
  // valid for this buffer only.
  Status post(uint8_t* base, uint64_t match_bits);
  // Returns the entry for the next message, without match bits and user pointer. Puts the state on the NIC back.
  Result<nic::Entry> entry(uint8_t* base);
  // Unpacks by the host, under any strategy, the first `bytes` of a message that lies packed in its memory.
  Status unpack(uint8_t* base, const uint8_t* packed, int64_t bytes);
  // Returns the event of the message's end; Code::fault if the message or one of its handlers failed. A message that
  // came before the receive was posted (UnexpectedBuffer) is unpacked by the host, under every strategy.
  Result<nic::Event> finish();
  Status release();

  // Bytes that the strategy holds on the NIC, and bytes that move there for one message (a scatter list may be longer
  // than the part that the NIC holds at a time).
  [[nodiscard]] uint64_t nic_memory_bytes() const;
  [[nodiscard]] uint64_t nic_bytes_moved() const;
  [[nodiscard]] const std::optional<Plan>& plan() const { return plan_; }
  [[nodiscard]] const Message& message() const { return message_; }
  // Returns the buffer where a message lands under a host strategy.
  [[nodiscard]] const uint8_t* packed() const { return packed_.data(); }
  // True if several messages may be under way into it, because it keeps nothing that belongs to one of them.
  [[nodiscard]] bool is_shareable() const {
    return strategy_ == Strategy::rdma_direct || (plan_ && plan_->state.empty());
  }

 private:
  Receive(portals::Interface& interface, nic::PortalIndex portal, nic::QueueId queue, Strategy strategy,
          const Message& message, const NicFacts& facts)
      : interface_(interface),
        portal_(portal),
        queue_(queue),
        strategy_(strategy),
        message_(message),
        iovec_entries_(facts.iovec_entries) {}

  Status list_pieces(uint8_t* base);

  portals::Interface& interface_;
  nic::PortalIndex portal_;
  nic::QueueId queue_;
  Strategy strategy_;
  Message message_;
  std::optional<Plan> plan_;
  Installed installed_;
  std::vector<uint8_t> packed_;  // the buffer where the message lands, for host strategies
  uint32_t iovec_entries_;                 // elements that the NIC holds at a time
  std::vector<nic::IovecElement> iovec_;   // the scatter list of the posted message, for iovec
  uint8_t* base_ = nullptr;
  bool state_is_dirty_ = false;  // a message has changed the state on the NIC
};

}  // namespace spinloom::strategies
