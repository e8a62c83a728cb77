// Gets, atomics and their replies, at both ends.
#include "nic/portals/testing/nic_bench.hpp"

namespace spinloom::nic {
namespace {

using Kinds = std::vector<EventKind>;

Packet get_of(Bench& bench, uint64_t requested, uint64_t offset = 0) {
  Packet packet = bench.packet(1, 0, 0);
  packet.operation = Operation::get;
  packet.fields.hdr_data = 0;
  packet.fields.remote_offset = offset;
  packet.fields.request.requested_bytes = requested;
  packet.fields.request.reply_to = 77;
  return packet;
}

Packet atomic_of(Bench& bench, uint64_t length, bool fetching) {
  Packet packet = bench.packet(1, length, 0);
  packet.operation = fetching ? Operation::fetch_atomic : Operation::atomic;
  packet.fields.request.atomic = AtomicOperation::sum;
  packet.fields.request.datatype = Datatype::uint32;
  packet.fields.request.reply_to = 77;
  return packet;
}

EntryId open_entry(Bench& bench, uint64_t length = Bench::memory_bytes) {
  Entry entry = bench.entry();
  entry.length = length;
  entry.options.op_get = true;
  return bench.append(entry);
}

// Reads the reply from its buffer, so that its message completes.
void reply_read(Bench& bench, const Packet& reply) {
  bench.out.clear();
  bench.nic.on_packet_sent(reply.message, bench.out);
}

TEST(GetTarget, RepliesFromTheEntryAndTellsWhenItHasBeenRead) {
  Bench bench;
  open_entry(bench);
  bench.arrive(get_of(bench, 40, 3));
  const auto sends = bench.actions<Send>();
  ASSERT_EQ(sends.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const Packet& reply = sends[i].packet;
    EXPECT_EQ(reply.operation, Operation::reply);
    EXPECT_EQ(reply.target, Rank{0});
    EXPECT_EQ(reply.answers, 77u);
    EXPECT_EQ(reply.message_length, 40u);
    EXPECT_EQ(reply.offset, i * 16);
    EXPECT_EQ(reply.payload.bytes, bench.memory.data() + 3 + i * 16);
    EXPECT_FALSE(sends[i].from_device);
  }
  EXPECT_EQ(sends[0].packet.fields.manipulated_bytes, 40u);
  EXPECT_EQ(sends[0].packet.fields.remote_offset, 3u);
  EXPECT_TRUE(bench.kinds().empty()) << "its memory is still being read";
  reply_read(bench, sends[0].packet);
  EXPECT_EQ(bench.kinds(), Kinds{EventKind::get});
  EXPECT_EQ(bench.event(EventKind::get).requested_bytes, 40u);
  EXPECT_EQ(bench.event(EventKind::get).manipulated_bytes, 40u);
  EXPECT_EQ(bench.event(EventKind::get).start, reinterpret_cast<uint64_t>(bench.memory.data()) + 3);
  bench.expect_idle();
}

// Rules: P4F-7.16, P4F-7.36, P4F-8.12, P4F-11.24.
TEST(GetTarget, WhatIsNotGivenIsSaid) {
  struct Row {
    const char* what;
    bool op_get;
    uint64_t match_bits, requested, offset, given;
    Fail failure;
  };
  for (const Row& row :
       {Row{"whole", true, 5, 20, 0, 20, Fail::ok}, Row{"truncated", true, 5, 20, 16, 8, Fail::ok},
        Row{"beyond the end", true, 5, 20, 99, 0, Fail::ok}, Row{"nothing", true, 5, 0, 0, 0, Fail::ok},
        Row{"not allowed", false, 5, 20, 0, 0, Fail::op_violation},
        Row{"no entry", true, 6, 20, 0, 0, Fail::dropped}}) {
    SCOPED_TRACE(row.what);
    Bench bench;
    Entry entry = bench.entry();
    entry.length = 24;
    entry.options.op_get = row.op_get;
    bench.append(entry);
    Packet get = get_of(bench, row.requested, row.offset);
    get.fields.match_bits = row.match_bits;
    bench.arrive(get);
    const auto sends = bench.actions<Send>();
    ASSERT_FALSE(sends.empty());
    EXPECT_EQ(sends[0].packet.message_length, row.given);
    EXPECT_EQ(sends[0].packet.fields.manipulated_bytes, row.given);
    EXPECT_EQ(static_cast<Fail>(sends[0].packet.fields.fail), row.failure);
    reply_read(bench, sends[0].packet);
    EXPECT_EQ(bench.kinds(), row.failure == Fail::ok ? Kinds{EventKind::get} : Kinds{});
    bench.expect_idle();
  }
}

// Rules: SPIN-4.1, SPIN-4.16.
TEST(GetTarget, HeaderHandlersDecide) {
  struct Row {
    const char* what;
    uint32_t code;
    uint64_t given;
    Fail failure;
  };
  for (const Row& row : {Row{"proceed", PROCEED, 16, Fail::ok}, Row{"process", PROCESS_DATA, 16, Fail::ok},
                         Row{"drop", DROP, 0, Fail::ok}, Row{"fail", FAIL, 0, Fail::handler_fail}}) {
    SCOPED_TRACE(row.what);
    Bench bench;
    Context context;
    context.header_entry = 1;
    context.payload_entry = 2;  // never runs: a get brings nothing
    Entry entry = bench.entry();
    entry.options.op_get = true;
    entry.context = bench.context(context);
    bench.append(entry);
    bench.arrive(get_of(bench, 16));
    const Her her = bench.only<RunHandler>().her;
    EXPECT_EQ(her.kind, HandlerKind::header);
    EXPECT_EQ(her.request, RequestType::get);
    EXPECT_EQ(her.message_length, 16u);
    bench.done(her.id, row.code);
    const Send reply = bench.only<Send>();
    EXPECT_EQ(reply.packet.message_length, row.given);
    EXPECT_EQ(static_cast<Fail>(reply.packet.fields.fail), row.failure);
    reply_read(bench, reply.packet);
    EXPECT_EQ(bench.event(EventKind::get).manipulated_bytes, row.given);
    EXPECT_EQ(bench.event(EventKind::get).dropped_bytes, 16 - row.given);
    EXPECT_EQ(bench.event(EventKind::get).fail, row.failure);
    bench.expect_idle();
  }
}

TEST(GetTarget, FromAnOverflowEntryIsClaimedLater) {
  Bench bench;
  Entry holder = bench.entry();
  holder.options.op_get = true;
  bench.append(holder, ListKind::overflow);
  bench.arrive(get_of(bench, 8));
  reply_read(bench, bench.only<Send>().packet);
  EXPECT_TRUE(bench.event(EventKind::get).in_overflow);
  Entry late = bench.entry();
  late.options.use_once = true;
  late.user_ptr = 9;
  bench.append(late);
  EXPECT_EQ(bench.kinds(), (Kinds{EventKind::get_overflow, EventKind::auto_unlink}));
  EXPECT_EQ(bench.event(EventKind::get_overflow).user_ptr, 9u);
}

struct FetchBench : Bench {
  FetchBench() { good(CounterAlloc{counter}); }
  Packet ask(uint64_t length) {
    Get get;
    get.reply.local = memory.data();
    get.reply.queue = queue;
    get.reply.counter = counter;
    get.reply.ct_reply = true;
    get.reply.user_ptr = 55;
    get.length = length;
    get.target = Rank{2};
    get.portal = PortalIndex{4};
    get.match_bits = 9;
    get.remote_offset = 7;
    good(get);
    const Packet request = only<Send>().packet;
    out.clear();
    nic.on_packet_sent(request.message, out);
    EXPECT_TRUE(kinds().empty()) << "a get has no send event";
    return request;
  }
  Packet reply(const Packet& request, uint64_t length, uint64_t offset) const {
    Packet made;
    made.operation = Operation::reply;
    made.source = request.target;
    made.target = request.source;
    made.message = 123;
    made.answers = request.fields.request.reply_to;
    made.message_length = length;
    made.offset = offset;
    made.payload.bytes = source + offset;
    made.payload.space = PayloadRef::Space::local;
    made.payload.length = std::min<uint64_t>(16, length - offset);
    if (offset == 0) made.fields.manipulated_bytes = length;
    return made;
  }
  CounterId counter{3};
};

// Rules: P4F-11.17.
TEST(GetInitiator, AsksByOnePacket) {
  FetchBench bench;
  const Packet request = bench.ask(40);
  EXPECT_EQ(request.operation, Operation::get);
  EXPECT_EQ(request.target, Rank{2});
  EXPECT_EQ(request.message_length, 0u);
  EXPECT_EQ(request.fields.request.requested_bytes, 40u);
  EXPECT_EQ(request.fields.portal_index, 4u);
  EXPECT_EQ(request.fields.match_bits, 9u);
  EXPECT_EQ(request.fields.remote_offset, 7u);
}

// Rules: P4F-18.7.
TEST(GetInitiator, ItsReplyIsHereWhenAllOfItHasLanded) {
  FetchBench bench;
  const Packet request = bench.ask(40);
  std::vector<DmaId> landing;
  for (const uint64_t offset : {32, 0, 16}) {  // any order will do
    bench.arrive(bench.reply(request, 40, offset));
    const auto write = bench.only<DmaWrite>();
    EXPECT_EQ(write.host, bench.memory.data() + offset);
    landing.push_back(write.dma);
    EXPECT_TRUE(bench.kinds().empty());
  }
  bench.arrive(bench.reply(request, 40, 16));
  EXPECT_EQ(bench.nic.state().refused_packets, 1u) << "more bytes than it has";
  for (size_t i = 0; i < landing.size(); ++i) {
    EXPECT_TRUE(bench.kinds().empty());
    EXPECT_EQ(bench.nic.awaited_replies(request.target).count, 1u);
    EXPECT_EQ(bench.nic.awaited_replies(request.target).bytes_in, 40u);
    EXPECT_EQ(bench.nic.awaited_replies(Rank{0}).count, 0u);
    bench.dma_done(landing[i]);
  }
  EXPECT_EQ(bench.nic.awaited_replies(request.target).count, 0u);
  EXPECT_EQ(bench.kinds(), Kinds{EventKind::reply});
  EXPECT_EQ(bench.event(EventKind::reply).manipulated_bytes, 40u);
  EXPECT_EQ(bench.event(EventKind::reply).user_ptr, 55u);
  EXPECT_EQ(bench.only<PostCounter>().value, (CounterValue{1, 0}));
  bench.expect_idle();
  bench.arrive(bench.reply(request, 40, 0));
  EXPECT_EQ(bench.nic.state().refused_packets, 2u) << "nobody waits for it any more";
}

TEST(GetInitiator, WhatCameOfAReplyLandsBeforeTheLossOfItsPeerIsTold) {
  FetchBench bench;
  const Packet request = bench.ask(40);
  bench.arrive(bench.reply(request, 40, 0));
  const DmaId landing = bench.only<DmaWrite>().dma;
  bench.out.clear();
  bench.nic.on_peer_lost(request.target, bench.out);
  EXPECT_TRUE(bench.out.list.empty());
  bench.dma_done(landing);
  EXPECT_EQ(bench.kinds(), Kinds{EventKind::reply});
  EXPECT_EQ(bench.event(EventKind::reply).fail, Fail::undeliverable);
  EXPECT_EQ(bench.only<PostCounter>().value, (CounterValue{0, 1}));
  bench.expect_idle();
}

// Rules: P4F-11.24, P4F-11.25.
TEST(GetInitiator, AFailedOneIsTold) {
  FetchBench bench;
  const Packet request = bench.ask(40);
  Packet refused = bench.reply(request, 0, 0);
  refused.fields.fail = static_cast<uint8_t>(Fail::dropped);
  bench.arrive(refused);
  EXPECT_EQ(bench.event(EventKind::reply).fail, Fail::dropped);
  EXPECT_EQ(bench.only<PostCounter>().value, (CounterValue{0, 1}));
  bench.expect_idle();
}

// Rules: P4F-12.23, P4F-13.3.
TEST(AtomicTarget, ChangesWholeElementsAndIsAcknowledged) {
  Bench bench;
  bench.ack_request = AckRequest::ack;
  open_entry(bench, 10);
  bench.arrive(atomic_of(bench, 16, false));
  const auto apply = bench.only<ApplyAtomic>();
  EXPECT_EQ(apply.operation, AtomicOperation::sum);
  EXPECT_EQ(apply.datatype, Datatype::uint32);
  EXPECT_EQ(apply.host, bench.memory.data());
  EXPECT_EQ(apply.source.length, 8u) << "of ten bytes, two whole elements";
  EXPECT_EQ(apply.before, nullptr);
  bench.dma_done(apply.dma);
  const Event event = bench.event(EventKind::atomic);
  EXPECT_EQ(event.manipulated_bytes, 8u);
  EXPECT_EQ(event.atomic, AtomicOperation::sum);
  EXPECT_EQ(event.datatype, Datatype::uint32);
  EXPECT_EQ(bench.only<Send>().packet.operation, Operation::ack);
  bench.expect_idle();
}

// Rules: P4F-12.9.
TEST(AtomicTarget, AFetchingOneRepliesWithWhatWasThere) {
  Bench bench;
  open_entry(bench);
  bench.arrive(atomic_of(bench, 8, true));
  const auto apply = bench.only<ApplyAtomic>();
  ASSERT_NE(apply.before, nullptr);
  const uint8_t was[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  std::copy(std::begin(was), std::end(was), apply.before);
  bench.dma_done(apply.dma);
  const Send reply = bench.only<Send>();
  EXPECT_EQ(reply.packet.operation, Operation::reply);
  EXPECT_EQ(reply.packet.answers, 77u);
  EXPECT_TRUE(reply.from_device) << "it lies on the NIC";
  EXPECT_TRUE(std::equal(std::begin(was), std::end(was), reply.packet.payload.bytes));
  reply_read(bench, reply.packet);
  EXPECT_EQ(bench.kinds(), Kinds{EventKind::fetch_atomic});
  bench.expect_idle();
}

TEST(AtomicTarget, MalformedOnesAreRefused) {
  const auto refused = [](auto change) {
    Bench bench;
    open_entry(bench);
    Packet packet = atomic_of(bench, 8, false);
    change(packet);
    bench.arrive(packet);
    EXPECT_EQ(bench.nic.state().refused_packets, 1u);
    bench.expect_idle();
  };
  refused([](Packet& packet) { packet.fields.request.atomic = static_cast<AtomicOperation>(18); });
  refused([](Packet& packet) { packet.fields.request.datatype = static_cast<Datatype>(99); });
  refused([](Packet& packet) { packet.fields.request.atomic = AtomicOperation::swap; });
  refused([](Packet& packet) { packet.message_length = 16; });
}

TEST(AtomicInitiator, ArgumentsAreChecked) {
  Bench bench;
  bench.good(CounterAlloc{CounterId{0}});
  Atomic good;
  good.put.local = bench.source;
  good.put.length = 8;
  good.put.target = Rank{2};
  good.put.portal = PortalIndex{4};
  struct Row {
    const char* what;
    AtomicOperation operation;
    Datatype type;
    uint64_t length;
    bool fetching, valid;
  };
  using enum AtomicOperation;
  for (const Row& row :
       {Row{"sum of integers", sum, Datatype::int64, 16, false, true},
        Row{"product of complex", product, Datatype::complex64, 16, false, true},
        Row{"least of complex", min, Datatype::complex64, 16, false, false},
        Row{"bits of floats", bit_or, Datatype::float32, 16, false, false},
        Row{"swap without fetch", swap, Datatype::int64, 8, false, false},
        Row{"swap", swap, Datatype::int64, 16, true, true},
        Row{"two elements compared", compare_swap, Datatype::int64, 16, true, false},
        Row{"one element compared", compare_swap, Datatype::complex128, 16, true, true},
        Row{"long double", sum, Datatype::long_double, 16, false, true},
        Row{"lowest of long double complex", AtomicOperation::min, Datatype::long_double_complex, 16, false, false},
        Row{"more than a packet", sum, Datatype::int8, 17, false, false}}) {
    SCOPED_TRACE(row.what);
    Atomic atomic = good;
    atomic.operation = row.operation;
    atomic.datatype = row.type;
    atomic.put.length = row.length;
    if (row.fetching) {
      atomic.fetch.emplace();
      atomic.fetch->local = bench.memory.data();
    }
    const auto result = bench.give(atomic);
    EXPECT_EQ(result.ok(), row.valid) << (result.ok() ? "" : result.error().message);
    if (!row.valid) continue;
    const Packet packet = bench.only<Send>().packet;
    EXPECT_EQ(packet.operation, row.fetching ? Operation::fetch_atomic : Operation::atomic);
    EXPECT_EQ(packet.fields.request.atomic, row.operation);
  }
}

// ---- handlers ----

struct RequestBench : Bench {
  RequestBench() {
    Context made;
    made.payload_entry = 1;
    Entry attached = entry();
    attached.length = 512;
    attached.context = context(made);
    append(attached);
    her = start(1, 16, 0);
  }
  HandlerCall made(uint32_t number, LocalMemory local = LocalMemory::state) {
    HandlerCall given;
    given.call = number;
    given.local_memory = local;
    given.local = local_bytes;
    given.length = 8;
    given.target = 4;
    given.match_bits = 6;
    given.atomic = AtomicOperation::sum;
    given.datatype = Datatype::uint64;
    return given;
  }
  std::optional<uint32_t> answer() const {
    const auto resumes = actions<Resume>();
    return resumes.empty() ? std::nullopt : std::optional(resumes.front().value);
  }
  // Sends the reply, of `length` bytes, to the request of the last call.
  void reply(const Packet& request, uint64_t length, Fail failure = Fail::ok) {
    Packet made;
    made.operation = Operation::reply;
    made.source = request.target;
    made.answers = request.fields.request.reply_to;
    made.message_length = length;
    made.payload = {PayloadRef::Space::local, source, length};
    made.fields.manipulated_bytes = length;
    made.fields.fail = static_cast<uint8_t>(failure);
    arrive(made);
  }
  HerId her;
  alignas(8) uint8_t local_bytes[64] = {};
};

// Rules: SPIN-7.26, SPIN-7.27.
TEST(HandlerRequests, AGetToTheDeviceIsAnsweredWhenItsBytesAreThere) {
  RequestBench bench;
  EXPECT_FALSE(bench.call(bench.her, bench.made(SPL_CALL_GET_FROM_DEVICE, LocalMemory::stack)));
  EXPECT_FALSE(bench.answer());
  const Packet request = bench.only<Send>().packet;
  EXPECT_EQ(request.operation, Operation::get);
  EXPECT_EQ(request.target, Rank{4});
  EXPECT_EQ(request.fields.portal_index, bench.portal.value) << "the entry's";
  bench.reply(request, 8);
  const auto stored = bench.only<StorePacket>();
  EXPECT_EQ(stored.local, bench.local_bytes);
  EXPECT_FALSE(bench.answer());
  bench.dma_done(stored.dma);
  EXPECT_EQ(bench.answer(), uint32_t{SUCCESS});
  EXPECT_TRUE(bench.kinds().empty()) << "the host did not ask";
}

// Rules: SPIN-7.27.
TEST(HandlerRequests, AGetThatBringsLessFails) {
  for (const Fail failure : {Fail::ok, Fail::op_violation}) {
    RequestBench bench;
    bench.call(bench.her, bench.made(SPL_CALL_GET_FROM_DEVICE));
    bench.reply(bench.only<Send>().packet, 0, failure);
    EXPECT_EQ(bench.answer(), uint32_t{FAIL});
  }
}

// Rules: SPIN-7.26.
TEST(HandlerRequests, AGetToTheHostGoesOnAndTellsTheEntrysQueue) {
  RequestBench bench;
  HandlerCall given = bench.made(SPL_CALL_GET_FROM_HOST);
  given.offset = 64;
  given.user_ptr = 12;
  bench.call(bench.her, given);
  EXPECT_EQ(bench.answer(), uint32_t{SUCCESS});
  bench.reply(bench.only<Send>().packet, 8);
  const auto write = bench.only<DmaWrite>();
  EXPECT_EQ(write.host, bench.memory.data() + 64);
  bench.dma_done(write.dma);
  EXPECT_EQ(bench.event(EventKind::reply).user_ptr, 12u);
}

// Rules: SPIN-7.26.
TEST(HandlerRequests, AnAtomicWaitsUntilItsSourceHasBeenRead) {
  RequestBench bench;
  bench.call(bench.her, bench.made(SPL_CALL_ATOMIC_FROM_DEVICE));
  EXPECT_FALSE(bench.answer());
  const Send send = bench.only<Send>();
  EXPECT_EQ(send.packet.operation, Operation::atomic);
  EXPECT_TRUE(send.from_device);
  bench.out.clear();
  bench.nic.on_packet_sent(send.packet.message, bench.out);
  EXPECT_EQ(bench.answer(), uint32_t{SUCCESS});
}

TEST(HandlerRequests, AFetchingAtomicIsAnsweredByItsReply) {
  RequestBench bench;
  HandlerCall given = bench.made(SPL_CALL_FETCH_ATOMIC_FROM_DEVICE, LocalMemory::stack);
  given.atomic = AtomicOperation::compare_swap;
  given.operand = 99;
  bench.call(bench.her, given);
  const Packet request = bench.only<Send>().packet;
  EXPECT_EQ(request.operation, Operation::fetch_atomic);
  EXPECT_EQ(request.fields.request.operand[0], 99u);
  bench.out.clear();
  bench.nic.on_packet_sent(request.message, bench.out);
  EXPECT_FALSE(bench.answer());
  bench.reply(request, 8);
  bench.dma_done(bench.only<StorePacket>().dma);
  EXPECT_EQ(bench.answer(), uint32_t{SUCCESS});
}

TEST(HandlerRequests, WhatCannotBeIsRefused) {
  struct Row {
    const char* what;
    uint32_t call;
    LocalMemory local;
    uint64_t length, offset;
    uint32_t answer;
  };
  for (const Row& row :
       {Row{"get into a packet", SPL_CALL_GET_FROM_DEVICE, LocalMemory::packet, 8, 0, SEGV},
        Row{"get of more than a packet", SPL_CALL_GET_FROM_DEVICE, LocalMemory::state, 17, 0, FAIL},
        Row{"get beyond the entry", SPL_CALL_GET_FROM_HOST, LocalMemory::none, 8, 508, SEGV},
        Row{"atomic from elsewhere", SPL_CALL_ATOMIC_FROM_DEVICE, LocalMemory::outside, 8, 0, SEGV},
        Row{"fetch into constants", SPL_CALL_FETCH_ATOMIC_FROM_DEVICE, LocalMemory::constants, 8, 0, SEGV},
        Row{"atomic of more than a packet", SPL_CALL_ATOMIC_FROM_HOST, LocalMemory::none, 24, 0, FAIL}}) {
    SCOPED_TRACE(row.what);
    RequestBench bench;
    HandlerCall given = bench.made(row.call, row.local);
    given.length = row.length;
    given.offset = row.offset;
    EXPECT_FALSE(bench.call(bench.her, given));
    EXPECT_EQ(bench.answer(), row.answer);
    EXPECT_TRUE(bench.actions<Send>().empty());
  }
}

}  // namespace
}  // namespace spinloom::nic
