// FrameNode - a simulated Ethernet NIC in its host, and the cable to the station at the other end.
//
// Contract: performs the actions of frames::Nic on timed resources:
//   Frames that come: cable (byte_time for the frame and 24 B around it, then wire) -> matching unit (match.header) ->
//   ingress copy to packet memory (frame.ingress_*, else the input port).
//   Their handlers: dispatch (scheduler.dispatch_cycles) -> copy to the HPU's cluster -> start -> handler -> finish.
//   Writes to the host: the fabric's way out, PCIe, pcie.latency; the bytes are in host memory then, and the NIC knows
//   pcie.latency later. Reads: a request and the bytes, pcie.latency each way, then the fabric's way in.
//   Frames that leave: the fabric's way out (handlers) or a PCIe read (host), then the cable.
//   Frames for the host's stack: one PCIe write. FrameHost decides what the stack then costs.
// Invariants: (1) each unit serves in the order of the calls; (2) every byte of a frame is moved when service ends;
//   (3) a frame is lost only where the engine counts it.
// Threads: one owner. Time: virtual.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "nic/frames/nic.hpp"
#include "nic/spin/slab.hpp"
#include "simulated/node/event_queue.hpp"
#include "simulated/node/fabric.hpp"
#include "simulated/node/hpu_bank.hpp"
#include "simulated/node/pcie.hpp"
#include "simulated/node/profile.hpp"
#include "simulated/node/resource.hpp"

namespace spinloom::simulated {

using FrameBytes = std::vector<uint8_t>;

// The far end of the cable, and the host's stack and programs.
class FrameHost {
 public:
  // The last byte of a frame has left the cable at the far end.
  virtual void on_far_frame(const FrameBytes& frame) = 0;
  // A frame for the host's stack is in host memory.
  virtual void on_stack_frame(const FrameBytes& frame) = 0;
  // Bytes that a handler wrote are in host memory, from `host` on.
  virtual void on_host_write(const uint8_t* host, uint64_t length) = 0;

 protected:
  ~FrameHost() = default;
};

// The times at which one frame was at each unit; those of the newest frame are kept.
struct FrameStages {
  Time arrived{};   // last byte at the NIC
  Time matched{};
  Time stored{};    // its copy is in packet memory
  Time started{};   // first instruction of its newest handler
  Time ended{};     // end of its newest handler
  Time read{};      // its newest write to the host has left the NIC's memory
  Time landed{};    // its newest write is in host memory
};

struct FrameNodeOptions {
  uint32_t slice_cycles = limits::slice_cycles;
  frames::Limits limits;  // hpus, queues and NIC memory are the profile's
};

class FrameNode final : EventTarget, HpuClient {
 public:
  // `profile`, `images` and `host` outlive the node.
  static Result<std::unique_ptr<FrameNode>> create(EventQueue& events, const Profile& profile, FrameHost& host,
                                                   const std::vector<hpu::Image>& images,
                                                   const FrameNodeOptions& options);

  [[nodiscard]] frames::Nic& nic() { return *nic_; }
  [[nodiscard]] const HpuBank& hpus() const { return *hpus_; }
  [[nodiscard]] std::span<uint8_t> nic_memory() { return nic_memory_; }
  [[nodiscard]] const FrameStages& stages() const { return stages_; }
  // The reason why the newest handler that did not return has ended; empty if there is none.
  [[nodiscard]] const std::string& handler_trouble() const { return handler_trouble_; }

  // The far end puts a frame on its cable now. Frames that follow wait for it.
  void send_from_far(FrameBytes frame);
  // The host's stack gives a frame to the NIC now. Returns false if frames::Nic::on_host_frame() refuses it.
  [[nodiscard]] bool send_from_host(FrameBytes frame);
  // The host writes to NIC memory: one PCIe command, and host.command_latency.
  void write_nic(uint64_t offset, std::vector<uint8_t> bytes);
  [[nodiscard]] Time cable_time(uint64_t bytes) const;

