#include "ethernet/port/packet_port.hpp"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/byte_order.hpp"
#include "ethernet/port/descriptor.hpp"
#include "ethernet/port/finish_checksum.hpp"
#include "ethernet/port/silence.hpp"
#include "nic/packet/ethernet.hpp"

namespace spinloom::port {

namespace {

constexpr size_t ring_bytes_max = size_t{32} << 20;
constexpr size_t ring_slots_max = 4096;
constexpr size_t block_bytes_min = size_t{64} << 10;
constexpr size_t slot_overhead = 128;  // the kernel's header, the address, the virtio-net header
constexpr size_t frames_per_call = 64;

// The work that is left to do for a frame: struct virtio_net_hdr, whose header file is not C++.
struct VirtioHeader {
  static constexpr uint8_t needs_checksum = 1;

  uint8_t flags = 0;
  uint8_t gso_type = 0;  // the way to cut it into frames (GSO); 0 for one frame
  uint16_t header_bytes = 0;
  uint16_t gso_bytes = 0;
  uint16_t checksum_start = 0;
  uint16_t checksum_offset = 0;
};
static_assert(sizeof(VirtioHeader) == 10);

class PacketPort final : public FramePort {
 public:
  PacketPort(const Interface& interface, Silence silence) : interface_(interface), silence_(std::move(silence)) {}

  Status open() {
    socket_ = Descriptor(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket_) return system_error("open a packet socket on " + interface_.name, errno);
    SPL_TRY(set(PACKET_VERSION, int{TPACKET_V2}));
    SPL_TRY(set(PACKET_VNET_HDR, int{1}));
    SPL_TRY(set(PACKET_IGNORE_OUTGOING, int{1}));

    slot_bytes_ = std::bit_ceil(frame_bytes_max() + slot_overhead);
    slots_ = std::clamp(ring_bytes_max / slot_bytes_, size_t{64}, ring_slots_max);
    tpacket_req ring{};
    ring.tp_block_size = static_cast<uint32_t>(std::max(slot_bytes_, block_bytes_min));
    ring.tp_frame_size = static_cast<uint32_t>(slot_bytes_);
    ring.tp_frame_nr = static_cast<uint32_t>(slots_);
    ring.tp_block_nr = static_cast<uint32_t>(slots_ * slot_bytes_ / ring.tp_block_size);
    SPL_TRY(set(PACKET_RX_RING, ring));
    ring_ = Mapping(socket_.number(), slots_ * slot_bytes_, 0);
    if (!ring_) return system_error("map the packet ring of " + interface_.name, errno);

    sockaddr_ll place{};
    place.sll_family = AF_PACKET;
    place.sll_protocol = htons(ETH_P_ALL);
    place.sll_ifindex = interface_.index;
    if (bind(socket_.number(), reinterpret_cast<const sockaddr*>(&place), sizeof(place)) != 0) {
      return system_error("bind a packet socket to " + interface_.name, errno);
    }
    packet_mreq all{};
    all.mr_ifindex = interface_.index;
    all.mr_type = PACKET_MR_PROMISC;
    return set(PACKET_ADD_MEMBERSHIP, all);
  }

  Result<size_t> receive(std::span<Bytes> batch) override {
    for (; held_ > 0; --held_) release_slot();
    size_t count = 0;
    while (count < batch.size() && held_ < slots_) {
      uint8_t* const slot = ring_.data() + (first_ + held_) % slots_ * slot_bytes_;
      if ((status_of(slot).load(std::memory_order_acquire) & TP_STATUS_USER) == 0) break;
      ++held_;
      const Bytes frame = restore_frame(slot);
      if (!frame.empty()) batch[count++] = frame;
    }
    counters_.received += count;
    if (count == 0) SPL_TRY(interface_end_.check(socket_.number(), interface_.name));
    return count;
  }

