// Memory that is not there: the driver is asked about entries and descriptors that may have holes, and only about
// these; operations on a hole end as segv, and move nothing.
#include "nic/portals/testing/nic_bench.hpp"

namespace spinloom::nic {
namespace {

using Kinds = std::vector<EventKind>;

// Everything is there but one range.
class Holed final : public HostMemory {
 public:
  using HostMemory::reaches;
  [[nodiscard]] bool reaches(const void* start, uint64_t length, Access access) override {
    ++asked;
    last = access;
    const auto first = reinterpret_cast<uint64_t>(start);
    return first + length <= hole || first >= hole + hole_bytes;
  }
  uint64_t hole = 0;
  uint64_t hole_bytes = 0;
  uint32_t asked = 0;
  Access last = Access::read;
};

class Missing : public testing::Test {
 protected:
  Missing() {
    holed.hole = reinterpret_cast<uint64_t>(bench.memory.data()) + 100;
    holed.hole_bytes = 50;
    bench.good(CounterAlloc{counter});
  }
  Entry sparse() {
    Entry made = bench.entry();
    made.sparse = true;
    made.options.op_get = made.options.ct_comm = true;
    made.counter = counter;
    return made;
  }
  Packet request(Operation operation, uint64_t length) {
    Packet made = bench.packet(1, operation == Operation::get ? 0 : length, 0);
    made.operation = operation;
    made.fields.request.requested_bytes = operation == Operation::get ? length : 0;
    made.fields.request.reply_to = 77;
    made.fields.request.atomic = AtomicOperation::sum;
    made.fields.request.datatype = Datatype::uint64;
    return made;
  }
  void expect_failed(EventKind kind) const {
    const Event event = bench.event(kind);
    EXPECT_EQ(event.fail, Fail::segv);
    EXPECT_EQ(event.manipulated_bytes, 0u);
    EXPECT_EQ(bench.only<PostCounter>().value, (CounterValue{0, 1}));
  }

