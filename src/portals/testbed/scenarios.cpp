#include "portals/testbed/scenarios.hpp"

#include <array>
#include <deque>
#include <set>

#include "portals/testbed/scenario_support.hpp"
#include "portals/testbed/scenarios_fetch.hpp"
#include "portals/testbed/scenarios_memory.hpp"
#include "portals/testbed/scenarios_send.hpp"

namespace spinloom::testbed {
namespace {

using nic::EventKind;
using nic::Fail;

// Both ranks put messages of many sizes into each other's entries at once; events, acks and counters all come.
Result<std::string> contiguous_puts(Testbed& bed, uint64_t seed) {
  SPL_ASSIGN(std::vector<Host> hosts, make_hosts(bed));
  Trace trace;
  const uint64_t payload = bed.nic(0).limits().payload_bytes;
  const std::vector<uint64_t> sizes = {0, 1, payload - 1, payload, payload + 1, 5 * payload + 3, 2 * payload};
  std::deque<GuardedBuffer> memory;
  std::deque<std::vector<uint8_t>> sent;
  std::vector<nic::CounterId> arrived, acked;
  for (Host& host : hosts) {
    SPL_ASSIGN(arrived.emplace_back(), host.interface->ct_alloc());
    SPL_ASSIGN(acked.emplace_back(), host.interface->ct_alloc());
    for (size_t i = 0; i < sizes.size(); ++i) {
      GuardedBuffer& buffer = memory.emplace_back(sizes[i] + 7);
      nic::Entry entry = host.entry(buffer.data(), buffer.size(), i);
      entry.counter = arrived.back();
      entry.options.ct_comm = true;
      SPL_TRY(host.interface->me_append(host.portal, entry));
    }
  }
  for (Host& host : hosts) {
    for (size_t i = 0; i < sizes.size(); ++i) {
      sent.push_back(random_bytes(seed, stream_name(host.rank, i), sizes[i]));
      portals::PutArguments put = host.put(sent.back(), hosts[1 - host.rank], i);
      put.counter = acked[host.rank];
      put.remote_offset = i;
      SPL_TRY(host.interface->put(put));
    }
  }
  for (Host& host : hosts) {
    SPL_TRY(host.wait(host.arrivals, sizes.size(), trace));
    SPL_TRY(host.wait(host.departures, 2 * sizes.size(), trace));
    for (const nic::CounterId counter : {arrived[host.rank], acked[host.rank]}) {
      SPL_ASSIGN(const nic::CounterValue value, host.interface->ct_wait(counter, sizes.size()));
      SPL_TRY(
          expect(value == nic::CounterValue{sizes.size(), 0}, text("counter is ", value.success, "+", value.failure)));
    }
    for (size_t i = 0; i < sizes.size(); ++i) {
      std::vector<uint8_t> expected(sizes[i] + 7, GuardedBuffer::fill);
      const auto& from_peer = sent[(1 - host.rank) * sizes.size() + i];
      std::copy(from_peer.begin(), from_peer.end(), expected.begin() + static_cast<ptrdiff_t>(i));
      SPL_TRY(memory[host.rank * sizes.size() + i].check(expected, text("rank ", host.rank, ", message ", i)));
    }
  }
  SPL_TRY(check_quiet(bed, hosts));
  return trace.text();
}

// Messages land in an overflow entry first; entries appended later, in another order, find them there.
// Rules: P4F-7.58, P4F-7.59, P4F-7.63, P4F-7.71, P4F-8.14.
Result<std::string> unexpected_then_matched(Testbed& bed, uint64_t seed) {
  SPL_ASSIGN(std::vector<Host> hosts, make_hosts(bed));
  Trace trace;
  constexpr uint64_t messages = 6;
  Host& receiver = hosts[0];
  const uint64_t payload = bed.nic(0).limits().payload_bytes;
  GuardedBuffer overflow(messages * 4 * payload);
  nic::Entry holder = receiver.entry(overflow.data(), overflow.size(), 0);
  holder.ignore_bits = ~uint64_t{0};
  holder.options.manage_local = true;
  holder.user_ptr = 1000;
  SPL_ASSIGN(const nic::EntryId holder_id,
             receiver.interface->me_append(receiver.portal, holder, nic::ListKind::overflow));
  std::deque<std::vector<uint8_t>> sent;
  for (uint64_t i = 0; i < messages; ++i) {
    sent.push_back(random_bytes(seed, stream_name(1, i), 1 + i * payload / 2));
    SPL_TRY(hosts[1].interface->put(hosts[1].put(sent.back(), receiver, i)));
  }
  SPL_ASSIGN(const auto landed, receiver.wait(receiver.arrivals, messages, trace));
  for (const nic::Event& event : landed)
    SPL_TRY(expect(event.in_overflow, "a message did not land in the overflow list"));
  SPL_ASSIGN(const portals::Unlinked first_unlink, receiver.interface->me_unlink(holder_id));
  SPL_TRY(
      expect(first_unlink == portals::Unlinked::in_use, "the overflow entry was unlinked although it holds messages"));
  for (uint64_t i = messages; i-- > 0;) {
    nic::Entry entry = receiver.entry(nullptr, 0, i);
    entry.options.use_once = true;
    SPL_TRY(receiver.interface->me_append(receiver.portal, entry));
    SPL_ASSIGN(const auto events, receiver.wait(receiver.arrivals, 2, trace));
    SPL_TRY(expect(events[0].kind == EventKind::put_overflow, "put_overflow comes first"));
    SPL_TRY(expect(events[1].kind == EventKind::auto_unlink, "auto_unlink comes after put_overflow"));
    const auto* bytes = reinterpret_cast<const uint8_t*>(events[0].start);
    SPL_TRY(expect(events[0].manipulated_bytes == sent[i].size() && std::equal(sent[i].begin(), sent[i].end(), bytes),
                   text("message ", i, " in the overflow entry has other bytes")));
  }
  SPL_TRY(hosts[1].wait(hosts[1].departures, 2 * messages, trace));
  SPL_ASSIGN(const portals::Unlinked second_unlink, receiver.interface->me_unlink(holder_id));
  SPL_TRY(expect(second_unlink == portals::Unlinked::done,
                 "the overflow entry is free after all its messages were claimed"));
  SPL_TRY(check_quiet(bed, hosts));
  return trace.text();
}

// Four senders with several messages each; every message has its own use-once entry.
Result<std::string> many_to_one_tagged(Testbed& bed, uint64_t seed) {
  SPL_ASSIGN(std::vector<Host> hosts, make_hosts(bed));
  Trace trace;
  constexpr uint64_t messages = 8;
  Host& receiver = hosts[0];
  Random random(seed, "sizes");
  const uint64_t payload = bed.nic(0).limits().payload_bytes;
  std::deque<GuardedBuffer> memory;
  std::deque<std::vector<uint8_t>> sent;
  for (uint32_t rank = 1; rank < hosts.size(); ++rank) {
    for (uint64_t i = 0; i < messages; ++i) {
      sent.push_back(random_bytes(seed, stream_name(rank, i), random.below(6 * payload)));
      memory.emplace_back(sent.back().size());
      nic::Entry entry = receiver.entry(memory.back().data(), memory.back().size(), i);
      entry.match_rank = nic::Rank{rank};
      entry.options.use_once = true;
      entry.options.no_truncate = true;
      entry.user_ptr = rank * 100 + i;
      SPL_TRY(receiver.interface->me_append(receiver.portal, entry));
    }
  }
  for (uint64_t i = 0; i < messages; ++i) {
    for (uint32_t rank = 1; rank < hosts.size(); ++rank) {
      SPL_TRY(hosts[rank].interface->put(hosts[rank].put(sent[(rank - 1) * messages + i], receiver, i)));
    }
  }
  SPL_TRY(receiver.wait(receiver.arrivals, 2 * sent.size(), trace));  // put and auto_unlink
  for (uint32_t rank = 1; rank < hosts.size(); ++rank) {
    SPL_TRY(hosts[rank].wait(hosts[rank].departures, 2 * messages, trace));
  }
  for (size_t i = 0; i < sent.size(); ++i) SPL_TRY(memory[i].check(sent[i], text("entry ", i)));
  SPL_TRY(check_quiet(bed, hosts));
  return trace.text();
}

// Four senders compete for use-once entries that take any message; acknowledgements report the late messages as
// dropped.
Result<std::string> many_to_one_any(Testbed& bed, uint64_t seed) {
  SPL_ASSIGN(std::vector<Host> hosts, make_hosts(bed));
  Trace trace;
  constexpr uint64_t messages = 6;
  constexpr uint64_t too_many = 3;
  Host& receiver = hosts[0];
  const uint64_t length = 3 * bed.nic(0).limits().payload_bytes + 5;
  const uint64_t entries = messages * (hosts.size() - 1) - too_many;
  std::deque<GuardedBuffer> memory;
  for (uint64_t i = 0; i < entries; ++i) {
    memory.emplace_back(length);
    nic::Entry entry = receiver.entry(memory.back().data(), length, 0);
    entry.ignore_bits = ~uint64_t{0};
    entry.user_ptr = i;
    entry.options.use_once = true;
    entry.options.event_unlink_disable = true;
    SPL_TRY(receiver.interface->me_append(receiver.portal, entry));
  }
  std::deque<std::vector<uint8_t>> sent;
  for (uint32_t rank = 1; rank < hosts.size(); ++rank) {
    for (uint64_t i = 0; i < messages; ++i) {
      sent.push_back(random_bytes(seed, stream_name(rank, i), length));
      SPL_TRY(hosts[rank].interface->put(hosts[rank].put(sent.back(), receiver, i)));
    }
  }
  SPL_ASSIGN(const auto arrived, receiver.wait(receiver.arrivals, entries, trace));
  std::set<uint64_t> used_entries, seen_messages;
  for (const nic::Event& event : arrived) {
    SPL_TRY(expect(used_entries.insert(event.user_ptr).second, text("entry ", event.user_ptr, " took two messages")));
    const uint64_t message = (event.initiator.value - 1) * messages + event.hdr_data;
    SPL_TRY(expect(seen_messages.insert(message).second, text("message ", message, " was told twice")));
    SPL_TRY(memory[event.user_ptr].check(sent[message], text("entry ", event.user_ptr)));
  }
  uint64_t dropped = 0;
  for (uint32_t rank = 1; rank < hosts.size(); ++rank) {
    SPL_ASSIGN(const auto events, hosts[rank].wait(hosts[rank].departures, 2 * messages, trace));
    for (const nic::Event& event : events) dropped += event.fail == Fail::dropped ? 1 : 0;
  }
  SPL_TRY(expect(dropped == too_many, text(dropped, " messages were dropped, not ", too_many)));
  SPL_TRY(check_quiet(bed, hosts));
  return trace.text();
}

// Vectors scattered by handlers, several messages of two senders at once, half of them under blocked round-robin.
Result<std::string> vector_scatter(Testbed& bed, uint64_t seed) {
  SPL_ASSIGN(std::vector<Host> hosts, make_hosts(bed));
  Trace trace;
  constexpr uint64_t messages = 4;
  Host& receiver = hosts[0];
  const uint64_t payload = bed.nic(0).limits().payload_bytes;
  struct Vector {
    uint32_t block, stride;
  };
  const std::array<Vector, messages> vectors = {
      {{4, 12}, {7, 8}, {64, 100}, {static_cast<uint32_t>(payload) + 3, static_cast<uint32_t>(payload) + 9}}};
  std::deque<GuardedBuffer> memory;
  std::deque<std::vector<uint8_t>> sent;
  std::vector<nic::ContextId> contexts;
  for (uint32_t rank = 1; rank < hosts.size(); ++rank) {
    for (uint64_t i = 0; i < messages; ++i) {
      sent.push_back(random_bytes(seed, stream_name(rank, i), 19 * payload + 5 * i));
      const uint64_t extent = (sent.back().size() / vectors[i].block + 1) * vectors[i].stride;
      memory.emplace_back(extent);
      SPL_ASSIGN(contexts.emplace_back(),
                 receiver.context(bed, "scatter", vectors[i].block, vectors[i].stride, (rank + i) % 2 == 0));
      nic::Entry entry = receiver.entry(memory.back().data(), extent, i);
      entry.match_rank = nic::Rank{rank};
      entry.options.use_once = true;
      entry.options.event_unlink_disable = true;
      entry.context = contexts.back();
      SPL_TRY(receiver.interface->me_append(receiver.portal, entry));
    }
  }
  for (uint32_t rank = 1; rank < hosts.size(); ++rank) {
    for (uint64_t i = 0; i < messages; ++i) {
      SPL_TRY(hosts[rank].interface->put(hosts[rank].put(sent[(rank - 1) * messages + i], receiver, i)));
    }
  }
  // For each message, the completion handler's DMA event comes before its put event.
  std::set<std::pair<uint32_t, uint64_t>> with_dma_event;
  for (uint64_t i = 0; i < 2 * sent.size(); ++i) {
    SPL_ASSIGN(const auto events, receiver.wait(receiver.arrivals, 1, trace));
    const nic::Event& event = events[0];
    const auto key = std::pair(event.initiator.value, event.hdr_data);
    if (event.kind == EventKind::dma) {
      SPL_TRY(expect(with_dma_event.insert(key).second, "a second DMA event of a message"));
      const uint64_t index = (key.first - 1) * messages + key.second;
      const Vector& vector = vectors[key.second];
      // The event guarantees that all bytes are there.
      SPL_TRY(memory[index].check(scattered(sent[index], vector.block, vector.stride, memory[index].size()),
                                  text("message ", key.second, " of rank ", key.first)));
    } else {
      SPL_TRY(expect(with_dma_event.count(key) == 1, "the put event came before the DMA event"));
    }
  }
  for (uint32_t rank = 1; rank < hosts.size(); ++rank) {
    SPL_TRY(hosts[rank].wait(hosts[rank].departures, 2 * messages, trace));
  }
  SPL_TRY(check_quiet(bed, hosts));
  for (const nic::ContextId context : contexts) SPL_TRY(receiver.interface->context_free(context));
  return trace.text();
}

// Three rings at once: each arrival triggers the put to the next rank, for several laps, without a host.
// Rules: P4F-15.9, P4F-15.12.
Result<std::string> triggered_ring(Testbed& bed, uint64_t seed) {
  SPL_ASSIGN(std::vector<Host> hosts, make_hosts(bed));
  Trace trace;
  constexpr uint64_t rings = 3;
  constexpr uint64_t laps = 3;
  const uint64_t length = 2 * bed.nic(0).limits().payload_bytes + 1;
  const uint32_t ranks = bed.ranks();
  std::deque<GuardedBuffer> memory;  // one for each rank of each ring
  std::vector<nic::CounterId> counters;
  for (uint64_t ring = 0; ring < rings; ++ring) {
    for (Host& host : hosts) {
      SPL_ASSIGN(counters.emplace_back(), host.interface->ct_alloc());
      memory.emplace_back(length);
      nic::Entry entry = host.entry(memory.back().data(), length, ring);
      entry.counter = counters.back();
      entry.options.ct_comm = true;
      entry.options.event_comm_disable = true;
      SPL_TRY(host.interface->me_append(host.portal, entry));
    }
  }
  const auto forward = [&](uint64_t ring, uint32_t rank, const std::optional<nic::Trigger>& trigger) {
    portals::PutArguments put = hosts[rank].put({}, hosts[(rank + 1) % ranks], ring);
    put.local = memory[ring * ranks + rank].data();
    put.length = length;
    put.ack_request = nic::AckRequest::none;
    put.user_ptr = ring;
    return hosts[rank].interface->put(put, trigger);
  };
  for (uint64_t ring = 0; ring < rings; ++ring) {
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      // Registered with the highest threshold first, because the order of registration must not matter.
      for (uint64_t lap = rank == 0 ? laps - 1 : laps; lap > 0; --lap) {
        SPL_TRY(forward(ring, rank, nic::Trigger{counters[ring * ranks + rank], lap}));
      }
    }
  }
  for (uint64_t ring = 0; ring < rings; ++ring) {
    const auto token = random_bytes(seed, stream_name(0, ring), length);
    std::copy(token.begin(), token.end(), memory[ring * ranks].data());
    SPL_TRY(forward(ring, 0, {}));
  }
  for (uint64_t ring = 0; ring < rings; ++ring) {
    SPL_ASSIGN(const nic::CounterValue value, hosts[0].interface->ct_wait(counters[ring * ranks], laps));
    SPL_TRY(expect(value == nic::CounterValue{laps, 0}, text("ring ", ring, ": counter is ", value.success)));
  }
  for (Host& host : hosts) SPL_TRY(host.wait(host.departures, rings * laps, trace));
  SPL_TRY(check_quiet(bed, hosts));
  for (uint64_t ring = 0; ring < rings; ++ring) {
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      SPL_TRY(memory[ring * ranks + rank].check(random_bytes(seed, stream_name(0, ring), length),
                                                text("ring ", ring, ", rank ", rank)));
    }
  }
  return trace.text();
}

