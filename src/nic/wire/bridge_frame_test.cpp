// Bridge frames: every field comes back, every length cut, and values that do not exist.
#include "nic/wire/bridge_frame.hpp"

#include <gtest/gtest.h>

namespace spinloom::wire {
namespace {

std::vector<uint8_t> some_frame() {
  BridgeHeader header;
  header.kind = BridgeKind::bye;
  header.traffic_class = BridgeClass::answers;
  header.is_last_packet = true;
  header.source.value = 0x01020304;
  header.target.value = 0x05060708;
  header.resume_count = 0x090a0b0c;
  header.sequence = 0x0d0e0f1011121314;
  header.received = {0x1516171819202122, 0x2324252627282930};
  std::vector<uint8_t> out{99};  // it is appended
  append_frame(header, out);
  out.erase(out.begin());
  out.insert(out.end(), {7, 8, 9});
  return out;
}

TEST(BridgeFrame, ComesBackAsItWas) {
  const std::vector<uint8_t> bytes = some_frame();
  ASSERT_EQ(bytes.size(), bridge_header_bytes + 3);
  const auto back = read_frame(bytes);
  ASSERT_TRUE(back.ok()) << back.error().message;
  const BridgeHeader& header = back->header;
  EXPECT_EQ(header.kind, BridgeKind::bye);
  EXPECT_EQ(header.traffic_class, BridgeClass::answers);
  EXPECT_TRUE(header.is_last_packet);
  EXPECT_EQ(header.source.value, 0x01020304u);
  EXPECT_EQ(header.target.value, 0x05060708u);
  EXPECT_EQ(header.resume_count, 0x090a0b0cu);
  EXPECT_EQ(header.sequence, 0x0d0e0f1011121314u);
  EXPECT_EQ(header.received, (std::array<uint64_t, 2>{0x1516171819202122, 0x2324252627282930}));
  EXPECT_EQ(std::vector<uint8_t>(back->body.begin(), back->body.end()), (std::vector<uint8_t>{7, 8, 9}));
}

TEST(BridgeFrame, ShorterBytesAreNone) {
  const std::vector<uint8_t> bytes = some_frame();
  for (size_t length = 0; length < bridge_header_bytes; ++length) {
    EXPECT_FALSE(read_frame({bytes.data(), length}).ok()) << length;
  }
  EXPECT_TRUE(read_frame({bytes.data(), bridge_header_bytes}).ok());
}

TEST(BridgeFrame, ValuesThatDoNotExistAreRefused) {
  constexpr uint8_t good_max[] = {1, 6, 1, 1};  // version, kind, class, flags
  for (size_t at = 0; at < 4; ++at) {
    for (unsigned value = 0; value < 256; ++value) {
      std::vector<uint8_t> bytes = some_frame();
      bytes[at] = static_cast<uint8_t>(value);
      const bool good = value <= good_max[at] && (at != 0 || value == 1);
      EXPECT_EQ(read_frame(bytes).ok(), good) << at << " " << value;
    }
  }
}

}  // namespace
}  // namespace spinloom::wire
