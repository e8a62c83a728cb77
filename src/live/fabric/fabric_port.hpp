// FabricPort - sends and receives whole messages over a fabric that loses none, and reads memory that peers lend.
// Ports stack: one port may disturb another.
//
// Contract: slot() gives room for one message to a peer; the caller fills its `bytes`, at most message_bytes(), and
//   calls send() to that peer or release_slot(). send() returns false if the message cannot go now; the slot stays the
//   caller's. poll() moves everything on and appends what has happened. The bytes of a message that came stay valid
//   until release_message() is called with them. read() copies bytes of memory that a peer has lent by lend(); its end
//   comes as a FabricEvent with its token.
// Invariants: (1) no call waits for a peer; (2) messages from one peer come in the order sent; (3) a read() that
//   returned true ends by one FabricEvent, which may never come if its peer is gone. Until it comes, the memory must
//   not be used otherwise; (4) a peer that takes nothing delays no message to another one: the number of slots on their
//   way to a peer is limited.
// Threads: the owner of the NIC. Time: none.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "nic/portals/ids.hpp"

namespace spinloom::live {

// Memory of a process that its peers may read.
struct FabricRegion {
  uint64_t key = 0;
  uint64_t address = 0;
};

struct FabricEvent {
  enum class Kind : uint8_t {
    received,  // `bytes` are a message that has come
    read,  // the read() of this token has ended; `succeeded` says how
    failed  // a message that was sent to `peer` cannot be delivered
  };
  Kind kind = Kind::received;
  bool succeeded = false;
  nic::Rank peer;
  uint64_t token = 0;
  std::span<const uint8_t> bytes;
  std::string why;  // the reason of a failure, in the fabric's words; may be empty
};

class FabricPort {
 public:
  struct Slot {
    nic::Rank peer;
    std::vector<uint8_t> bytes;
  };

  virtual ~FabricPort() = default;
  // Returns null if the limit of messages on their way to this peer is reached, or if there is no room for one more.
  [[nodiscard]] virtual Slot* slot(nic::Rank peer) = 0;
  [[nodiscard]] virtual bool send(Slot& slot) = 0;
  virtual void release_slot(Slot& slot) = 0;
  virtual void poll(std::vector<FabricEvent>& events) = 0;
  virtual void release_message(std::span<const uint8_t> bytes) = 0;
  [[nodiscard]] virtual Result<FabricRegion> lend(const uint8_t* bytes, uint64_t length) = 0;
  virtual void end_loan(const FabricRegion& region) = 0;
  // Returns memory that read() can fill, and that the fabric knows where it has to.
  [[nodiscard]] virtual Result<uint8_t*> make_read_buffer(uint64_t length) = 0;
  [[nodiscard]] virtual bool read(nic::Rank peer, const FabricRegion& from, uint8_t* to, uint64_t length,
                                  uint64_t token) = 0;
  // Prepares for a sleep: the descriptor becomes readable when poll() finds something. False: it finds something now.
  [[nodiscard]] virtual bool arm() = 0;
  // The descriptor of arm(). -1: nothing wakes a sleeper, which has to look by itself.
  [[nodiscard]] virtual int descriptor() const = 0;
  // True if everything that was sent has left this process.
  [[nodiscard]] virtual bool idle() const = 0;
  [[nodiscard]] virtual size_t message_bytes() const = 0;
  [[nodiscard]] virtual bool has_reads() const = 0;
  // The address at which peers reach this port, as the fabric writes it; any bytes.
  [[nodiscard]] virtual std::string address() const = 0;
  // Sets the addresses of all ranks; a rank with an empty address is not served.
  [[nodiscard]] virtual Status set_addresses(const std::vector<std::string>& addresses) = 0;
  // The provider's name; processes with the same one can talk. describe() is for people.
  [[nodiscard]] virtual std::string provider() const = 0;
  [[nodiscard]] virtual std::string describe() const = 0;
  // A peer's address, for people.
  [[nodiscard]] virtual std::string describe(nic::Rank peer) const = 0;
};

}  // namespace spinloom::live
