// Handlers in PsPIN's style (spinloom/pspin_compat.h) on the Ethernet NIC: natively and in the sandbox, row by row of
// docs/pspin.md.
#include <numeric>

#include "live/node/testing/frame_bed.hpp"
#include "live/node/testing/frame_bytes.hpp"
#include "spinloom/pspin/memory_map.h"

namespace spinloom::live {
namespace {

#ifdef SPINLOOM_LIVE_TEST_HANDLERS

// The state as pspin_compat.h describes it, for the two clusters of FPsPIN and the four of PsPIN.
constexpr uint64_t told = SPL_PSPIN_TOLD, scratchpad_bytes = 4096;
constexpr uint64_t scratchpad(uint64_t clusters) { return 4096 + clusters * 8 * 1536; }
constexpr uint64_t handler_mem = scratchpad(2) + 2 * scratchpad_bytes;
static_assert(handler_mem == SPL_PSPIN_HANDLER_MEM);
constexpr uint64_t state_bytes = scratchpad(4) + 4 * scratchpad_bytes + 4096;
constexpr uint64_t pages = 16 * SPL_HOST_PAGE_BYTES;
constexpr uint32_t flow = 0xabcdef12;
constexpr uint64_t counters = offsetof(spl_host_data, counter);

Bytes slmp_frame(uint32_t message, uint32_t offset, uint16_t flags, uint16_t data) {
  Bytes bytes = udp_frame(10 + data, static_cast<uint8_t>(offset));
  put(bytes, 42, big(flags));
  put(bytes, 44, message);
  put(bytes, 48, big(offset));
  return bytes;
}

class Pspin : public testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] std::string path(const char* name) const {
    return std::string(SPINLOOM_LIVE_TEST_HANDLERS) + "/" + name + GetParam();
  }
  // Returns the rows that calls_ph wrote for this part.
  std::vector<uint32_t> rows(uint8_t part, size_t count) {
    Bytes frame(64);
    std::iota(frame.begin() + 16, frame.end(), uint8_t{0});
    frame[14] = part;
    put(frame, 44, flow);
    bed.arrive(frame);
    std::vector<uint32_t> found;
    for (size_t row = 0; row < count; ++row) found.push_back(bed.state_at<uint32_t>(handler_mem + 4 * row));
    EXPECT_EQ(bed.state_at<uint32_t>(handler_mem + 4 * count), 0u) << "more rows than the test knows";
    return found;
  }
  FrameBed bed{state_bytes};
};

INSTANTIATE_TEST_SUITE_P(Runners, Pspin, testing::Values(".elf", ".so"),
                         [](const auto& suffix) { return suffix.param[1] == 'e' ? "Sandbox" : "Native"; });

// Rules: FPS-61, FPS-70, FPS-81.
TEST_P(Pspin, AVoidHandlerIsDoneWithItsFrame) {
  bed.install(path("pspin_echo"));
  const Bytes frame = udp_frame(100);
  bed.arrive(frame);
  EXPECT_EQ(bed.sent, (Frames{turned(frame)}));
  EXPECT_EQ(bed.to_host.size(), 0u);
  EXPECT_EQ(bed.count(frames::Count::frames_done), 1u);
  bed.arrive(udp_frame(10));
  EXPECT_EQ(bed.state_at<uint32_t>(counters + 4), 2u);
  EXPECT_EQ(bed.state_at<uint32_t>(counters + 8), 142u + 52u) << "the bytes of both frames";
  EXPECT_GT(bed.state_at<uint32_t>(counters + 16), 0u) << "cycles";
}

// Rules: FPS-56, FPS-58.
TEST_P(Pspin, TheHostAnswersARequestOnItsPage) {
  bed.install(path("pspin_echo"));
  const uint32_t size = pages;
  std::memcpy(bed.state().data() + told + 8, &size, 4);
  uint32_t asked = 0;
  bed.host = [&] {  // shortens the frame by ten bytes and flips its last byte
    for (uint32_t hpu = 0; hpu < 16; ++hpu) {
      const auto request = bed.host_at<uint64_t>(hpu * SPL_HOST_PAGE_BYTES);
      const auto answered = bed.state_at<uint64_t>(8 * hpu);
      if (SPL_HOST_FLAG_ID(request) == SPL_HOST_FLAG_ID(answered)) continue;
      EXPECT_EQ(SPL_HOST_FLAG_HPU(request), hpu);
      const uint32_t length = SPL_HOST_FLAG_LENGTH(request) - 10;
      bed.host_memory[hpu * SPL_HOST_PAGE_BYTES + SPL_HOST_PAGE_PAYLOAD + length - 1] ^= 0xff;
      const uint64_t answer = SPL_HOST_FLAG(SPL_HOST_FLAG_ID(request), length, hpu);
      std::memcpy(bed.state().data() + 8 * hpu, &answer, sizeof answer);
      ++asked;
    }
  };
  for (uint32_t repeat = 1; repeat <= 300; ++repeat) {  // the identifier of a request has 8 bits
    bed.sent.clear();
    const Bytes frame = udp_frame(100);
    bed.arrive(frame);
    Bytes wanted = turned(frame);
    wanted.resize(wanted.size() - 10);
    wanted.back() ^= 0xff;
    ASSERT_EQ(bed.sent, (Frames{wanted}));
    ASSERT_EQ(asked, repeat);
  }
  EXPECT_EQ(bed.lines, std::vector<std::string>{});
}

