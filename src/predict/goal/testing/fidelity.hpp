// Test fidelity - what stages of a message take by a profile, and tests of each fidelity on NICs.
//
// Contract: Stages are in ps. EachFidelity is instantiated in fidelity_test.cpp.
// Threads: tests run in one thread. Time: modelled.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "predict/goal/nics/fidelity.hpp"
#include "predict/schedule/goal.hpp"
#include "simulated/node/pcie.hpp"
#include "simulated/node/testing/profile.hpp"

namespace spinloom::goal::test {

inline schedule::Schedule fidelity_schedule(const std::string& goal) {
  auto made = schedule::read_goal(goal);
  EXPECT_TRUE(made) << made.error().message;
  return made ? std::move(*made) : schedule::Schedule();
}

// Times of the stages of a message by the profile, in ps.
struct Stages {
  explicit Stages(const simulated::Profile& given) : profile(given), pcie(given) {}

  [[nodiscard]] int64_t to_host(int64_t bytes) const { return pcie.write_duration(bytes).ps; }
  // Until a command is at the NIC.
  [[nodiscard]] int64_t command() const { return to_host(profile.pcie.event_bytes) + profile.host.command_latency.ps; }
  // Until the NIC has read the first byte of what it sends: a request over PCIe, the bytes back.
  [[nodiscard]] int64_t read() const { return to_host(0) + 2 * profile.pcie.latency.ps; }
  [[nodiscard]] int64_t wire() const { return profile.link.switch_latency.ps + profile.link.wire.ps; }
  [[nodiscard]] int64_t line(int64_t bytes) const { return profile.link.byte_time.time_of(Bytes{bytes}).ps; }
  // Until a packet whose header comes at 0 is in host memory, at the earliest when it has been matched.
  [[nodiscard]] int64_t landed(int64_t bytes) const {
    const int64_t here = std::max(profile.match.header.ps, line(bytes));
    return here + profile.memory.channel_byte_time.time_of(Bytes{bytes}).ps + to_host(bytes);
  }
  // Like landed(), for an answer, for which no list is searched.
  [[nodiscard]] int64_t answer_landed(int64_t bytes) const {
    return std::max(profile.match.packet.ps, line(bytes)) + profile.memory.channel_byte_time.time_of(Bytes{bytes}).ps +
           to_host(bytes);
  }
  // A long message's last packet follows its last byte, or the packet before it.
  [[nodiscard]] int64_t landed_behind(int64_t bytes) const {
    const int64_t packet = profile.link.payload;
    const int64_t last = bytes - (bytes - 1) / packet * packet;
    const auto read_time = [&](int64_t some) { return profile.memory.channel_byte_time.time_of(Bytes{some}).ps; };
    return std::max(line(bytes) + read_time(last), line(bytes - last) + read_time(packet) + to_host(packet)) +
           to_host(last);
  }
  // Until the host can read an event.
  [[nodiscard]] int64_t event() const { return to_host(profile.pcie.event_bytes) + profile.pcie.latency.ps; }

  // Until the host can read a counter.
  [[nodiscard]] int64_t counter() const { return to_host(16) + profile.pcie.latency.ps; }

  const simulated::Profile& profile;
  simulated::Pcie pcie;
};

class EachFidelity : public testing::TestWithParam<Fidelity> {
 protected:
  std::vector<uint64_t> finish_of(const std::string& goal, const Model& model = {}) {
    const auto outcome = run_on(GetParam(), profile, fidelity_schedule(goal), model);
    EXPECT_TRUE(outcome) << outcome.error().message;
    return outcome ? outcome->finish_ps : std::vector<uint64_t>();
  }
  const simulated::Profile profile = simulated::test_profile();
  const Stages stages{profile};
  const int64_t o = 1'500'000;
};

}  // namespace spinloom::goal::test
