// An Ethernet NIC in virtual time: every stage has its price, the sum of the stages is what the far end sees.
#include "simulated/node/frame_node.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "nic/hpu/assembler.hpp"
#include "simulated/node/testing/frame_profile.hpp"
#include "spinloom/handler.h"

namespace spinloom::simulated {
namespace {

using namespace hpu::assembler;

constexpr Time board_cycle = 25'000_ps;

// Sends the frame of 60 B where it lies, then returns. 11 instructions.
hpu::Image frame_sender() {
  Assembler code;
  code(lui(t0, SPL_HPU_COMMAND_BASE))(addi(t1, zero, SPL_CALL_SEND_FRAME))(sw(t1, t0, 0));
  code(lui(t1, SPL_HPU_PACKET_BASE))(sw(t1, t0, 4))(addi(t1, zero, 60))(sw(t1, t0, 16));
  code(lw(t1, t0, SPL_CMD_ISSUE))(addi(a0, zero, SUCCESS))(ret());
  auto made = code.image();
  return std::move(*made);
}
// Writes the first 60 B of the frame to host memory, waits until they have been read, and returns.
hpu::Image frame_writer() {
  Assembler code;
  code(lui(t0, SPL_HPU_COMMAND_BASE))(addi(t1, zero, SPL_CALL_DMA_TO_HOST_B))(sw(t1, t0, 0));
  code(lui(t1, SPL_HPU_PACKET_BASE))(sw(t1, t0, 4))(addi(t1, zero, 60))(sw(t1, t0, 16));
  code(sw(zero, t0, 8))(sw(zero, t0, 12))(sw(zero, t0, 20));
  code(lw(t1, t0, SPL_CMD_ISSUE))(addi(a0, zero, SUCCESS))(ret());
  auto made = code.image();
  return std::move(*made);
}

struct FrameBench final : FrameHost {
  explicit FrameBench(hpu::Image image, const Profile& given = board_profile()) : profile(given) {
    images.push_back(std::move(image));
    auto made = FrameNode::create(events, profile, *this, images, {});
    EXPECT_TRUE(made.ok()) << made.error().message;
    node = std::move(*made);
    EXPECT_TRUE(node->nic().configure({{frames::RuleMode::all, {{3, 0xffff, 8, 8}}, frames::Rule::never()}}).ok());
    frames::ContextOptions options;
    options.handlers.payload_entry = SPL_HPU_IMAGE_BASE;
    options.handlers.handler_host_start = reinterpret_cast<uint64_t>(host.data());
    options.handlers.handler_host_length = host.size();
    const Status installed = node->nic().install(spin::ContextId{0}, options);
    EXPECT_TRUE(installed.ok()) << installed.error().message;
    EXPECT_TRUE(node->nic().activate(spin::ContextId{0}).ok());
  }
  // A frame of IPv4 that the rule set takes, or of ARP for the host.
  static FrameBytes frame_of(size_t bytes, bool ipv4 = true) {
    FrameBytes frame(bytes);
    std::iota(frame.begin(), frame.end(), uint8_t{0});
    frame[12] = 8;
    frame[13] = ipv4 ? 0 : 6;
    return frame;
  }
  void drain() {
    while (events.step()) {
    }
  }
  void on_far_frame(const FrameBytes& frame) override {
    far = frame;
    far_at = events.now();
    ++far_frames;
  }
  void on_stack_frame(const FrameBytes& frame) override {
    stack = frame;
    stack_at = events.now();
  }
  void on_host_write(const uint8_t* at, uint64_t length) override {
    written_at = events.now();
    written.assign(at, at + length);
  }