// Rules: FPS-46, FPS-78, FPS-89, SLMP-14.
TEST_P(Pspin, MessagesHaveTheirThreeHandlers) {
  bed.rule_set.last_frame = {10, 0x00800000, 0x00800000, 0x00800000};  // EOM in the first byte of the SLMP header
  bed.install(path("pspin_message"));
  uint32_t asked = 0;
  bed.host = [&] {
    const auto request = bed.host_at<uint64_t>(0);
    const uint64_t answer = SPL_HOST_FLAG(SPL_HOST_FLAG_ID(request), 0, 0);
    std::memcpy(bed.state().data(), &answer, sizeof answer);
    asked = SPL_HOST_FLAG_LENGTH(request);
  };
  const Bytes frames[] = {slmp_frame(5, 0, 0x4000, 100), slmp_frame(5, 100, 0, 60), slmp_frame(5, 160, 0xc000, 40)};
  for (const Bytes& frame : frames) bed.arrive(frame);
  EXPECT_EQ(bed.state_at<uint32_t>(handler_mem), 1u);
  EXPECT_EQ(bed.state_at<uint32_t>(handler_mem + 4), 3u);
  EXPECT_EQ(bed.state_at<uint32_t>(handler_mem + 8), 1u);
  EXPECT_EQ(asked, 5u) << "the completion handler told the host which flow has ended";
  for (const Bytes& frame : frames) {  // each payload in its place
    const uint32_t offset = big(FrameBed::value<uint32_t>(frame, 48));
    EXPECT_TRUE(std::equal(frame.begin() + 52, frame.end(), bed.host_memory.begin() + pages + offset)) << offset;
  }
  ASSERT_EQ(bed.sent.size(), 2u) << "two frames asked for an acknowledgement";
  EXPECT_EQ(bed.sent[0].size(), 52u);
  EXPECT_EQ(FrameBed::value<uint16_t>(bed.sent[0], 42), big(uint16_t{0x2000}));
  uint32_t sum = 0;  // the ones' complement sum of a header with its checksum is 0xffff (RFC 1071)
  for (size_t at = 14; at < 34; at += 2) sum += FrameBed::value<uint16_t>(bed.sent[0], at);
  EXPECT_EQ((sum & 0xffff) + (sum >> 16), 0xffffu);
  bed.arrive(slmp_frame(6, 0, 0x8000, 10));
  EXPECT_EQ(bed.lines, std::vector<std::string>{"message 0x6: no SYN"});
}

// Rules: FPS-66, FPS-75, FPS-89.
TEST_P(Pspin, PacketsOfPspinsTestBenchAreInTheProcessorsOrder) {
  bed.rule_set.last_frame = {0, 0xff00, 0x100, 0x100};  // its type of service is 1
  bed.hpus = spin::HpuMask::range(9, 1);                   // an HPU of cluster 1
  bed.install(path("pspin_reduce"));
  uint64_t sum = 0;
  for (uint32_t packet = 1; packet <= 5; ++packet) {
    Bytes bytes(28 + 4 * 20);
    bytes[0] = 0x54;  // PsPIN has the version in the lower half, the header's words in the upper
    bytes[1] = packet == 5 ? 1 : 0;
    put(bytes, 2, static_cast<uint16_t>(bytes.size()));
    for (uint32_t i = 0; i < 20; ++i) {
      const uint32_t word = i == 4 ? 3 : packet * 1000 + i;  // word 4 of the payload is the message's identifier
      put(bytes, 28 + 4 * i, word);
      sum += word;
    }
    bed.arrive(bytes);
  }
  EXPECT_EQ(bed.host_at<uint64_t>(0), sum);
  uint64_t in_cluster = 0;
  for (uint64_t i = 0; i < 16; ++i) in_cluster += bed.state_at<uint32_t>(scratchpad(4) + scratchpad_bytes + 4 * i);
  EXPECT_EQ(in_cluster, sum);
}

// Rules: FPS-34, FPS-71, FPS-72, FPS-74.
TEST_P(Pspin, TheTaskSaysWhereMemoriesLie) {
  bed.install(path("pspin_calls"));
  const uint32_t size = 1000;
  std::memcpy(bed.state().data() + told + 12, &size, 4);
  EXPECT_EQ(rows(0, 10), (std::vector<uint32_t>{1, 64, flow, 1, size, UINT32_MAX, 1, scratchpad_bytes, scratchpad_bytes,
                                                2 * scratchpad_bytes}));
  const uint64_t address = 0xdeadbeef00001000;
  std::memcpy(bed.state().data() + told, &address, 8);
  EXPECT_EQ(rows(0, 10)[6], 0xdeadbeefu);
}