// Handlers that drop, fail or fault, each beside a healthy scatter: only their own message is damaged.
Result<std::string> handler_trouble(Testbed& bed, uint64_t seed, const char* handlers, Fail failure, bool drops_all) {
  SPL_ASSIGN(std::vector<Host> hosts, make_hosts(bed));
  Trace trace;
  Host& receiver = hosts[0];
  const uint64_t payload = bed.nic(0).limits().payload_bytes;
  constexpr uint64_t messages = 4;  // odd ones meet the bad handler
  constexpr uint32_t block = 8, stride = 24;
  std::deque<GuardedBuffer> memory;
  std::deque<std::vector<uint8_t>> sent;
  SPL_ASSIGN(const nic::CounterId counter, receiver.interface->ct_alloc());
  for (uint64_t i = 0; i < messages; ++i) {
    sent.push_back(random_bytes(seed, stream_name(1, i), 6 * payload));
    memory.emplace_back(sent.back().size() / block * stride);
    nic::Entry entry = receiver.entry(memory.back().data(), memory.back().size(), i);
    SPL_ASSIGN(entry.context, receiver.context(bed, i % 2 == 1 ? handlers : "scatter", block, stride, false));
    entry.counter = counter;
    entry.options.ct_comm = true;
    SPL_TRY(receiver.interface->me_append(receiver.portal, entry));
  }
  for (uint64_t i = 0; i < messages; ++i) SPL_TRY(hosts[1].interface->put(hosts[1].put(sent[i], receiver, i)));
  // A healthy message makes a DMA event and a put event, a message in trouble only the put event.
  SPL_ASSIGN(const auto events, receiver.wait(receiver.arrivals, messages / 2 * 3, trace));
  for (const nic::Event& event : events) {
    const bool is_bad = event.hdr_data % 2 == 1;
    SPL_TRY(expect(!is_bad || event.kind == EventKind::put, "a message in trouble told of a DMA"));
    SPL_TRY(expect(event.fail == (is_bad ? failure : Fail::ok),
                   text("message ", event.hdr_data, " says fail ", static_cast<int>(event.fail))));
    const uint64_t dropped = is_bad && drops_all ? 6 * payload : 0;
    if (event.kind == EventKind::put) {
      SPL_TRY(expect(event.dropped_bytes == dropped && event.manipulated_bytes == 6 * payload - dropped,
                     text("message ", event.hdr_data, " dropped ", event.dropped_bytes)));
    }
  }
  SPL_ASSIGN(const auto sender_events, hosts[1].wait(hosts[1].departures, 2 * messages, trace));
  for (const nic::Event& event : sender_events) {
    const bool is_bad_ack = event.kind == EventKind::ack && event.user_ptr % 2 == 1;
    SPL_TRY(expect(event.fail == (is_bad_ack ? failure : Fail::ok),
                   text("ack ", event.user_ptr, " says fail ", static_cast<int>(event.fail))));
  }
  SPL_TRY(check_quiet(bed, hosts));
  const uint64_t failed_count = failure == Fail::ok ? 0 : messages / 2;
  SPL_TRY(expect(receiver.interface->ct_get(counter) == nic::CounterValue{messages - failed_count, failed_count},
                 "the counter tells successes and failures"));
  for (uint64_t i = 0; i < messages; ++i) {
    const std::vector<uint8_t> nothing(memory[i].size(), GuardedBuffer::fill);
    SPL_TRY(memory[i].check(i % 2 == 1 ? nothing : scattered(sent[i], block, stride, memory[i].size()),
                            text("message ", i)));
  }
  return trace.text();
}

