// DatagramPort - sends and receives datagrams. Ports stack: one port may disturb or record the datagrams of another.
//
// Contract: send() hands datagrams to the link, which may lose any of them. receive() returns the datagrams that have
//   come.
// Invariants: (1) neither call waits; (2) the datagrams of receive() stay valid until the next receive().
// Threads: the owner of the NIC. Time: none.
#pragma once

#include <array>
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
  std::array<std::span<const uint8_t>, 3> pieces;  // one after the other
  [[nodiscard]] size_t size() const { return pieces[0].size() + pieces[1].size() + pieces[2].size(); }
  [[nodiscard]] std::vector<uint8_t> joined() const;
};
struct DatagramIn {
  UdpAddress from;
  std::span<const uint8_t> bytes;
};

class DatagramPort {
 public:
  virtual ~DatagramPort() = default;
  virtual void send(std::span<const DatagramOut> datagrams) = 0;
  [[nodiscard]] virtual std::span<const DatagramIn> receive() = 0;
  // True if more datagrams may have come than the latest receive() has returned.
  [[nodiscard]] virtual bool was_full() const = 0;
  // True if receive() would return something.
  [[nodiscard]] virtual bool has_datagrams() const = 0;
  [[nodiscard]] virtual UdpAddress address() const = 0;
  [[nodiscard]] virtual int descriptor() const = 0;
  // The size of the largest datagram that the link carries in one piece.
  [[nodiscard]] virtual size_t datagram_bytes() const = 0;
  // The number of datagrams of that size that surely fit here before further ones are lost.
  [[nodiscard]] virtual size_t receive_capacity() const = 0;
};

// Opens a UDP socket at this address. With address 0 it takes the first interface that is up and not the loopback,
// preferably one that is connected; if there is none, the loopback. `trains`: datagrams of one size to one address pass
// the kernel together, as far as it can (UDP_SEGMENT, UDP_GRO). Datagrams that are longer than a part of their path
// allows are taken apart there.
[[nodiscard]] Result<std::unique_ptr<DatagramPort>> open_udp(uint32_t address, bool trains = true);

// Faults of outgoing datagrams: the rates at which they are lost, doubled, delayed behind the next one, or damaged. The
// same seed gives the same faults.
struct Faults {
  double drop = 0, duplicate = 0, reorder = 0, corrupt = 0;
  uint64_t seed = 1;
  [[nodiscard]] bool any() const { return drop + duplicate + reorder + corrupt > 0; }
};
// Reads a text such as "drop=0.01,duplicate=0.01,seed=7".
[[nodiscard]] Result<Faults> read_faults(const std::string& text);
[[nodiscard]] std::unique_ptr<DatagramPort> disturb(std::unique_ptr<DatagramPort> port, const Faults& faults);

// Records everything that goes out or comes in, in a pcap file of raw IPv4 packets, for Wireshark or tcpdump.
[[nodiscard]] Result<std::unique_ptr<DatagramPort>> record(std::unique_ptr<DatagramPort> port, const std::string& path);

}  // namespace spinloom::live
