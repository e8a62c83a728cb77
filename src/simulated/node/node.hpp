// Node - one simulated process: its NIC's engine, the timed units around it, and the host's side of the port.
//
// Contract: performs the engine's actions on timed resources: parser and matching unit, packet buffer and NIC
//   memory channels, scheduler, HPUs, DMA engine on PCIe, command path; and implements the port for the
//   host's program. A host call that waits lets virtual time go on.
//   Inbound:  first byte -> parser (match.header | match.packet) -> last byte in -> copy to packet buffer
//             -> dispatch -> handler; without a context the payload goes to the DMA engine instead.
//   DMA:      read from a NIC memory channel -> PCIe write -> host memory; requests are served in order.
//   Outbound: a put's packets are read over PCIe at line rate, the regions of a streamed packet one after another
//             (request, PCIe packets, one latency each way); a packet that a handler has filled leaves through a NIC
//             memory channel (clusters: the output port).
//   Events:   one PCIe write of pcie.event_bytes; readable pcie.latency after it has left.
//   The parser takes packets in the order in which they came, but an answer may pass waiting packets, and so may a
//   header while packets are kept that came ahead of theirs (portals/interface/admission.hpp).
// Invariants: (1) bytes are read when served; (2) an event is readable only after the data of every DMA
//   before it; (3) the parser holds a packet for which the buffer has no room, and goes on when a slot is free.
// Threads: one owner. Time: virtual.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "nic/portals/nic.hpp"
#include "nic/spin/slab.hpp"
#include "portals/interface/mailbox.hpp"
#include "portals/interface/port.hpp"
#include "portals/interface/probed_memory.hpp"
#include "simulated/node/depth_series.hpp"
#include "simulated/node/event_queue.hpp"
#include "simulated/node/fabric.hpp"
#include "simulated/node/handler_log.hpp"
#include "simulated/node/host_model.hpp"
#include "simulated/node/hpu_bank.hpp"
#include "simulated/node/network.hpp"
#include "simulated/node/pcie.hpp"
#include "simulated/node/profile.hpp"
#include "simulated/node/resource.hpp"
#include "simulated/node/trace.hpp"
#include "simulated/node/writes_under_way.hpp"
#include "simulated/node/zeroed.hpp"

namespace spinloom::simulated {

struct NodeOptions {
  uint32_t hpus = 32;
  uint32_t payload_bytes = 2048;
  uint32_t slice_cycles = limits::slice_cycles;
};

// The results of a run; all of them modelled.
struct NodeStatistics {
  Time first_byte = Time::never();  // arrival of the first byte of the first data packet
  Time last_event{};                // the time when the newest event became readable
  Time data_landed{};               // the time when the newest byte of data was in host memory
  uint64_t packets = 0;             // all that arrived but acknowledgements and get requests
  uint64_t dma_writes = 0;
  uint64_t dma_bytes = 0;
  uint64_t dma_queue_peak = 0;
  uint64_t dma_reads = 0;
  uint64_t dma_read_bytes = 0;
  uint64_t dma_reads_peak = 0;
  uint64_t iovec_refills = 0;
  Time host_busy{};  // time that the host's program spent on work
  uint64_t host_line_fetches = 0;
  uint64_t host_line_writebacks = 0;
};

class Node final : public portals::Port, EventTarget, Receiver, HpuClient {
 public:
  static Result<std::unique_ptr<Node>> create(EventQueue& events, Network& network, const Profile& profile,
                                              nic::Rank rank, const NodeOptions& options,
                                              const std::vector<hpu::Image>& images);

  // portals::Port
  [[nodiscard]] nic::Rank rank() const override { return rank_; }
  [[nodiscard]] Time now() const override { return events_.now(); }
  void submit(const nic::Command& command) override;
  std::optional<Result<uint64_t>> take_answer(uint64_t token) override { return mailbox_.take_answer(token); }
  std::optional<nic::Event> take_event(nic::QueueId queue) override { return mailbox_.take_event(queue); }
  [[nodiscard]] nic::CounterValue counter(nic::CounterId counter) const override { return mailbox_.counter(counter); }
  Status wait() override;
  Status host_work(const portals::HostWork& work) override;
  [[nodiscard]] nic::HostMemory* memory() override { return &memory_; }

