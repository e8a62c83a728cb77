// RV32 images under the functional runner: budget, memory violations, illegal instructions; the NIC lives on.
#include "nic/spin/image_runner.hpp"

#include <gtest/gtest.h>

#include <array>
#include <map>

namespace spinloom::spin {
namespace {

class NoCalls final : public HandlerCalls {
 public:
  std::optional<uint32_t> call(const HandlerCall&) override {
    ++made;
    return 0;
  }
  int made = 0;
};

// Hand-assembled: each handler is a few words.
hpu::Image image_of(std::span<const uint32_t> words) {
  hpu::Segment text;
  text.address = SPL_HPU_IMAGE_BASE;
  text.executable = true;
  for (const uint32_t word : words) {
    for (int shift = 0; shift < 32; shift += 8) text.bytes.push_back(static_cast<uint8_t>(word >> shift));
  }
  auto image = hpu::Image::from_segments({&text, 1}, {});
  EXPECT_TRUE(image.ok()) << (image.ok() ? "" : image.error().message);
  return std::move(*image);
}

struct Row {
  const char* what;
  std::array<uint32_t, 3> words;
  HandlerEnd end;
  uint32_t code;
};

// Rules: SPIN-1.19.
TEST(ImageHandlers, EveryEndIsAnOutcomeAndTheNextHandlerRuns) {
  constexpr uint32_t ret = 0x00008067;
  const std::vector<Row> rows = {
      {"li a0, 5; ret", {0x00500513, ret, ret}, HandlerEnd::returned, 5},
      {"j .", {0x0000006f, ret, ret}, HandlerEnd::budget, 0},
      {"lw a0, 0(zero): no such memory", {0x00002503, ret, ret}, HandlerEnd::segv, 0},
      {"lui t0, 0x20000; sw a0, 0(t0): constants are read-only", {0x200002b7, 0x00a2a023, ret}, HandlerEnd::segv, 0},
      {"lui t0, 0x30000; sw a0, 8(t0): beyond the state", {0x300002b7, 0x00a2a423, ret}, HandlerEnd::segv, 0},
      {"lui t0, 0x30000; sw a1, 4(t0); state is writable", {0x300002b7, 0x00b2a223, ret}, HandlerEnd::returned, 0},
      {"an illegal instruction", {0xffffffff, ret, ret}, HandlerEnd::fault, 0},
  };
  auto made = ImageHandlers::create();
  ASSERT_TRUE(made.ok()) << made.error().message;
  ImageHandlers& handlers = **made;
  for (int repeat = 0; repeat < 2; ++repeat) {
    for (const Row& row : rows) {
      SCOPED_TRACE(row.what);
      Context context;
      context.image = handlers.add(image_of(row.words));
      context.completion_entry = SPL_HPU_IMAGE_BASE;
      context.budget_cycles = 1000;
      std::array<uint8_t, 8> constants{}, state{};
      HandlerFrame frame;
      frame.her.kind = HandlerKind::completion;
      frame.her.hpu = HpuId{0};
      frame.her.vhpu = VhpuId{0};
      frame.context = &context;
      frame.constants = constants;
      frame.state = state;
      NoCalls calls;
      const HandlerOutcome outcome = handlers.run(frame, calls);
      EXPECT_EQ(static_cast<int>(outcome.end), static_cast<int>(row.end));
      if (row.end == HandlerEnd::returned) {
        EXPECT_EQ(outcome.code, row.code);
      }
      EXPECT_EQ(calls.made, 0);
    }
  }
}

}  // namespace
}  // namespace spinloom::spin
