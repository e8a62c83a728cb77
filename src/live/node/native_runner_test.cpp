// Native handlers do the same as the images of their source: over the loopback driver, and call by call.
#include "live/node/native_runner.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "base/log.hpp"
#include "live/node/handler_library.hpp"
#include "live/node/testing/runners.hpp"
#include "portals/testbed/scenario_ways.hpp"

namespace spinloom::live {
namespace {

#ifdef SPINLOOM_SCENARIO_HANDLERS

Result<std::unique_ptr<testbed::Testbed>> with_native_handlers(uint32_t ranks, std::optional<uint64_t> racy_seed) {
  SPL_ASSIGN(auto bed, testbed::LoopbackTestbed::create(ranks, testbed::scenario_limits(), racy_seed,
                                                        std::make_unique<NativeObjects>(SPINLOOM_SCENARIO_HANDLERS)));
  return std::unique_ptr<testbed::Testbed>(std::move(bed));
}

std::vector<testbed::ScenarioWay> native_ways() {
  return {{"InOrder", [](uint32_t ranks, uint64_t) { return with_native_handlers(ranks, {}); }},
          {"Racy", [](uint32_t ranks, uint64_t seed) { return with_native_handlers(ranks, seed); }, 3}};
}

SPINLOOM_SCENARIO_SUITE(NativeScenarios, native_ways());

class EveryCall : public testing::TestWithParam<nic::HandlerKind> {};

// Rules: SPIN-8.6.
TEST_P(EveryCall, IsTheSameNativelyAndAsAnImage) {
  Given given(GetParam());
  const Compared both = compare(SPINLOOM_LIVE_TEST_HANDLERS, "every_call", given);
  EXPECT_EQ(both.native, both.image);
  EXPECT_NE(both.native.state, given.state) << "it did nothing";
  if (GetParam() == nic::HandlerKind::payload) {
    EXPECT_EQ(both.native.outcome.code, 12345u) << "one of its calls gave another answer: see every_call.c";
    EXPECT_GT(both.native.calls.size(), 25u);
  }
  if (GetParam() == nic::HandlerKind::completion) {
    EXPECT_EQ(static_cast<int>(both.native.outcome.end), static_cast<int>(nic::HandlerEnd::fault));
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryCall,
                         testing::Values(nic::HandlerKind::header, nic::HandlerKind::payload,
                                         nic::HandlerKind::completion),
                         [](const auto& kind) {
                           return std::string(std::array<const char*, 3>{
                               "Header", "Payload", "Completion"}[static_cast<size_t>(kind.param)]);
                         });

std::vector<uint8_t> words(std::initializer_list<uint32_t> given) {
  std::vector<uint8_t> bytes(given.size() * sizeof(uint32_t));
  if (!bytes.empty()) std::memcpy(bytes.data(), given.begin(), bytes.size());
  return bytes;
}

struct Shipped {
  const char* name;
  std::initializer_list<uint32_t> constants;
  std::initializer_list<nic::HandlerKind> kinds;
};

constexpr auto header = nic::HandlerKind::header;
constexpr auto payload = nic::HandlerKind::payload;
constexpr auto completion = nic::HandlerKind::completion;

// Shipped handlers with their constants, except those for datatypes, which src/portals/strategies compares.
const Shipped shipped[] = {
    {"accumulate", {}, {payload}},
    {"broadcast", {2, 9, 33, 0, 64}, {header, payload, completion}},
    {"broadcast", {0, 8, 33, 1, 64}, {header, payload, completion}},
    {"busy", {50}, {payload}},
    {"pingpong", {1, 44, 64}, {header, payload, completion}},
    {"pingpong", {0, 44, 64}, {header, payload, completion}},
    {"raid_data", {0, 1 << 20, 3, 5, 6}, {header, payload}},
    {"raid_data", {1, 1 << 20, 3, 5, 6}, {header}},
    {"raid_data", {2, 1 << 20, 3, 5, 6}, {header, header}},
    {"raid_data", {0, 16, 3, 5, 6}, {header}},
    {"raid_parity", {4, 7}, {payload}},
};

void PrintTo(const Shipped& given, std::ostream* out) { *out << given.name; }

class ShippedHandlers : public testing::TestWithParam<Shipped> {};

// Frames run one after the other on the same state.
// Rules: SPIN-8.6.
TEST_P(ShippedHandlers, DoTheSameNativelyAndAsImages) {
  std::vector<uint8_t> state(256);
  bool did_something = std::string(GetParam().name) == "busy";
  for (const nic::HandlerKind kind : GetParam().kinds) {
    Given given(kind);
    given.constants = words(GetParam().constants);
    given.state = state;
    const uint64_t length = 40;  // length of reads
    std::memcpy(given.packet.data(), &length, sizeof length);
    const Compared both = compare(SPINLOOM_HANDLERS, GetParam().name, given);
    EXPECT_EQ(both.native, both.image);
    EXPECT_EQ(static_cast<int>(both.native.outcome.end), static_cast<int>(nic::HandlerEnd::returned));
    state = both.native.state;
    did_something = did_something || !both.native.calls.empty() || both.native.outcome.code != SUCCESS;
  }
  EXPECT_TRUE(did_something);
}

INSTANTIATE_TEST_SUITE_P(Sources, ShippedHandlers, testing::ValuesIn(shipped), [](const auto& given) {
  return std::string(given.param.name) + "_" + std::to_string(given.index);
});

TEST(HandlerLibrary, RunsEachProgramWhereItBelongs) {
  auto library = HandlerLibrary::create();
  ASSERT_TRUE(library.ok()) << library.error().message;
  for (const bool native : {false, true}) {
    const std::string path = std::string(SPINLOOM_SCENARIO_HANDLERS) + (native ? "/fail.so" : "/fail.elf");
    const auto image = (*library)->load(path);
    ASSERT_TRUE(image.ok()) << image.error().message;
    EXPECT_EQ((*library)->load(path).value(), *image);
    EXPECT_EQ(HandlerLibrary::is_native(*image), native);
    Given given(nic::HandlerKind::payload);
    given.set_entries(*image, (*library)->entry(*image, "payload_handler").value());
    RecordingNic nic(16);
    EXPECT_EQ((*library)->run(given.frame(), nic).code, uint32_t{FAIL});
    EXPECT_FALSE((*library)->entry(*image, "header_handler").ok());
  }
  EXPECT_EQ((*library)->load("/nowhere/fial.elf").error().code, Code::environment);
  EXPECT_EQ((*library)->load("./fail").error().code, Code::invalid);
}

TEST(NativeRunner, CountsOverrunsAndTellsTheLogOnce) {
  Given given(nic::HandlerKind::payload);
  NativeRunner native;
  const uint32_t image = native.load(std::string(SPINLOOM_SCENARIO_HANDLERS) + "/fail.so").value();
  given.set_entries(image, native.entry(image, "payload_handler").value());
  RecordingNic nic(512);
  given.context.budget_cycles = UINT64_MAX;
  EXPECT_EQ(native.run(given.frame(), nic).code, uint32_t{FAIL});
  EXPECT_EQ(native.overruns(), 0u);

  std::vector<std::string> told;
  log::install([&told](log::Level, std::string_view, std::string_view message) { told.emplace_back(message); },
               log::Level::warning);
  given.context.budget_cycles = 0;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(native.run(given.frame(), nic).code, uint32_t{FAIL}) << "it has done its work";
  log::install({}, log::Level::error);
  EXPECT_EQ(native.overruns(), 3u);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(told[0].find("fail.so: payload_handler"), std::string::npos) << told[0];
}

TEST(NativeRunner, RefusesWhatIsNoObjectOfHandlers) {
  NativeRunner native;
  EXPECT_EQ(native.load("/nowhere/x.so").error().code, Code::environment);
  EXPECT_EQ(native.load(std::string(SPINLOOM_SCENARIO_HANDLERS) + "/fail.elf").error().code, Code::environment);
  const auto other = native.load(SPINLOOM_LIVE_NO_HANDLERS);
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.error().message.find("--native"), std::string::npos) << other.error().message;
  const uint32_t image = native.load(std::string(SPINLOOM_SCENARIO_HANDLERS) + "/fail.so").value();
  EXPECT_EQ(native.load(std::string(SPINLOOM_SCENARIO_HANDLERS) + "/fail.so").value(), image);
  EXPECT_NE(native.entry(image, "completion_handler").error().message.find("fail.so"), std::string::npos);
}

TEST(NativeRunner, AnEntryThatDoesNotExistIsAFault) {
  Given given(nic::HandlerKind::payload);
  NativeRunner native;
  RecordingNic nic(512);
  given.context.payload_entry = 0;
  EXPECT_EQ(static_cast<int>(native.run(given.frame(), nic).end), static_cast<int>(nic::HandlerEnd::fault));
}

#else

TEST(NativeRunner, NeedsHandlers) { GTEST_SKIP() << "built without SPINLOOM_HANDLERS"; }

#endif

}  // namespace
}  // namespace spinloom::live
