// The handlers of frames that we ship: filter, flow_counter, reduce_frame; natively and in the sandbox.
#include <array>
#include <functional>
#include <map>
#include <random>
#include <tuple>

#include "live/node/testing/frame_bed.hpp"
#include "live/node/testing/one_handler.hpp"

namespace spinloom::live {
namespace {

#ifdef SPINLOOM_HANDLERS

class FrameHandlers : public testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] std::string path(const char* name) const {
    return std::string(SPINLOOM_HANDLERS) + "/" + name + GetParam();
  }
};
INSTANTIATE_TEST_SUITE_P(Runners, FrameHandlers, testing::Values(".elf", ".so"),
                         [](const auto& suffix) { return suffix.param[1] == 'e' ? "Sandbox" : "Native"; });

struct Flow {
  uint32_t source = 0x0a000001;
  uint32_t destination = 0x0a000002;
  uint16_t source_port = 4000;
  uint16_t destination_port = 9330;
  uint8_t protocol = 17;
  auto operator<=>(const Flow&) const = default;
};
Bytes frame_of_flow(const Flow& flow, uint16_t payload = 20) {
  Bytes frame = udp_frame(payload);
  frame[23] = flow.protocol;
  put(frame, 26, big(flow.source));
  put(frame, 30, big(flow.destination));
  put(frame, 34, big(flow.source_port));
  put(frame, 36, big(flow.destination_port));
  return frame;
}

struct FilterRule {
  uint32_t source = 0, source_mask = 0, destination = 0, destination_mask = 0;
  uint16_t source_port[2] = {0, 0xffff};
  uint16_t destination_port[2] = {0, 0xffff};
  uint16_t protocol = 0;
  uint16_t verdict = SUCCESS;
};

TEST_P(FrameHandlers, TheFirstRuleThatHoldsDecides) {
  FilterRule network;  // UDP from 10.0.0.0/8 to ports 9000 to 9999 is dropped
  network.source = big(uint32_t{0x0a000000}), network.source_mask = big(uint32_t{0xff000000});
  network.destination_port[0] = 9000, network.destination_port[1] = 9999;
  network.protocol = 17, network.verdict = DROP;
  FilterRule host;  // everything else to 10.0.0.2 is done with
  host.destination = big(uint32_t{0x0a000002}), host.destination_mask = 0xffffffff;
  const struct {
    uint32_t rules = 2, otherwise = PROCEED;
    FilterRule rule[2];
  } given{2, PROCEED, {network, host}};
  FrameBed bed(16, sizeof given);
  std::memcpy(bed.constants().data(), &given, sizeof given);
  bed.install(path("filter"));
  const auto row = [&](const Flow& flow, int held) {
    SCOPED_TRACE(text("flow to port ", flow.destination_port, " protocol ", int(flow.protocol)));
    std::array<uint32_t, 3> before{}, after{};
    std::memcpy(before.data(), bed.state().data(), sizeof before);
    bed.arrive(frame_of_flow(flow));
    std::memcpy(after.data(), bed.state().data(), sizeof after);
    for (int rule = 0; rule < 3; ++rule) EXPECT_EQ(after[rule] - before[rule], rule == held ? 1u : 0u) << rule;
  };
  row({}, 0);
  row({.destination_port = 8999}, 1);
  row({.destination_port = 9000}, 0);
  row({.destination_port = 9999}, 0);
  row({.destination_port = 10000}, 1);
  row({.source = 0x0b000001}, 1);
  row({.protocol = 6}, 1);
  row({.destination = 0x0a000003, .destination_port = 80}, 2);
  row({.protocol = 1}, 1);  // no ports: zero is not between 9000 and 9999
  Bytes other = frame_of_flow({});
  other[12] = 0x86;
  bed.arrive(other);  // this is not IPv4: fields are zero
  EXPECT_EQ(bed.state_at<uint32_t>(8), 2u);
  EXPECT_EQ(bed.count(frames::Count::handler_dropped), 3u);
  EXPECT_EQ(bed.count(frames::Count::frames_done), 5u);
  EXPECT_EQ(bed.to_host, (Frames{frame_of_flow({.destination = 0x0a000003, .destination_port = 80}), other}));
}

