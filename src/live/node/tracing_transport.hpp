// TracingTransport - stands between a node and a transport, and records what passes.
//
// Contract: it is a Transport to the node and a TransportClient to the transport below. over() names that transport
//   before any other call.
// Invariants: (1) no packet is changed, delayed or held back. But small puts go through send(), which records them,
//   cork() has no effect, and no message is done directly in its target's memory; (2) the log is written to its file
//   whenever the transport below has nothing to do; (3) copies of bytes are recorded only for the packet that is
//   arriving, not for one that has waited.
// Threads: the owner of the NIC. Time: none.
#pragma once

#include <unordered_map>

#include "live/node/trace_log.hpp"
#include "live/node/transport.hpp"

namespace spinloom::live {

class TracingTransport final : public Transport, public TransportClient {
 public:
  TracingTransport(TransportClient& client, TraceLog& log) : client_(client), log_(log) {}
  void over(Transport& below) { below_ = &below; }

  // Transport
  [[nodiscard]] const char* name() const override { return below_->name(); }
  [[nodiscard]] bool send(nic::Send& send) override {
    log_.log_packet("send", send.packet.target, send.packet);
    return below_->send(send);
  }
  bool poll() override {
    const bool happened = below_->poll();
    if (!happened) log_.flush();
    return happened;
  }
  [[nodiscard]] bool has_news() const override { return below_->has_news(); }
  void arm() override { below_->arm(); }
  void note_settled() override { below_->note_settled(); }
  [[nodiscard]] bool has_ended(nic::Rank peer) const override { return below_->has_ended(peer); }
  void return_loan(nic::Rank peer, uint64_t loan) override { below_->return_loan(peer, loan); }
  void set_stopped(nic::Rank peer, bool stopped) override { below_->set_stopped(peer, stopped); }
  [[nodiscard]] Status fetch(nic::Rank peer, uint64_t address, uint8_t* to, uint64_t length) override {
    Status done = below_->fetch(peer, address, to, length);
    if (is_arriving(peer, address)) log_.log_packet(done ? "copied" : "failed", peer, *arriving_);
    return done;
  }
  [[nodiscard]] bool fetch_with_help(nic::Rank peer, uint64_t address, uint8_t* to, uint64_t length,
                                     uint64_t token) override {
    if (is_arriving(peer, address)) helped_[token] = *arriving_;  // first: the copy may end inside the call
    const bool begun = below_->fetch_with_help(peer, address, to, length, token);
    if (!begun) helped_.erase(token);
    return begun;
  }
  [[nodiscard]] bool congested(nic::Rank peer) const override { return below_->congested(peer); }
  [[nodiscard]] bool drained() const override { return below_->drained(); }
  [[nodiscard]] Outstanding outstanding(nic::Rank peer) const override { return below_->outstanding(peer); }
  void note_resumed(nic::Rank peer) override { below_->note_resumed(peer); }
  [[nodiscard]] std::string describe(nic::Rank peer) override { return below_->describe(peer); }
  [[nodiscard]] Time timer() const override { return below_->timer(); }
  void say_goodbye() override {
    below_->say_goodbye();
    log_.flush();
  }

  // TransportClient
  [[nodiscard]] bool arrived(Transport&, const nic::Packet& packet, uint64_t loan) override {
    log_.log_packet("arrive", packet.source, packet);
    arriving_ = &packet;
    const bool done = client_.arrived(*this, packet, loan);
    arriving_ = nullptr;
    return done;
  }
  void sent(const SendCompletion& completion) override {
    if (completion.is_expected) log_.log_message("left", completion.message);
    client_.sent(completion);
  }
  void fetched(uint64_t token, bool succeeded) override {
    const auto helped = helped_.find(token);
    if (helped != helped_.end()) {
      log_.log_packet(succeeded ? "copied" : "failed", helped->second.source, helped->second);
      helped_.erase(helped);
    }
    client_.fetched(token, succeeded);
  }
  void lost(nic::Rank peer) override {
    log_.log_peer("lost", peer);
    client_.lost(peer);
  }
  [[nodiscard]] bool is_disconnected(nic::Rank peer) const override { return client_.is_disconnected(peer); }
  void reconnected(nic::Rank peer) override {
    log_.log_peer("back", peer);
    client_.reconnected(peer);
  }

 private:
  // True if these bytes belong to the packet that is arriving; false if they belong to one that has waited.
  [[nodiscard]] bool is_arriving(nic::Rank peer, uint64_t address) const {
    if (arriving_ == nullptr || arriving_->source != peer) return false;
    return address - reinterpret_cast<uint64_t>(arriving_->payload.bytes) < arriving_->payload.length;
  }

  TransportClient& client_;
  TraceLog& log_;
  Transport* below_ = nullptr;
  const nic::Packet* arriving_ = nullptr;
  std::unordered_map<uint64_t, nic::Packet> helped_;  // packets whose bytes are being copied, by token
};

}  // namespace spinloom::live
