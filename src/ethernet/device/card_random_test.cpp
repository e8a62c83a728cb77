// Random traffic against what must hold for all of it, and allocations of a card at work.
#include <atomic>
#include <cstdlib>
#include <map>
#include <new>

#include "base/testing/folder.hpp"
#include "base/testing/seeds.hpp"
#include "ethernet/device/testing/card_rig.hpp"
#include "ethernet/port/pcap_port.hpp"
#include "nic/packet/testing/random_frames.hpp"

namespace {
std::atomic<uint64_t> allocations{0};
}  // namespace

// The whole test program's. Not inline: GCC compares what it sees of the two.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* const made = std::malloc(bytes == 0 ? 1 : bytes)) return made;
  throw std::bad_alloc{};
}
[[gnu::noinline]] void operator delete(void* bytes) noexcept { std::free(bytes); }
[[gnu::noinline]] void operator delete(void* bytes, std::size_t) noexcept { std::free(bytes); }

namespace spinloom::ethernet::test {
namespace {

uint64_t counted(const Rig& rig, std::initializer_list<frames::Count> which) {
  uint64_t sum = 0;
  for (const frames::Count one : which) sum += rig.card->nic().count(one);
  return sum;
}

// Frames come out of a port as a subsequence of the expected ones: frames of one way stay in their order.
void expect_in_order(const std::vector<FrameBytes>& out, const std::vector<FrameBytes>& all) {
  size_t next = 0;
  for (const FrameBytes& frame : out) {
    while (next < all.size() && all[next] != frame) ++next;
    ASSERT_LT(next++, all.size()) << "a frame came out that nobody has sent, or behind a later one";
  }
}

// Pings and datagrams of all lengths, whole or cut, to the NIC and to others, from the wire and from the host, over
// ports that sometimes have no room. Received = matched + bypassed + inactive + runts + oversize; matched = answered +
// passed on + dropped for want of room; nothing leaves but answers and frames that came in.
TEST(RandomTraffic, EveryFrameIsCountedOnceAndLeavesOnce) {
  for_seeds(60, [](Random& random) {
    Options options;
    options.limits.slots = {{static_cast<uint32_t>(1 + random.below(80)), 1536}};
    options.limits.hpus = static_cast<uint32_t>(1 + random.below(32));
    options.limits.egress_depth = static_cast<uint32_t>(1 + random.below(64));
    options.limits.arbitration =
        random.below(2) == 0 ? frames::Arbitration::handlers_first : frames::Arbitration::round_robin;
    options.batch = static_cast<uint32_t>(1 + random.below(64));
    Rig rig(options);
    rig.rules({"icmp", "udp:7", "arp"});
    uint32_t id = 0;
    for (const char* name : {"icmp_echo", "udp_echo", "arp_answer"}) {
      ContextSetup setup;
      setup.image = image(name, random.below(2) == 0);
      setup.constants = station();
      rig.install(id++, setup);
    }
    const Status left = rig.card->activate(ContextId{1}, random.below(4) != 0);
    ASSERT_TRUE(left.ok()) << left.error().message;
    std::vector<FrameBytes> answers, for_host, from_host;
    const uint64_t frames = 50 + random.below(400);
    for (uint64_t i = 0; i < frames; ++i) {
      packet::Endpoints to = ends;
      if (random.below(8) == 0) ++to.target.value;
      const FrameBytes payload = packet::test::random_bytes(random, random.below(random.below(2) == 0 ? 60 : 1460));
      const auto port = static_cast<uint16_t>(random.below(2) == 0 ? 7 : random.below(65536));
      FrameBytes made;
      switch (random.below(4)) {
        case 0: made = echo_frame(to, static_cast<uint16_t>(i), 1, payload); break;
        case 1: made = udp_frame(to, static_cast<uint16_t>(i), port, payload); break;
        case 2: made = arp_request_frame(to.source_mac, {static_cast<uint32_t>(i)}, to.target); break;
        default: made = packet::test::random_bytes(random, 14 + random.below(1500));
      }
      if (random.below(8) == 0) made.resize(14 + random.below(made.size() - 13));
      rig.wire.in.push_back(made);
      for_host.push_back(made);
      if (const FrameBytes answer = host_answer(made); !answer.empty()) answers.push_back(answer);
      if (random.below(3) == 0) from_host.push_back(packet::test::random_bytes(random, 14 + random.below(1400)));
    }
    rig.host.in.assign(from_host.begin(), from_host.end());
    while (!rig.wire.in.empty()) {
      rig.wire.room = random.below(3) == 0 ? SIZE_MAX : random.below(20);
      rig.host.room = random.below(3) == 0 ? SIZE_MAX : random.below(20);
      rig.turn();
    }
    rig.wire.room = rig.host.room = SIZE_MAX;
    rig.settle();
    rig.expect_quiet();

    using frames::Count;
    EXPECT_EQ(counted(rig, {Count::received}), frames);
    EXPECT_EQ(counted(rig, {Count::matched, Count::bypassed, Count::inactive, Count::runts, Count::oversize}), frames);
    EXPECT_EQ(counted(rig, {Count::frames_done, Count::handler_to_host, Count::dropped_full}),
              counted(rig, {Count::matched}));
    EXPECT_EQ(counted(rig, {Count::sent_by_handlers}), counted(rig, {Count::frames_done}));
    EXPECT_EQ(counted(rig, {Count::sent_by_host}), from_host.size());
    EXPECT_EQ(rig.wire.out.size(), counted(rig, {Count::frames_done}) + from_host.size());
    EXPECT_EQ(rig.host.out.size() + rig.card->to_host_lost(),
              counted(rig, {Count::bypassed, Count::inactive, Count::handler_to_host}));
    std::vector<FrameBytes> answered, of_host;
    const std::map<FrameBytes, int> known = [&] {
      std::map<FrameBytes, int> out;
      for (const FrameBytes& frame : from_host) ++out[frame];
      return out;
    }();
    for (const FrameBytes& frame : rig.wire.out) (known.count(frame) > 0 ? of_host : answered).push_back(frame);
    EXPECT_EQ(of_host, from_host);
    expect_in_order(answered, answers);
  });
}

// A card that has worked for a while works without the heap: 64 * 40 frames to fill every queue, then none for 20,000.
TEST(Allocations, AFrameTakesNoneInTheSteadyState) {
  const TestFolder folder;
  const std::string path = folder.of("frames.pcap");
  {
    const auto port = made(port::open_pcap_port("", path));
    for (uint16_t i = 0; i < 100; ++i) {
      const FrameBytes message{static_cast<uint8_t>(i % 4 == 2 ? 0x80 : 0), 0, 0, 0, 0, static_cast<uint8_t>(i / 20)};
      const FrameBytes frame = i % 2 == 0   ? udp_frame(ends, 1, 9330, message)  // SLMP of two frames
                               : i % 4 == 3 ? udp_frame(ends, i, 9, FrameBytes(20))
                                            : echo_frame(ends, 1, i, FrameBytes(i * 10));
      const std::array<Bytes, 1> one{Bytes(frame)};
      ASSERT_EQ(made(port->send(one)), 1u);
    }
  }
  struct Row {
    std::string handlers;
    const char* rules;
  };
  for (const Row& row : {Row{image("icmp_echo", true), "icmp"},
                         {image("icmp_echo", false), "icmp"},
                         {test_image("phases", true), "slmp"}}) {
    auto wire = made(port::open_replay_port(path, 1000, ""));
    const auto card = made(Card::create({}, std::move(wire), made(port::open_pcap_port("", ""))));
    ASSERT_TRUE(card->configure({made(rule_set_named(row.rules))}).ok());
    ContextSetup setup;
    setup.image = row.handlers;
    setup.constants = station();
    setup.state_bytes = 64;
    setup.budget_cycles = uint64_t{1} << 40;  // a native handler that takes longer is told of in a line, once
    ASSERT_TRUE(card->install(ContextId{0}, setup).ok());
    ASSERT_TRUE(card->activate(ContextId{0}).ok());
    for (int i = 0; i < 40; ++i) ASSERT_TRUE(card->turn().ok());
    const uint64_t before = allocations.load();
    const uint64_t received = card->nic().count(frames::Count::received);
    while (card->nic().count(frames::Count::received) < received + 20'000) {
      const auto done = card->turn();
      if (!done.ok() || !*done) break;
    }
    EXPECT_EQ(allocations.load(), before) << row.handlers;
    EXPECT_GE(card->nic().count(frames::Count::received), received + 20'000);
    EXPECT_GT(card->nic().count(frames::Count::frames_done), 4'000u);
    EXPECT_EQ(card->nic().count(frames::Count::messages_done) > 1'000, row.rules == std::string("slmp"));
  }
}

}  // namespace
}  // namespace spinloom::ethernet::test
