// A node limits the work that its own handlers leave waiting, so that they cannot fill the process's memory.
#include "live/node/node.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "live/testing/live_testbed.hpp"
#include "portals/testbed/scenario_support.hpp"

namespace spinloom::live {
namespace {

#ifdef SPINLOOM_LIVE_TEST_HANDLERS

TEST(Node, AHandlerThatPutsToItsOwnEntryForEverUsesUpItsBudget) {
  nic::NicLimits limits;
  limits.payload_bytes = 128;
  limits.hpus = 2;
  limits.handler_messages = 4;
  limits.packet_buffer_bytes = 64 * 128;
  limits.nic_memory_bytes = 1 << 16;
  auto images = testbed::ImageScenarioHandlers::create(SPINLOOM_LIVE_TEST_HANDLERS);
  ASSERT_TRUE(images.ok()) << images.error().message;
  auto made = LiveTestbed::create(1, limits, {}, Time{}, std::move(*images));
  ASSERT_TRUE(made.ok()) << made.error().message;
  LiveTestbed& bed = **made;
  auto hosts = testbed::make_hosts(bed);
  ASSERT_TRUE(hosts.ok()) << hosts.error().message;
  testbed::Host& host = hosts->front();
  const auto found = bed.handlers("flood");
  ASSERT_TRUE(found.ok()) << found.error().message;
  const uint32_t constants[2] = {0, 5};  // rank and match bits
  std::vector<uint8_t> bytes(sizeof constants);
  std::memcpy(bytes.data(), constants, sizeof constants);
  nic::Context context;
  context.image = found->image;
  context.payload_entry = found->payload_entry;
  context.constants = {host.interface->memory_alloc(bytes.size()).value(), bytes.size()};
  context.state = {host.interface->memory_alloc(8).value(), 8};
  ASSERT_TRUE(host.interface->memory_write(context.constants.offset, bytes).ok());
  std::vector<uint8_t> memory(64);
  nic::Entry entry = host.entry(memory.data(), memory.size(), constants[1]);
  entry.context = host.interface->context_create(context).value();
  entry.options.event_success_disable = true;  // no events for the handler's own puts
  ASSERT_TRUE(host.interface->me_append(host.portal, entry).ok());

  constexpr int times = 3;
  for (int i = 0; i < times; ++i) {
    const std::vector<uint8_t> first(16, 1);
    ASSERT_TRUE(host.interface->put(host.put(first, host, constants[1])).ok());
    const auto told = host.interface->eq_wait(host.arrivals);
    ASSERT_TRUE(told.ok()) << told.error().message;
    EXPECT_EQ(told->kind, nic::EventKind::put);
    EXPECT_EQ(told->fail, nic::Fail::handler_budget);
    ASSERT_TRUE(bed.settle().ok());
  }
  EXPECT_FALSE(host.interface->eq_get(host.arrivals).has_value()) << "what it has put is taken";
  EXPECT_GE(bed.backlog_peak(0).packets, 2 * Backlog::stop_at.packets);
  EXPECT_LE(bed.backlog_peak(0).packets, 2 * Backlog::stop_at.packets + limits.hpus);
}

#endif

}  // namespace
}  // namespace spinloom::live
