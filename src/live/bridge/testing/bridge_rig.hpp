// BridgeRig - for tests: ranks that are joined by gateways over links in memory, whose steps the test chooses.
//
// Contract: send() gives a rank a message to send; step() lets one link deliver what it holds, or a rank poll. Every
//   rank checks order, places and bytes of what arrives against what was sent; wrong() counts the differences. Links
//   may let frames overtake each other, and may die.
// Invariants: (1) the same seed gives the same steps.
// Threads: the test's. Time: that of the bridge, which gives credit after a while.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "live/bridge/bridge_tap.hpp"
#include "live/bridge/bridge_transport.hpp"
#include "live/node/futex.hpp"

namespace spinloom::live::test {

inline uint8_t letter_of(uint32_t from, uint32_t to, uint64_t message, uint64_t at) {
  return static_cast<uint8_t>((from * 31 + to * 17 + message * 7 + at) * 2654435761u >> 13);
}

class BridgeRig {
 public:
  // Ranks share a network if their texts share a letter; the last `gateways` ranks have no program.
  BridgeRig(const std::vector<std::string>& networks, uint32_t gateways, const BridgeOptions& options, uint64_t seed)
      : random_(seed, "bridge"), programs_(static_cast<uint32_t>(networks.size()) - gateways) {
    const auto all = static_cast<uint32_t>(networks.size());
    std::vector<std::vector<bool>> marks(all, std::vector<bool>(all));
    std::vector<bool> forwards(all);
    for (uint32_t a = 0; a < all; ++a) {
      forwards[a] = a >= programs_;
      for (uint32_t b = 0; b < all; ++b) marks[a][b] = networks[a].find_first_of(networks[b]) != std::string::npos;
    }
    for (uint32_t rank = 0; rank < all; ++rank) {
      auto& member = *members_.emplace_back(std::make_unique<Member>(*this, rank));
      member.bridge =
          std::make_unique<BridgeTransport>(member, rank, programs_, BridgeRoutes(marks, forwards), options);
      for (uint32_t peer = 0; peer < all; ++peer) {
        if (peer != rank && marks[rank][peer]) member.bridge->link(nic::Rank{peer}, member.link);
      }
      member.tap.attach(*member.bridge);
    }
    for (const auto& member : members_) member->bridge->greet();
  }

  [[nodiscard]] uint32_t programs() const { return programs_; }
  [[nodiscard]] BridgeTransport& bridge(uint32_t rank) { return *members_.at(rank)->bridge; }
  [[nodiscard]] uint64_t wrong() const { return wrong_; }
  // Returns the number of messages that have been sent and have not arrived.
  [[nodiscard]] uint64_t undelivered() const { return undelivered_; }
  [[nodiscard]] const std::vector<uint32_t>& lost(uint32_t rank) const { return members_.at(rank)->gone; }
  // Returns the number of messages whose sender has not got its memory back.
  [[nodiscard]] uint64_t unreturned() const { return unreturned_; }
  // Returns the number of pieces of answers that have arrived.
  [[nodiscard]] uint64_t answer_pieces() const { return answer_pieces_; }
  // The most requests that arrived from a rank after it had been told to stop.
  [[nodiscard]] uint64_t after_stop_peak() const { return after_stop_peak_; }

