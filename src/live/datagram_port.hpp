// DatagramPort - a place to send datagrams from and to take them at. Ports stack: one may disturb or record another's.
//
// Contract: send() hands datagrams to the link, which may lose any of them; take() answers with those that have come.
// Invariants: (1) neither waits; (2) what take() gave stays until the next take().
// Threads: the owner of the NIC. Time: none.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace spinloom::live {

struct UdpAddress {
  uint32_t address = 0;  // IPv4, host order
  uint16_t port = 0;
  bool operator==(const UdpAddress&) const = default;
};

[[nodiscard]] std::string print(const UdpAddress& address);

struct DatagramOut {
  UdpAddress to;
  std::span<const uint8_t> bytes;
};
struct DatagramIn {
  UdpAddress from;
  std::span<const uint8_t> bytes;
};

class DatagramPort {
 public:
  virtual ~DatagramPort() = default;
  virtual void send(std::span<const DatagramOut> datagrams) = 0;
  [[nodiscard]] virtual std::span<const DatagramIn> take() = 0;
  // Something is there to be taken.
  [[nodiscard]] virtual bool has_some() const = 0;
  [[nodiscard]] virtual UdpAddress address() const = 0;
  [[nodiscard]] virtual int descriptor() const = 0;
  // The largest datagram that goes over in one piece.
  [[nodiscard]] virtual size_t datagram_bytes() const = 0;
};

// A UDP socket at this address, or, without one, at that of the first interface that is up and not the loopback; the
// loopback where there is no other.
[[nodiscard]] Result<std::unique_ptr<DatagramPort>> open_udp(uint32_t address);

// What goes out is lost, doubled, delayed behind the next one or damaged, each at a rate; the seed repeats it.
struct Faults {
  double drop = 0, duplicate = 0, reorder = 0, corrupt = 0;
  uint64_t seed = 1;
  [[nodiscard]] bool any() const { return drop + duplicate + reorder + corrupt > 0; }
};
// "drop=0.01,duplicate=0.01,seed=7"
[[nodiscard]] Result<Faults> read_faults(const std::string& text);
[[nodiscard]] std::unique_ptr<DatagramPort> disturb(std::unique_ptr<DatagramPort> port, const Faults& faults);

// Everything that goes out or comes in, as a pcap file of raw IPv4 packets that Wireshark and tcpdump read.
[[nodiscard]] Result<std::unique_ptr<DatagramPort>> record(std::unique_ptr<DatagramPort> port, const std::string& path);

}  // namespace spinloom::live