  Holed holed;
  Bench bench{small_limits(), &holed};
  CounterId counter{0};
};

TEST_F(Missing, APutInOnePacketToAHoleChangesNothing) {
  bench.append(sparse());
  bench.ack_request = AckRequest::ack;
  bench.remote_offset = 90;
  bench.arrive(1, 16, 0);
  EXPECT_TRUE(bench.actions<DmaWrite>().empty());
  expect_failed(EventKind::put);
  const Packet ack = bench.only<Send>().packet;
  EXPECT_EQ(ack.fields.fail, static_cast<uint8_t>(Fail::segv));
  EXPECT_EQ(ack.fields.manipulated_bytes, 0u);
  EXPECT_EQ(holed.last, Access::write);
  bench.expect_idle();
}

TEST_F(Missing, ALongPutFailsAsAWholeWhereverItsHoleIs) {
  bench.append(sparse());
  for (uint64_t offset = 0; offset < 160; offset += 16) {
    bench.arrive(1, 160, offset);
    EXPECT_TRUE(bench.actions<DmaWrite>().empty());
  }
  expect_failed(EventKind::put);
  bench.expect_idle();
}

TEST_F(Missing, WhatIsThereIsWritten) {
  bench.append(sparse());
  bench.remote_offset = 150;
  bench.arrive(1, 16, 0);
  EXPECT_EQ(bench.only<DmaWrite>().host, bench.memory.data() + 150);
  EXPECT_EQ(bench.land().front().fail, Fail::ok);
  EXPECT_EQ(holed.asked, 1u);
}

TEST_F(Missing, NobodyIsAskedAboutOtherEntries) {
  Entry whole = sparse();
  whole.sparse = false;
  bench.append(whole);
  bench.remote_offset = 100;
  bench.arrive(1, 16, 0);
  EXPECT_EQ(bench.only<DmaWrite>().source.length, 16u);
  EXPECT_EQ(holed.asked, 0u);
}

TEST_F(Missing, OnlyTheBytesThatTheEntryTakesMustBeThere) {
  Entry cut = sparse();
  cut.length = 100;
  bench.append(cut);
  bench.remote_offset = 92;
  bench.arrive(1, 16, 0);
  EXPECT_EQ(bench.only<DmaWrite>().source.length, 8u);
}

TEST_F(Missing, GetsAndAtomicsAreAnsweredWithoutBytes) {
  bench.append(sparse());
  for (const Operation operation : {Operation::get, Operation::fetch_atomic}) {
    bench.remote_offset = 112;
    bench.arrive(request(operation, 16));
    EXPECT_TRUE(bench.actions<ApplyAtomic>().empty());
    const Packet reply = bench.only<Send>().packet;
    EXPECT_EQ(reply.operation, Operation::reply);
    EXPECT_EQ(reply.message_length, 0u);
    EXPECT_EQ(reply.fields.fail, static_cast<uint8_t>(Fail::segv));
    EXPECT_EQ(reply.fields.manipulated_bytes, 0u);
    EXPECT_EQ(holed.last, operation == Operation::get ? Access::read : Access::write);
    bench.out.clear();
    bench.nic.on_packet_sent(reply.message, bench.out);
    const Event event = bench.event(operation == Operation::get ? EventKind::get : EventKind::fetch_atomic);
    EXPECT_EQ(event.fail, Fail::segv);
    EXPECT_EQ(event.manipulated_bytes, 0u);
  }
  bench.arrive(request(Operation::atomic, 16));
  EXPECT_TRUE(bench.actions<ApplyAtomic>().empty());
  EXPECT_EQ(bench.event(EventKind::atomic).fail, Fail::segv);
  bench.expect_idle();
}

TEST_F(Missing, EveryElementOfAListIsAskedFor) {
  Entry listed = sparse();
  const IovecElement elements[] = {
      {bench.memory.data(), 50}, {bench.memory.data() + 120, 10}, {bench.memory.data(), 40}};
  listed.iovec = elements;
  listed.length = 100;
  bench.append(listed);
  bench.remote_offset = 40;
  bench.arrive(1, 16, 0);
  EXPECT_TRUE(bench.actions<DmaWrite>().empty());
  expect_failed(EventKind::put);
  bench.remote_offset = 60;
  bench.arrive(2, 16, 0);
  EXPECT_EQ(bench.only<DmaWrite>().host, bench.memory.data());
}

TEST_F(Missing, AMessageThatWaitsForItsEntryHasFailedToo) {
  Entry early = sparse();
  bench.append(early, ListKind::overflow);
  bench.remote_offset = 100;
  bench.arrive(1, 16, 0);
  expect_failed(EventKind::put);
  bench.append(bench.entry());
  const Event event = bench.event(EventKind::put_overflow);
  EXPECT_EQ(event.fail, Fail::segv);
  EXPECT_EQ(event.manipulated_bytes, 0u);
}

TEST_F(Missing, AnEntryThatManagesItsOffsetKeepsItsRoom) {
  Entry managed = sparse();
  managed.options.manage_local = true;
  bench.append(managed);
  bench.arrive(1, 96, 0);
  for (uint64_t offset = 16; offset < 96; offset += 16) bench.arrive(1, 96, offset);
  bench.arrive(2, 16, 0);  // bytes 96 to 112
  expect_failed(EventKind::put);
  bench.arrive(3, 4, 0);
  EXPECT_EQ(bench.only<DmaWrite>().host, bench.memory.data() + 96);
}

// Rules: P4F-6.21, P4F-6.22.
TEST_F(Missing, APutFromAHoleDoesNotLeave) {
  Put put;
  put.local = bench.memory.data() + 140;
  put.length = 16;
  put.target = Rank{0};
  put.queue = bench.queue;
  put.counter = counter;
  put.ack_request = AckRequest::ack;
  put.event_success_disable = true;
  put.sparse = true;
  uint64_t failures = 0;
  for (const bool sends_are_told : {true, false}) {
    put.event_send_disable = !sends_are_told;
    const EventKind told = sends_are_told ? EventKind::send : EventKind::ack;
    bench.out.clear();
    bench.nic.on_put(put, bench.out);
    EXPECT_TRUE(bench.actions<Send>().empty());
    EXPECT_EQ(bench.kinds(), Kinds{told});
    EXPECT_EQ(bench.event(told).fail, Fail::segv);
    EXPECT_EQ(bench.only<PostCounter>().value, (CounterValue{0, ++failures}));  // the acknowledgement will not come
    bench.expect_idle();
  }
  put.ack_request = AckRequest::none;
  bench.out.clear();
  bench.nic.on_put(put, bench.out);
  EXPECT_EQ(bench.kinds(), Kinds{}) << "no send event, not even of a failure";
  EXPECT_TRUE(bench.actions<PostCounter>().empty());
  bench.expect_idle();
  put.local = bench.memory.data();
  bench.out.clear();
  bench.nic.on_put(put, bench.out);
  EXPECT_EQ(bench.only<Send>().packet.payload.length, 16u);
}

TEST_F(Missing, AGetIntoAHoleDoesNotLeave) {
  Get get;
  get.reply.local = bench.memory.data() + 90;
  get.reply.queue = bench.queue;
  get.reply.counter = counter;
  get.reply.ct_reply = get.reply.sparse = true;
  get.length = 16;
  get.target = Rank{0};
  bench.good(get);
  EXPECT_TRUE(bench.actions<Send>().empty());
  const Event event = bench.event(EventKind::reply);
  EXPECT_EQ(event.fail, Fail::segv);
  EXPECT_EQ(event.manipulated_bytes, 0u);
  EXPECT_EQ(bench.only<PostCounter>().value, (CounterValue{0, 1}));
  EXPECT_EQ(holed.last, Access::write);
  bench.expect_idle();
}

TEST_F(Missing, AHoleIsNotQuick) {
  NicLimits limits = small_limits();
  limits.at_once_bytes = 12;
  Bench quick(limits, &holed);
  Entry all = quick.entry();
  all.start = bench.memory.data();
  all.sparse = true;
  quick.append(all);
  quick.remote_offset = 100;
  QuickLanding landing;
  EXPECT_FALSE(quick.nic.quick_landing(quick.packet(1, 8, 0), landing));
  quick.remote_offset = 0;
  EXPECT_TRUE(quick.nic.quick_landing(quick.packet(2, 8, 0), landing));
  QuickPut put;
  put.bytes = bench.memory.data() + 100;
  put.length = 8;
  put.target = Rank{0};
  EXPECT_TRUE(quick.nic.quick_put(put));
  put.sparse = true;
  EXPECT_FALSE(quick.nic.quick_put(put));
}

// Bytes that could not be brought here are none of the message's.
TEST_F(Missing, ATransferThatFailedLeavesNoLength) {
  bench.append(sparse());
  bench.ack_request = AckRequest::ack;
  bench.arrive(1, 48, 0);
  const DmaId first = bench.only<DmaWrite>().dma;
  bench.arrive(1, 48, 16);
  const DmaId second = bench.only<DmaWrite>().dma;
  bench.arrive(1, 48, 32);
  const DmaId third = bench.only<DmaWrite>().dma;
  bench.dma_done(first);
  bench.out.clear();
  bench.nic.on_dma_done(second, bench.out, Fail::undeliverable);
  bench.dma_done(third);
  EXPECT_EQ(bench.event(EventKind::put).fail, Fail::undeliverable);
  EXPECT_EQ(bench.event(EventKind::put).manipulated_bytes, 0u);
  EXPECT_EQ(bench.only<Send>().packet.fields.manipulated_bytes, 0u);
}

}  // namespace
}  // namespace spinloom::nic
