// The host interface's checks of streaming puts and process-puts, before a command goes to the NIC.
#include <gtest/gtest.h>

#include "portals/interface/interface.hpp"
#include "portals/testbed/loopback_testbed.hpp"

namespace spinloom::testbed {
namespace {

class InterfaceSend : public testing::Test {
 protected:
  void SetUp() override {
    nic::NicLimits limits;
    limits.payload_bytes = 64;
    limits.packet_buffer_bytes = 1024;
    auto bed = LoopbackTestbed::create(2, limits, {});
    ASSERT_TRUE(bed.ok());
    bed_ = std::move(*bed);
  }
  portals::PutArguments put(uint64_t length) const {
    portals::PutArguments made;
    made.local = memory_;
    made.length = length;
    made.target = nic::Rank{1};
    made.portal = nic::PortalIndex{0};
    return made;
  }
  template <class R>
  void expect_error(const R& result, Code code, const char* said) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, code);
    EXPECT_NE(result.error().message.find(said), std::string::npos) << result.error().message;
  }

  std::unique_ptr<LoopbackTestbed> bed_;
  uint8_t memory_[100] = {};
};

TEST_F(InterfaceSend, RefusesRegionsAndEndsThatDoNotFit) {
  portals::Interface& host = bed_->rank(0);
  expect_error(host.stream_start(put(10), 100, {95, 6}), Code::invalid, "not inside its memory of 100 B");
  expect_error(host.stream_start(put(10), 100, {0, 11}), Code::invalid, "declared length of 10 B");
  portals::PutArguments nobody = put(10);
  nobody.target = nic::Rank::any();
  expect_error(host.stream_start(nobody, 100, {0, 1}), Code::invalid, "stream_start: the target must be one rank");
  const auto stream = host.stream_start(put(10), 100, {0, 4});
  ASSERT_TRUE(stream.ok());
  expect_error(host.stream_append(*stream, {UINT64_MAX, 1}, false), Code::invalid, "not inside");
  expect_error(host.stream_append(*stream, {0, 7}, false), Code::invalid, "after 4 B");
  expect_error(host.stream_append(*stream, {0, 5}, true), Code::invalid, "ends after 9 B of the declared 10 B");
  EXPECT_TRUE(host.stream_append(*stream, {0, 6}, true).ok()) << "what was refused changed nothing";
  expect_error(host.stream_append(*stream, {0, 0}, true), Code::invalid, "streaming put");
  EXPECT_TRUE(bed_->settle().ok());
  EXPECT_EQ(bed_->nic(0).state().failed_commands, 0u) << "the NIC never heard of them";
  EXPECT_EQ(bed_->nic(0).state().messages_outgoing, 0u);
}

TEST_F(InterfaceSend, GivesAStreamBackWithItsEnd) {
  portals::Interface::Limits limits;
  limits.streams = 2;
  portals::Interface host(bed_->loopback().port(0), limits);
  const auto first = host.stream_start(put(1), 100, {});
  const auto second = host.stream_start(put(1), 100, {});
  ASSERT_TRUE(first.ok() && second.ok());
  expect_error(host.stream_start(put(1), 100, {}), Code::exhausted, "Interface::Limits::streams");
  EXPECT_TRUE(host.stream_append(*first, {0, 1}, true).ok());
  const auto third = host.stream_start(put(1), 100, {});
  ASSERT_TRUE(third.ok());
  EXPECT_EQ(*third, *first);
  for (const nic::StreamId stream : {*second, *third}) EXPECT_TRUE(host.stream_append(stream, {0, 1}, true).ok());
  EXPECT_TRUE(bed_->settle().ok());
  EXPECT_EQ(bed_->nic(0).state().failed_commands, 0u);
  EXPECT_EQ(bed_->nic(0).state().messages_outgoing, 0u);
}

TEST_F(InterfaceSend, AProcessPutNeedsItsContext) {
  portals::Interface& host = bed_->rank(0);
  expect_error(host.process_put(put(10), 100, nic::ContextId{3}), Code::invalid, "context");
  portals::PutArguments counted = put(10);
  counted.ct_send = true;
  expect_error(host.process_put(counted, 100, nic::ContextId{}), Code::invalid, "process_put: counting");
}

}  // namespace
}  // namespace spinloom::testbed
