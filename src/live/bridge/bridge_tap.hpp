// BridgeTap - stands between a transport and its client, and takes out the packets of the bridge.
//
// Contract: to the transport it is a TransportClient. Until attach() sets a bridge, it passes everything on.
// Threads: the owner of the NIC. Time: none.
#pragma once

#include "live/bridge/bridge_transport.hpp"
#include "live/node/transport.hpp"

namespace spinloom::live {

class BridgeTap final : public TransportClient {
 public:
  explicit BridgeTap(TransportClient& client) : client_(client) {}
  void attach(BridgeTransport& bridge) { bridge_ = &bridge; }

  [[nodiscard]] bool arrived(Transport& from, const nic::Packet& packet, uint64_t loan) override {
    if (bridge_ != nullptr && bridge_->take(packet)) return true;
    return client_.arrived(from, packet, loan);
  }
  void sent(const SendCompletion& completion) override { client_.sent(completion); }
  void fetched(uint64_t token, bool succeeded) override { client_.fetched(token, succeeded); }
  void lost(nic::Rank peer) override {
    client_.lost(peer);
    if (bridge_ != nullptr) bridge_->lose_link(peer);
  }
  // In a job with gateways a lost peer never comes back.
  [[nodiscard]] bool is_disconnected(nic::Rank peer) const override {
    return bridge_ == nullptr && client_.is_disconnected(peer);
  }
  void reconnected(nic::Rank peer) override { client_.reconnected(peer); }

 private:
  TransportClient& client_;
  BridgeTransport* bridge_ = nullptr;
};

}  // namespace spinloom::live
