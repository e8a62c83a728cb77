// HPU threads: scenarios with handlers side by side, natively and in the sandbox; faulty handlers; shut down.
#include "live/node/hpu_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <ctime>

#include "live/node/testing/pool_testbed.hpp"
#include "live/node/testing/runners.hpp"
#include "portals/testbed/scenario_support.hpp"
#include "portals/testbed/scenario_ways.hpp"
#include "spinloom/handler.h"

namespace spinloom::live {
namespace {

#ifdef SPINLOOM_SCENARIO_HANDLERS

using std::chrono::nanoseconds;
using testbed::Host;

std::shared_ptr<testbed::ScenarioHandlers> handlers_of(bool native, const char* folder) {
  if (native) return std::make_shared<NativeObjects>(folder);
  auto made = testbed::ImageScenarioHandlers::create(folder);
  SPL_ASSERT(made.ok(), made.error().message);
  return std::move(*made);
}

testbed::ScenarioWay pool_way(const char* name, bool native, nanoseconds spin) {
  return {name,
          [native, spin](uint32_t ranks, uint64_t) -> Result<std::unique_ptr<testbed::Testbed>> {
            SPL_ASSIGN(auto bed, PoolTestbed::create(ranks, testbed::scenario_limits(),
                                                     handlers_of(native, SPINLOOM_SCENARIO_HANDLERS), spin));
            return std::unique_ptr<testbed::Testbed>(std::move(bed));
          },
          1, [](testbed::Testbed& bed) { return static_cast<PoolTestbed&>(bed).shut_down(); }};
}

std::vector<testbed::ScenarioWay> pool_ways() {
  return {pool_way("Native", true, nanoseconds{0}), pool_way("NativeSpinning", true, nanoseconds{3000}),
          pool_way("Sandbox", false, nanoseconds{0}), pool_way("SandboxSpinning", false, nanoseconds{3000})};
}

SPINLOOM_SCENARIO_SUITE(PoolScenarios, pool_ways());

// Rank 0 puts to rank 1, which has contexts of test handlers.
struct Pair {
  std::unique_ptr<PoolTestbed> bed;
  std::vector<Host> hosts;

  explicit Pair(bool native) {
    auto made = PoolTestbed::create(2, testbed::scenario_limits(), handlers_of(native, SPINLOOM_LIVE_TEST_HANDLERS),
                                    nanoseconds{0});
    SPL_ASSERT(made.ok(), made.error().message);
    bed = std::move(*made);
    hosts = testbed::make_hosts(*bed).value();
  }

