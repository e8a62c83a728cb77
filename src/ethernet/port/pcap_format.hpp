// Pcap format - the headers of a capture file and of its records (draft-ietf-opsawg-pcap, "classic" pcap).
//
//   file   := header record*;
//   header := magic 4 | version 2.4, 2 + 2 | 0, 4 | 0, 4 | longest record 4 | link type 4;
//   record := seconds 4 | fraction 4 | captured 4 | original 4 | bytes, as many as captured.
//
// Contract: numbers have the byte order of the machine that wrote the file, which the magic tells; its value also says
//   whether fractions are micro- or nanoseconds. read_pcap_header() takes both and both orders, and only Ethernet
//   frames; everything else is an Error, which says what to do about pcapng and other link types. The write functions
//   write the form that PcapFormat names: little-endian nanoseconds, if nothing else is set.
// Invariants: (1) a record read from what write_pcap_record() has written is the same, but for nanoseconds in a file of
//   microseconds; (2) read_pcap_record() refuses a record with more than pcap_record_bytes_max captured bytes.
// Threads: pure. Time: none; times are the file's, in nanoseconds since 1970.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace spinloom::port {

inline constexpr size_t pcap_header_bytes = 24;
inline constexpr size_t pcap_record_header_bytes = 16;
inline constexpr uint32_t pcap_record_bytes_max = 262144;  // the limit of tcpdump and Wireshark, too

struct PcapFormat {
  bool big_endian = false;
  bool nanoseconds = true;
  uint32_t check_bytes = 0;  // length of the check sequence at the end of each frame
};

struct PcapRecord {
  int64_t time_ns = 0;
  uint32_t captured_bytes = 0;
  uint32_t original_bytes = 0;
};

using PcapHeaderBytes = std::array<uint8_t, pcap_header_bytes>;
using PcapRecordBytes = std::array<uint8_t, pcap_record_header_bytes>;

// `name` is the file's, for messages.
[[nodiscard]] Result<PcapFormat> read_pcap_header(const PcapHeaderBytes& bytes, const std::string& name);
[[nodiscard]] Result<PcapRecord> read_pcap_record(const PcapFormat& format, const PcapRecordBytes& bytes,
                                                  const std::string& name);
[[nodiscard]] PcapHeaderBytes write_pcap_header(const PcapFormat& format);
[[nodiscard]] PcapRecordBytes write_pcap_record(const PcapFormat& format, const PcapRecord& record);

}  // namespace spinloom::port
