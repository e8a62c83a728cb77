// Scatter lists: where pieces go, when the next elements are read, and what happens out of order.
#include <gtest/gtest.h>

#include "nic/nic_test_support.hpp"

namespace spinloom::nic {
namespace {

struct Listed {
  explicit Listed(std::vector<uint64_t> lengths, uint32_t held) : bench(limits(held)) {
    uint64_t at = 0;
    uint64_t sum = 0;
    for (const uint64_t length : lengths) {
      list.push_back({bench.memory.data() + at, length});
      at += length + 3;  // gaps
      sum += length;
    }
    entry.match_bits = 5;
    entry.iovec = list;
    entry.length = sum;
    entry.options.use_once = true;
    entry.options.event_unlink_disable = true;
  }
  static NicLimits limits(uint32_t held) {
    NicLimits made = small_limits();
    made.iovec_entries = held;
    return made;
  }
  // The pieces of the last call: "offset+length", r in front where a read of the list precedes.
  [[nodiscard]] std::string pieces() const {
    std::string out;
    for (const DmaWrite& write : bench.actions<DmaWrite>()) {
      EXPECT_NE(write.scatter, Scatter::none);
      out += text(write.scatter == Scatter::refill ? "r" : "", write.host - bench.memory.data(), "+",
                  write.source.length, "@", write.source.bytes - bench.source, " ");
    }
    return out;
  }

  Bench bench;
  std::vector<IovecElement> list;
  Entry entry;
};

TEST(Iovec, PacketsAreCutAtElementsAndElementsAtPackets) {
  Listed listed({10, 4, 20}, 32);  // packets of 16 B
  listed.bench.append(listed.entry);
  listed.bench.arrive(1, 34, 0);
  EXPECT_EQ(listed.pieces(), "0+10@0 13+4@10 20+2@14 ");
  EXPECT_TRUE(listed.bench.land().empty());
  listed.bench.arrive(1, 34, 16);
  EXPECT_EQ(listed.pieces(), "22+16@16 ");
  EXPECT_TRUE(listed.bench.land().empty());
  listed.bench.arrive(1, 34, 32);
  EXPECT_EQ(listed.pieces(), "38+2@32 ");
  const auto events = listed.bench.land();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, EventKind::put);
  EXPECT_EQ(events[0].fail, Fail::ok);
  EXPECT_EQ(events[0].manipulated_bytes, 34u);
  listed.bench.expect_idle();
}

// The first `held` elements came with the append; then every `held`-th one asks for the next read.
TEST(Iovec, EachStretchOfElementsIsReadOnce) {
  Listed listed({2, 2, 2, 20, 2}, 2);
  listed.bench.append(listed.entry);
  listed.bench.arrive(1, 28, 0);
  EXPECT_EQ(listed.pieces(), "0+2@0 5+2@2 r10+2@4 15+10@6 ");
  listed.bench.land();
  listed.bench.arrive(1, 28, 16);  // goes on within element 3: no new read
  EXPECT_EQ(listed.pieces(), "25+10@16 r38+2@26 ");
  EXPECT_EQ(listed.bench.land().size(), 1u);
  listed.bench.expect_idle();
}

TEST(Iovec, APacketOutOfOrderFailsTheMessage) {
  Listed listed({40}, 32);
  listed.bench.append(listed.entry);
  listed.bench.arrive(1, 40, 0);
  listed.bench.land();
  listed.bench.arrive(1, 40, 32);
  EXPECT_EQ(listed.pieces(), "");
  listed.bench.arrive(1, 40, 16);
  EXPECT_EQ(listed.pieces(), "16+16@16 ");
  const auto events = listed.bench.land();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].fail, Fail::iovec_order);
  EXPECT_EQ(events[0].dropped_bytes, 8u);
  EXPECT_EQ(events[0].manipulated_bytes, 32u);
  listed.bench.expect_idle();
}

TEST(Iovec, PacketsAheadOfTheirHeaderKeepTheirPlaceUntilWritten) {
  Listed listed({10, 30}, 32);
  listed.bench.append(listed.entry);
  listed.bench.arrive(1, 40, 16);  // in order behind the header, once that is here
  listed.bench.arrive(1, 40, 0);
  EXPECT_EQ(listed.pieces(), "0+10@0 13+6@10 19+16@16 ");
  EXPECT_EQ(listed.bench.nic.state().packet_buffer_used, 16u);
  listed.bench.land();
  EXPECT_EQ(listed.bench.nic.state().packet_buffer_used, 0u);
  listed.bench.arrive(1, 40, 32);
  EXPECT_EQ(listed.bench.land().size(), 1u);
  listed.bench.expect_idle();
}

TEST(Iovec, LongerMessagesAreTruncated) {
  Listed listed({8, 4}, 32);
  listed.bench.append(listed.entry);
  listed.bench.arrive(1, 30, 0);
  EXPECT_EQ(listed.pieces(), "0+8@0 11+4@8 ");
  listed.bench.land();
  listed.bench.arrive(1, 30, 16);
  EXPECT_EQ(listed.bench.event(EventKind::put).manipulated_bytes, 12u);
  listed.bench.expect_idle();
}

TEST(Iovec, RefusesWhatDoesNotGoTogether) {
  Listed listed({8}, 32);
  Entry local = listed.entry;
  local.options.manage_local = true;
  EXPECT_NE(listed.bench.error(Append{EntryId{9}, PortalIndex{0}, ListKind::priority, local}, Code::unsupported)
                .find("manage_local"),
            std::string::npos);
  Entry handled = listed.entry;
  handled.context = listed.bench.context();
  listed.bench.error(Append{EntryId{9}, PortalIndex{0}, ListKind::priority, handled}, Code::unsupported);
  listed.bench.append(listed.entry);
  listed.bench.remote_offset = 4;
  listed.bench.arrive(1, 8, 0);
  EXPECT_EQ(listed.bench.nic.state().dropped_messages, 1u);
  NicLimits none = small_limits();
  none.iovec_entries = 0;
  EXPECT_NE(check(none).error().message.find("iovec_entries"), std::string::npos);
}

}  // namespace
}  // namespace spinloom::nic
