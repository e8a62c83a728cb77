#include "ethernet/port/pcap_format.hpp"

#include "base/byte_order.hpp"

namespace spinloom::port {

namespace {

constexpr uint32_t magic_microseconds = 0xa1b2c3d4;
constexpr uint32_t magic_nanoseconds = 0xa1b23c4d;
constexpr uint32_t magic_pcapng = 0x0a0d0d0a;
constexpr uint16_t link_ethernet = 1;
constexpr int64_t second_ns = 1'000'000'000;

uint32_t number(const PcapFormat& format, const uint8_t* at) {
  return format.big_endian ? load_be<uint32_t>(at) : load_le<uint32_t>(at);
}

void put_number(const PcapFormat& format, uint8_t* at, uint32_t value) {
  format.big_endian ? store_be(at, value) : store_le(at, value);
}

}  // namespace

Result<PcapFormat> read_pcap_header(const PcapHeaderBytes& bytes, const std::string& name) {
  PcapFormat format;
  if (load_be<uint32_t>(bytes.data()) == magic_pcapng) {
    return fail(Code::unsupported, name, " is a pcapng file; convert it: editcap -F pcap ", name, " ", name, ".pcap");
  }
  for (format.big_endian = false;; format.big_endian = true) {
    const uint32_t magic = number(format, bytes.data());
    format.nanoseconds = magic == magic_nanoseconds;
    if (format.nanoseconds || magic == magic_microseconds) break;
    if (format.big_endian) {
      return fail(Code::invalid, name, " is no pcap file: it begins with other bytes than a1b2c3d4 or a1b23c4d");
    }
  }
  const uint32_t link = number(format, bytes.data() + 20);
  if ((link & 0xffff) != link_ethernet) {
    return fail(Code::unsupported, name, " has frames of link type ", link & 0xffff,
                "; only Ethernet (1) is read here: capture on an Ethernet interface, not on 'any'");
  }
  constexpr uint32_t has_check_sequence = 1U << 26;
  if ((link & has_check_sequence) != 0) format.check_bytes = (link >> 28) * 2;
  return format;
}

Result<PcapRecord> read_pcap_record(const PcapFormat& format, const PcapRecordBytes& bytes, const std::string& name) {
  const uint32_t fraction = number(format, bytes.data() + 4);
  const PcapRecord record{
      number(format, bytes.data()) * second_ns + int64_t{fraction} * (format.nanoseconds ? 1 : 1000),
      number(format, bytes.data() + 8), number(format, bytes.data() + 12)};
  if (record.captured_bytes > pcap_record_bytes_max) {
    return fail(Code::invalid, name, " has a record of ", record.captured_bytes, " bytes, and ", pcap_record_bytes_max,
                " is the most: it is damaged");
  }
  return record;
}

PcapHeaderBytes write_pcap_header(const PcapFormat& format) {
  PcapHeaderBytes out{};
  put_number(format, out.data(), format.nanoseconds ? magic_nanoseconds : magic_microseconds);
  put_number(format, out.data() + 4, format.big_endian ? 2U << 16 | 4 : 4U << 16 | 2);  // version 2.4, two numbers
  put_number(format, out.data() + 16, pcap_record_bytes_max);
  const uint32_t check = format.check_bytes == 0 ? 0 : 1U << 26 | format.check_bytes / 2 << 28;
  put_number(format, out.data() + 20, check | link_ethernet);
  return out;
}

PcapRecordBytes write_pcap_record(const PcapFormat& format, const PcapRecord& record) {
  PcapRecordBytes out{};
  put_number(format, out.data(), static_cast<uint32_t>(record.time_ns / second_ns));
  put_number(format, out.data() + 4,
             static_cast<uint32_t>(record.time_ns % second_ns / (format.nanoseconds ? 1 : 1000)));
  put_number(format, out.data() + 8, record.captured_bytes);
  put_number(format, out.data() + 12, record.original_bytes);
  return out;
}

}  // namespace spinloom::port
