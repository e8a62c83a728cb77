// Port - what the code above needs from a driver of a NIC: simulated, live or for tests.
//
// Contract: one port per process (rank). submit() hands a command to the rank's NIC; wait() lets the driver go on
//   until something readable by this host may have changed. host_work() announces the host's work (unpacking,
//   building checkpoints): the simulator prices it, live drivers ignore it.
// Invariants: (1) events of one queue are delivered in the order posted; (2) if nothing can ever happen any more,
//   wait() returns an Error that names the waiting ranks and what each of them waits for.
// Threads: the owner of the rank. Time: now() is virtual under the simulator.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/result.hpp"
#include "base/units.hpp"
#include "nic/portals/command.hpp"
#include "nic/portals/event.hpp"
#include "nic/portals/host_memory.hpp"
#include "nic/portals/quick.hpp"

namespace spinloom::portals {

// Work of the host's processor between calls.
struct HostWork {
  enum class Kind : uint8_t {
    interpret,  // copies blocks, and finds them by walking a datatype at the same time
    copy,       // copies blocks by loops that were made for the datatype beforehand
    react,      // a waiting program sees an event, and posts a call
    post,       // walks over blocks to find the arguments of a call, and posts the call
    other
  };
  Kind kind = Kind::other;
  struct Blocks {
    uint64_t in_vectors = 0;  // blocks found by adding a stride
    uint64_t listed = 0;      // blocks found in a list
  };
  Blocks blocks;
  uint64_t bytes = 0;   // bytes copied
  bool is_warm = false;    // the memory that the work touches was in the last-level cache before, as far as it fits
  // Calls back for every range of host memory that the work touches, in order, for the simulator's cache model.
  // Addresses belong to a space of the caller's choice, the same in every run; only distances count.
  using Touch = std::function<void(uint64_t address, uint64_t length, bool is_write)>;
  std::function<void(const Touch&)> touches;
};

class Port {
 public:
  virtual ~Port() = default;
  [[nodiscard]] virtual nic::Rank rank() const = 0;
  [[nodiscard]] virtual Time now() const = 0;
  // Commands of one port reach the NIC in order.
  virtual void submit(const nic::Command& command) = 0;
  // Submits a put that has no token and no trigger; drivers may have a shorter way for it.
  virtual void put(const nic::Put& put) { submit(nic::Command{put, {}, 0}); }
  // Submits a put without decisions (nic/portals/quick.hpp). False: nothing has happened, and the caller uses put().
  virtual bool put_quickly(const nic::QuickPut&) { return false; }
  // Takes the answer to the command with this token; nothing while it has not come.
  virtual std::optional<Result<uint64_t>> take_answer(uint64_t token) = 0;
  // Takes the oldest event of a queue that the host can read now; nothing if there is none.
  virtual std::optional<nic::Event> take_event(nic::QueueId queue) = 0;
  [[nodiscard]] virtual nic::CounterValue counter(nic::CounterId counter) const = 0;
  // Lets the driver go on until something may have changed for this host.
  virtual Status wait() = 0;
  // Spends the host's time on work; returns when it is done.
  virtual Status host_work(const HostWork& work) = 0;
  // Returns the driver's knowledge of this host's memory; null: all memory counts as present.
  [[nodiscard]] virtual nic::HostMemory* memory() = 0;
};

}  // namespace spinloom::portals
