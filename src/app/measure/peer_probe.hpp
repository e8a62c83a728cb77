// PeerProbe - how long a message takes from one process of this machine to another, by each way of the MPI layer,
// without an MPI.
//
// Contract: two processes make a PeerProbe each, with the same name and mailbox (a file that both can write, of
//   mailbox_bytes zeros) and ranks 0 and 1. Both call measure() with the same arguments, and each gets `samples` times:
//   half of a round trip, after both have written what they send. Rank 0 begins, so its times are those of one
//   direction. The first round trip is not timed: its bytes are compared with the oracle, gaps included. A way that is
//   not open between the two is an Error, and so is a peer that does not answer for ten seconds, and one second more
//   for each 100 MB that a message and its span have. After an Error measure() may be called again.
// Memory: each process holds memory_bytes() of a message at most.
// Threads: one, in each process. Time: the steady clock, host time in ns.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "mpi/moving/way.hpp"

namespace spinloom::app {

class PeerProbe {
 public:
  static constexpr uint64_t mailbox_bytes = 4096;
  // Returns the sum of what a process holds: the message as sent, as received and as expected, each with its span, and
  // packed twice, once for the check and once on its way.
  [[nodiscard]] static double memory_bytes(double message_bytes, double span_bytes) {
    return 3 * span_bytes + 2 * message_bytes;
  }

  [[nodiscard]] static Result<std::unique_ptr<PeerProbe>> open(const std::string& name, const std::string& mailbox,
                                                               uint32_t rank);
  ~PeerProbe();
  PeerProbe(const PeerProbe&) = delete;
  PeerProbe& operator=(const PeerProbe&) = delete;

  // `in_heap`: the buffers lie in memory that the peer maps; otherwise in memory of this process alone.
  [[nodiscard]] Result<std::vector<double>> measure(const std::string& type_text, int64_t count, mpi::Way way,
                                                    bool in_heap, int samples);

 private:
  struct MailSlot;
  struct Impl;
  explicit PeerProbe(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace spinloom::app
