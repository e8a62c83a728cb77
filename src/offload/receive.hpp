// Receive - one datatype receive under a strategy, built on the Portals calls only.
//
// Contract: prepare() installs what the strategy needs (NIC memory, an execution context) or a host buffer;
//   post() appends a use-once entry for one message; finish() waits for its event and, for host strategies,
//   unpacks. A prepared receive may be posted again for the next message: rw-cp's checkpoints are put back
//   first, which is the strategy's own cost between messages.
// Invariants: (1) the NIC memory taken is given back by release(); (2) the destination is written by the NIC's
//   DMA or by the host's unpack, never by anybody else.
// Threads: the owner of the Interface. Time: whatever drives the port.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "offload/installed.hpp"
#include "offload/plan.hpp"
#include "portals/interface.hpp"

namespace spinloom::offload {

class Receive {
 public:
  // The Interface, the queue and the images outlive the receive. `queue` belongs to `portal`. `planned` is plan() of
  // the same arguments where the caller has it already. On an Error nothing is left on the NIC.
  static Result<std::unique_ptr<Receive>> prepare(portals::Interface& interface, nic::PortalIndex portal,
                                                  nic::QueueId queue, const std::vector<HandlerImage>& images,
                                                  Strategy strategy, const Message& message, const NicFacts& facts,
                                                  const HandlerCost& cost, std::optional<Plan> planned = {});

  // base: the buffer address as given to MPI.
  // iovec: makes the scatter list, whose addresses hold for this buffer only.
  Status post(uint8_t* base, uint64_t match_bits);
  // The event that told the host; Code::fault when a handler of the message failed. A message that had come before the
  // receive was posted (UnexpectedBuffer) is unpacked by the host under every strategy.
  Result<nic::Event> finish();
  Status release();

  // What the strategy holds on the NIC, and what has to be moved there for one message (a scatter list is longer than
  // what the NIC holds of it at a time).
  [[nodiscard]] uint64_t nic_memory_bytes() const;
  [[nodiscard]] uint64_t nic_bytes_moved() const;
  [[nodiscard]] const std::optional<Plan>& plan() const { return plan_; }

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
  Status unpack_on_host(const uint8_t* packed);

  portals::Interface& interface_;
  nic::PortalIndex portal_;
  nic::QueueId queue_;
  Strategy strategy_;
  Message message_;
  std::optional<Plan> plan_;
  Installed installed_;
  std::vector<uint8_t> packed_;  // host strategies: where the message lands
  uint32_t iovec_entries_;                 // that the NIC holds at a time
  std::vector<nic::IovecElement> iovec_;   // iovec: where the posted message goes
  uint8_t* base_ = nullptr;
  bool used_ = false;  // the state on the NIC has been progressed by a message
};

}  // namespace spinloom::offload