TEST_P(FrameHandlers, AFragmentHasNoPorts) {
  FilterRule port;
  port.destination_port[0] = 9330;
  const struct {
    uint32_t rules = 1, otherwise = DROP;
    FilterRule rule;
  } given{1, DROP, port};
  FrameBed bed(8, sizeof given);
  std::memcpy(bed.constants().data(), &given, sizeof given);
  bed.install(path("filter"));
  Bytes frame = frame_of_flow({});
  bed.arrive(frame);
  EXPECT_EQ(bed.state_at<uint32_t>(0), 1u);
  frame[21] = 1;  // its offset is 8 bytes
  bed.arrive(frame);
  EXPECT_EQ(bed.state_at<uint32_t>(0), 1u);
}

struct FlowSlot {
  uint32_t taken;
  uint32_t source, destination;
  uint16_t source_port, destination_port;
  uint32_t protocol, frames, bytes_low, bytes_high;
};
static_assert(sizeof(FlowSlot) == 32);

std::map<Flow, FlowSlot> flows_in(FrameBed& bed, uint32_t slots) {
  std::map<Flow, FlowSlot> found;
  for (uint32_t i = 0; i < slots; ++i) {
    const auto slot = bed.state_at<FlowSlot>(8 + i * sizeof(FlowSlot));
    if (slot.taken == 0) continue;
    const Flow flow{big(slot.source), big(slot.destination), slot.source_port, slot.destination_port,
                    static_cast<uint8_t>(slot.protocol)};
    EXPECT_TRUE(found.emplace(flow, slot).second) << "two slots of one flow";
  }
  return found;
}

TEST_P(FrameHandlers, FlowsAreCountedEachByItself) {
  constexpr uint32_t slots = 256;
  const uint32_t given[2] = {slots, PROCEED};
  FrameBed bed(8 + slots * sizeof(FlowSlot), sizeof given);
  std::memcpy(bed.constants().data(), given, sizeof given);
  bed.install(path("flow_counter"));
  std::mt19937 chance(7);
  std::map<Flow, std::pair<uint32_t, uint32_t>> wanted;
  for (int i = 0; i < 500; ++i) {
    const Flow flow{.source = static_cast<uint32_t>(0x0a000000 + chance() % 4),
                    .source_port = static_cast<uint16_t>(4000 + chance() % 10),
                    .protocol = chance() % 2 == 0 ? uint8_t{17} : uint8_t{6}};
    const Bytes frame = frame_of_flow(flow, static_cast<uint16_t>(20 + chance() % 1000));
    bed.arrive(frame);
    wanted[flow].first += 1;
    wanted[flow].second += static_cast<uint32_t>(frame.size());
  }
  EXPECT_EQ(bed.to_host.size(), 500u) << "frames go on";
  const auto found = flows_in(bed, slots);
  uint32_t counted = bed.state_at<uint32_t>(0);
  for (const auto& [flow, slot] : found) {
    EXPECT_EQ(std::pair(slot.frames, slot.bytes_low), wanted[flow]);
    counted += slot.frames;
  }
  EXPECT_EQ(counted, 500u);
  EXPECT_GT(found.size(), wanted.size() * 9 / 10);
}

TEST_P(FrameHandlers, BytesOfAFlowPassFourGibibytes) {
  const uint32_t given[2] = {1, SUCCESS};
  FrameBed bed(8 + sizeof(FlowSlot), sizeof given);
  std::memcpy(bed.constants().data(), given, sizeof given);
  bed.install(path("flow_counter"));
  bed.arrive(frame_of_flow({}, 58));  // 100 B
  const uint32_t near = UINT32_MAX - 49;
  std::memcpy(bed.state().data() + 8 + offsetof(FlowSlot, bytes_low), &near, sizeof near);
  bed.arrive(frame_of_flow({}, 58));  // 2^32 - 50 + 100
  const FlowSlot slot = flows_in(bed, 1).begin()->second;
  EXPECT_EQ(std::pair(slot.bytes_high, slot.bytes_low), std::pair(1u, 50u));
  bed.arrive(frame_of_flow({.source_port = 1}));
  EXPECT_EQ(bed.state_at<uint32_t>(0), 1u) << "a flow without a slot is counted with the others";
}

// ---- reduction ----

constexpr uint32_t senders = 3, words = 100, reduce_slots = 2;
constexpr uint64_t slot_bytes = 8 + 344 * 4 + 16 * 42 + 42 + 8 + 344 * 4 + 2;  // reduce_slot, padded to words