  void send(uint32_t from, uint32_t to, bool answer, uint64_t length) {
    Member& member = *members_.at(from);
    const uint64_t message = ++messages_;
    std::vector<uint8_t>& bytes = member.memory[message];
    bytes.resize(length);
    for (uint64_t i = 0; i < length; ++i) bytes[i] = letter_of(from, to, message, i);
    nic::Send send;
    send.packet.operation = answer ? nic::Operation::reply : nic::Operation::put;
    send.packet.source = nic::Rank{from};
    send.packet.target = nic::Rank{to};
    send.packet.message = message;
    send.packet.message_length = length;
    send.packet.payload = {nic::PayloadRef::Space::local, bytes.data(), length};
    send.packet.fields.hdr_data = message;
    send.last = true;
    members_.at(to)->expected[{from, answer}].emplace_back(message, length);
    ++undelivered_;
    ++unreturned_;
    if (member.bridge->send(send)) member.sent(SendCompletion{message, {}, true});
  }
  void stop(uint32_t rank, uint32_t peer, bool stopped) {
    members_.at(rank)->stopped[peer] = stopped;
    members_.at(rank)->after_stop[peer] = 0;
    bridge(rank).set_stopped(nic::Rank{peer}, stopped);
  }
  // Kills a rank: its links carry nothing more, and its neighbours hear of the loss.
  void kill(uint32_t rank) {
    dead_.insert(rank);
    for (uint32_t peer = 0; peer < members_.size(); ++peer) {
      if (!dead_.contains(peer) && bridge(rank).routes().direct(rank, peer)) members_[peer]->dying.push_back(rank);
    }
  }
  // `overtaking`: links do not keep the order of packets.
  void step(bool overtaking) {
    const auto rank = static_cast<uint32_t>(random_.below(members_.size()));
    if (!dead_.contains(rank)) poll(rank, overtaking);
  }
  void poll(uint32_t rank, bool overtaking) {
    Member& member = *members_[rank];
    const auto from = static_cast<uint32_t>(random_.below(members_.size()));
    auto& queue = links_[{from, rank}];
    for (uint64_t count = 1 + random_.below(4); count > 0 && !queue.empty(); --count) {
      const uint64_t at = overtaking ? random_.below(std::min<uint64_t>(queue.size(), 5)) : 0;
      const auto [packet, bytes] = std::move(queue[at]);
      queue.erase(queue.begin() + static_cast<int64_t>(at));
      nic::Packet arriving = packet;
      arriving.payload.bytes = bytes.data();
      std::ignore = member.tap.arrived(member.link, arriving, 0);
    }
    if (!member.dying.empty() && links_[{member.dying.back(), rank}].empty()) {
      const uint32_t peer = member.dying.back();
      member.dying.pop_back();
      member.tap.lost(nic::Rank{peer});
    }
    member.bridge->poll();
  }
  // Steps until `done`. Returns false after a time that means that something hangs.
  template <class Done>
  [[nodiscard]] bool run(bool overtaking, Done done) {
    const Time give_up = monotonic_now() + Time{20'000'000'000'000};
    for (uint64_t steps = 0; !done(); ++steps) {
      if (steps % 1000 == 0 && monotonic_now() >= give_up) return false;
      step(overtaking);
    }
    return true;
  }
  [[nodiscard]] bool drained() const {
    for (const auto& [ends, queue] : links_) {
      if (!queue.empty() && !dead_.contains(ends.first) && !dead_.contains(ends.second)) return false;
    }
    for (const auto& member : members_) {
      if (!dead_.contains(member->rank) && !member->bridge->drained()) return false;
    }
    return true;
  }
  // Sends arbitrary bytes as a frame from one neighbour to another.
  void forge(uint32_t from, uint32_t to, std::vector<uint8_t> bytes) {
    BridgeLinks links(from, static_cast<uint32_t>(members_.size()));
    links.link(nic::Rank{to}, members_[from]->link);
    links.pass(nic::Rank{to}, bytes);
  }