 private:
  FrameNode(EventQueue& events, const Profile& profile, FrameHost& host);

  void on_event(uint32_t code, uint64_t argument) override;
  bool on_handler_call(const spin::Her& her, const spin::HandlerCall& call) override;
  void on_handler_end(const spin::Her& her, spin::HandlerEnd end, uint32_t code, uint64_t cycles,
                      const std::string& reason) override;

  // frame_node.cpp: frames on their ways
  void on_arrival(uint32_t slot);
  void on_matched(uint32_t slot);
  void on_stored(uint32_t slot);
  void on_left(uint32_t slot);
  [[nodiscard]] Service ingress(Time now, uint64_t bytes);
  [[nodiscard]] Time cycles(int64_t count) const { return scheduler_cycle_.time_of_cycles(count); }

  // frame_node_actions.cpp
  void perform(frames::Actions& actions);
  void perform(const frames::StoreFrame& store);
  void perform(const frames::ToHost& request);
  void perform(const frames::Transmit& transmit);
  void perform(const frames::RunHandler& run);
  void perform(const spin::Resume& resume) { hpus_->resume(resume.her, resume.value); }
  void perform(const spin::DmaWrite& write);
  void perform(const spin::DmaRead& read) { fetch(read, read.length); }
  void perform(const spin::DmaAtomic& atomic) { fetch(atomic, atomic.width); }
  void perform(const spin::LocalAtomic& atomic);
  void perform(const spin::StoreLocal& store);
  void perform(const spin::DebugLine&) {}
  void perform(const frames::Initialised&) {}
  using HostFetch = std::variant<spin::DmaRead, spin::DmaAtomic>;
  void fetch(const HostFetch& request, uint64_t bytes);
  void on_fetched(uint32_t slot);
  void on_source_read(uint32_t slot);
  void on_write_landed(uint32_t slot);
  void on_write_known(uint32_t slot);
  void on_handler_done(uint32_t slot);

  struct FrameCopy {
    frames::PacketId packet;
    uint32_t address = 0;
    std::shared_ptr<const FrameBytes> frame;
  };
  struct HostWrite {
    spin::DmaWrite write;
    FrameBytes read;  // a copy for a blocking write, whose handler may change the source once it has been read
  };
  struct EndedHandler {
    spin::HerId her;
    spin::HandlerEnd end = spin::HandlerEnd::returned;
    uint32_t code = 0;
    uint64_t cycles = 0;
  };
  struct NicWrite {
    uint64_t offset = 0;
    std::vector<uint8_t> bytes;
  };

  EventQueue& events_;
  const Profile& profile_;
  FrameHost& host_;
  Rate scheduler_cycle_;
  std::unique_ptr<frames::Nic> nic_;
  std::unique_ptr<HpuBank> hpus_;
  std::vector<uint8_t> nic_memory_;
  std::vector<uint8_t> packet_memory_;
  Pcie pcie_;
  Fabric fabric_;
  Resource cable_in_;
  Resource cable_out_;
  Resource matching_;
  Resource ingress_;

  std::shared_ptr<const FrameBytes> current_frame_;  // the frame that the engine looks at
  spin::Slab<std::shared_ptr<const FrameBytes>> arriving_;
  spin::Slab<FrameCopy> frame_copies_;
  spin::Slab<frames::EgressFrame> leaving_;
  spin::Slab<std::shared_ptr<const FrameBytes>> from_host_;  // frames of the host, by token
  spin::Slab<FrameBytes> deliveries_;  // frames on their way to the far end or to the host
  spin::Slab<HostWrite> writes_;
  spin::Slab<HostFetch> fetches_;
  spin::Slab<EndedHandler> ended_handlers_;
  spin::Slab<NicWrite> nic_writes_;
  FrameStages stages_;
  std::string handler_trouble_;
};

}  // namespace spinloom::simulated
