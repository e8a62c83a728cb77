// Send - sends one datatype under a strategy, built on the Portals calls only.
//
// Contract: prepare() installs what the strategy needs: a buffer to pack into, or NIC memory and an execution context
//   with gather handlers. start() sends one message and returns when the host's program may go on: after packing and
//   posting, after streaming every region, or after posting the process-put. finish() waits until the host may change
//   the memory again. The target sees one put, whatever the strategy.
//   Source: SC'19 datatypes paper, section 3.1.
// Invariants: (1) the NIC memory taken is given back by release(); (2) the message is the packed bytes of the type map.
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

enum class SendStrategy : uint8_t {
  pack,  // the host packs into a buffer, then one put
  streaming,  // the host names one contiguous region after another of a streaming put
  outbound_specialised,  // process-put: a gather handler for vectors, lists or structs of them
  outbound_seek,  // process-put: each packet seeks in the blob
};

[[nodiscard]] const char* name_of(SendStrategy strategy);
[[nodiscard]] Result<SendStrategy> send_strategy_named(std::string_view name);

class Send {
 public:
  // The Interface and the queue outlive the send. After an Error nothing is left on the NIC.
  static Result<std::unique_ptr<Send>> prepare(portals::Interface& interface, nic::QueueId queue,
                                               const std::vector<HandlerImage>& images, SendStrategy strategy,
                                               const Message& message, const NicFacts& facts);

  // `base`: the buffer address as given to MPI. `put`: target rank, portal and match bits; start() fills in the rest.
  // The message of a streaming send must have at least one byte: otherwise nothing is posted, and finish() has no
  // event.
  Status start(const uint8_t* base, portals::PutArguments put);
  // Returns the send event; Code::fault if the message or a gather handler failed.
  Result<nic::Event> finish();
  Status release();

  [[nodiscard]] const std::optional<Plan>& plan() const { return plan_; }
  // Calls that the host posted for the last message.
  [[nodiscard]] uint64_t calls() const { return calls_; }

 private:
  Send(portals::Interface& interface, nic::QueueId queue, SendStrategy strategy, const Message& message)
      : interface_(interface), queue_(queue), strategy_(strategy), message_(message) {}

  Status stream(const portals::PutArguments& put, uint64_t memory_bytes);

  portals::Interface& interface_;
  nic::QueueId queue_;
  SendStrategy strategy_;
  Message message_;
  std::optional<Plan> plan_;
  Installed installed_;
  std::vector<uint8_t> packed_;
  uint64_t calls_ = 0;
};

}  // namespace spinloom::strategies