 private:
  struct Member;
  // A transport that hands packets to the rig.
  struct Link final : Transport {
    Link(BridgeRig& rig_, uint32_t rank_) : rig(rig_), rank(rank_) {}
    [[nodiscard]] const char* name() const override { return "rig"; }
    [[nodiscard]] bool send(nic::Send& one) override {
      const uint32_t target = one.packet.target.value;
      if (rig.dead_.contains(rank) || rig.dead_.contains(target)) return true;
      const nic::PayloadRef& payload = one.packet.payload;
      rig.links_[{rank, target}].emplace_back(one.packet,
                                              std::vector<uint8_t>(payload.bytes, payload.bytes + payload.length));
      return true;
    }
    bool poll() override { return false; }
    [[nodiscard]] bool has_news() const override { return false; }
    void return_loan(nic::Rank, uint64_t) override {}
    void set_stopped(nic::Rank, bool) override {}
    [[nodiscard]] Status fetch(nic::Rank, uint64_t, uint8_t*, uint64_t) override { return fail(Code::invalid, "rig"); }
    [[nodiscard]] bool congested(nic::Rank) const override { return false; }
    [[nodiscard]] bool drained() const override { return true; }
    [[nodiscard]] Outstanding outstanding(nic::Rank) const override { return {}; }
    [[nodiscard]] std::string describe(nic::Rank) override { return "a link in memory"; }
    void say_goodbye() override {}
    BridgeRig& rig;
    uint32_t rank;
  };

  // A rank's program, which checks what arrives.
  struct Member final : TransportClient {
    Member(BridgeRig& rig_, uint32_t rank_) : rig(rig_), rank(rank_), link(rig_, rank_), tap(*this) {}
    [[nodiscard]] bool arrived(Transport&, const nic::Packet& packet, uint64_t) override {
      const uint32_t from = packet.source.value;
      auto& list = expected[{from, packet.is_answer()}];
      const bool open = !list.empty() && list.front().first == packet.message;
      bool good =
          open && packet.message_length == list.front().second && packet.offset == done[{from, packet.is_answer()}];
      good = good && (packet.offset > 0 || packet.fields.hdr_data == packet.message);
      for (uint64_t i = 0; good && i < packet.payload.length; ++i) {
        good = packet.payload.bytes[i] == letter_of(from, rank, packet.message, packet.offset + i);
      }
      if (!good || std::find(gone.begin(), gone.end(), from) != gone.end()) ++rig.wrong_;
      if (packet.is_answer()) {
        ++rig.answer_pieces_;
      } else if (stopped[from]) {
        rig.after_stop_peak_ = std::max(rig.after_stop_peak_, ++after_stop[from]);
      }
      if (!open) return true;
      uint64_t& bytes = done[{from, packet.is_answer()}];
      bytes += packet.payload.length;
      if (bytes < list.front().second) return true;
      bytes = 0;
      list.pop_front();
      --rig.undelivered_;
      return true;
    }
    void sent(const SendCompletion& completion) override {
      if (!completion.is_expected) return;
      rig.unreturned_ -= memory.erase(completion.message);
    }
    void fetched(uint64_t, bool) override {}
    void lost(nic::Rank peer) override { gone.push_back(peer.value); }
    BridgeRig& rig;
    uint32_t rank;
    Link link;
    BridgeTap tap;
    std::unique_ptr<BridgeTransport> bridge;
    std::map<uint64_t, std::vector<uint8_t>> memory;  // payloads that are being sent, by message
    // The key is the source and the class.
    std::map<std::pair<uint32_t, bool>, std::deque<std::pair<uint64_t, uint64_t>>> expected;
    std::map<std::pair<uint32_t, bool>, uint64_t> done;
    std::map<uint32_t, bool> stopped;
    std::map<uint32_t, uint64_t> after_stop;
    std::vector<uint32_t> gone;
    std::vector<uint32_t> dying;
  };

  Random random_;
  uint32_t programs_;
  std::vector<std::unique_ptr<Member>> members_;
  std::map<std::pair<uint32_t, uint32_t>, std::deque<std::pair<nic::Packet, std::vector<uint8_t>>>> links_;
  std::set<uint32_t> dead_;
  uint64_t messages_ = 0, wrong_ = 0, undelivered_ = 0, unreturned_ = 0, answer_pieces_ = 0, after_stop_peak_ = 0;
};

}  // namespace spinloom::live::test
