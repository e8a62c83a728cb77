// Test support - a card between two ports in memory.
//
// Contract: MemoryPort gives the frames that a test has put into `in`, and keeps what it is given in `out`; `room` is
//   how many frames it takes before it refuses. Cards have the wire's port `wire` and the host's port `host`.
// Threads: one owner; wires by any. Time: none.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <mutex>
#include <vector>

#include "ethernet/device/card.hpp"
#include "ethernet/device/rule_text.hpp"
#include "ethernet/port/echo_station.hpp"
#include "nic/packet/build.hpp"
#include "nic/packet/checksum.hpp"
#include "spinloom/frame.h"

namespace spinloom::ethernet::test {

using packet::FrameBytes;

// A test with one thread uses the fields; others put() and ask sent().
struct Wire {
  void put(FrameBytes frame) {
    const std::lock_guard lock(mutex);
    in.push_back(std::move(frame));
  }
  [[nodiscard]] size_t sent() {
    const std::lock_guard lock(mutex);
    return out.size();
  }

  std::mutex mutex;
  std::deque<FrameBytes> in;
  std::vector<FrameBytes> out;
  size_t room = SIZE_MAX;
  bool broken = false;
};

class MemoryPort final : public port::FramePort {
 public:
  explicit MemoryPort(Wire& wire) : wire_(wire) {}
  Result<size_t> receive(std::span<Bytes> batch) override {
    const std::lock_guard lock(wire_.mutex);
    if (wire_.broken) return fail(Code::environment, "the cable is out");
    given_.clear();
    while (!wire_.in.empty() && given_.size() < batch.size()) {
      given_.push_back(std::move(wire_.in.front()));
      wire_.in.pop_front();
    }
    std::copy(given_.begin(), given_.end(), batch.begin());
    return given_.size();
  }
  Result<size_t> send(std::span<const Bytes> frames) override {
    SPL_TRY(check_lengths(frames));
    const std::lock_guard lock(wire_.mutex);
    size_t taken = 0;
    for (; taken < frames.size() && wire_.room > 0; ++taken, --wire_.room) {
      wire_.out.emplace_back(frames[taken].begin(), frames[taken].end());
    }
    return taken;
  }
  [[nodiscard]] bool ended() const override {
    const std::lock_guard lock(wire_.mutex);
    return wire_.in.empty();
  }
  [[nodiscard]] packet::MacAddress mac() const override { return {{2, 0, 0, 0, 0, 1}}; }
  [[nodiscard]] size_t mtu() const override { return 1500; }
  [[nodiscard]] port::Counters counters() override { return {}; }
  [[nodiscard]] int descriptor() const override { return -1; }
  [[nodiscard]] std::string description() const override { return "memory"; }

 private:
  Wire& wire_;
  std::vector<FrameBytes> given_;
};

// Asker 10.0.0.1 and the card's station 10.0.0.2.
inline const packet::Endpoints ends{{{2, 0, 0, 0, 0, 9}}, {{2, 0, 0, 0, 0, 1}}, {0x0a000001}, {0x0a000002}};

inline std::vector<uint8_t> station() {
  spl_station_t given{};
  packet::store_mac(given.mac, ends.target_mac);
  given.ip = spl_net32(ends.target.value);
  const auto* const first = reinterpret_cast<const uint8_t*>(&given);
  return {first, first + sizeof given};
}

struct Rig {
  explicit Rig(const Options& options = {}) {
    auto made = Card::create(options, std::make_unique<MemoryPort>(wire), std::make_unique<MemoryPort>(host));
    EXPECT_TRUE(made.ok()) << made.error().message;
    card = std::move(*made);
  }
  // Context 0, 1, ... of the rules in their order.
  void rules(const std::vector<std::string>& names) {
    std::vector<frames::RuleSet> sets;
    for (const std::string& name : names) sets.push_back(rule_set_named(name).value());
    const Status made = card->configure(sets);
    ASSERT_TRUE(made.ok()) << made.error().message;
  }
  void install(uint32_t id, const ContextSetup& setup) {
    const Status made = card->install(ContextId{id}, setup);
    ASSERT_TRUE(made.ok()) << made.error().message;
    ASSERT_TRUE(card->activate(ContextId{id}).ok());
  }
  void turn() {
    const auto done = card->turn();
    ASSERT_TRUE(done.ok()) << done.error().message;
  }
  // Turns until nothing moves any more.
  void settle() {
    for (int turns = 0; turns < 10'000; ++turns) {
      const auto done = card->turn();
      ASSERT_TRUE(done.ok()) << done.error().message;
      if (!*done) return;
    }
    FAIL() << "the card does not come to rest: " << card->nic().describe_waiting();
  }
  void expect_quiet() const {
    const frames::State state = card->nic().state();
    EXPECT_EQ(state.packets, 0u);
    EXPECT_EQ(state.hers, 0u);
    EXPECT_EQ(state.dmas_open, 0u);
    EXPECT_EQ(state.hpus_busy, 0u);
    EXPECT_EQ(state.egress_waiting, 0u);
  }

  Wire wire;
  Wire host;
  std::unique_ptr<Card> card;
};

// A host's answer to a frame (ethernet/port/echo_station.hpp). The flag "don't fragment", which that host always sets,
// is copied from the question, and so is padding.
inline FrameBytes host_answer(const FrameBytes& asked) {
  const port::EchoStation peer(ends.target_mac, ends.target);
  FrameBytes out(asked.size() + packet::ethernet_frame_bytes_min);
  out.resize(peer.answer(asked, out));
  if (out.size() > asked.size()) out.resize(asked.size());
  constexpr size_t flags = 14 + 6, sum = 14 + 10;
  if (out.size() > sum && out[12] == 8 && out[13] == 0 && out[flags] != asked[flags]) {
    const auto word = [&](size_t at) { return static_cast<uint16_t>(out[at] << 8 | out[at + 1]); };
    const uint16_t before = word(flags);
    out[flags] = asked[flags];
    const uint16_t changed = packet::update_checksum(word(sum), before, word(flags));
    out[sum] = static_cast<uint8_t>(changed >> 8);
    out[sum + 1] = static_cast<uint8_t>(changed);
  }
  return out;
}

// The value of what must succeed.
template <class T>
T made(Result<T> result) {
  EXPECT_TRUE(result.ok()) << result.error().message;
  return std::move(result.value());
}

// A shipped handler, natively and in the sandbox.
inline std::string image(const std::string& name, bool native) {
  return std::string(SPINLOOM_HANDLERS) + "/" + name + (native ? ".so" : ".elf");
}
// Handlers of these tests alone.
inline std::string test_image(const std::string& name, bool native) {
  return std::string(SPINLOOM_ETHERNET_HANDLERS) + "/" + name + (native ? ".so" : ".elf");
}

}  // namespace spinloom::ethernet::test
