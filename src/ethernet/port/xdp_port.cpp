#include "ethernet/port/xdp_port.hpp"

#include <linux/if_xdp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "ethernet/port/bpf.hpp"
#include "ethernet/port/finish_checksum.hpp"
#include "ethernet/port/silence.hpp"
#include "ethernet/port/xdp_ring.hpp"
#include "nic/packet/ethernet.hpp"

namespace spinloom::port {

namespace {

constexpr uint32_t small_chunk_bytes = 2048;
constexpr uint32_t large_chunk_bytes = 4096;  // a page is the most
constexpr uint32_t headroom_bytes = 256;  // XDP_PACKET_HEADROOM: the kernel leaves it before each frame
constexpr uint32_t ring_entries = 2048;
constexpr uint32_t chunks_each_way = 2048;
constexpr size_t xdp_mtu_max =
    large_chunk_bytes - headroom_bytes - packet::ethernet_header_bytes - packet::vlan_tag_bytes;

class XdpPort final : public FramePort {
 public:
  XdpPort(const Interface& interface, Silence silence)
      : interface_(interface),
        silence_(std::move(silence)),
        chunk_bytes_(frame_bytes_max() + headroom_bytes <= small_chunk_bytes ? small_chunk_bytes : large_chunk_bytes) {}

  Status open() {
    socket_ = Descriptor(socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0));
    if (!socket_) return xdp_error("open an AF_XDP socket");
    memory_ = Mapping(-1, size_t{2} * chunks_each_way * chunk_bytes_, 0);
    if (!memory_) return xdp_error("map memory for frames");
    xdp_umem_reg area{};
    area.addr = reinterpret_cast<uint64_t>(memory_.data());
    area.len = memory_.bytes().size();
    area.chunk_size = chunk_bytes_;
    if (!set(XDP_UMEM_REG, area)) {
      if (errno != ENOBUFS) return xdp_error("register memory for frames");
      return fail(Code::environment, "AF_XDP on ", interface_.name, " needs ", area.len >> 20,
                  " MiB of locked memory, and this user may lock less: ulimit -l", alternative());
    }
    for (const int ring : {XDP_UMEM_FILL_RING, XDP_UMEM_COMPLETION_RING, XDP_RX_RING, XDP_TX_RING}) {
      if (!set(ring, ring_entries)) return xdp_error("make a ring");
    }
    xdp_mmap_offsets offsets{};
    socklen_t length = sizeof(offsets);
    if (getsockopt(socket_.number(), SOL_XDP, XDP_MMAP_OFFSETS, &offsets, &length) != 0)
      return xdp_error("find its rings");
    const int number = socket_.number();
    fill_ring_ = {number, offsets.fr, ring_entries, static_cast<int64_t>(XDP_UMEM_PGOFF_FILL_RING)};
    completion_ring_ = {number, offsets.cr, ring_entries, static_cast<int64_t>(XDP_UMEM_PGOFF_COMPLETION_RING)};
    receive_ring_ = {number, offsets.rx, ring_entries, XDP_PGOFF_RX_RING};
    transmit_ring_ = {number, offsets.tx, ring_entries, XDP_PGOFF_TX_RING};
    if (!fill_ring_ || !completion_ring_ || !receive_ring_ || !transmit_ring_) return xdp_error("map its rings");

    for (uint32_t i = 0; i < chunks_each_way; ++i) {
      fill_ring_.at(i) = uint64_t{i} * chunk_bytes_;
      free_chunks_.push_back(uint64_t{chunks_each_way + i} * chunk_bytes_);
    }
    fill_ring_.produce(chunks_each_way);

    sockaddr_xdp place{};
    place.sxdp_family = AF_XDP;
    place.sxdp_ifindex = static_cast<uint32_t>(interface_.index);
    if (bind(number, reinterpret_cast<const sockaddr*>(&place), sizeof(place)) != 0)
      return xdp_error("bind to its queue 0");
    auto program = bpf_redirect_queue(interface_.index, number);
    if (!program) return fail(program.error().code, program.error().message, alternative());
    program_ = std::move(*program);
    return {};
  }

  Result<size_t> receive(std::span<Bytes> batch) override {
    if (transmit_ring_.unconsumed() > 0) SPL_TRY(push());
    if (held_frames_ > 0) {  // the fill ring lacks this many, so there is room
      for (uint32_t i = 0; i < held_frames_; ++i)
        fill_ring_.at(i) = receive_ring_.at(i).addr / chunk_bytes_ * chunk_bytes_;
      fill_ring_.produce(held_frames_);
      receive_ring_.consume(held_frames_);
    }
    held_frames_ = static_cast<uint32_t>(std::min<size_t>(batch.size(), receive_ring_.available()));
    for (uint32_t i = 0; i < held_frames_; ++i) {
      const xdp_desc& received = receive_ring_.at(i);
      const auto frame = memory_.bytes().subspan(received.addr, received.len);
      finish_if_offloaded(frame);
      batch[i] = frame;
    }
    counters_.received += held_frames_;
    if (held_frames_ == 0) SPL_TRY(interface_end_.check(socket_.number(), interface_.name));
    return size_t{held_frames_};
  }