  [[nodiscard]] const nic::Nic& nic() const { return nic_; }
  [[nodiscard]] const NodeStatistics& statistics() const { return statistics_; }
  // Writes of data to host memory, from the request until the last byte is there.
  [[nodiscard]] const WritesUnderWay& writes_under_way() const { return writes_under_way_; }
  // Packets whose bytes are still here after parsing.
  [[nodiscard]] uint64_t packets_held() const { return held_.size() + packet_of_dma_.size(); }
  [[nodiscard]] const HpuBank& hpus() const { return *hpus_; }
  void profile_functions() { hpus_->profile_functions(); }
  void profile_instructions() { hpus_->profile_instructions(); }
  // The log, if not null, records handlers from now on; it outlives the node.
  void log_handlers(HandlerLog* log) { log_ = log; }
  [[nodiscard]] std::span<const uint8_t> nic_memory() const { return nic_memory_; }
  // Records the work of units and the number of waiting DMAs from now on. Either may be null; both outlive the node.
  void record(Trace* trace, DepthSeries* dma_queue);
  // `watcher` is called whenever this host has something new to read. It tells a driver of several programs which of
  // them can go on.
  void watch(std::function<void()> watcher) { watcher_ = std::move(watcher); }
  // Starts a new measurement: first byte and totals count from here.
  void reset_statistics() {
    statistics_ = {};
    writes_under_way_.restart(events_.now());
  }
  // The reason why the newest handler that did not return has ended, for error messages; empty if there is none.
  [[nodiscard]] const std::string& handler_trouble() const { return handler_trouble_; }

 private:
  Node(EventQueue& events, Network& network, const Profile& profile, nic::Rank rank, const NodeOptions& options);

  void on_event(uint32_t code, uint64_t argument) override;
  void on_arrival(std::unique_ptr<Arrival> arrival) override;
  bool on_handler_call(const nic::Her& her, const nic::HandlerCall& call) override;
  void on_handler_end(const nic::Her& her, nic::HandlerEnd end, uint32_t code, uint64_t cycles,
                      const std::string& reason) override;

  // node_inbound.cpp
  void parse_next();
  void end_parsing();
  void keep_bytes(std::unique_ptr<Arrival> arrival);
  void release_arrivals();
  // node_actions.cpp
  void perform(nic::Actions& actions);
  void perform(const nic::DmaWrite& write);
  void perform(const nic::DmaRead& read) { fetch(read, static_cast<int64_t>(read.length)); }
  void perform(const nic::DmaAtomic& atomic) { fetch(atomic, atomic.width); }
  void perform(const nic::ApplyAtomic& apply) { fetch(apply, static_cast<int64_t>(apply.source.length)); }
  void perform(const nic::StorePacket& store);
  void perform(nic::DebugLine& line);
  void perform(const nic::Resume& resume) { hpus_->resume(resume.her, resume.value); }
  void perform(const nic::RunHandler& run);
  void perform(const nic::BufferPacket& buffer);
  void perform(const nic::PostEvent& event);
  void perform(const nic::PostCounter& counter);
  void perform(nic::Answer& answer);
  void perform(const nic::Continue&);
  [[nodiscard]] Time start_duration(const nic::Her& her);
  void serve_dma(uint32_t slot, Time here);
  void end_dma_write(uint32_t slot);
  void source_read(uint32_t slot);
  using HostFetch = std::variant<nic::DmaRead, nic::DmaAtomic, nic::ApplyAtomic>;
  void fetch(const HostFetch& request, int64_t bytes);
  void end_fetch(uint32_t slot);
  [[nodiscard]] Time after_atomics(const uint8_t* host, uint64_t length) const;
  void end_store(uint32_t slot);
  void end_dma(nic::DmaId dma);
  void end_handler(uint32_t slot);
  // node_outbound.cpp
  void perform(const nic::Send& send);
  void send_filled(const nic::Send& send);
  void read_pieces(const nic::Send& send);
  void inject_in_order(std::vector<nic::Packet> packets, Time ready, std::function<void()> sent);
  void read_pieces_asked(uint32_t slot);
  void send_gathered(uint32_t slot);
  void read_reply(uint32_t slot);
  // node_iovec.cpp
  void queue_scattered(uint32_t slot, Time here);
  void read_iovec();
  void take_scattered();

