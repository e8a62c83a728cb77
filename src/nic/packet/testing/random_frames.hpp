// For tests: memory that ends where bytes end, random frames, and one function that reads a frame in every way.
//
// Contract: Guarded holds a copy of bytes with a page behind them that nobody may read: a reader that goes on dies,
//   also without sanitizers. random_frame() gives frames that are right, of all kinds. read_all() reads bytes as a
//   frame and as each kind of packet, and throws where a payload does not lie in them. Only tests and fuzz targets
//   include this.
// Threads: one. Time: none.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include "base/random.hpp"
#include "nic/packet/arp.hpp"
#include "nic/packet/build.hpp"
#include "nic/packet/describe.hpp"
#include "nic/packet/ethernet.hpp"
#include "nic/packet/icmp.hpp"
#include "nic/packet/udp.hpp"

namespace spinloom::packet::test {

class Guarded {
 public:
  explicit Guarded(Bytes bytes) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t data_bytes = (bytes.size() + page) / page * page;
    mapped_bytes_ = data_bytes + page;
    void* const place = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    SPL_ASSERT(place != MAP_FAILED, "no memory for a test");
    begin_ = static_cast<uint8_t*>(place);
    SPL_ASSERT(mprotect(begin_ + data_bytes, page, PROT_NONE) == 0, "no guard page");
    bytes_ = {begin_ + data_bytes - bytes.size(), bytes.size()};
    std::copy(bytes.begin(), bytes.end(), bytes_.begin());
  }
  ~Guarded() { munmap(begin_, mapped_bytes_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  [[nodiscard]] std::span<uint8_t> bytes() const { return bytes_; }

 private:
  uint8_t* begin_ = nullptr;
  size_t mapped_bytes_ = 0;
  std::span<uint8_t> bytes_;
};

inline FrameBytes random_bytes(Random& random, size_t count) {
  FrameBytes out(count);
  for (uint8_t& byte : out) byte = static_cast<uint8_t>(random.next());
  return out;
}

inline MacAddress random_mac(Random& random) {
  MacAddress out;
  for (uint8_t& byte : out.bytes) byte = static_cast<uint8_t>(random.next());
  return out;
}

inline Ethernet random_ethernet(Random& random, uint16_t type) {
  Ethernet out;
  out.target = random_mac(random);
  out.source = random_mac(random);
  out.tag_count = static_cast<uint8_t>(random.below(3));
  for (size_t i = 0; i < out.tag_count; ++i) {
    out.tags[i] = {random.chance(1, 2) ? ether_type::vlan : ether_type::service_vlan,
                   static_cast<uint16_t>(random.next())};
  }
  out.type = type;
  return out;
}

inline Ipv4 random_ipv4(Random& random, uint8_t protocol, Bytes options) {
  Ipv4 out;
  out.service = static_cast<uint8_t>(random.next());
  out.identification = static_cast<uint16_t>(random.next());
  out.dont_fragment = random.chance(1, 2);
  out.ttl = static_cast<uint8_t>(random.next());
  out.protocol = protocol;
  out.source = {static_cast<uint32_t>(random.next())};
  out.target = {static_cast<uint32_t>(random.next())};
  out.options = options.first(4 * random.below(options.size() / 4 + 1));
  return out;
}

inline FrameBytes random_frame(Random& random) {
  const FrameBytes payload = random_bytes(random, random.below(1400));
  const FrameBytes options = random_bytes(random, ipv4_options_bytes_max);
  const Ethernet ethernet = random_ethernet(random, ether_type::ipv4);
  switch (random.below(5)) {
    case 0: return ethernet_frame(random_ethernet(random, static_cast<uint16_t>(random.next() | 0x0800)), payload);
    case 1: {
      std::array<uint8_t, arp_bytes> packet{};
      write_arp({static_cast<uint16_t>(1 + random.below(3)),
                 ethernet.source,
                 {static_cast<uint32_t>(random.next())},
                 ethernet.target,
                 {static_cast<uint32_t>(random.next())}},
                packet);
      return ethernet_frame(random_ethernet(random, ether_type::arp), packet);
    }
    case 2: {  // a fragment
      Ipv4 ipv4 = random_ipv4(random, ip_protocol::udp, options);
      ipv4.more_fragments = true;
      ipv4.fragment_offset = static_cast<uint16_t>(8 * random.below(7000));
      return ipv4_frame(ethernet, ipv4, Bytes(payload).first(payload.size() / 8 * 8));
    }
    case 3: {
      FrameBytes message(icmp_header_bytes);
      message.insert(message.end(), payload.begin(), payload.end());
      write_icmp({random.chance(1, 2) ? icmp_type::echo_request : icmp_type::echo_reply,
                  0,
                  static_cast<uint16_t>(random.next()),
                  static_cast<uint16_t>(random.next()),
                  {}},
                 message);
      return ipv4_frame(ethernet, random_ipv4(random, ip_protocol::icmp, options), message);
    }
    default: {
      const Ipv4 ipv4 = random_ipv4(random, ip_protocol::udp, options);
      FrameBytes datagram(udp_header_bytes);
      datagram.insert(datagram.end(), payload.begin(), payload.end());
      write_udp(ipv4,
                {static_cast<uint16_t>(random.next()), static_cast<uint16_t>(random.next()), random.chance(3, 4), {}},
                datagram);
      return ipv4_frame(ethernet, ipv4, datagram);
    }
  }
}

inline void assert_within(Bytes part, Bytes whole) {
  const std::less_equal<> below;
  SPL_ASSERT(part.empty() ||
                 (below(whole.data(), part.data()) && below(part.data() + part.size(), whole.data() + whole.size())),
             "a payload outside of its packet");
}

// True if the bytes are an IPv4 packet.
inline bool read_as_ipv4(Bytes bytes) {
  const auto ipv4 = read_ipv4(bytes);
  if (!ipv4) return false;
  assert_within(ipv4->options, bytes);
  assert_within(ipv4->payload, bytes);
  if (const auto udp = read_udp(*ipv4)) {
    assert_within(udp->payload, ipv4->payload);
    (void)verify_udp(*ipv4, *udp);
  }
  if (const auto icmp = read_icmp(*ipv4)) assert_within(icmp->payload, ipv4->payload);
  FrameBytes again(ipv4_bytes(*ipv4));
  write_ipv4(*ipv4, ipv4->payload.size(), again);
  again.insert(again.end(), ipv4->payload.begin(), ipv4->payload.end());
  const auto second = read_ipv4(again);
  SPL_ASSERT(second.ok(), "what was written cannot be read: ", sentence(second.error));
  SPL_ASSERT(second->fragment_offset == ipv4->fragment_offset && second->payload.size() == ipv4->payload.size() &&
                 second->more_fragments == ipv4->more_fragments && second->target == ipv4->target,
             "other fields");
  return true;
}

// True if the bytes are a frame.
inline bool read_all(Bytes bytes) {
  SPL_ASSERT(!describe(bytes).empty(), "nothing to print");
  bool read = read_as_ipv4(bytes);
  if (const auto arp = read_arp(bytes)) {
    std::array<uint8_t, arp_bytes> again{};
    write_arp(*arp, again);
    SPL_ASSERT(std::equal(again.begin(), again.end(), bytes.begin()), "another ARP packet");
    read = true;
  }
  const auto ethernet = read_ethernet(bytes);
  if (!ethernet) return read;
  assert_within(ethernet->payload, bytes);
  FrameBytes again(ethernet_bytes(*ethernet));
  write_ethernet(*ethernet, again);
  SPL_ASSERT(std::equal(again.begin(), again.end(), bytes.begin()), "another Ethernet header");
  (void)read_as_ipv4(ethernet->payload);
  (void)read_arp(ethernet->payload);
  return true;
}

}  // namespace spinloom::packet::test
