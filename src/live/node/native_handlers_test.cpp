// The datatype handlers run natively, compared with their images: every strategy's plan, packet by packet in any
// order, must make the same calls, bytes and state. The bytes are also compared with the copy path.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/random.hpp"
#include "live/node/testing/runners.hpp"
#include "memory/layout/copy.hpp"
#include "memory/layout/text.hpp"
#include "portals/strategies/plan.hpp"

namespace spinloom::live {
namespace {

using namespace strategies;

#ifdef SPINLOOM_HANDLERS

constexpr uint32_t packet_bytes = 512;

NicFacts facts() {
  NicFacts made;
  made.hpus = 4;
  made.payload_bytes = packet_bytes;
  made.state_bytes = 1 << 20;
  made.packet_buffer_bytes = 1 << 20;
  made.packet_time = 76288_ps;
  return made;
}

const char* const types[] = {
    "vector(64, 3, 5, float)",
    "vector(300, 7, 32, byte)",
    "indexed([7 x 1, 400 x 20, 20 x 300], int)",
    "idxblock(2, [9, 1, 5, 100, 60], double)",
    "hvector(4, 1, 9000B, vector(50, 1, 3, double))",
    "struct([(0B, vector(1000, 3, 4, float)), (16100B, 2, int), (17000B, vector(1000, 3, 4, float))])",
};

// Runs the payload handlers of the whole message; returns false if the strategy does not take the type.
bool check(Strategy strategy, const Message& message, bool gather, std::string& image) {
  const auto made = plan(strategy, message, facts(), {100_ns, 20_ns});
  if (!made.ok()) return false;
  image = gather ? "gather_" + std::string(made->image) : std::string(made->image);
  const auto span = static_cast<size_t>(message.reach.last - message.reach.first);
  std::vector<uint8_t> packed(static_cast<size_t>(message.bytes));
  Random random(7);
  for (uint8_t& byte : packed) byte = static_cast<uint8_t>(random.next());
  std::vector<uint8_t> memory(span, 0xa5);
  std::vector<uint8_t> right = memory;
  auto* const base = reinterpret_cast<std::byte*>(right.data()) - message.blob.true_lb();
  EXPECT_TRUE(layout::unpack(message.blob, 1, base, 0, message.bytes, std::as_bytes(std::span(packed))));
  if (gather) memory = right;

  std::vector<uint64_t> order((packed.size() + packet_bytes - 1) / packet_bytes);
  std::iota(order.begin(), order.end(), uint64_t{0});
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  std::vector<uint8_t> state = made->state;
  for (const uint64_t index : order) {
    live::Given given(nic::HandlerKind::payload);
    given.constants = made->constants;
    given.state = state;
    given.her.offset = index * packet_bytes;
    given.her.vhpu = nic::VhpuId{0};
    given.her.entry_offset = 0;
    given.her.writes_packet = gather;
    const auto from = packed.begin() + static_cast<ptrdiff_t>(given.her.offset);
    const auto bytes = std::min<ptrdiff_t>(packet_bytes, packed.end() - from);
    given.packet.assign(from, from + bytes);
    if (gather) std::fill(given.packet.begin(), given.packet.end(), uint8_t{0});
    if (made->blocked_round_robin) {
      const spin::BlockedRoundRobin& rule = *made->blocked_round_robin;
      given.her.vhpu = nic::VhpuId{static_cast<uint32_t>(index / rule.packets_in_row % rule.vhpus)};
    }
    given.host = memory;
    const live::Compared both = live::compare(SPINLOOM_HANDLERS, image, given);
    EXPECT_EQ(both.native, both.image);
    EXPECT_EQ(both.native.outcome.code, uint32_t{SUCCESS});
    if (gather) {
      EXPECT_EQ(both.native.packet, std::vector<uint8_t>(from, from + bytes));
    }
    memory = both.native.host;
    state = both.native.state;
  }
  EXPECT_EQ(memory, right);
  return true;
}

TEST(NativeDatatypeHandlers, DoWhatTheirImagesDo) {
  std::set<std::string> seen;
  for (const char* text_form : types) {
    const auto type = layout::parse(text_form);
    ASSERT_TRUE(type) << type.error().message;
    const auto message = make_message(*type, 1);
    ASSERT_TRUE(message) << message.error().message;
    for (const Strategy strategy :
         {Strategy::specialised, Strategy::seek, Strategy::hpu_local, Strategy::ro_cp, Strategy::rw_cp}) {
      for (const bool gather : {false, true}) {
        if (gather && strategy != Strategy::specialised && strategy != Strategy::seek) continue;
        SCOPED_TRACE(text(text_form, ", ", name_of(strategy), gather ? ", gathered" : ""));
        std::string image;
        if (check(strategy, *message, gather, image)) seen.insert(image);
      }
    }
  }
  EXPECT_EQ(seen, (std::set<std::string>{"gather_indexed", "gather_members", "gather_seek", "gather_vector",
                                         "hpu_local", "indexed", "members", "ro_cp", "rw_cp", "seek", "vector"}));
}

#else

TEST(NativeDatatypeHandlers, NeedHandlers) { GTEST_SKIP() << "built without SPINLOOM_HANDLERS"; }

#endif

}  // namespace
}  // namespace spinloom::live