  [[nodiscard]] portals::Interface& target() const { return *hosts[1].interface; }
  nic::ContextId context(const char* handlers, std::vector<uint32_t> constants, uint64_t state_bytes,
                         uint64_t budget = limits::handler_budget_cycles) const {
    const auto found = bed->handlers(handlers);
    SPL_ASSERT(found.ok(), found.error().message);
    nic::Context made;
    made.image = found->image;
    made.payload_entry = found->payload_entry;
    made.completion_entry = found->completion_entry;
    made.budget_cycles = budget;
    std::vector<uint8_t> bytes(constants.size() * sizeof(uint32_t));
    if (!bytes.empty()) std::memcpy(bytes.data(), constants.data(), bytes.size());
    made.constants = written(bytes);
    made.state = written(std::vector<uint8_t>(state_bytes));
    return target().context_create(made).value();
  }
  [[nodiscard]] nic::MemoryWindow written(const std::vector<uint8_t>& bytes) const {
    if (bytes.empty()) return {};
    const nic::MemoryWindow window{target().memory_alloc(bytes.size()).value(), bytes.size()};
    SPL_ASSERT(target().memory_write(window.offset, bytes).ok(), "NIC memory");
    return window;
  }
  void append(std::vector<uint8_t>& memory, uint64_t bits, nic::ContextId context) const {
    nic::Entry entry = hosts[1].entry(memory.data(), memory.size(), bits);
    entry.context = context;
    SPL_ASSERT(target().me_append(hosts[1].portal, entry).ok(), "append");
  }
  void put(const std::vector<uint8_t>& bytes, uint64_t bits) const {
    SPL_ASSERT(hosts[0].interface->put(hosts[0].put(bytes, hosts[1], bits)).ok(), "put");
  }
  // The put event of a message with these match bits; other events are dropped.
  [[nodiscard]] nic::Event put_event(uint64_t bits) const {
    for (;;) {
      const auto event = target().eq_wait(hosts[1].arrivals);
      SPL_ASSERT(event.ok(), event.error().message);
      if (event->kind == nic::EventKind::put && event->match_bits == bits) return *event;
    }
  }
};

struct Misdeed {
  const char* name;
  uint32_t number;
  nic::Fail fail;
};

void PrintTo(const Misdeed& misdeed, std::ostream* out) { *out << misdeed.name; }

// The misdeeds in the order of bad.c. RISC-V does not trap on division by zero.
constexpr Misdeed misdeeds[] = {
    {"LoopForever", 0, nic::Fail::handler_budget},
    {"WriteOutside", 1, nic::Fail::segv},
    {"DivideByZero", 2, nic::Fail::ok},
    {"JumpToNowhere", 3, nic::Fail::handler_fault},
    {"RecurseForever", 4, nic::Fail::segv},
    {"SmashStack", 5, nic::Fail::handler_fault},
    {"ReadBeyondState", 6, nic::Fail::segv},
    {"WriteConstants", 7, nic::Fail::segv},
    {"Trap", 8, nic::Fail::handler_fault},
    {"UnknownCall", 9, nic::Fail::handler_fault},
    {"UnknownCode", 10, nic::Fail::handler_code},
    {"WritePacket", 11, nic::Fail::segv},
};

class Misdeeds : public testing::TestWithParam<Misdeed> {};

TEST_P(Misdeeds, EndAsTheTableSaysAndHarmNobody) {
  const Misdeed& misdeed = GetParam();
  Pair pair(false);
  std::vector<uint8_t> harmed(4096, 0xa5);
  std::vector<uint8_t> good(4096, 0xa5);
  pair.append(harmed, 1, pair.context("bad", {misdeed.number, 0}, 8, 200'000));
  pair.append(good, 2, pair.context("echo", {}, 0));
  const std::vector<uint8_t> payload = testbed::random_bytes(5, "payload", 4096);
  for (int round = 0; round < 3; ++round) {
    std::fill(good.begin(), good.end(), uint8_t{0xa5});
    pair.put(payload, 1);
    pair.put(payload, 2);
    pair.put(payload, 2);
    const nic::Event bad = pair.put_event(1);
    EXPECT_EQ(static_cast<int>(bad.fail), static_cast<int>(misdeed.fail));
    ASSERT_TRUE(pair.bed->settle().ok());
    EXPECT_EQ(good, payload) << "other messages go on";
    EXPECT_EQ(harmed, std::vector<uint8_t>(4096, 0xa5));
  }
  ASSERT_TRUE(pair.bed->settle().ok());
  EXPECT_EQ(pair.bed->nic(1).state().messages_open, 0u);
  EXPECT_EQ(pair.bed->nic(1).state().packet_buffer_used, 0u);
  EXPECT_TRUE(pair.bed->shut_down().ok());
}

INSTANTIATE_TEST_SUITE_P(Sandbox, Misdeeds, testing::ValuesIn(misdeeds),
                         [](const auto& given) { return std::string(given.param.name); });

class SharedState : public testing::TestWithParam<bool> {};

// 32 packets on four threads; each adds 100 times under a lock that handlers make, and by the NIC's atomics.
TEST_P(SharedState, LocksAndAtomicsHoldBetweenHpus) {
  Pair pair(GetParam());
  std::vector<uint8_t> memory(4096);
  pair.append(memory, 1, pair.context("locks", {100}, 16, 1'000'000'000));
  pair.put(testbed::random_bytes(5, "payload", 4096), 1);
  EXPECT_EQ(static_cast<int>(pair.put_event(1).fail), static_cast<int>(nic::Fail::ok));
  ASSERT_TRUE(pair.bed->settle().ok());
  uint32_t words[2] = {};
  uint64_t counted = 0;
  std::memcpy(words, memory.data(), sizeof words);
  std::memcpy(&counted, memory.data() + sizeof words, sizeof counted);
  EXPECT_EQ(words[0], 0u);
  EXPECT_EQ(words[1], 3200u);
  EXPECT_EQ(counted, 3200u);
  EXPECT_GT(pair.bed->busy_peak(), 1u) << "nothing ran side by side";
}

INSTANTIATE_TEST_SUITE_P(Ways, SharedState, testing::Bool(),
                         [](const auto& native) { return native.param ? "Native" : "Sandbox"; });

class ShutDown : public testing::TestWithParam<bool> {};

TEST_P(ShutDown, EndsHandlersThatWait) {
  Pair pair(GetParam());
  std::vector<uint8_t> memory(64);
  pair.append(memory, 1, pair.context("waits", {77}, 0));
  pair.put(std::vector<uint8_t>(64), 1);
  while (pair.bed->busy(1) == 0) std::this_thread::yield();
  const Status down = pair.bed->shut_down();
  EXPECT_TRUE(down.ok()) << down.error().message;
}

INSTANTIATE_TEST_SUITE_P(Ways, ShutDown, testing::Bool(),
                         [](const auto& native) { return native.param ? "Native" : "Sandbox"; });

TEST(ShutDown, EndsSandboxedHandlersThatRun) {
  Pair pair(false);
  std::vector<uint8_t> memory(64);
  pair.append(memory, 1, pair.context("bad", {0, 0}, 8, UINT64_MAX / 2));
  pair.put(std::vector<uint8_t>(64), 1);
  while (pair.bed->busy(1) == 0) std::this_thread::yield();
  EXPECT_TRUE(pair.bed->shut_down().ok());
}

// A runner's thread may outlive the pool; its calls then reach nobody.
TEST(ShutDown, LeavesANativeHandlerThatDoesNotComeBack) {
  class Owner final : public HandlerOwner {
   public:
    CallResult call(nic::HerId, const nic::HandlerCall&) override {
      ++heard;
      return {};
    }
    void ended(nic::HerId, const spin::HandlerOutcome&) override { ++heard; }
    std::atomic<int> heard{0};
  };
  static std::atomic<uint32_t> state[2];  // never freed: the thread may still be there
  static const nic::Context context = [] {
    nic::Context made;
    made.payload_entry = 0;
    return made;
  }();
  auto runner = std::make_shared<NativeRunner>();
  const uint32_t image = runner->load(std::string(SPINLOOM_LIVE_TEST_HANDLERS) + "/stuck.so").value();
  ASSERT_EQ(image, 0u);
  ASSERT_EQ(runner->entry(image, "payload_handler").value(), 0u);
  Owner owner;
  HpuPoolOptions options;
  options.hpus = 2;
  auto pool = HpuPool::create(options, runner, owner);
  ASSERT_TRUE(pool.ok()) << pool.error().message;
  spin::HandlerFrame frame;
  frame.her.id = nic::HerId{0};
  frame.her.hpu = nic::HpuId{1};
  frame.her.vhpu = nic::VhpuId{1};
  frame.context = &context;
  frame.state = {reinterpret_cast<uint8_t*>(state), sizeof state};
  (*pool)->start(frame);
  while (state[0] != 1) std::this_thread::yield();
  const Status down = (*pool)->shut_down();
  ASSERT_FALSE(down.ok());
  EXPECT_NE(down.error().message.find("HPU 1 "), std::string::npos) << down.error().message;
  pool->reset();
  std::weak_ptr<NativeRunner> left = runner;
  runner.reset();
  EXPECT_FALSE(left.expired()) << "its thread still needs it";
  state[1] = 1;
  while (!left.expired()) std::this_thread::yield();
  EXPECT_EQ(state[0], 1u) << "its next call ended it";
  EXPECT_EQ(owner.heard, 0);
}

TEST(HpuPool, IdleThreadsTakeNoTime) {
  Pair pair(true);
  std::vector<uint8_t> memory(256);
  pair.append(memory, 1, pair.context("echo", {}, 0));
  pair.put(std::vector<uint8_t>(256), 1);
  (void)pair.put_event(1);
  ASSERT_TRUE(pair.bed->settle().ok());
  // The threads poll before they sleep, for an unknown time on a busy machine.
  const auto give_up = std::chrono::steady_clock::now() + patient(std::chrono::seconds(30));
  std::clock_t spent = 0;
  do {
    const std::clock_t before = std::clock();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    spent = std::clock() - before;
  } while (spent >= CLOCKS_PER_SEC / 100 && std::chrono::steady_clock::now() < give_up);
  EXPECT_LT(spent, CLOCKS_PER_SEC / 100);
}

TEST(HpuPool, RefusesNoThreads) {
  class Owner final : public HandlerOwner {
    CallResult call(nic::HerId, const nic::HandlerCall&) override { return {.goes_on = false}; }
    void ended(nic::HerId, const spin::HandlerOutcome&) override {}
  } owner;
  HpuPoolOptions options;
  options.hpus = 0;
  EXPECT_EQ(HpuPool::create(options, std::make_shared<NativeRunner>(), owner).error().code, Code::invalid);
}

#else

TEST(HpuPool, NeedsHandlers) { GTEST_SKIP() << "built without SPINLOOM_HANDLERS"; }

#endif

}  // namespace
}  // namespace spinloom::live