  Result<size_t> send(std::span<const Bytes> frames) override {
    SPL_TRY(check_lengths(frames));
    size_t count = 0;
    while (count < frames.size()) {
      const auto part = frames.subspan(count, std::min(frames.size() - count, frames_per_call));
      for (size_t i = 0; i < part.size(); ++i) {
        parts_[2 * i] = {const_cast<VirtioHeader*>(&plain), sizeof(plain)};
        parts_[2 * i + 1] = {const_cast<uint8_t*>(part[i].data()), part[i].size()};
        messages_[i].msg_hdr.msg_iov = &parts_[2 * i];
        messages_[i].msg_hdr.msg_iovlen = 2;
      }
      const int taken = sendmmsg(socket_.number(), messages_.data(), static_cast<uint32_t>(part.size()), MSG_DONTWAIT);
      if (taken < 0 && errno == EINTR) continue;
      if (taken < 0 && errno == ENOBUFS) {  // the interface's queue was full, and the frame is lost, as on a wire
        ++counters_.dropped;
        ++count;
        continue;
      }
      if (taken < 0 && errno != EAGAIN && count == 0) return system_error("send over " + description(), errno);
      if (taken < 0) break;
      count += static_cast<size_t>(taken);
      counters_.sent += static_cast<uint64_t>(taken);
    }
    return count;
  }

  packet::MacAddress mac() const override { return interface_.mac; }
  size_t mtu() const override { return interface_.mtu; }
  Counters counters() override {
    tpacket_stats since{};  // reading them sets them to 0
    socklen_t length = sizeof(since);
    if (getsockopt(socket_.number(), SOL_PACKET, PACKET_STATISTICS, &since, &length) == 0) {
      counters_.dropped += since.tp_drops;
    }
    return counters_;
  }
  int descriptor() const override { return socket_.number(); }
  std::string description() const override {
    return text("packet:", interface_.name, " (", packet::to_text(interface_.mac), ", MTU ", interface_.mtu, "; ",
                silence_.method, ")");
  }

 private:
  static constexpr VirtioHeader plain{};  // nothing is left to do for the frames that we send

  template <class Value>
  Status set(int option, const Value& value) {
    if (setsockopt(socket_.number(), SOL_PACKET, option, &value, sizeof(value)) == 0) return {};
    return system_error(text("set option ", option, " of a packet socket on ", interface_.name), errno);
  }

  static std::atomic_ref<uint32_t> status_of(uint8_t* slot) {
    return std::atomic_ref(reinterpret_cast<tpacket2_hdr*>(slot)->tp_status);
  }

  void release_slot() {
    status_of(ring_.data() + first_ * slot_bytes_).store(TP_STATUS_KERNEL, std::memory_order_release);
    first_ = (first_ + 1) % slots_;
  }

  // Returns the frame in a slot, as a wire would carry it, or none if no wire would carry it.
  Bytes restore_frame(uint8_t* slot) {
    const auto& head = *reinterpret_cast<const tpacket2_hdr*>(slot);
    VirtioHeader offload{};
    uint8_t* begin = slot + head.tp_mac;
    std::memcpy(&offload, begin - sizeof(offload), sizeof(offload));
    size_t length = head.tp_snaplen;
    if (head.tp_snaplen < head.tp_len || offload.gso_type != 0 || length < 12) {
      ++counters_.truncated;
      return {};
    }
    if ((offload.flags & VirtioHeader::needs_checksum) != 0) {
      finish_checksum({begin, length}, offload.checksum_start, offload.checksum_offset);
    }
    if ((head.tp_status & TP_STATUS_VLAN_VALID) != 0) {  // the tag goes into the place of the virtio-net header
      std::memmove(begin - packet::vlan_tag_bytes, begin, 12);
      begin -= packet::vlan_tag_bytes;
      length += packet::vlan_tag_bytes;
      const bool has_type = (head.tp_status & TP_STATUS_VLAN_TPID_VALID) != 0;
      store_be(begin + 12, has_type ? head.tp_vlan_tpid : packet::ether_type::vlan);
      store_be(begin + 14, head.tp_vlan_tci);
    }
    return {begin, length};
  }

  Interface interface_;
  Silence silence_;
  Descriptor socket_;
  Mapping ring_;
  size_t slot_bytes_ = 0;
  size_t slots_ = 0;
  size_t first_ = 0;  // the slot that we hold longest, or that the kernel fills next
  size_t held_ = 0;
  std::array<mmsghdr, frames_per_call> messages_{};
  std::array<iovec, 2 * frames_per_call> parts_{};
  InterfaceEnd interface_end_;
  Counters counters_;
};

}  // namespace

Result<PortPointer> open_packet_port(const std::string& name) {
  SPL_ASSIGN(const Interface interface, find_interface(name));
  SPL_ASSIGN(Silence silence, claim_interface(interface, false));
  auto port = std::make_unique<PacketPort>(interface, std::move(silence));
  SPL_TRY(port->open());
  return PortPointer(std::move(port));
}

}  // namespace spinloom::port