  EventQueue events;
  Profile profile;
  std::vector<hpu::Image> images;
  std::vector<uint8_t> host = std::vector<uint8_t>(4096);
  std::unique_ptr<FrameNode> node;
  FrameBytes far, stack, written;
  Time far_at{}, stack_at{}, written_at{};
  int far_frames = 0;
};

// T(arrived) = (n + 24) byte_time + wire; matched 4 cycles later; stored 8 to 70 cycles later, linear in n.
TEST(FrameNode, PricesMatchingAndTheCopyToPacketMemory) {
  const std::pair<size_t, int64_t> sizes[] = {{60, 8}, {64, 9}, {787, 39}, {1514, 70}};
  for (const auto& [bytes, copy_cycles] : sizes) {
    FrameBench bench(frame_sender());
    bench.node->send_from_far(FrameBench::frame_of(bytes));
    bench.drain();
    const FrameStages& stages = bench.node->stages();
    EXPECT_EQ(stages.arrived, Time{static_cast<int64_t>(bytes + 24) * 80 + 10'000});
    EXPECT_EQ(stages.matched - stages.arrived, board_cycle * 4);
    EXPECT_EQ(stages.stored - stages.matched, board_cycle * copy_cycles) << bytes;
  }
}

// T = cable + 4 + 8 (copy) + 16 (task) + 2 (to L1) + 5 (start), from there to the next tick: handler to the call;
// then 1 + 12 (the way out) + cable.
TEST(FrameNode, AnEchoIsTheSumOfItsStages) {
  FrameBench bench(frame_sender());
  const FrameBytes frame = FrameBench::frame_of(60);
  bench.node->send_from_far(frame);
  bench.drain();
  EXPECT_EQ(bench.far, frame);
  const FrameStages& stages = bench.node->stages();
  EXPECT_EQ(stages.started - stages.stored, board_cycle * (16 + 2 + 5));
  const Time cable = bench.node->cable_time(60) + 10'000_ps;
  EXPECT_EQ(cable, Time{84 * 80 + 10'000});
  // Handlers start on a tick of their clock. The load that issues is the eighth instruction, each a cycle.
  const Time tick = board_cycle * (stages.started.ps / board_cycle.ps + 1);
  const spin::HandlerKind payload = spin::HandlerKind::payload;
  const auto before_call = static_cast<int64_t>(bench.node->hpus().statistics(payload).first_call_cycles);
  EXPECT_GE(before_call, 7);
  EXPECT_LE(before_call, 12);
  EXPECT_EQ(bench.far_at, tick + board_cycle * before_call + board_cycle * (1 + 12) + cable);
  EXPECT_EQ(bench.node->nic().count(frames::Count::sent_by_handlers), 1u);
  EXPECT_EQ(bench.node->nic().state().packets, 0u);
}

// T(landed) = read + PCIe bytes + latency; the NIC knows a latency later: a host DMA takes 450 ns and its bytes.
TEST(FrameNode, AHostWriteTakesTwoLatencies) {
  FrameBench bench(frame_writer());
  const FrameBytes frame = FrameBench::frame_of(60);
  bench.node->send_from_far(frame);
  bench.drain();
  const FrameStages& stages = bench.node->stages();
  const Time bytes = bench.profile.pcie.byte_time.time_of(Bytes{60 + bench.profile.pcie.write_overhead});
  EXPECT_EQ(stages.landed - stages.read, bytes + 225'000_ps);
  EXPECT_EQ(bench.written_at, stages.landed);
  EXPECT_EQ(bench.written, frame);
  EXPECT_EQ(bench.events.now(), stages.landed + 225'000_ps);
  EXPECT_EQ(bench.node->nic().state().dmas_open, 0u);
}

TEST(FrameNode, OtherFramesGoToTheHost) {
  FrameBench bench(frame_sender());
  const FrameBytes frame = FrameBench::frame_of(100, false);
  bench.node->send_from_far(frame);
  bench.drain();
  EXPECT_EQ(bench.stack, frame);
  const Time bytes = bench.profile.pcie.byte_time.time_of(Bytes{100 + bench.profile.pcie.write_overhead});
  EXPECT_EQ(bench.stack_at, bench.node->stages().matched + bytes + 225'000_ps);
  EXPECT_EQ(bench.far_frames, 0);
}

TEST(FrameNode, TheHostSendsFrames) {
  FrameBench bench(frame_sender());
  const FrameBytes frame = FrameBench::frame_of(90);
  ASSERT_TRUE(bench.node->send_from_host(frame));
  bench.drain();
  EXPECT_EQ(bench.far, frame);
  EXPECT_GT(bench.far_at, 450'000_ps);
  EXPECT_EQ(bench.node->nic().count(frames::Count::sent_by_host), 1u);
}

TEST(FrameNode, TheHostWritesToNicMemory) {
  FrameBench bench(frame_sender());
  bench.node->write_nic(8, {1, 2, 3});
  EXPECT_EQ(bench.node->nic_memory()[8], 0);
  bench.drain();
  EXPECT_EQ(bench.node->nic_memory()[10], 3);
}

TEST(FrameNode, FullPacketMemoryLosesFramesAndCountsThem) {
  FrameBench bench(frame_sender());
  constexpr int frames = 3000;  // 1,024 small slots; a frame is matched in 4 cycles and copied in 8
  for (int i = 0; i < frames; ++i) bench.node->send_from_far(FrameBench::frame_of(60));
  bench.drain();
  const auto lost = bench.node->nic().count(frames::Count::dropped_full);
  EXPECT_GT(lost, 0u);
  EXPECT_EQ(lost + bench.node->nic().count(frames::Count::sent_by_handlers), frames);
  EXPECT_EQ(static_cast<uint64_t>(bench.far_frames), frames - lost);
}

TEST(FrameProfile, TheSectionIsWholeOrAbsent) {
  ProfileFields fields = board_fields();
  EXPECT_TRUE(build_profile(fields)->has_ingress());
  fields["frame.ingress_min"] = int64_t{71};
  const auto reversed = build_profile(fields);
  ASSERT_FALSE(reversed.ok());
  EXPECT_NE(reversed.error().message.find("71"), std::string::npos);
  fields.erase("frame.ingress_min");
  const auto part = build_profile(fields);
  ASSERT_FALSE(part.ok());
  EXPECT_NE(part.error().message.find("frame.ingress_min"), std::string::npos);
  for (const char* name : {"frame.ingress_max", "frame.bytes_min", "frame.bytes_max"}) fields.erase(name);
  EXPECT_FALSE(build_profile(fields)->has_ingress());
}

// Without the section a frame takes the input port: 4 + ceil(n / 64) cycles.
TEST(FrameNode, APlainProfileServes) {
  ProfileFields fields = board_fields();
  for (const char* name : {"frame.ingress_min", "frame.ingress_max", "frame.bytes_min", "frame.bytes_max"}) {
    fields.erase(name);
  }
  FrameBench bench(frame_sender(), *build_profile(fields));
  bench.node->send_from_far(FrameBench::frame_of(600));
  bench.drain();
  EXPECT_EQ(bench.node->stages().stored - bench.node->stages().matched, board_cycle * (4 + 10));
  EXPECT_EQ(bench.far.size(), 60u);
}

}  // namespace
}  // namespace spinloom::simulated
