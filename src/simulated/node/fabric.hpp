// Fabric - prices the ways of packets and results between the NIC's ports and memories.
//
// Contract: one of two shapes, by the profile's core.
//   a15: `memory.channels_per_hpu` channels an HPU; a packet takes one on its way in, a DMA one on its way out;
//     handlers read packets where they are.
//   pulp: a packet enters packet memory over the input port; before its handler starts, the DMA engine of the
//     handler's cluster copies it to the cluster's memory; results leave through that engine's other direction
//     and then the output port that all clusters share, which takes port_width bytes a cycle.
//     Each engine serves one transfer after the other in each direction:
//       T = dma_setup + ceil(n / dma_width) cycles;  a host DMA is done dma_latency cycles later.
//     Bytes from the host come through one port to all clusters, port_width a cycle, and are there dma_latency cycles
//     later. What a handler sends leaves through the output port, and is on its way send_latency cycles later. A packet
//     is in packet memory port_latency cycles after its last byte has passed the input port.
//     The copy starts when the HPU has been chosen: an HPU that waits for its packet is not idle.
// Invariants: (1) a transfer never ends before it was asked for; (2) transfers of one engine and direction end in
//   the order asked.
// Threads: one owner. Time: virtual.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "simulated/node/profile.hpp"
#include "simulated/node/resource.hpp"

namespace spinloom::simulated {

class Fabric {
 public:
  Fabric(const Profile& profile, uint32_t hpus)
      : profile_(profile),
        channels_(profile.clustered() ? 1 : hpus * static_cast<uint32_t>(profile.memory.channels_per_hpu)),
        inbound_engines_(static_cast<size_t>(profile.clustered() ? profile.pulp.clusters : 0)),
        outbound_engines_(inbound_engines_.size()),
        cycle_(Rate::cycle_of(profile.hpu.clock)) {}

  // Moves a packet from the network into packet memory.
  Service packet_in(Time now, int64_t bytes) {
    if (!profile_.clustered()) return channels_.serve(now, profile_.memory.channel_byte_time.time_of(Bytes{bytes}));
    if (profile_.pulp.preloaded) return {now, now};
    const Service port = input_port_.serve(now, port_duration(bytes));
    return {port.start, port.end + cycle_.time_of_cycles(profile_.pulp.port_latency)};
  }

  // Moves bytes from the host to the memory of an HPU; returns when they are there.
  Time from_host(Time now, int64_t bytes) {
    if (!profile_.clustered()) return now;
    return host_port_.serve(now, port_duration(bytes)).end + cycle_.time_of_cycles(profile_.pulp.dma_latency);
  }

  // Moves bytes that a handler sends out of its memory; returns when they are on their way to the link.
  Time send(Time now, int64_t bytes) {
    if (!profile_.clustered()) return now;
    return output_port_.serve(now, port_duration(bytes)).end + cycle_.time_of_cycles(profile_.pulp.send_latency);
  }

  // Moves the packet to the memory where its handler reads it. The handler may start at the end.
  Time packet_to_hpu(Time now, uint32_t hpu, int64_t bytes) {
    if (!profile_.clustered() || bytes == 0 || profile_.pulp.packets != MemoryLevel::l1) return now;
    return inbound_engines_[cluster_of(hpu)].serve(now, engine_duration(bytes)).end;
  }

  // Moves bytes for the host from the memory of that HPU, or from packet memory if no handler asked.
  Service to_host(Time now, std::optional<uint32_t> hpu, int64_t bytes) {
    if (!profile_.clustered()) return channels_.serve(now, profile_.memory.channel_byte_time.time_of(Bytes{bytes}));
    const Time latency = cycle_.time_of_cycles(profile_.pulp.dma_latency);
    const Time port_time = port_duration(bytes);
    const Service engine =
        hpu ? outbound_engines_[cluster_of(*hpu)].serve(now, engine_duration(bytes)) : Service{now, now + port_time};
    // The port takes bytes as the engine delivers them, so its service ends with the engine's, or later.
    const Service port = output_port_.serve(std::max(engine.start, engine.end - port_time), port_time);
    return {engine.start, port.end + latency};
  }

  [[nodiscard]] Time port_duration(int64_t bytes) const {
    return cycle_.time_of_cycles(div_ceil(bytes, profile_.pulp.port_width));
  }
  [[nodiscard]] Time engine_duration(int64_t bytes) const {
    return cycle_.time_of_cycles(profile_.pulp.dma_setup + div_ceil(bytes, profile_.pulp.dma_width));
  }
  [[nodiscard]] uint32_t cluster_of(uint32_t hpu) const { return profile_.cluster_of(hpu); }

 private:
  const Profile& profile_;
  Channels channels_;
  Resource input_port_;
  Resource output_port_;
  Resource host_port_;
  std::vector<Resource> inbound_engines_;  // one for each cluster
  std::vector<Resource> outbound_engines_;  // one for each cluster
  Rate cycle_;
};

}  // namespace spinloom::simulated
