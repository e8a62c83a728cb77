// FuzzHost - for fuzz targets: rank 0 of a job of three, with an entry in guarded memory, that a peer attacks.
//
// Contract: the target adds a transport to node() and then calls open(). put() and get() go to rank 1; the NIC's events
//   are taken by drain(). check() drives the node and dies if a byte outside of the entry has changed, or if rank 2 is
//   not served: `tell` must have rank 2 send one message to a portal index that does not exist.
// Threads: the target's. Time: none.
#pragma once

#include <memory>
#include <vector>

#include "live/node/node.hpp"
#include "live/testing/live_testbed.hpp"
#include "portals/interface/interface.hpp"

namespace spinloom::live {

class FuzzHost {
 public:
  static constexpr uint64_t entry_bytes = 4096;
  static constexpr uint64_t guard_bytes = 256;
  static constexpr uint32_t no_portal = 999;

  FuzzHost() : memory_(entry_bytes + 2 * guard_bytes, guard), source_(60'000, 3), back_(entry_bytes) {
    auto job = LocalJob::create(3);
    SPL_ASSERT(job.ok(), job.error().message);
    job_ = std::move(*job);
    nic::NicLimits limits;
    limits.payload_bytes = 256;
    limits.transfer_bytes = 1 << 20;
    limits.packet_buffer_bytes = 1 << 14;
    limits.nic_memory_bytes = 1 << 12;
    limits.early_packets = 4;
    limits.at_once_bytes = 100;
    limits.unexpected_headers = 16;
    node_ = std::make_unique<Node>(nic::Rank{0}, 3, limits, job_.segments[0]);
  }

  [[nodiscard]] LocalJob& job() { return job_; }
  [[nodiscard]] Node& node() { return *node_; }
  [[nodiscard]] std::vector<uint8_t>& source() { return source_; }
  [[nodiscard]] std::vector<uint8_t>& back() { return back_; }

  void open(Transport& transport) {
    node_->add_transport(transport);
    for (const uint32_t peer : {1u, 2u}) node_->set_route(nic::Rank{peer}, transport);
    host_ = std::make_unique<portals::Interface>(*node_);
    queue_ = host_->eq_alloc(64).value();
    const nic::PortalIndex portal = host_->pt_alloc(queue_).value();
    nic::Entry entry;
    entry.start = memory_.data() + guard_bytes;
    entry.length = entry_bytes;
    entry.ignore_bits = 1;
    SPL_ASSERT(host_->me_append(portal, entry).ok(), "append");
    entry.match_bits = 2;
    SPL_ASSERT(host_->me_append(portal, entry, nic::ListKind::overflow).ok(), "append");
  }

  void put(uint64_t length, nic::AckRequest ack = nic::AckRequest::none) {
    nic::Put arguments;
    arguments.local = source_.data();
    arguments.length = length;
    arguments.target = nic::Rank{1};
    arguments.queue = queue_;
    arguments.ack_request = ack;
    (void)host_->put(arguments);
  }
  void get(uint64_t length) {
    portals::GetArguments arguments;
    arguments.reply.local = back_.data();
    arguments.reply.queue = queue_;
    arguments.length = length;
    arguments.target = nic::Rank{1};
    (void)host_->get(arguments);
  }
  void drain() {
    while (host_->eq_get(queue_)) {
    }
  }

  template <class Tell>
  void check(Tell tell) {
    for (int i = 0; i < 20; ++i) node_->drive();
    for (uint64_t i = 0; i < guard_bytes; ++i) {
      SPL_ASSERT(memory_[i] == guard && memory_[memory_.size() - 1 - i] == guard, "a byte outside of the entry");
    }
    const uint64_t before = node_->engine().state().dropped_messages;
    tell();
    for (int i = 0; i < 100 && node_->engine().state().dropped_messages == before; ++i) node_->drive();
    SPL_ASSERT(node_->engine().state().dropped_messages > before, "the other peer is not heard any more");
  }

 private:
  static constexpr uint8_t guard = 0x5a;

  std::vector<uint8_t> memory_, source_, back_;
  LocalJob job_;
  std::unique_ptr<Node> node_;
  std::unique_ptr<portals::Interface> host_;
  nic::QueueId queue_;
};

}  // namespace spinloom::live