Bytes part_of(uint32_t block, uint16_t sender, const std::vector<uint32_t>& values) {
  Bytes frame = udp_frame(static_cast<uint16_t>(8 + 4 * values.size()));
  frame[11] = static_cast<uint8_t>(sender);
  put(frame, 26, big(0x0a000100 + uint32_t{sender}));
  put(frame, 42, block);
  put(frame, 46, sender);
  put(frame, 48, static_cast<uint16_t>(values.size()));
  for (size_t i = 0; i < values.size(); ++i) put(frame, 50 + 4 * i, values[i]);
  return frame;
}

TEST_P(FrameHandlers, SumsGoToAllSendersWhenAllHaveCome) {
  const uint32_t given[3] = {senders, words, reduce_slots};
  FrameBed bed(reduce_slots * slot_bytes, sizeof given);
  std::memcpy(bed.constants().data(), given, sizeof given);
  bed.install(path("reduce_frame"));
  std::mt19937 chance(11);
  for (uint32_t pair = 0; pair < 4; ++pair) {  // two blocks at a time, their parts in any order
    std::vector<std::tuple<uint32_t, uint16_t>> order;
    std::map<uint32_t, std::vector<uint32_t>> sums;
    for (uint16_t sender = 0; sender < senders; ++sender) {
      order.emplace_back(2 * pair, sender);
      order.emplace_back(2 * pair + 1, sender);
    }
    std::shuffle(order.begin(), order.end(), chance);
    bed.sent.clear();
    for (const auto& [block, sender] : order) {
      std::vector<uint32_t> values(words);
      for (uint32_t i = 0; i < words; ++i) values[i] = static_cast<uint32_t>(chance());
      std::vector<uint32_t>& sum = sums[block];
      sum.resize(words);
      for (uint32_t i = 0; i < words; ++i) sum[i] += values[i];
      const Bytes frame = part_of(block, sender, values);
      bed.arrive(frame);
      const uint64_t dropped = bed.count(frames::Count::handler_dropped);
      bed.arrive(frame);  // the second one is dropped, whether its block is finished or not
      EXPECT_EQ(bed.count(frames::Count::handler_dropped), dropped + 1);
    }
    ASSERT_EQ(bed.sent.size(), 2u * senders);
    for (const Bytes& answer : bed.sent) {
      const auto block = FrameBed::value<uint32_t>(answer, 42);
      const auto sender = FrameBed::value<uint16_t>(answer, 46);
      EXPECT_EQ(answer[5], sender) << "to the station of the sender";
      EXPECT_EQ(FrameBed::value<uint32_t>(answer, 30), big(0x0a000100 + uint32_t{sender}));
      EXPECT_EQ(FrameBed::value<uint16_t>(answer, 36), big(uint16_t{4000}));
      ASSERT_EQ(answer.size(), 50u + 4 * words);
      for (uint32_t i = 0; i < words; ++i) EXPECT_EQ(FrameBed::value<uint32_t>(answer, 50 + 4 * i), sums[block][i]);
    }
  }
  bed.arrive(part_of(8, 3, std::vector<uint32_t>(words)));  // there is no sender 3
  bed.arrive(part_of(8, 0, std::vector<uint32_t>(words - 1)));
  EXPECT_EQ(bed.to_host.size(), 2u);
}

// ---- one handler in the middle of another, before each access to their state ----

// Runs `first` interrupted by `second` everywhere, each time on a copy of the state, and looks at what came of it.
using Look = std::function<void(const Bytes& state, const std::array<uint32_t, 2>& codes, const Frames& sent)>;
template <class Constants>
int interrupt_everywhere(OneHandler& handler, const Bytes& first, const Bytes& second, const Bytes& initial,
                         const Constants& given, const Look& look) {
  for (int at = 0;; ++at) {
    SCOPED_TRACE(text("interrupted at access ", at));
    Bytes state = initial;
    std::array<uint32_t, 2> codes{};
    Frames sent;
    bool waits = false;
    Interrupted interrupted(at, [&] {
      Interrupted other(-1, [] {});
      const spin::HandlerOutcome outcome = handler.run(second, state, given, other);
      waits = outcome.end != spin::HandlerEnd::returned;
      codes[1] = outcome.code;
      sent = other.sent;
    });
    codes[0] = handler.run(first, state, given, interrupted).code;
    if (!interrupted.was_interrupted()) return at;
    if (waits) {
      Answers after;
      codes[1] = handler.run(second, state, given, after).code;
    }
    sent.insert(sent.end(), interrupted.sent.begin(), interrupted.sent.end());
    look(state, codes, sent);
    if (testing::Test::HasFatalFailure()) return at;
  }
}

