// PortWays - every scenario of frame ports over every kind of port: one suite.
//
// Contract: a way makes a wire with the port at one end. SPINLOOM_PORT_SUITE(Name, ways) makes tests of that.
//   hold() runs a scenario, which is a list of steps, and returns an Error unless each frame comes and goes as it is,
//   in its order, once, is counted, and stays as long as FramePort says. A new kind of port needs a file with its wire
//   and this line. SPINLOOM_TEST_SEED is the seed of the frames; an Error says which seed it was.
// Threads: one. Time: host time, for giving up only.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "ethernet/port/frame_port.hpp"
#include "nic/packet/testing/random_frames.hpp"

namespace spinloom::port::test {

using packet::FrameBytes;
using Frames = std::vector<FrameBytes>;

enum class Kind : uint8_t {
  any,  // many lengths, any address
  tagged,  // one or two VLAN tags
  broadcast,  // the address of everybody
  longest,  // MTU 1500, and no tag
};

struct Step {
  enum class What : uint8_t {
    come,  // frames come, and are received
    go,  // frames are sent
    answer,  // frames come, and others are sent before they are looked at
    refuse,  // a frame of a wrong length is refused, with all that was to be sent beside it
  };
  What what;
  size_t count = 1;
  Kind kind = Kind::any;
  size_t batch = 32;  // frames that are asked for at once
};

struct Scenario {
  const char* name;
  std::vector<Step> steps;
  int rounds = 1;  // the steps are done so often
};
[[nodiscard]] const std::vector<Scenario>& scenarios();

class Wire {
 public:
  Wire() = default;
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;
  virtual ~Wire() = default;

  [[nodiscard]] virtual FramePort& port() = 0;
  // The next frames come to the port. Those of a file are there already.
  [[nodiscard]] virtual Status give(std::span<const FrameBytes> frames) = 0;
  // The next `count` frames that the port has sent, or fewer if no more come.
  [[nodiscard]] virtual Result<Frames> taken(size_t count) = 0;
};

struct PortWay {
  std::string name;
  // `coming`: all frames that will come. Code::unsupported: why this machine refuses such a port.
  std::function<Result<std::unique_ptr<Wire>>(const Frames& coming)> make;
  bool is_read_at_end = false;  // sent frames can be read when all is done
  uint64_t seeds = 2;
};

inline void PrintTo(const Scenario& scenario, std::ostream* out) { *out << scenario.name; }
inline void PrintTo(const PortWay& way, std::ostream* out) { *out << way.name; }

// Code::unsupported: this machine refuses the port.
[[nodiscard]] Status hold(const Scenario& scenario, const PortWay& way);
// Frames of the type that only tests use, from a port that may get others as well.
[[nodiscard]] Result<Frames> received(FramePort& port, size_t count, size_t batch = 32);
[[nodiscard]] Status send_all(FramePort& port, std::span<const FrameBytes> frames);

}  // namespace spinloom::port::test

#define SPINLOOM_PORT_SUITE(Name, ways)                                                                                \
  class Name                                                                                                           \
      : public ::testing::TestWithParam<std::tuple<spinloom::port::test::Scenario, spinloom::port::test::PortWay>> {}; \
  TEST_P(Name, CarryFramesAsTheyAre) {                                                                                 \
    const spinloom::Status held = spinloom::port::test::hold(std::get<0>(GetParam()), std::get<1>(GetParam()));        \
    if (!held.ok() && held.error().code == spinloom::Code::unsupported) GTEST_SKIP() << held.error().message;          \
    ASSERT_TRUE(held.ok()) << held.error().message;                                                                    \
  }                                                                                                                    \
  INSTANTIATE_TEST_SUITE_P(                                                                                            \
      Ports, Name,                                                                                                     \
      ::testing::Combine(::testing::ValuesIn(spinloom::port::test::scenarios()), ::testing::ValuesIn(ways)),           \
      [](const auto& of) { return std::string(std::get<0>(of.param).name) + "_" + std::get<1>(of.param).name; })