Result<std::string> dropped_messages(Testbed& bed, uint64_t seed) {
  return handler_trouble(bed, seed, "drop", Fail::ok, true);
}
Result<std::string> failing_handlers(Testbed& bed, uint64_t seed) {
  return handler_trouble(bed, seed, "fail", Fail::handler_fail, false);
}
Result<std::string> faulting_handlers(Testbed& bed, uint64_t seed) {
  return handler_trouble(bed, seed, "fault", Fail::handler_fault, true);
}

// Messages without an entry are dropped; other messages in flight are not.
// Rules: P4F-8.10.
Result<std::string> no_match(Testbed& bed, uint64_t seed) {
  SPL_ASSIGN(std::vector<Host> hosts, make_hosts(bed));
  Trace trace;
  constexpr uint64_t messages = 8;
  const uint64_t length = 2 * bed.nic(0).limits().payload_bytes;
  std::deque<GuardedBuffer> memory;
  std::deque<std::vector<uint8_t>> sent;
  for (uint64_t i = 0; i < messages; i += 2) {
    memory.emplace_back(length);
    SPL_TRY(hosts[0].interface->me_append(hosts[0].portal, hosts[0].entry(memory.back().data(), length, i)));
  }
  for (uint64_t i = 0; i < messages; ++i) {
    sent.push_back(random_bytes(seed, stream_name(1, i), length));
    SPL_TRY(hosts[1].interface->put(hosts[1].put(sent.back(), hosts[0], i)));
  }
  SPL_TRY(hosts[0].wait(hosts[0].arrivals, messages / 2, trace));
  SPL_ASSIGN(const auto sender_events, hosts[1].wait(hosts[1].departures, 2 * messages, trace));
  for (const nic::Event& event : sender_events) {
    const bool is_dropped = event.kind == EventKind::ack && event.user_ptr % 2 == 1;
    SPL_TRY(expect(event.fail == (is_dropped ? Fail::dropped : Fail::ok), text("message ", event.user_ptr)));
  }
  for (uint64_t i = 0; i < messages; i += 2) SPL_TRY(memory[i / 2].check(sent[i], text("message ", i)));
  SPL_TRY(bed.settle());
  SPL_TRY(expect(bed.nic(0).state().dropped_messages == messages / 2, "the drop count"));
  SPL_TRY(check_quiet(bed, hosts));
  return trace.text();
}