  struct HostDelivery {
    enum class Kind : uint8_t { event, counter, answer } kind = Kind::event;
    nic::PostEvent event;
    nic::PostCounter counter;
    nic::Answer answer;
  };
  void deliver(HostDelivery delivery, Time at);

  struct HandlerEnded {
    nic::HerId her;
    nic::HandlerEnd end = nic::HandlerEnd::returned;
    uint32_t code = 0;
    uint64_t cycles = 0;
  };

  EventQueue& events_;
  Network& network_;
  const Profile& profile_;
  nic::Rank rank_;
  portals::ProbedMemory memory_;
  nic::Nic nic_;
  std::unique_ptr<HpuBank> hpus_;
  ZeroedBytes nic_memory_;
  Pcie pcie_;
  Fabric fabric_;

  // Packets that arrive.
  std::deque<std::unique_ptr<Arrival>> inbound_;  // packets that are not parsed yet
  size_t inbound_answers_ = 0;                    // the number of answers among these
  // Parsed packets of messages that are open; some of these messages may have ended since the last release.
  std::vector<std::unique_ptr<Arrival>> held_;
  static constexpr size_t held_at_least = 16;
  size_t release_at_ = held_at_least;  // so many held ones cause those whose messages have ended to be released
  // Packets that are whole messages or answers, by the DMA that moves their bytes.
  std::unordered_map<uint32_t, std::shared_ptr<const Arrival>> packet_of_dma_;
  bool parsing_ = false;
  Time parsed_last_byte_{};  // last byte of the packet whose actions are being performed
  nic::Actions parsed_actions_;

  // Outgoing messages without their last packet, by message.
  std::unordered_map<uint64_t, std::vector<nic::Packet>> outgoing_;

  // The bytes of a short reply, once its read has reached host memory.
  struct ShortReply {
    const uint8_t* source = nullptr;
    std::vector<uint8_t> bytes;
  };
  nic::Slab<ShortReply> short_replies_;

  // A packet in several pieces of host memory, such as that of a streaming put, whose bytes are on their way.
  struct Gathered {
    nic::Packet packet;
    bool last = false;
    std::vector<nic::PayloadRef> pieces;
    std::vector<uint8_t> bytes;
    uint64_t departure = 0;  // the number of its Departure, if it is no reply
  };
  nic::Slab<Gathered> gathered_;
  // A message that has not been handed to the network, because the pieces of a packet before it are still being read.
  struct Departure {
    bool is_here = false;
    std::vector<nic::Packet> packets;
    Time ready{};
    std::function<void()> sent;
  };
  std::deque<Departure> departures_;
  uint64_t departures_begun_ = 0;  // the number of the first Departure in the queue

  // The virtual HPU that ran last on each HPU.
  struct VirtualHpuAt {
    nic::ContextId context;
    nic::VhpuId vhpu;
    bool operator==(const VirtualHpuAt&) const = default;
  };
  std::vector<VirtualHpuAt> vhpus_;

  // DMAs and other work under way, by slot.
  nic::Slab<nic::DmaWrite> dmas_;
  nic::Slab<HostFetch> fetches_;
  // An atomic whose elements are on their way to the NIC, and the time when they are changed.
  struct AtomicUnderWay {
    uint32_t slot = 0;  // slot of its fetch
    Time changes{};
  };
  std::deque<AtomicUnderWay> atomics_;  // the first to change memory first
  nic::Slab<nic::StorePacket> stores_;
  nic::Slab<HandlerEnded> ended_;
  nic::Slab<HostDelivery> deliveries_;
  nic::Slab<nic::Command> commands_;
  Time last_dma_end_{};

  struct Scattered {
    uint32_t slot = 0;
    Time here;  // the time when the bytes of this write are on the NIC
  };
  std::deque<Scattered> scattered_;  // writes that wait until the NIC has read the elements of their scatter list
  bool iovec_reading_ = false;

  // Events, counters and answers that the host can read now.
  portals::Mailbox mailbox_;
  bool is_working_ = false;

  NodeStatistics statistics_;
  WritesUnderWay writes_under_way_;
  std::function<void()> watcher_;
  Trace* trace_ = nullptr;
  DepthSeries* dma_queue_ = nullptr;
  HandlerLog* log_ = nullptr;
  std::string handler_trouble_;
  nic::Actions scratch_;
};

}  // namespace spinloom::simulated
