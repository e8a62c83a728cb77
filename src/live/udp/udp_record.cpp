// A port that records the datagrams of another port in a pcap file (link type 101, raw IP), with IPv4 and UDP
// headers.
#include <time.h>

#include <array>
#include <cstdio>
#include <cstring>

#include "live/udp/datagram_port.hpp"

namespace spinloom::live {
namespace {

void put16(uint8_t* to, size_t value) {
  to[0] = static_cast<uint8_t>(value >> 8);
  to[1] = static_cast<uint8_t>(value);
}
void put32(uint8_t* to, uint32_t value) {
  put16(to, value >> 16);
  put16(to + 2, value & 0xffff);
}

uint16_t ip_checksum(std::span<const uint8_t> header) {
  uint32_t sum = 0;
  for (size_t i = 0; i < header.size(); i += 2) sum += static_cast<uint32_t>(header[i] << 8 | header[i + 1]);
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

class RecordingPort final : public DatagramPort {
 public:
  RecordingPort(std::unique_ptr<DatagramPort> port, FILE* file) : port_(std::move(port)), file_(file) {}
  ~RecordingPort() override { std::fclose(file_); }

  void send(std::span<const DatagramOut> datagrams) override {
    for (const DatagramOut& one : datagrams) write(port_->address(), one.to, one.joined());
    port_->send(datagrams);
  }
  std::span<const DatagramIn> receive() override {
    const auto taken = port_->receive();
    for (const DatagramIn& one : taken) write(one.from, port_->address(), one.bytes);
    if (!taken.empty()) std::fflush(file_);
    return taken;
  }
  bool was_full() const override { return port_->was_full(); }
  bool has_datagrams() const override { return port_->has_datagrams(); }
  UdpAddress address() const override { return port_->address(); }
  int descriptor() const override { return port_->descriptor(); }
  size_t datagram_bytes() const override { return port_->datagram_bytes(); }
  size_t receive_capacity() const override { return port_->receive_capacity(); }

 private:
  void write(const UdpAddress& from, const UdpAddress& to, std::span<const uint8_t> bytes) {
    constexpr size_t ip_bytes = 20, udp_bytes = 8;
    std::array<uint8_t, ip_bytes + udp_bytes> headers{};
    headers[0] = 0x45;
    put16(&headers[2], headers.size() + bytes.size());
    headers[8] = 64;
    headers[9] = 17;  // UDP
    put32(&headers[12], from.address);
    put32(&headers[16], to.address);
    put16(&headers[10], ip_checksum({headers.data(), ip_bytes}));
    put16(&headers[20], from.port);
    put16(&headers[22], to.port);
    put16(&headers[24], udp_bytes + bytes.size());
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    const auto length = static_cast<uint32_t>(headers.size() + bytes.size());
    const std::array<uint32_t, 4> record{static_cast<uint32_t>(now.tv_sec), static_cast<uint32_t>(now.tv_nsec), length,
                                         length};
    std::fwrite(record.data(), sizeof record, 1, file_);
    std::fwrite(headers.data(), headers.size(), 1, file_);
    if (!bytes.empty()) std::fwrite(bytes.data(), bytes.size(), 1, file_);
  }

  std::unique_ptr<DatagramPort> port_;
  FILE* file_;
};

}  // namespace

Result<std::unique_ptr<DatagramPort>> record(std::unique_ptr<DatagramPort> port, const std::string& path) {
  FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return fail(Code::environment, "pcap file ", path, ": ", std::strerror(errno));
  constexpr uint32_t nanoseconds = 0xa1b23c4d, version = 4u << 16 | 2, raw_ip = 101;
  const std::array<uint32_t, 6> header{nanoseconds, version, 0, 0, 65535, raw_ip};
  std::fwrite(header.data(), sizeof header, 1, file);
  return std::unique_ptr<DatagramPort>(std::make_unique<RecordingPort>(std::move(port), file));
}

}  // namespace spinloom::live
