#include "portals/testbed/scenarios_fetch.hpp"

#include <array>
#include <cstring>
#include <deque>
#include <set>

#include "portals/testbed/scenario_support.hpp"

namespace spinloom::testbed {
namespace {

using nic::AtomicOperation;
using nic::Datatype;
using nic::EventKind;
using nic::Fail;

portals::GetArguments get_of(const Host& host, uint8_t* local, uint64_t length, const Host& target,
                             uint64_t match_bits) {
  portals::GetArguments get;
  get.reply.local = local;
  get.reply.queue = host.departures;
  get.reply.user_ptr = match_bits;
  get.length = length;
  get.target = nic::Rank{target.rank};
  get.portal = target.portal;
  get.match_bits = match_bits;
  return get;
}

nic::Entry readable(const Host& host, std::vector<uint8_t>& bytes, uint64_t match_bits) {
  nic::Entry entry = host.entry(bytes.data(), bytes.size(), match_bits);
  entry.options.op_get = true;
  return entry;
}

template <class Word>
std::vector<uint8_t> bytes_of_words(const std::vector<Word>& words) {
  std::vector<uint8_t> bytes(words.size() * sizeof(Word));
  if (!bytes.empty()) std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

}  // namespace

Result<std::string> crossing_gets(Testbed& bed, uint64_t seed) {
  SPL_ASSIGN(std::vector<Host> hosts, make_hosts(bed));
  Trace trace;
  const uint64_t payload = bed.nic(0).limits().payload_bytes;
  const std::vector<uint64_t> sizes = {0, 1, payload - 1, payload, payload + 1, 5 * payload + 3, 2 * payload};
  std::deque<std::vector<uint8_t>> offered;  // one for each rank; 5 bytes precede those asked for
  std::deque<GuardedBuffer> memory;
  std::vector<nic::CounterId> replies;
  for (Host& host : hosts) {
    SPL_ASSIGN(replies.emplace_back(), host.interface->ct_alloc());
    for (size_t i = 0; i < sizes.size(); ++i) {
      offered.push_back(random_bytes(seed, stream_name(host.rank, i), sizes[i] + 5));
      SPL_TRY(host.interface->me_append(host.portal, readable(host, offered.back(), i)));
      memory.emplace_back(sizes[i] + 2);
    }
  }
  for (Host& host : hosts) {
    for (size_t i = 0; i < sizes.size(); ++i) {
      GuardedBuffer& buffer = memory[host.rank * sizes.size() + i];
      // Asks for two bytes more than there are, so that the target truncates.
      portals::GetArguments get = get_of(host, buffer.data(), sizes[i] + 2, hosts[1 - host.rank], i);
      get.remote_offset = 5;
      get.reply.counter = replies[host.rank];
      get.reply.ct_reply = true;
      SPL_TRY(host.interface->get(get));
    }
  }
  for (Host& host : hosts) {
    SPL_TRY(host.wait(host.arrivals, sizes.size(), trace));
    SPL_ASSIGN(const auto events, host.wait(host.departures, sizes.size(), trace));
    for (const nic::Event& event : events) {
      SPL_TRY(expect(event.kind == EventKind::reply && event.fail == Fail::ok, text("get ", event.user_ptr)));
      SPL_TRY(expect(event.manipulated_bytes == sizes[event.user_ptr] && event.remote_offset == 5,
                     text("get ", event.user_ptr, " brought ", event.manipulated_bytes)));
    }
    SPL_ASSIGN(const nic::CounterValue value, host.interface->ct_wait(replies[host.rank], sizes.size()));
    SPL_TRY(expect(value == nic::CounterValue{sizes.size(), 0}, text("counter is ", value.success)));
    for (size_t i = 0; i < sizes.size(); ++i) {
      std::vector<uint8_t> expected(sizes[i] + 2, GuardedBuffer::fill);
      const auto& peer = offered[(1 - host.rank) * sizes.size() + i];
      std::copy(peer.begin() + 5, peer.end(), expected.begin());
      SPL_TRY(memory[host.rank * sizes.size() + i].check(expected, text("rank ", host.rank, ", get ", i)));
    }
  }
  SPL_TRY(check_quiet(bed, hosts));
  return trace.text();
}

// Rules: P4F-12.22.
Result<std::string> commuting_atomics(Testbed& bed, uint64_t seed) {
  SPL_ASSIGN(std::vector<Host> hosts, make_hosts(bed));
  Trace trace;
  constexpr uint64_t rounds = 3;
  constexpr size_t elements = 13;
  struct Kind {
    AtomicOperation operation;
    Datatype type;
  };
  const std::array<Kind, 4> kinds = {{{AtomicOperation::sum, Datatype::uint64},
                                      {AtomicOperation::bit_xor, Datatype::uint64},
                                      {AtomicOperation::max, Datatype::uint64},
                                      {AtomicOperation::product, Datatype::uint64}}};
  Host& target = hosts[0];
  std::deque<GuardedBuffer> memory;
  std::deque<std::vector<uint64_t>> expected;
  for (uint64_t kind = 0; kind < kinds.size(); ++kind) {
    const auto bytes = random_bytes(seed, stream_name(0, kind), elements * 8);
    std::vector<uint64_t>& words = expected.emplace_back(elements);
    std::memcpy(words.data(), bytes.data(), bytes.size());
    GuardedBuffer& buffer = memory.emplace_back(bytes.size());
    std::copy(bytes.begin(), bytes.end(), buffer.data());
    SPL_TRY(target.interface->me_append(target.portal, target.entry(buffer.data(), buffer.size(), kind)));
  }
  std::deque<std::vector<uint8_t>> sent;
  uint64_t messages = 0;
  for (uint32_t rank = 1; rank < hosts.size(); ++rank) {
    for (uint64_t round = 0; round < rounds; ++round) {
      for (uint64_t kind = 0; kind < kinds.size(); ++kind) {
        const uint64_t number = round * kinds.size() + kind;
        sent.push_back(random_bytes(seed, stream_name(rank, number), elements * 8));
        std::vector<uint64_t> words(elements);
        std::memcpy(words.data(), sent.back().data(), sent.back().size());
        for (size_t i = 0; i < elements; ++i) {
          uint64_t& word = expected[kind][i];
          switch (kinds[kind].operation) {
            case AtomicOperation::sum: word += words[i]; break;
            case AtomicOperation::bit_xor: word ^= words[i]; break;
            case AtomicOperation::max: word = std::max(word, words[i]); break;
            default: word *= words[i]; break;
          }
        }
        portals::AtomicArguments atomic;
        atomic.put = hosts[rank].put(sent.back(), target, kind);
        atomic.put.hdr_data = number;
        atomic.put.user_ptr = number;
        atomic.operation = kinds[kind].operation;
        atomic.datatype = kinds[kind].type;
        SPL_TRY(hosts[rank].interface->atomic(atomic));
        ++messages;
      }
    }
    SPL_TRY(hosts[rank].wait(hosts[rank].departures, 2 * rounds * kinds.size(), trace));  // send and ack
  }
  SPL_ASSIGN(const auto events, target.wait(target.arrivals, messages, trace));
  for (const nic::Event& event : events) {
    const Kind& kind = kinds[event.hdr_data % kinds.size()];
    SPL_TRY(expect(event.kind == EventKind::atomic && event.fail == Fail::ok && event.atomic == kind.operation &&
                       event.datatype == kind.type && event.manipulated_bytes == elements * 8,
                   text("atomic ", event.hdr_data, " of rank ", event.initiator)));
  }
  SPL_TRY(check_quiet(bed, hosts));
  for (uint64_t kind = 0; kind < kinds.size(); ++kind) {
    SPL_TRY(memory[kind].check(bytes_of_words(expected[kind]), text("operation ", kind)));
  }
  return trace.text();
}

// Rules: P4F-12.22.
Result<std::string> drawing_numbers(Testbed& bed, uint64_t seed) {
  SPL_ASSIGN(std::vector<Host> hosts, make_hosts(bed));
  Trace trace;
  constexpr uint64_t draws = 6;
  constexpr uint64_t free_word = 0xfeedULL;
  Host& target = hosts[0];
  std::vector<uint8_t> counter(8);
  std::vector<uint8_t> word = bytes_of_words<uint64_t>({free_word});
  SPL_TRY(target.interface->me_append(target.portal, readable(target, counter, 1)));
  SPL_TRY(target.interface->me_append(target.portal, readable(target, word, 2)));
  const uint64_t step = 1 + seed % 5;
  std::deque<uint64_t> sources;
  std::deque<uint64_t> before;
  for (uint32_t rank = 1; rank < hosts.size(); ++rank) {
    Host& host = hosts[rank];
    for (uint64_t draw = 0; draw <= draws; ++draw) {
      const bool is_race = draw == draws;  // the last draw also tries to swap the word
      portals::AtomicArguments atomic;
      sources.push_back(is_race ? rank : step);
      before.push_back(UINT64_MAX);
      atomic.put.local = reinterpret_cast<const uint8_t*>(&sources.back());
      atomic.put.length = sizeof(uint64_t);
      atomic.put.target = nic::Rank{target.rank};
      atomic.put.portal = target.portal;
      atomic.put.match_bits = is_race ? 2 : 1;
      atomic.put.hdr_data = draw;
      atomic.put.event_send_disable = true;
      atomic.operation = is_race ? AtomicOperation::compare_swap : AtomicOperation::sum;
      atomic.datatype = Datatype::uint64;
      atomic.operand = {free_word, 0};
      atomic.fetch.emplace();
      atomic.fetch->local = reinterpret_cast<uint8_t*>(&before.back());
      atomic.fetch->queue = host.departures;
      atomic.fetch->user_ptr = draw;
      SPL_TRY(host.interface->atomic(atomic));
    }
  }
  const uint64_t ranks = hosts.size() - 1;
  SPL_TRY(target.wait(target.arrivals, ranks * (draws + 1), trace));
  for (uint32_t rank = 1; rank < hosts.size(); ++rank) {
    SPL_TRY(hosts[rank].wait(hosts[rank].departures, draws + 1, trace));
  }
  SPL_TRY(check_quiet(bed, hosts));
  std::set<uint64_t> drawn;
  uint64_t winners = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    if (i % (draws + 1) == draws) {
      winners += before[i] == free_word ? 1 : 0;
      continue;
    }
    SPL_TRY(expect(before[i] % step == 0 && before[i] / step < ranks * draws, text("the number ", before[i])));
    SPL_TRY(expect(drawn.insert(before[i]).second, text("the number ", before[i], " was drawn twice")));
  }
  uint64_t total = 0;
  std::memcpy(&total, counter.data(), sizeof total);
  SPL_TRY(expect(total == ranks * draws * step, text("the counter is ", total)));
  SPL_TRY(expect(winners == 1, text(winners, " ranks swapped the word")));
  return trace.text();
}

Result<std::string> refused_gets(Testbed& bed, uint64_t seed) {
  SPL_ASSIGN(std::vector<Host> hosts, make_hosts(bed));
  Trace trace;
  constexpr uint64_t messages = 6;  // 0, 3: answered; 1, 4: no entry; 2, 5: not allowed
  const uint64_t length = 2 * bed.nic(0).limits().payload_bytes + 3;
  SPL_ASSIGN(const nic::CounterId start, hosts[1].interface->ct_alloc());
  std::deque<std::vector<uint8_t>> offered;
  std::deque<GuardedBuffer> memory;
  for (uint64_t i = 0; i < messages; ++i) {
    offered.push_back(random_bytes(seed, stream_name(0, i), length));
    if (i % 3 == 1) continue;
    nic::Entry entry = readable(hosts[0], offered.back(), i);
    entry.options.op_get = i % 3 == 0;
    SPL_TRY(hosts[0].interface->me_append(hosts[0].portal, entry));
  }
  for (uint64_t i = 0; i < messages; ++i) {
    memory.emplace_back(length);
    SPL_TRY(hosts[1].interface->get(get_of(hosts[1], memory.back().data(), length, hosts[0], i),
                                    nic::Trigger{start, messages - i}));
  }
  SPL_TRY(hosts[1].interface->ct_inc(start, {messages, 0}));
  SPL_TRY(hosts[0].wait(hosts[0].arrivals, messages / 3, trace));
  SPL_ASSIGN(const auto events, hosts[1].wait(hosts[1].departures, messages, trace));
  const std::array<Fail, 3> failures = {Fail::ok, Fail::dropped, Fail::op_violation};
  for (const nic::Event& event : events) {
    SPL_TRY(expect(event.fail == failures[event.user_ptr % 3], text("get ", event.user_ptr)));
  }
  SPL_TRY(check_quiet(bed, hosts));
  for (uint64_t i = 0; i < messages; ++i) {
    const std::vector<uint8_t> nothing(length, GuardedBuffer::fill);
    SPL_TRY(memory[i].check(i % 3 == 0 ? offered[i] : nothing, text("get ", i)));
  }
  return trace.text();
}

Result<std::string> lists_told(Testbed& bed, uint64_t seed) {
  SPL_ASSIGN(std::vector<Host> hosts, make_hosts(bed));
  Trace trace;
  Host& target = hosts[0];
  Host& initiator = hosts[1];
  // Bits of message i: bit 0, its entry is in the overflow list; bit 1, the entry is use-once; bit 2, the message has
  // several packets. From `gets` on messages are gets, from `atomics` on fetching atomics.
  constexpr uint64_t gets = 8, atomics = 16, messages = 24;
  const uint64_t payload = bed.nic(0).limits().payload_bytes;
  std::deque<std::vector<uint8_t>> entries, local;
  for (uint64_t i = 0; i < messages; ++i) {
    const uint64_t length = i >= atomics || (i & 4) == 0 ? 8 : 3 * payload + 1;
    nic::Entry entry = readable(target, entries.emplace_back(length), i);
    entry.options.use_once = (i & 2) != 0;
    local.push_back(random_bytes(seed, stream_name(1, i), length));
    const nic::ListKind list = (i & 1) != 0 ? nic::ListKind::overflow : nic::ListKind::priority;
    SPL_TRY(target.interface->me_append(target.portal, entry, list));
  }
  for (uint64_t i = 0; i < messages; ++i) {
    if (i < gets) {
      SPL_TRY(initiator.interface->put(initiator.put(local[i], target, i)));
    } else if (i < atomics) {
      SPL_TRY(initiator.interface->get(get_of(initiator, local[i].data(), local[i].size(), target, i)));
    } else {
      portals::AtomicArguments atomic;
      atomic.put = initiator.put(local[i], target, i);
      atomic.put.ack_request = nic::AckRequest::none;
      atomic.operation = AtomicOperation::sum;
      atomic.datatype = Datatype::uint64;
      atomic.fetch = get_of(initiator, local[i].data(), local[i].size(), target, i).reply;
      SPL_TRY(initiator.interface->atomic(atomic));
    }
  }
  SPL_ASSIGN(const auto events, initiator.wait(initiator.departures, messages + gets + (messages - atomics), trace));
  for (const nic::Event& event : events) {
    if (event.kind == EventKind::send) continue;
    SPL_TRY(expect(event.fail == Fail::ok && event.in_overflow == ((event.user_ptr & 1) != 0),
                   text(name_of(event.kind), " of message ", event.user_ptr, ": ", name_of(event.fail),
                        ", taken by the ", event.in_overflow ? "overflow" : "priority", " list")));
  }
  SPL_TRY(target.wait(target.arrivals, messages + messages / 2, trace));  // every other entry leaves its list
  for (uint64_t i = 1; i < messages; i += 2) {  // the waiting messages are found, and their entries are done
    nic::Entry entry = target.entry(nullptr, 0, i);
    entry.options.op_get = true;
    entry.options.use_once = true;
    SPL_TRY(target.interface->me_append(target.portal, entry));
    SPL_TRY(target.wait(target.arrivals, (i & 2) != 0 ? 3 : 2, trace));
  }
  SPL_TRY(check_quiet(bed, hosts));
  return trace.text();
}

Result<std::string> exchanging_handlers(Testbed& bed, uint64_t seed) {
  SPL_ASSIGN(std::vector<Host> hosts, make_hosts(bed));
  Trace trace;
  constexpr uint64_t messages = 3;
  constexpr uint64_t offered_bits = 100;  // bits of the offered entries; the next bits are for counters
  const uint64_t payload = bed.nic(0).limits().payload_bytes;
  const uint64_t length = 7 * payload + 3;
  const uint64_t packets = 8;
  Host& receiver = hosts[0];
  std::deque<std::vector<uint8_t>> offered;  // one for each peer
  std::deque<std::vector<uint8_t>> counts;
  std::deque<std::vector<uint8_t>> sent;
  std::deque<GuardedBuffer> memory;
  for (uint32_t rank = 1; rank < hosts.size(); ++rank) {
    Host& peer = hosts[rank];
    nic::Entry offered_entry =
        readable(peer, offered.emplace_back(random_bytes(seed, stream_name(rank, 99), length)), offered_bits);
    nic::Entry counter_entry = readable(peer, counts.emplace_back(16), offered_bits + 1);
    offered_entry.options.event_comm_disable = counter_entry.options.event_comm_disable = true;
    SPL_TRY(peer.interface->me_append(peer.portal, offered_entry));
    SPL_TRY(peer.interface->me_append(peer.portal, counter_entry));
    for (uint64_t i = 0; i < messages; ++i) {
      nic::Entry entry = receiver.entry(memory.emplace_back(length).data(), length, i);
      entry.match_rank = nic::Rank{rank};
      SPL_ASSIGN(entry.context, receiver.context(bed, "exchange", rank, offered_bits, false));
      SPL_TRY(receiver.interface->me_append(receiver.portal, entry));
    }
  }
  for (uint32_t rank = 1; rank < hosts.size(); ++rank) {
    for (uint64_t i = 0; i < messages; ++i) {
      sent.push_back(random_bytes(seed, stream_name(rank, i), length));
      SPL_TRY(hosts[rank].interface->put(hosts[rank].put(sent.back(), receiver, i)));
    }
  }
  SPL_ASSIGN(const auto arrived, receiver.wait(receiver.arrivals, (hosts.size() - 1) * messages, trace));
  for (const nic::Event& event : arrived) {
    SPL_TRY(expect(event.fail == Fail::ok, text("message ", event.hdr_data, " says ", name_of(event.fail))));
  }
  for (uint32_t rank = 1; rank < hosts.size(); ++rank) {
    SPL_TRY(hosts[rank].wait(hosts[rank].departures, 2 * messages, trace));
  }
  SPL_TRY(check_quiet(bed, hosts));
  for (size_t peer = 0; peer + 1 < hosts.size(); ++peer) {
    for (uint64_t i = 0; i < messages; ++i) {
      std::vector<uint8_t> expected = sent[peer * messages + i];
      for (size_t at = 0; at < length; ++at) expected[at] ^= offered[peer][at];
      SPL_TRY(memory[peer * messages + i].check(expected, text("peer ", peer, ", message ", i)));
    }
    const std::vector<uint64_t> counted(2, messages * packets);
    SPL_TRY(expect(counts[peer] == bytes_of_words(counted), text("what is counted at peer ", peer)));
  }
  return trace.text();
}

Result<std::string> started_by_hosts(Testbed& bed, uint64_t seed) {
  SPL_ASSIGN(std::vector<Host> hosts, make_hosts(bed));
  Trace trace;
  constexpr uint32_t block = 8, stride = 24;
  Host& host = hosts[0];
  const uint64_t length = bed.nic(0).limits().payload_bytes - 3;
  const uint64_t extent = (length / block + 1) * stride;
  SPL_ASSIGN(const TestHandlers scatter, bed.handlers("scatter"));
  nic::Context context;
  context.image = scatter.image;
  context.payload_entry = scatter.payload_entry;
  context.completion_entry = scatter.completion_entry;
  context.active = false;
  context.constants.length = 8;
  SPL_ASSIGN(context.constants.offset, host.interface->memory_alloc(8));
  SPL_ASSIGN(const nic::ContextId id, host.interface->context_create(context));
  GuardedBuffer matched(extent);
  GuardedBuffer invoked(extent);
  nic::Entry entry = host.entry(matched.data(), extent, 1);
  entry.context = id;
  SPL_TRY(host.interface->me_append(host.portal, entry));
  entry = host.entry(invoked.data(), extent, 2);
  entry.context = id;
  entry.options.host_activated = true;
  SPL_ASSIGN(const nic::EntryId host_entry, host.interface->me_append(host.portal, entry));
  // The context is created inactive: messages do not find it. Its constants are written, then it is activated.
  const std::vector<uint8_t> first = random_bytes(seed, stream_name(1, 0), length);
  const std::vector<uint8_t> second = random_bytes(seed, stream_name(1, 1), length);
  const std::vector<uint8_t> third = random_bytes(seed, stream_name(0, 0), length);
  for (const uint64_t bits : {1, 2}) SPL_TRY(hosts[1].interface->put(hosts[1].put(first, host, bits)));
  SPL_ASSIGN(const auto refused, hosts[1].wait(hosts[1].departures, 4, trace));
  for (const nic::Event& event : refused) {
    SPL_TRY(expect(event.kind != EventKind::ack || event.fail == Fail::dropped, "nothing is active yet"));
  }
  SPL_TRY(host.interface->memory_write(context.constants.offset, bytes_of_words<uint32_t>({block, stride})));
  SPL_TRY(host.interface->context_activate(id));
  portals::PutArguments late_put = hosts[1].put(second, host, 1);
  late_put.hdr_data = 11;
  late_put.user_ptr = 11;
  SPL_TRY(hosts[1].interface->put(late_put));
  SPL_TRY(host.interface->invoke(host_entry, third, 12));
  SPL_TRY(host.wait(host.arrivals, 4, trace));  // a DMA event and a put event of each
  SPL_TRY(hosts[1].wait(hosts[1].departures, 2, trace));
  SPL_TRY(check_quiet(bed, hosts));
  SPL_TRY(matched.check(scattered(second, block, stride, extent), "the message that came after activation"));
  SPL_TRY(invoked.check(scattered(third, block, stride, extent), "what the host gave"));
  const auto check_counts = [&](nic::Telemetry which, uint64_t expected_of_context,
                                uint64_t expected_of_nic) -> Status {
    SPL_ASSIGN(const uint64_t context_count, host.interface->telemetry(which, id));
    SPL_ASSIGN(const uint64_t nic_count, host.interface->telemetry(which));
    return expect(context_count == expected_of_context && nic_count == expected_of_nic,
                  text(name_of(which), ": ", context_count, " and ", nic_count));
  };
  SPL_TRY(check_counts(nic::Telemetry::messages, 2, 2));
  SPL_TRY(check_counts(nic::Telemetry::bytes, 2 * length, 2 * length));
  SPL_TRY(check_counts(nic::Telemetry::payload_handlers, 2, 2));
  SPL_TRY(check_counts(nic::Telemetry::completion_handlers, 2, 2));
  SPL_TRY(check_counts(nic::Telemetry::refused_messages, 0, 2));
  return trace.text();
}

}  // namespace spinloom::testbed
