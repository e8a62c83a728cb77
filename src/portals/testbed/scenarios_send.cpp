// Scenarios of the sender's side: streaming puts and process-puts.
#include "portals/testbed/scenarios_send.hpp"

#include <algorithm>
#include <array>
#include <deque>

#include "portals/testbed/scenario_support.hpp"

namespace spinloom::testbed {
namespace {

using nic::EventKind;
using nic::Fail;

// A message of random regions of a memory.
struct StreamedMessage {
  std::vector<uint8_t> memory;
  std::vector<nic::PutRegion> regions;
  std::vector<uint8_t> packed;
};

StreamedMessage make_streamed(uint64_t seed, const std::string& stream, uint64_t regions, uint64_t payload) {
  StreamedMessage message;
  message.memory = random_bytes(seed, stream, 8 * payload);
  Random random(seed, stream + " regions");
  for (uint64_t i = 0; i < regions; ++i) {
    const uint64_t offset = random.below(message.memory.size());
    const uint64_t longest = std::min(message.memory.size() - offset, i % 3 == 0 ? 3 * payload : payload / 4);
    message.regions.push_back({offset, random.below(longest + 1)});
    const auto from = message.memory.begin() + static_cast<ptrdiff_t>(offset);
    message.packed.insert(message.packed.end(), from, from + static_cast<ptrdiff_t>(message.regions.back().length));
  }
  return message;
}

// A context of payload handlers only, over the packed vector of (block, stride).
Result<nic::ContextId> outbound_context(Testbed& bed, const Host& host, const char* handlers, uint32_t block,
                                        uint32_t stride, bool is_blocked) {
  SPL_ASSIGN(const TestHandlers gather_handlers, bed.handlers(handlers));
  std::vector<uint8_t> constants(2 * sizeof(uint32_t));
  std::copy_n(reinterpret_cast<const uint8_t*>(&block), sizeof block, constants.begin());
  std::copy_n(reinterpret_cast<const uint8_t*>(&stride), sizeof stride, constants.begin() + sizeof block);
  nic::Context context;
  context.image = gather_handlers.image;
  context.payload_entry = gather_handlers.payload_entry;
  context.constants.length = constants.size();
  SPL_ASSIGN(context.constants.offset, host.interface->memory_alloc(constants.size()));
  SPL_TRY(host.interface->memory_write(context.constants.offset, constants));
  if (is_blocked) context.blocked_round_robin = nic::BlockedRoundRobin{2, 4};
  return host.interface->context_create(context);
}

}  // namespace

// Both ranks stream several messages at once, one region of each in turn, with plain puts between them.
Result<std::string> streaming_puts(Testbed& bed, uint64_t seed) {
  SPL_ASSIGN(std::vector<Host> hosts, make_hosts(bed));
  Trace trace;
  constexpr uint64_t messages = 4;  // streamed messages, and as many plain ones
  constexpr uint64_t regions = 12;
  const uint64_t payload = bed.nic(0).limits().payload_bytes;
  std::deque<StreamedMessage> streamed;
  std::deque<std::vector<uint8_t>> plain;
  std::deque<GuardedBuffer> memory;  // each sender's streamed messages, then its plain ones
  for (const Host& host : hosts) {
    const Host& target = hosts[1 - host.rank];
    for (uint64_t i = 0; i < messages; ++i) {
      const std::string stream = text("rank ", host.rank, " stream ", i);
      streamed.push_back(make_streamed(seed, stream, i == 0 ? 1 : regions, payload));
      plain.push_back(random_bytes(seed, stream + " plain", 1 + i * payload / 2));
    }
    for (uint64_t i = 0; i < 2 * messages; ++i) {
      const uint64_t index = host.rank * messages + i % messages;
      memory.emplace_back(i < messages ? streamed[index].packed.size() : plain[index].size());
      SPL_TRY(target.interface->me_append(target.portal, target.entry(memory.back().data(), memory.back().size(), i)));
    }
  }
  std::vector<std::vector<nic::StreamId>> streams(hosts.size());
  for (uint64_t turn = 0; turn <= regions; ++turn) {
    for (const Host& host : hosts) {
      const Host& target = hosts[1 - host.rank];
      for (uint64_t i = 0; i < messages; ++i) {
        const StreamedMessage& message = streamed[host.rank * messages + i];
        if (turn > message.regions.size()) continue;
        if (turn == 0) {
          portals::PutArguments put = host.put(message.memory, target, i);
          put.length = message.packed.size();
          SPL_ASSIGN(const nic::StreamId id,
                     host.interface->stream_start(put, message.memory.size(), message.regions[0]));
          streams[host.rank].push_back(id);
          continue;
        }
        const bool is_end = turn == message.regions.size();
        const nic::PutRegion region = is_end ? nic::PutRegion{} : message.regions[turn];
        SPL_TRY(host.interface->stream_append(streams[host.rank][i], region, is_end));
        if (is_end) SPL_TRY(host.interface->put(host.put(plain[host.rank * messages + i], target, messages + i)));
      }
    }
  }
  for (const Host& host : hosts) {
    SPL_TRY(host.wait(host.arrivals, 2 * messages, trace));
    SPL_TRY(host.wait(host.departures, 4 * messages, trace));
  }
  SPL_TRY(check_quiet(bed, hosts));
  for (const Host& host : hosts) {
    for (uint64_t i = 0; i < messages; ++i) {
      const uint64_t index = host.rank * messages + i;
      SPL_TRY(memory[host.rank * 2 * messages + i].check(streamed[index].packed, text("streamed message ", index)));
      SPL_TRY(memory[(host.rank * 2 + 1) * messages + i].check(plain[index], text("plain message ", index)));
    }
  }
  return trace.text();
}

// Two senders whose NICs gather vectors, half of them under blocked round-robin. Handlers of the receiver's NIC
// scatter every other message.
Result<std::string> process_puts(Testbed& bed, uint64_t seed) {
  SPL_ASSIGN(std::vector<Host> hosts, make_hosts(bed));
  Trace trace;
  constexpr uint64_t messages = 4;
  Host& receiver = hosts[0];
  const uint64_t payload = bed.nic(0).limits().payload_bytes;
  const auto payload_bytes = static_cast<uint32_t>(payload);
  constexpr uint32_t to_block = 16, to_stride = 48;
  const std::array<std::pair<uint32_t, uint32_t>, messages> vectors = {
      {{4, 12}, {7, 8}, {64, 100}, {payload_bytes + 3, payload_bytes + 9}}};
  std::deque<std::vector<uint8_t>> sources;
  std::deque<std::vector<uint8_t>> packed;
  std::deque<GuardedBuffer> memory;
  std::vector<std::pair<uint32_t, nic::ContextId>> contexts;  // each context with its rank
  for (uint32_t rank = 1; rank < hosts.size(); ++rank) {
    for (uint64_t i = 0; i < messages; ++i) {
      const auto [block, stride] = vectors[i];
      const uint64_t length = i == 1 ? 0 : 19 * payload + 5 * i;
      const std::string stream = text("rank ", rank, " message ", i);
      sources.push_back(random_bytes(seed, stream, (length / block + 1) * stride));
      packed.emplace_back();
      for (uint64_t p = 0; p < length; ++p) packed.back().push_back(sources.back()[p / block * stride + p % block]);
      const bool is_scattered = i % 2 == 0;
      memory.emplace_back(is_scattered ? (length / to_block + 1) * to_stride : length);
      nic::Entry entry = receiver.entry(memory.back().data(), memory.back().size(), i);
      entry.match_rank = nic::Rank{rank};
      if (is_scattered) {
        SPL_ASSIGN(entry.context, receiver.context(bed, "scatter", to_block, to_stride, false));
        contexts.emplace_back(0, entry.context);
      }
      entry.options.use_once = true;
      entry.options.event_unlink_disable = true;
      SPL_TRY(receiver.interface->me_append(receiver.portal, entry));
    }
  }
  for (uint64_t i = 0; i < messages; ++i) {
    for (uint32_t rank = 1; rank < hosts.size(); ++rank) {
      const Host& host = hosts[rank];
      const auto [block, stride] = vectors[i];
      SPL_ASSIGN(const nic::ContextId context,
                 outbound_context(bed, host, "gather", block, stride, (rank + i) % 2 == 0));
      contexts.emplace_back(rank, context);
      const uint64_t index = (rank - 1) * messages + i;
      portals::PutArguments put = host.put(sources[index], receiver, i);
      put.length = packed[index].size();
      SPL_TRY(host.interface->process_put(put, sources[index].size(), context));
    }
  }
  // Each message makes a put event; a scattered message makes a DMA event before that.
  SPL_TRY(receiver.wait(receiver.arrivals, packed.size() / 2 * 3, trace));
  for (uint32_t rank = 1; rank < hosts.size(); ++rank) {
    SPL_TRY(hosts[rank].wait(hosts[rank].departures, 2 * messages, trace));
  }
  SPL_TRY(check_quiet(bed, hosts));
  for (size_t i = 0; i < packed.size(); ++i) {
    SPL_TRY(memory[i].check(i % 2 == 0 ? scattered(packed[i], to_block, to_stride, memory[i].size()) : packed[i],
                            text("message ", i)));
  }
  for (const Host& host : hosts) {
    SPL_TRY(expect(bed.nic(host.rank).state().outbound_packets == 0, "a slot of the outbound buffer is in use"));
  }
  for (const auto& [rank, context] : contexts) SPL_TRY(hosts[rank].interface->context_free(context));
  return trace.text();
}

// Gather handlers that fail or fault, between healthy messages. The sender's events report that; the target gets a
// prefix and a failure, or nothing at all.
Result<std::string> failing_process_puts(Testbed& bed, uint64_t seed) {
  SPL_ASSIGN(std::vector<Host> hosts, make_hosts(bed));
  Trace trace;
  constexpr uint64_t messages = 6;  // the messages are in turn healthy, failing, faulting
  constexpr std::array<const char*, 3> handlers = {"gather", "fail", "fault"};
  constexpr uint32_t block = 8, stride = 24;
  const Host& receiver = hosts[0];
  const Host& sender = hosts[1];
  const uint64_t length = 6 * bed.nic(0).limits().payload_bytes;
  std::deque<std::vector<uint8_t>> sources;
  std::deque<GuardedBuffer> memory;
  for (uint64_t i = 0; i < messages; ++i) {
    memory.emplace_back(length);
    SPL_TRY(receiver.interface->me_append(receiver.portal, receiver.entry(memory.back().data(), length, i)));
    sources.push_back(random_bytes(seed, text("message ", i), length / block * stride));
    SPL_ASSIGN(const nic::ContextId context, outbound_context(bed, sender, handlers[i % 3], block, stride, false));
    portals::PutArguments put = sender.put(sources.back(), receiver, i);
    put.length = length;
    SPL_TRY(sender.interface->process_put(put, sources.back().size(), context));
  }
  SPL_TRY(bed.settle());
  std::array<uint64_t, messages> landed{};
  std::array<bool, messages> reported{}, acknowledged{}, arrived{};
  while (const auto event = receiver.interface->eq_get(receiver.arrivals)) {
    trace.add(0, *event);
    const uint64_t i = event->hdr_data;
    SPL_TRY(expect(!arrived[i], text("message ", i, " was told twice at the target")));
    SPL_TRY(expect(event->fail == (i % 3 == 0 ? Fail::ok : Fail::aborted), text("message ", i, " at the target")));
    arrived[i] = true;
    landed[i] = event->manipulated_bytes;
  }
  constexpr std::array<Fail, 3> failures = {Fail::ok, Fail::handler_fail, Fail::handler_fault};
  while (const auto event = sender.interface->eq_get(sender.departures)) {
    trace.add(1, *event);
    const uint64_t i = event->user_ptr;
    const bool is_send = event->kind == EventKind::send;
    SPL_TRY(expect(!(is_send ? reported : acknowledged)[i], text("message ", i, " was told twice at the sender")));
    (is_send ? reported : acknowledged)[i] = true;
    SPL_TRY(expect(event->fail == (is_send      ? failures[i % 3]
                                   : i % 3 == 0 ? Fail::ok
                                                : Fail::aborted),
                   text("message ", i, " at the sender: ", nic::name_of(event->fail))));
  }
  for (uint64_t i = 0; i < messages; ++i) {
    SPL_TRY(expect(reported[i], text("the sender was not told of message ", i)));
    SPL_TRY(expect(arrived[i] == acknowledged[i], text("message ", i, " was acknowledged, or came, alone")));
    std::vector<uint8_t> expected(length, GuardedBuffer::fill);
    for (uint64_t p = 0; p < landed[i]; ++p) {
      expected[p] = i % 3 == 0 ? sources[i][p / block * stride + p % block] : 0;  // a failing handler fills nothing
    }
    SPL_TRY(expect(landed[i] == (i % 3 == 0 ? length : landed[i] < length ? landed[i] : 0), text("message ", i)));
    SPL_TRY(memory[i].check(expected, text("message ", i)));
  }
  SPL_TRY(check_quiet(bed, hosts));
  return trace.text();
}

}  // namespace spinloom::testbed
