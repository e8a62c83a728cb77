// Loopback - the driver for tests: several NICs in one process, every action performed at once.
//
// Contract: actions become items of one work list; step() performs one item. Without a seed the list is first in,
//   first out, and packets between two ranks keep their order. With a seed (`racy_seed`) any of the oldest 64 items may
//   be next: packets overtake each other and their headers (unless headers_in_order), DMAs complete in any order,
//   handlers of several HPUs end in any order; commands of one port keep their order. The same seed gives the same run.
//   Packets that go over links arrive as the links deliver them, whatever the seed.
// Invariants: (1) a step performs one item; only while a handler's call blocks are other items performed within the
//   step; (2) a packet that the engine cannot take waits, and is tried again when that NIC has made progress; (3) bytes
//   are read when served: a payload is copied when it leaves, a DMA's source when the DMA is served.
// Threads: one owner for all ports. Time: now() counts steps, one picosecond each; it models nothing.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "base/random.hpp"
#include "nic/portals/nic.hpp"
#include "nic/spin/handler_runner.hpp"
#include "portals/interface/admission.hpp"
#include "portals/interface/port.hpp"
#include "portals/testbed/links.hpp"

namespace spinloom::testbed {

struct LoopbackOptions {
  uint32_t ranks = 2;
  nic::NicLimits nic;
  spin::HandlerRunner* handlers = nullptr;  // outlives the driver; null: contexts cannot be created
  std::optional<uint64_t> racy_seed;
  bool headers_in_order =
      false;  // racy, but the headers from one rank to another come in the order sent, as on real links
  // Racy, but a rank's transfers are performed in order, before its other work: so bytes keep their order.
  bool transfers_first = false;
  // Racy, but the seed prefers some kinds of work of some ranks, up to 1,024 times: so rare orders come soon.
  bool leans = false;
  Links* links = nullptr;  // outlives the driver; null: packets arrive without links
  uint64_t steps_max = 100'000'000;  // a run of more steps is an Error, because it probably never ends
};

class Loopback final : private Links::Ends {
 public:
  static Result<std::unique_ptr<Loopback>> create(const LoopbackOptions& options);
  ~Loopback() override;

  [[nodiscard]] uint32_t ranks() const { return static_cast<uint32_t>(nodes_.size()); }
  [[nodiscard]] portals::Port& port(uint32_t rank);
  [[nodiscard]] const nic::Nic& nic(uint32_t rank) const;
  [[nodiscard]] std::span<const uint8_t> nic_memory(uint32_t rank) const;

  // Performs one item of work; false if there is none, or after steps_max steps.
  bool step();
  // Performs items until no work is left. Returns an Error if packets still wait for room then, or after steps_max
  // steps.
  [[nodiscard]] Status run();
  [[nodiscard]] uint64_t steps() const { return steps_; }
  // The number of items that were performed before an older one.
  [[nodiscard]] uint64_t overtakes() const { return overtakes_; }
  // The number of packets that had to wait for room.
  [[nodiscard]] uint64_t packets_blocked() const { return packets_blocked_; }
  // Stops this rank; packets sent to it vanish. The other ranks are not told (tell_lost()).
  void kill(uint32_t rank);
  // From now on nothing reaches another rank; what is under way vanishes, and every rank hears that it has lost the
  // others.
  void cut_links();
  // After cut_links(): once every rank has heard of the loss and nothing of what it lost is under way, links carry
  // packets again, and every rank hears that the others are back. step() does it.
  void mend_links() { is_mending_ = is_cut_; }
  // Tells a rank that this peer is lost, as links do behind all that has come from it.
  void tell_lost(uint32_t rank, nic::Rank peer) { on_lost(rank, peer); }

 private:
  struct PacketArrival {
    nic::Packet packet;
  };
  struct HerReady {
    nic::HerId her;
  };
  struct HandlerDone {
    nic::HerId her;
    spin::HandlerOutcome outcome;
  };
  struct MessageSent {
    uint64_t message = 0;
  };
  struct PacketLeft {
    nic::OutboundSlotId slot;
  };
  struct PeerLost {
    nic::Rank peer;
  };
  using Item = std::variant<nic::Command, PacketArrival, HerReady, nic::RunHandler, HandlerDone, nic::DmaWrite,
                            nic::DmaRead, nic::DmaAtomic, nic::ApplyAtomic, nic::StorePacket, MessageSent, PacketLeft,
                            PeerLost, nic::Continue>;
  struct Work {
    uint32_t rank = 0;
    Item item;
  };
  class Node;
  class ForwardedCalls;

  explicit Loopback(const LoopbackOptions& options);
  [[nodiscard]] Work take_work();
  [[nodiscard]] size_t draw(size_t window);
  [[nodiscard]] size_t oldest_header_before(size_t chosen) const;
  [[nodiscard]] size_t oldest_transfer_for(size_t chosen) const;
  [[nodiscard]] bool have_all_parted() const;
  void rejoin_peers();
  void perform(uint32_t rank, nic::Actions& actions);
  void do_work(Work& work);
  bool serve_transfer(uint32_t rank);
  bool serve_others(uint32_t rank);
  void take_packet(uint32_t rank, const nic::Packet& packet);
  // Links::Ends
  void on_arrival(uint32_t rank, const nic::Packet& packet) override;
  void on_sent(uint32_t rank, uint64_t message) override;
  void on_left(uint32_t rank, nic::OutboundSlotId slot) override;
  void on_lost(uint32_t rank, nic::Rank peer) override;
  void run_handler(uint32_t rank, const nic::Her& her);
  void send(uint32_t rank, const nic::Send& send);
  [[nodiscard]] portals::Order order() const;
  void unblock(uint32_t rank);
  void requeue_blocked(uint32_t rank);
  [[nodiscard]] std::string stall_report() const;
  void free_payloads_if_idle();
  [[nodiscard]] const uint8_t* copy_payload(const nic::PayloadRef& payload, const std::vector<nic::PayloadRef>& pieces);

  LoopbackOptions options_;
  std::optional<Random> random_;
  std::vector<uint64_t> weights_;  // `leans`: one for each rank and kind of work
  std::vector<std::unique_ptr<Node>> nodes_;
  std::deque<Work> work_;  // the oldest first
  std::vector<std::unique_ptr<uint8_t[]>> payloads_;
  uint64_t steps_ = 0;
  uint64_t overtakes_ = 0;
  uint64_t waiting_packets_ = 0;  // packets that wait for room now
  uint64_t packets_blocked_ = 0;
  bool is_cut_ = false;  // nothing goes from one rank to another
  bool is_mending_ = false;  // mend_links() has been called, and the ranks have not all parted
};

}  // namespace spinloom::testbed