// Rules: FPS-84, FPS-85, FPS-86, FPS-87.
TEST_P(Pspin, AtomicsAndLocksDoWhatTheirNamesSay) {
  bed.install(path("pspin_calls"));
  const auto minus_two = static_cast<uint32_t>(-2);
  // Each row is the word before: 5 +3 8, min -2, max 7, minu 6, maxu 9, or 0x39, and 0x31, xor 0xce, swapped for 100.
  EXPECT_EQ(rows(1, 24), (std::vector<uint32_t>{5, 8,   minus_two, 7,   6, 9, 0x39, 0x31, 0xce, UINT32_MAX, 0, 101,
                                                0, 102, 1,         103, 0, 0, 1,    1,    1,    0,          1, 0}));
}

// Rules: FPS-76, FPS-77, FPS-78, FPS-79, FPS-80, FPS-81.
TEST_P(Pspin, CommandsAreDoneOrSayThatTheyAreNot) {
  bed.install(path("pspin_calls"));
  // ok 0, fail 1: see the rows of pspin_calls.c.
  EXPECT_EQ(rows(2, 23), (std::vector<uint32_t>{0, 1, 0, 0, 1, 0, 0, 0,          0, 1, 0x11223344, 7,
                                                1, 0, 1, 1, 0, 0, 0, 0x99aabbcc, 1, 0, 0}));
  EXPECT_EQ(bed.host_at<uint64_t>(8), 0x1122334455667788u);
  EXPECT_EQ(bed.host_at<uint64_t>(16), 7u);
  ASSERT_EQ(bed.sent.size(), 1u);
  EXPECT_EQ(bed.sent[0].size(), 64u);
  EXPECT_EQ(bed.lines,
            std::vector<std::string>{"spin_rdma_put: this NIC sends Ethernet frames only; use spin_send_packet"});
}

TEST_P(Pspin, PrintfMakesLines) {
  bed.install(path("pspin_calls"));
  (void)rows(3, 0);
  EXPECT_EQ(bed.lines, (std::vector<std::string>{
                           "-1 2|    3|4    |-0005|+6| 7", "4000000000 abc ABC 0xff 10 010 0000beef",
                           "abc|   right|l   |cu|%|   9", "-5000000000 18446744073709551615 123456789ab 44 1 12",
                           "no end, and now", "%q %d",
                           "012345678901234567890123456789012345678901234567890123456789012345678901234", "56789",
                           "pspin_calls.c:calls_ph:119: 1"}));
}

// Rules: FPS-88.
TEST_P(Pspin, PayloadsOfEthernetFramesAreFoundInNetworkOrder) {
  bed.install(path("pspin_calls"));
  // Payload at 20 + 20 + 8, of 60 - 20 - 8 bytes; and what is added to the task's own field stays in this handler.
  EXPECT_EQ(rows(6, 3), (std::vector<uint32_t>{48, 32, 5}));
}

// Rules: FPS-90.
TEST_P(Pspin, CyclesPass) {
  bed.install(path("pspin_calls"));
  EXPECT_EQ(rows(4, 1), std::vector<uint32_t>{1});
}

// Rules: FPS-52.
TEST(PspinSandbox, AFailedAssertionCostsItsFrame) {
  FrameBed bed(state_bytes);
  bed.install(std::string(SPINLOOM_LIVE_TEST_HANDLERS) + "/pspin_calls.elf");
  Bytes frame(64);
  frame[14] = 5;
  bed.arrive(frame);
  EXPECT_EQ(bed.count(frames::Count::handler_faults), 1u);
  ASSERT_EQ(bed.lines.size(), 1u);
  EXPECT_NE(bed.lines[0].find("not so: frame[15] == 1"), std::string::npos);
  frame[15] = 1;
  bed.arrive(frame);
  EXPECT_EQ(bed.count(frames::Count::frames_done), 1u);
}

TEST_P(Pspin, AnHpuWithoutAClusterIsRefused) {
  frames::Limits limits;
  limits.hpus = 17;
  FrameBed wide(state_bytes, 0, limits);
  wide.hpus = spin::HpuMask::range(16, 1);
  wide.install(path("pspin_calls"));
  wide.arrive(Bytes(64));
  EXPECT_EQ(wide.count(frames::Count::handler_failed), 1u);
  ASSERT_EQ(wide.lines.size(), 1u);
  EXPECT_NE(wide.lines[0].find("-DNB_CLUSTERS"), std::string::npos) << wide.lines[0];
}

#endif

}  // namespace
}  // namespace spinloom::live
