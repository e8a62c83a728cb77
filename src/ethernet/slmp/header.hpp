// Header - the ten bytes before each payload of SLMP, the sPIN lightweight messaging protocol over UDP.
//
// Contract: read() takes the first bytes of a UDP payload, write() makes the bytes of a header. Numbers are big endian
//   (network byte order). The protocol is that of FPsPIN (deliverable D4.7, section 4.4.1): a packet with SYN is
//   answered by its own header with ACK as the only flag and no payload; EOM marks the last packet of a message.
//   REPORT is ours: with SYN it asks how many packets the receiver has room for; the acknowledgement has REPORT and
//   that number behind its header, or neither.
// Invariants: (1) read() of write(h), followed by write_report(h) if has_report(h), is h, if check() accepts h; (2)
//   check() refuses reserved bits, ACK together with SYN or EOM, and REPORT without ACK or SYN; (3) whatever the bytes
//   are, read() does not look outside of them.
// Threads: pure. Time: none.
//
//   offset 0 flags, 2 bytes | 2 message ID, 4 bytes | 6 byte offset in the message, 4 bytes | 10 payload ...
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.hpp"

namespace spinloom::slmp {

inline constexpr uint16_t eom = 0x8000;  // the last packet of its message
inline constexpr uint16_t syn = 0x4000;  // the receiver must acknowledge this packet
inline constexpr uint16_t ack = 0x2000;  // this is an acknowledgement
// A request with SYN: report your room, too; with ACK the room is behind the header.
inline constexpr uint16_t report = 0x1000;

inline constexpr uint16_t udp_port = 9330;
inline constexpr size_t header_bytes = 10;
inline constexpr size_t report_bytes = 4;
inline constexpr uint32_t payload_bytes_max = 1462;  // 1500 of Ethernet, less IP (20), UDP (8) and this header (10)
inline constexpr uint64_t message_bytes_max = uint64_t{1} << 32;  // an offset has four bytes

struct Header {
  uint16_t flags = 0;
  uint32_t message_id = 0;
  uint32_t offset = 0;  // the place of the first payload byte in the message
  uint32_t room = 0;  // packets; 0 without ACK and REPORT

  [[nodiscard]] bool has(uint16_t flag) const { return (flags & flag) != 0; }
  bool operator==(const Header&) const = default;
};

[[nodiscard]] Status check(const Header& header);

[[nodiscard]] Result<Header> read(std::span<const uint8_t> datagram);
[[nodiscard]] std::array<uint8_t, header_bytes> write(const Header& header);
// Returns the bytes that follow the header of an acknowledgement with REPORT.
[[nodiscard]] std::array<uint8_t, report_bytes> write_report(const Header& header);

// Returns one line for people: "SYN EOM message 7 offset 1408", "ACK REPORT message 7 offset 0 room 256".
[[nodiscard]] std::string print(const Header& header);

[[nodiscard]] inline bool has_report(const Header& header) { return header.flags == (ack | report); }

// Returns the acknowledgement of a packet with SYN; `room` is for packets that ask for it.
[[nodiscard]] Header acknowledgement(const Header& header, uint32_t room = 0);

}  // namespace spinloom::slmp
