// TraceLog - what a rank's transports carried, as lines of a CSV file: what `spinloom trace` reads.
//
// Contract: open() writes the head of a new file; each call adds a line: when (nanoseconds since the epoch), what
//   (`send`; `left`, when its payload has been read; `arrive`; `copied`, when bytes that it announced have been read
//   out of the sender's memory, or `failed`; `lost` for a peer that is gone), the peer, and of a packet the operation,
//   message, portal, match bits, offset, bytes, and the message's bytes. flush() brings all to the file.
// Invariants: trouble with the file ends the log, nothing else.
// Threads: the owner of the NIC. Time: the real-time clock.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"
#include "nic/packet.hpp"

namespace spinloom::live {

class TraceLog {
 public:
  [[nodiscard]] static Result<std::unique_ptr<TraceLog>> open(const std::string& path);
  ~TraceLog();
  TraceLog(const TraceLog&) = delete;
  TraceLog& operator=(const TraceLog&) = delete;

  void packet(const char* what, nic::Rank peer, const nic::Packet& packet);
  void message(const char* what, uint64_t message);
  void peer(const char* what, nic::Rank peer);
  void flush();

 private:
  explicit TraceLog(int file) : file_(file) {}
  void begin(const char* what);

  int file_;  // -1: there was trouble with it
  std::string kept_;  // lines that are not in the file yet
};

}  // namespace spinloom::live
