// UdpPort - a UDP socket over IPv4 that never blocks: many datagrams a call, and waits that end.
//
// Contract: send() and receive() move at most `batch` datagrams, as many as the system takes or has, and return their
//   number. If the peer's host refuses (nobody listens there), refused() becomes true, and there is no error. Other
//   failures are Errors with the system's reason.
// Threads: after connect() or bind(), any number may call at once. Time: waits take host time.
#pragma once

#include <netinet/in.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"

namespace spinloom::slmp {

struct Datagram {
  std::span<const uint8_t> header;
  std::span<const uint8_t> payload;
  const sockaddr_in* to = nullptr;  // needed if the port is not connected

  [[nodiscard]] size_t bytes() const { return header.size() + payload.size(); }
};

class UdpPort {
 public:
  static constexpr size_t batch = 64;
  static constexpr size_t datagram_bytes_max = 2048;

  // The datagrams that receive() has filled.
  struct Received {
    std::array<std::array<uint8_t, datagram_bytes_max>, batch> bytes;
    std::array<size_t, batch> lengths;
    std::array<sockaddr_in, batch> from;
    [[nodiscard]] std::span<const uint8_t> datagram(size_t i) const { return {bytes[i].data(), lengths[i]}; }
  };

  UdpPort() = default;
  ~UdpPort();
  UdpPort(const UdpPort&) = delete;
  UdpPort& operator=(const UdpPort&) = delete;

  [[nodiscard]] Status connect(const sockaddr_in& peer);
  [[nodiscard]] Status bind(const sockaddr_in& own);
  [[nodiscard]] uint16_t own_port() const;

  [[nodiscard]] Result<size_t> send(std::span<const Datagram> datagrams);
  [[nodiscard]] Result<size_t> receive(Received& out);
  // Waits for `longest` at most, until a datagram has come, `wake` (a file, or -1) can be read or, with `for_room`,
  // there is room to send.
  void wait(Time longest, int wake, bool for_room) const;

  [[nodiscard]] bool refused() const { return refused_; }

 private:
  [[nodiscard]] Status open();
  [[nodiscard]] bool note_transient(int error);
  [[nodiscard]] std::optional<size_t> send_segmented(std::span<const Datagram> run);

  int file_ = -1;
  std::atomic<bool> refused_ = false;
  std::atomic<bool> can_segment_ = true;  // false once a UDP_SEGMENT call has been refused
};

}  // namespace spinloom::slmp
