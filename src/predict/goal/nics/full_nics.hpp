// FullNics - Nics as simulated nodes: packets on links, packet buffers, DMA over PCIe; real bytes move.
//
// Contract: as Nics. Every rank of the sample has a simulated::Node from the beginning, with the profile's packets and
//   HPUs.
// Threads: one owner. Time: modelled.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "predict/goal/model/sample.hpp"
#include "predict/goal/nics/nics.hpp"
#include "simulated/node/network.hpp"
#include "simulated/node/node.hpp"
#include "simulated/node/profile.hpp"

namespace spinloom::goal {

class FullNics final : public Nics, simulated::Receiver {
 public:
  // `network`: what is between the NICs; none: one switch.
  static Result<std::unique_ptr<FullNics>> create(const simulated::Profile& profile, uint32_t ranks, const Setup& setup,
                                                  const std::optional<network::Config>& network = {},
                                                  const Sample& sample = {});

  [[nodiscard]] simulated::EventQueue& clock() override { return clock_; }
  [[nodiscard]] portals::Port& port(uint32_t rank) override { return *nodes_[rank]; }
  void watch(Watcher watcher) override;
  void release(uint32_t) override {}
  void connect(PacketSink& sink) override;
  void inject(std::vector<nic::Packet> packets, Time at, std::function<void()> sent) override;
  [[nodiscard]] nic::NicLimits limits_outside() const override;
  [[nodiscard]] uint64_t atomic_bytes_max() const override { return atomic_bytes_of(profile_); }
  [[nodiscard]] Status trouble() const override;

 private:
  FullNics(const simulated::Profile& profile, simulated::Network::Switches switches);
  void on_arrival(std::unique_ptr<simulated::Arrival> arrival) override {
    sink_->on_packet(std::move(arrival), clock_.now());
  }

  simulated::Profile profile_;
  const std::vector<hpu::Image> images_;  // none
  simulated::EventQueue clock_;
  simulated::Network network_;
  std::vector<std::unique_ptr<simulated::Node>> nodes_;  // one for each rank; null: not of the sample
  PacketSink* sink_ = nullptr;
};

}  // namespace spinloom::goal