TEST(FrameHandlersInterrupted, AFlowHasOneSlotAndEveryFrameCounts) {
  OneHandler handler(std::string(SPINLOOM_HANDLERS) + "/flow_counter.elf", spin::HandlerKind::payload);
  const std::array<uint32_t, 2> given{4, SUCCESS};
  const Bytes initial(8 + 4 * sizeof(FlowSlot));
  for (const uint16_t port : {uint16_t{4000}, uint16_t{4001}}) {
    const Look look = [&](const Bytes& state, const std::array<uint32_t, 2>&, const Frames&) {
      std::map<uint16_t, uint32_t> frames;
      for (size_t at = 8; at < state.size(); at += sizeof(FlowSlot)) {
        const auto slot = FrameBed::value<FlowSlot>(state, at);
        if (slot.taken == 0) continue;
        EXPECT_TRUE(frames.emplace(slot.source_port, slot.frames).second) << "two slots of one flow";
        EXPECT_EQ(slot.bytes_low, slot.frames * 62);
      }
      ASSERT_EQ(frames, port == 4000 ? (std::map<uint16_t, uint32_t>{{4000, 2}})
                                     : (std::map<uint16_t, uint32_t>{{4000, 1}, {4001, 1}}));
    };
    EXPECT_GT(
        interrupt_everywhere(handler, frame_of_flow({}), frame_of_flow({.source_port = port}), initial, given, look),
        5);
  }
}

TEST(FrameHandlersInterrupted, APartIsAddedOnceAndSumsAreSentOnce) {
  OneHandler handler(std::string(SPINLOOM_HANDLERS) + "/reduce_frame.elf", spin::HandlerKind::payload);
  const std::array<uint32_t, 3> given{2, 2, 1};  // senders, words, slots
  const Bytes empty(slot_bytes);
  const Bytes part0 = part_of(0, 0, {1, 10}), part1 = part_of(0, 1, {2, 20}), next = part_of(1, 0, {5, 50});
  const auto sums = [](const Bytes& state) {
    return std::pair(FrameBed::value<uint32_t>(state, 8), FrameBed::value<uint32_t>(state, 12));
  };
  const auto both_answered = [](const Frames& sent) {
    ASSERT_EQ(sent.size(), 2u);
    for (const Bytes& answer : sent) {
      ASSERT_EQ(FrameBed::value<uint32_t>(answer, 50), 3u);
      ASSERT_EQ(FrameBed::value<uint32_t>(answer, 54), 30u);
    }
  };
  const auto once = [](const std::array<uint32_t, 2>& codes) {
    ASSERT_EQ(codes[0] + codes[1], uint32_t{SUCCESS} + uint32_t{DROP}) << "one of them joins, the other is dropped";
  };
  int interruptions = interrupt_everywhere(handler, part0, part1, empty, given, [&](auto& state, auto&, auto& sent) {
    both_answered(sent);
    ASSERT_EQ(sums(state), std::pair(0u, 0u));
  });
  interruptions += interrupt_everywhere(handler, part0, part0, empty, given, [&](auto& state, auto& codes, auto& sent) {
    once(codes);
    ASSERT_EQ(sums(state), std::pair(1u, 10u));
    ASSERT_EQ(sent.size(), 0u);
  });
  interruptions += interrupt_everywhere(handler, part0, next, empty, given, [&](auto& state, auto& codes, auto&) {
    ASSERT_EQ(codes[1], uint32_t{DROP}) << "its round has not begun";
    ASSERT_EQ(sums(state), std::pair(1u, 10u));
  });
  Bytes half = empty;
  Answers unheard;
  (void)handler.run(part0, half, given, unheard);
  // The last part of its block, interrupted by repeated ones, and by one of the next block.
  for (const Bytes* const other : {&part0, &part1, &next}) {
    interruptions +=
        interrupt_everywhere(handler, part1, *other, half, given, [&](auto& state, auto& codes, auto& sent) {
          both_answered(sent);
          const bool joined = other == &next && codes[1] == SUCCESS;
          if (!joined) once(codes);
          ASSERT_EQ(sums(state), joined ? std::pair(5u, 50u) : std::pair(0u, 0u));
        });
  }
  EXPECT_GT(interruptions, 100);
}

#endif

}  // namespace
}  // namespace spinloom::live
