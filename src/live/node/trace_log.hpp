// TraceLog - records the packets of a rank's transports as lines of a CSV file, which `spinloom trace --live` reads.
//
// Contract: open() makes a new file and writes its head. Each call adds a line. A line has the time (nanoseconds since
//   the epoch) and what happened. log_packet() adds the peer, and the packet's operation, message, portal, match bits,
//   offset and bytes, and the bytes of the whole message; log_message() adds a message alone, log_peer() a peer alone.
//   What happened is `send`; `left` when a packet's payload has been read; `arrive`; `copied` when bytes that the
//   packet announced have been read out of the sender's memory, or `failed`; `lost` when a peer is gone, `back` when it
//   is there again. flush() writes all lines to the file.
// Invariants: (1) trouble with the file ends the log and does nothing else.
// Threads: the owner of the NIC. Time: the real-time clock.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"
#include "nic/portals/packet.hpp"

namespace spinloom::live {

class TraceLog {
 public:
  [[nodiscard]] static Result<std::unique_ptr<TraceLog>> open(const std::string& path);
  ~TraceLog();
  TraceLog(const TraceLog&) = delete;
  TraceLog& operator=(const TraceLog&) = delete;

  void log_packet(const char* event, nic::Rank peer, const nic::Packet& packet);
  void log_message(const char* event, uint64_t message);
  void log_peer(const char* event, nic::Rank peer);
  void flush();

 private:
  explicit TraceLog(int file) : file_(file) {}
  void begin_line(const char* event);

  int file_;  // -1: the log has ended
  std::string buffer_;  // lines that have not been written yet
};

}  // namespace spinloom::live