constexpr std::array<Scenario, 22> all_scenarios = {{
    {"contiguous_puts", ScenarioTag::confluent, 2, contiguous_puts},
    {"unexpected_then_matched", ScenarioTag::confluent, 2, unexpected_then_matched},
    {"many_to_one_tagged", ScenarioTag::confluent, 5, many_to_one_tagged},
    {"many_to_one_any", ScenarioTag::racy, 5, many_to_one_any},
    {"vector_scatter", ScenarioTag::confluent, 3, vector_scatter},
    {"triggered_ring", ScenarioTag::confluent, 4, triggered_ring},
    {"dropped_messages", ScenarioTag::confluent, 2, dropped_messages},
    {"failing_handlers", ScenarioTag::confluent, 2, failing_handlers},
    // In general chance decides which handlers have written before the first fault stops the message; these handlers
    // write nothing.
    {"faulting_handlers", ScenarioTag::confluent, 2, faulting_handlers},
    {"no_match", ScenarioTag::confluent, 2, no_match},
    {"crossing_gets", ScenarioTag::confluent, 2, crossing_gets},
    {"commuting_atomics", ScenarioTag::confluent, 4, commuting_atomics},
    {"drawing_numbers", ScenarioTag::racy, 4, drawing_numbers},
    {"refused_gets", ScenarioTag::confluent, 2, refused_gets},
    {"lists_told", ScenarioTag::confluent, 2, lists_told},
    {"exchanging_handlers", ScenarioTag::confluent, 3, exchanging_handlers},
    {"started_by_hosts", ScenarioTag::confluent, 2, started_by_hosts},
    {"streaming_puts", ScenarioTag::confluent, 2, streaming_puts},
    {"process_puts", ScenarioTag::confluent, 3, process_puts},
    {"missing_memory", ScenarioTag::confluent, 2, missing_memory},
    {"own_requests", ScenarioTag::confluent, 2, own_requests},
    // Chance decides how many packets have left when the first handler fails.
    {"failing_process_puts", ScenarioTag::racy, 2, failing_process_puts},
}};

}  // namespace

std::span<const Scenario> scenarios() { return all_scenarios; }

}  // namespace spinloom::testbed
