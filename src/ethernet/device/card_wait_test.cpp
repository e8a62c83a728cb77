// Handlers that wait: for their host, for the wire, in vain; and those of messages.
#include <cstring>
#include <utility>

#include "ethernet/device/testing/card_rig.hpp"

namespace spinloom::ethernet::test {
namespace {

enum What : uint32_t { ask, yield_for_ever, send_and_wait, print, send_and_test };

class Waiting : public ::testing::TestWithParam<bool> {
 protected:
  void make(What what, std::chrono::nanoseconds patience = std::chrono::hours(1)) {
    Options options;
    options.patience = patience;
    rig.emplace(options);
    rig->rules({"udp:7"});
    ContextSetup setup;
    setup.image = test_image("waits", GetParam());
    setup.constants = {static_cast<uint8_t>(what), 0, 0, 0};
    setup.state_bytes = sizeof(spl_host_data);
    setup.host_bytes = SPL_HOST_HPUS * SPL_HOST_PAGE_BYTES;
    rig->install(0, setup);
  }
  static FrameBytes datagram(uint8_t value) { return udp_frame(ends, 1, 7, FrameBytes(100, value)); }
  std::optional<Rig> rig;
};

// The host answers the third look: what it got, each byte plus 1, and 10 bytes less.
TEST_P(Waiting, AHandlerAsksItsHostAndSendsWhatItAnswers) {
  make(ask);
  uint32_t looks = 0;
  uint8_t seen[SPL_HOST_HPUS] = {};
  rig->card->set_host_callback([&] {
    const auto memory = rig->card->host_memory(ContextId{0});
    auto* const data = reinterpret_cast<spl_host_data*>(rig->card->state(ContextId{0}).data());
    for (uint32_t hpu = 0; hpu < 16; ++hpu) {
      uint8_t* const page = memory.data() + hpu * SPL_HOST_PAGE_BYTES;
      uint64_t flag = 0;
      std::memcpy(&flag, page, sizeof flag);
      if (SPL_HOST_FLAG_ID(flag) == seen[hpu] || ++looks % 3 != 0) continue;
      seen[hpu] = SPL_HOST_FLAG_ID(flag);
      EXPECT_EQ(SPL_HOST_FLAG_HPU(flag), hpu);
      const uint32_t length = SPL_HOST_FLAG_LENGTH(flag);
      for (uint32_t i = 0; i < length; ++i) ++page[SPL_HOST_PAGE_PAYLOAD + i];
      data->response[hpu] = SPL_HOST_FLAG(seen[hpu], length - 10, hpu);
    }
  });
  std::vector<FrameBytes> expected;
  for (uint8_t i = 0; i < 40; ++i) {
    rig->wire.in.push_back(datagram(i));
    FrameBytes answer = datagram(i);
    for (size_t at = 14; at < answer.size(); ++at) ++answer[at];
    answer.resize(answer.size() - 10);
    expected.push_back(answer);
  }
  rig->settle();
  EXPECT_EQ(rig->wire.out, expected);
  const auto* const data = reinterpret_cast<const spl_host_data*>(rig->card->state(ContextId{0}).data());
  EXPECT_EQ(data->counter[3].count, 40u);
  EXPECT_EQ(data->counter[3].sum, 40u * (100 + 28 - 10));
  rig->expect_quiet();
}

// The handler ends as over its budget, and the frame is dropped; the next one is not kept from its own.
TEST_P(Waiting, AHandlerThatWaitsInVainEnds) {
  make(yield_for_ever, std::chrono::nanoseconds(1));
  rig->wire.in = {datagram(1), datagram(2)};
  rig->settle();
  EXPECT_EQ(rig->card->nic().count(frames::Count::handler_faults), 2u);
  EXPECT_EQ(rig->card->nic().count(frames::Count::handler_dropped), 2u);
  EXPECT_TRUE(rig->wire.out.empty());
  rig->expect_quiet();
}

TEST_P(Waiting, AHandlerWaitsUntilItsFrameHasLeft) {
  make(send_and_wait);
  rig->wire.room = 0;
  rig->card->set_host_callback([&] { rig->wire.room += rig->wire.in.empty() ? 1 : 0; });
  const FrameBytes first = datagram(1), second = datagram(2);
  FrameBytes first_changed = first, second_changed = second;
  first_changed[14] ^= 0xff;
  second_changed[14] ^= 0xff;
  rig->wire.in = {first, second};
  rig->settle();
  rig->settle();
  EXPECT_EQ(rig->wire.out, (std::vector<FrameBytes>{first, first_changed, second, second_changed}));
  rig->expect_quiet();
}

// A wire without room: the frame waits, the handler does not, and is stopped; the frame leaves all the same.
TEST_P(Waiting, AHandlerThatWaitsForAStuckWireEndsAndItsFrameIsNotLost) {
  make(send_and_wait, std::chrono::nanoseconds(1));
  rig->wire.room = 0;
  rig->wire.in = {datagram(1)};
  rig->settle();
  EXPECT_EQ(rig->card->nic().count(frames::Count::handler_faults), 1u);
  EXPECT_EQ(rig->card->nic().state().packets, 1u) << "its slot is kept until it has left";
  rig->wire.room = SIZE_MAX;
  rig->settle();
  EXPECT_EQ(rig->wire.out, std::vector<FrameBytes>{datagram(1)});
  rig->expect_quiet();
}

// It never yields: each question lets frames leave.
TEST_P(Waiting, AHandlerThatAsksWhetherItsFrameHasLeftSeesItLeave) {
  make(send_and_test);
  rig->wire.in = {datagram(1), datagram(2)};
  rig->settle();
  EXPECT_EQ(rig->wire.out, (std::vector<FrameBytes>{datagram(1), datagram(2)}));
  EXPECT_EQ(rig->card->nic().count(frames::Count::frames_done), 2u);
  make(send_and_test, std::chrono::nanoseconds(1));
  rig->wire.room = 0;
  rig->wire.in = {datagram(1)};
  rig->settle();
  EXPECT_EQ(rig->card->nic().count(frames::Count::handler_faults), 1u);
}

TEST_P(Waiting, LinesOfHandlersReachWhoListens) {
  make(print);
  std::vector<std::string> lines;
  rig->card->set_debug([&](const frames::DebugLine& line) { lines.push_back(text(line.text, " ", line.value)); });
  rig->wire.in = {datagram(1)};
  rig->settle();
  EXPECT_EQ(lines, std::vector<std::string>{"seen 142"});
  EXPECT_EQ(rig->host.out, std::vector<FrameBytes>{datagram(1)});
}

// Rules: FPS-69.
TEST_P(Waiting, AHandlerThatTheHostActivatesHasNoFrame) {
  make(print);
  std::vector<uint32_t> lengths;
  rig->card->set_debug([&](const frames::DebugLine& line) { lengths.push_back(line.value); });
  ASSERT_TRUE(rig->card->invoke(ContextId{0}, 5).ok());
  EXPECT_EQ(lengths, std::vector<uint32_t>{0});
  EXPECT_FALSE(rig->card->invoke(ContextId{1}, 5).ok());
}

// The host's part runs while a handler waits; what it starts runs afterwards.
TEST_P(Waiting, TheHostActivatesAHandlerWhileAnotherWaits) {
  make(yield_for_ever, std::chrono::nanoseconds(1));
  ContextSetup setup;
  setup.image = test_image("waits", GetParam());
  setup.constants = {static_cast<uint8_t>(print), 0, 0, 0};
  rig->install(1, setup);
  uint32_t printed = 0;
  rig->card->set_debug([&](const frames::DebugLine&) { ++printed; });
  bool asked = false;
  rig->card->set_host_callback([&] {
    if (rig->card->nic().state().hpus_busy == 0 || std::exchange(asked, true)) return;
    EXPECT_TRUE(rig->card->invoke(ContextId{1}, 5).ok());
    EXPECT_FALSE(rig->card->initialise(ContextId{1}).ok());
    EXPECT_EQ(printed, 0u);
  });
  rig->wire.in = {datagram(1)};
  rig->settle();
  EXPECT_TRUE(asked);
  EXPECT_EQ(printed, 1u);
  rig->expect_quiet();
}

// Three messages of 4, 3 and 2 frames whose frames come in turn: each has one header and one completion handler, and
// the completion handler has the last frame.
// Rules: FPS-47.
TEST_P(Waiting, MessagesHaveTheirPhases) {
  rig.emplace();
  rig->rules({"slmp"});
  ContextSetup setup;
  setup.image = test_image("phases", GetParam());
  setup.state_bytes = 64;
  rig->install(0, setup);
  const auto part = [](uint8_t message, uint8_t offset, bool last) {
    FrameBytes payload{static_cast<uint8_t>(last ? 0x80 : 0), 0, 0, 0, 0, message, 0, 0, 0, offset};
    payload.resize(200, offset);
    return udp_frame(ends, 1, 9330, payload);
  };
  std::vector<FrameBytes> last;
  for (uint8_t message = 0; message < 3; ++message) {
    const auto frames = static_cast<uint8_t>(4 - message);
    for (uint8_t i = 0; i < frames; ++i) rig->wire.in.push_back(part(message, i, i + 1 == frames));
    last.push_back(rig->wire.in.back());
  }
  rig->settle();
  EXPECT_EQ(rig->wire.out, last);
  uint32_t seen[3];
  std::memcpy(seen, rig->card->state(ContextId{0}).data(), sizeof seen);
  EXPECT_EQ(seen[0], 3u);
  EXPECT_EQ(seen[2], 3u);
  EXPECT_EQ(rig->card->nic().count(frames::Count::messages_done), 3u);
  EXPECT_EQ(rig->card->nic().count(frames::Count::frames_done), 9u);
  rig->expect_quiet();
}

INSTANTIATE_TEST_SUITE_P(Runs, Waiting, ::testing::Values(true, false),
                         [](const auto& info) { return info.param ? "Native" : "Sandbox"; });

}  // namespace
}  // namespace spinloom::ethernet::test
