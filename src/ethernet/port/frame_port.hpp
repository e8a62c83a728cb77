// FramePort - a source and a sink of raw Ethernet frames: files, TAP devices, network interfaces.
//
// Contract: frames have no check sequence. receive() fills `batch` from its front with frames that have come, in their
//   order, and returns how many; 0 means none now. send() takes frames in their order and returns how many it took;
//   frames that it did not take stay the caller's, who tries again when descriptor() is ready to write. Both return at
//   once, always. A frame for send() has a header of 14 bytes, and at most mtu() bytes more and 4 for a VLAN tag; one
//   of another length is an Error, and nothing is sent. After any other Error the port is of no more use. ended() is
//   true for a port of files whose last frame was received, or which reads no file. descriptor() is what to poll() on
//   for reading and writing, or -1 where there is nothing to wait for.
// Invariants: (1) the bytes of received frames stay until the next receive(), whatever is sent; (2) send() has copied
//   what it took; (3) what the port itself sends never comes back from receive(); (4) checksums in received frames are
//   those that a wire would carry; (5) every frame that came is counted in received, dropped or truncated.
// Threads: one at a time; ports share nothing. Time: host time; no call waits.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/result.hpp"
#include "nic/packet/address.hpp"
#include "nic/packet/read.hpp"

namespace spinloom::port {

using packet::Bytes;

struct Counters {
  uint64_t received = 0;
  uint64_t sent = 0;
  uint64_t dropped = 0;  // lost in the kernel, which had no room for them
  uint64_t truncated = 0;  // frames that are not whole: longer than frame_bytes_max(), or cut off in a file
};

class FramePort {
 public:
  FramePort() = default;
  virtual ~FramePort() = default;
  FramePort(const FramePort&) = delete;
  FramePort& operator=(const FramePort&) = delete;

  [[nodiscard]] virtual Result<size_t> receive(std::span<Bytes> batch) = 0;
  [[nodiscard]] virtual Result<size_t> send(std::span<const Bytes> frames) = 0;
  [[nodiscard]] virtual bool ended() const { return false; }

  // time_ns() is the time at which the frames of the last receive() came, in nanoseconds since 1970, if a file gives
  // it. set_time_ns() sets the time that a file gets for frames sent from now on, until receive() brings frames with
  // another time.
  [[nodiscard]] virtual std::optional<int64_t> time_ns() const { return std::nullopt; }
  virtual void set_time_ns(int64_t /*time_ns*/) {}

  [[nodiscard]] virtual packet::MacAddress mac() const = 0;  // the address of the NIC at this port
  [[nodiscard]] virtual size_t mtu() const = 0;  // bytes of payload behind an Ethernet header
  [[nodiscard]] virtual Counters counters() = 0;
  [[nodiscard]] virtual int descriptor() const = 0;
  [[nodiscard]] virtual std::string description() const = 0;  // one line

  // True if send() takes a frame of this length. A frame with a VLAN tag may be longer by the tag.
  [[nodiscard]] bool accepts(Bytes frame) const;
  // Returns the length of the longest frame, which has one VLAN tag.
  [[nodiscard]] size_t frame_bytes_max() const;

 protected:
  [[nodiscard]] Status check_lengths(std::span<const Bytes> frames) const;
};

using PortPointer = std::unique_ptr<FramePort>;

// Returns a locally administered address, always the same for the same name, for a port that has none of an interface.
[[nodiscard]] packet::MacAddress mac_for(std::string_view name);

}  // namespace spinloom::port