  Result<size_t> send(std::span<const Bytes> frames) override {
    SPL_TRY(check_lengths(frames));
    reclaim_chunks();
    const size_t count = std::min({frames.size(), free_chunks_.size(), size_t{transmit_ring_.free_entries()}});
    for (size_t i = 0; i < count; ++i) {
      const uint64_t chunk = free_chunks_.back();
      free_chunks_.pop_back();
      std::copy(frames[i].begin(), frames[i].end(), memory_.data() + chunk);
      transmit_ring_.at(static_cast<uint32_t>(i)) = {chunk, static_cast<uint32_t>(frames[i].size()), 0};
    }
    transmit_ring_.produce(static_cast<uint32_t>(count));
    counters_.sent += count;
    SPL_TRY(push());
    return count;
  }

  packet::MacAddress mac() const override { return interface_.mac; }
  size_t mtu() const override { return interface_.mtu; }
  Counters counters() override {
    xdp_statistics all{};
    socklen_t length = sizeof(all);
    if (getsockopt(socket_.number(), SOL_XDP, XDP_STATISTICS, &all, &length) == 0) {
      counters_.dropped = all.rx_dropped + all.rx_ring_full;
    }
    return counters_;
  }
  int descriptor() const override { return socket_.number(); }
  std::string description() const override {
    return text("xdp:", interface_.name, " (", packet::to_text(interface_.mac), ", MTU ", interface_.mtu, "; ",
                program_.in_driver ? "in the driver; " : "in the kernel's general code; ", silence_.method, ")");
  }

 private:
  template <class Value>
  bool set(int option, const Value& value) {
    return setsockopt(socket_.number(), SOL_XDP, option, &value, sizeof(value)) == 0;
  }

  std::string alternative() const { return text("; packet:", interface_.name, " does the same without XDP"); }

  Error xdp_error(const char* what) const {
    Error out = system_error(text(what, " for ", interface_.name, " (AF_XDP)"), errno);
    out.message += alternative();
    return out;
  }

  // Takes back the chunks whose frames the kernel has sent.
  void reclaim_chunks() {
    const uint32_t count = completion_ring_.available();
    for (uint32_t i = 0; i < count; ++i) free_chunks_.push_back(completion_ring_.at(i));
    completion_ring_.consume(count);
  }

  // Makes the kernel send; it sends some frames a call. Frames that it leaves, because the interface is busy, are
  // pushed by the next send() or receive().
  Status push() {
    for (uint32_t before = 0; transmit_ring_.unconsumed() > 0 && transmit_ring_.unconsumed() != before;) {
      before = transmit_ring_.unconsumed();
      const bool taken = sendto(socket_.number(), nullptr, 0, MSG_DONTWAIT, nullptr, 0) == 0;
      if (taken || errno == EAGAIN || errno == EBUSY || errno == EINTR || errno == ENOBUFS) continue;
      return fail(Code::environment, "cannot send over ", description(), ": ", std::strerror(errno));
    }
    return {};
  }

  Interface interface_;
  Silence silence_;
  uint32_t chunk_bytes_;  // a frame's place and the kernel's headroom before it
  Mapping memory_;  // the first half for frames that come, the other for those that go
  Descriptor socket_;
  XdpRing<uint64_t> fill_ring_;
  XdpRing<uint64_t> completion_ring_;
  XdpRing<xdp_desc> receive_ring_;
  XdpRing<xdp_desc> transmit_ring_;
  XdpProgram program_;
  std::vector<uint64_t> free_chunks_;  // chunks for frames that go
  uint32_t held_frames_ = 0;           // frames of the last receive()
  InterfaceEnd interface_end_;
  Counters counters_;
};

}  // namespace

Result<PortPointer> open_xdp_port(const std::string& name) {
  SPL_ASSIGN(const Interface interface, find_interface(name));
  if (interface.mtu > xdp_mtu_max) {
    return fail(Code::unsupported, name, " has an MTU of ", interface.mtu,
                ", and frames for AF_XDP must fit in a page: ip link set ", name, " mtu ", 1500,
                ", or use packet:", name);
  }
  if (const int queues = receive_queues(name); queues > 1) {
    return fail(Code::unsupported, name, " has ", queues, " receive queues, and AF_XDP reads one: ethtool -L ", name,
                " combined 1, or use packet:", name);
  }
  SPL_ASSIGN(Silence silence, claim_interface(interface, true));
  auto port = std::make_unique<XdpPort>(interface, std::move(silence));
  SPL_TRY(port->open());
  return PortPointer(std::move(port));
}

}  // namespace spinloom::port
