// Host time of the NIC engine, by what it does: a put and its acknowledgement, matching, a get, a triggered command,
// and a handler's DMA call with its end, of which a message of 4 MiB in blocks of 4 bytes makes a million. Nanoseconds,
// medians of repeats; no modelled time. The engine alone: what a driver does with the actions comes on top.
//
//   spinloom_nic_bench [PART]   only rows whose names have this part, for a profiler 20 times as long
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "nic/portals/nic.hpp"
#include "spinloom/handler.h"

namespace spinloom::nic {
namespace {

constexpr int repeats = 15;
constexpr int batch = 64;
constexpr QueueId queue{0};
constexpr PortalIndex portal{0};
constexpr CounterId counter{0};
constexpr Rank initiator_rank{0};
constexpr Rank target_rank{1};

// A step of a row: `prepare` is not timed, `work` is, both for `batch` operations.
struct Row {
  const char* name;
  std::function<void()> prepare;
  std::function<void()> work;
  int batches = 200;
};

const char* name_filter = nullptr;  // part of the names of rows to measure

void measure(Row row) {
  if (name_filter != nullptr) {
    if (std::strstr(row.name, name_filter) == nullptr) return;
    row.batches *= 20;
  }
  std::array<double, repeats> nanoseconds{};
  for (double& repeat_ns : nanoseconds) {
    std::chrono::steady_clock::duration spent{};
    for (int i = 0; i < row.batches; ++i) {
      row.prepare();
      const auto begin = std::chrono::steady_clock::now();
      row.work();
      spent += std::chrono::steady_clock::now() - begin;
    }
    repeat_ns = std::chrono::duration<double, std::nano>(spent).count() / (double{batch} * row.batches);
  }
  std::sort(nanoseconds.begin(), nanoseconds.end());
  std::printf("%-58s %9.1f %9.1f\n", row.name, nanoseconds[repeats / 2], nanoseconds.front());
}

// A NIC with a queue, a counter and a portal table entry.
struct Side {
  explicit Side(Rank rank, bool flow_control = false) : nic(rank, NicLimits{}) {
    command(QueueAlloc{queue, 1024});
    command(CounterAlloc{counter});
    command(PortalAlloc{portal, queue, flow_control});
  }
  void command(const CommandBody& body) { nic.on_command(Command{body, {}, 0}, out.clear_all()); }

  struct Output : Actions {
    Actions& clear_all() {
      clear();
      return *this;
    }
  };
  Nic nic;
  Output out;
};

Entry entry_of(std::vector<uint8_t>& memory, uint64_t match_bits) {
  Entry entry;
  entry.start = memory.data();
  entry.length = memory.size();
  entry.match_bits = match_bits;
  entry.counter = counter;
  entry.options.op_get = true;
  entry.options.event_comm_disable = true;
  entry.options.ct_comm = true;
  return entry;
}

Put put_of(const std::vector<uint8_t>& memory) {
  Put put;
  put.local = memory.data();
  put.length = 8;
  put.target = target_rank;
  put.portal = portal;
  put.event_send_disable = true;
  return put;
}

Packet arriving_put(const std::vector<uint8_t>& memory, uint64_t match_bits) {
  Packet packet;
  packet.source = initiator_rank;
  packet.target = target_rank;
  packet.message_length = 8;
  packet.payload = {PayloadRef::Space::peer, memory.data(), 8};
  packet.fields.portal_index = portal.value;
  packet.fields.match_bits = match_bits;
  return packet;
}

// Ends the bench: it has not measured what its name says.
[[noreturn]] void give_up() {
  std::fprintf(stderr, "nic_bench: the engine did not answer as expected\n");
  std::exit(1);
}

template <class T>
const T& first_action(const Actions& actions) {
  for (const Action& action : actions.list) {
    if (const T* found = std::get_if<T>(&action)) return *found;
  }
  give_up();
}

// Puts of 8 bytes, as the initiator sees them.
void measure_initiator(const char* name, const char* ack_name, const Put& put) {
  Side side(initiator_rank);
  const Command command{put, {}, 0};
  std::vector<Packet> acks(batch);
  const bool acked = put.ack_request != AckRequest::none;
  const auto take = [&](int i) {
    side.nic.on_command(command, side.out.clear_all());
    const uint64_t message = std::get<Send>(side.out.list.front()).packet.message;
    side.nic.on_packet_sent(message, side.out.clear_all());
    if (!acked) return;
    acks[i].operation = Operation::ack;
    acks[i].source = target_rank;
    acks[i].target = initiator_rank;
    acks[i].message = message;
    acks[i].fields.ack_request = put.ack_request;
    acks[i].fields.manipulated_bytes = 8;
  };
  const auto answer = [&] {
    for (int i = 0; acked && i < batch; ++i) side.nic.on_packet(acks[i], side.out.clear_all());
  };
  const auto take_all = [&] {
    for (int i = 0; i < batch; ++i) take(i);
  };
  if (acked) {
    measure({ack_name, take_all, answer});
  } else {
    measure({name, [] {}, take_all});
  }
  if (side.nic.state().messages_outgoing > 0 || side.nic.state().refused_packets > 0) give_up();
}

// Puts of 8 bytes, as the target sees them.
void measure_target(const char* name, uint32_t entries, bool events, AckRequest ack, bool flow_control = false) {
  Side side(target_rank, flow_control);
  std::vector<uint8_t> memory(4096);
  for (uint32_t i = 0; i < entries; ++i) {
    Entry entry = entry_of(memory, i);
    entry.options.event_comm_disable = !events;
    entry.options.ct_comm = !events;
    side.command(Append{EntryId{i}, portal, ListKind::priority, entry});
  }
  Packet packet = arriving_put(memory, entries - 1);
  packet.fields.ack_request = ack;
  const auto work = [&] {
    for (int i = 0; i < batch; ++i) {
      ++packet.message;
      side.nic.on_packet(packet, side.out.clear_all());
      const DmaId dma = std::get<DmaWrite>(side.out.list.front()).dma;
      side.nic.on_dma_done(dma, side.out.clear_all());
    }
  };
  work();
  if (events) (void)first_action<PostEvent>(side.out);
  if (!events && first_action<PostCounter>(side.out).value.success != batch) give_up();
  measure({name, [] {}, work, entries > 100 ? 4 : 200});
}

// Gets of 8 bytes, both sides.
void measure_gets() {
  Side initiator_side(initiator_rank);
  Side target_side(target_rank);
  std::vector<uint8_t> memory(4096);
  target_side.command(Append{EntryId{0}, portal, ListKind::priority, entry_of(memory, 0)});
  Get get;
  get.reply.local = memory.data();
  get.reply.counter = counter;
  get.reply.ct_reply = true;
  get.reply.event_success_disable = true;
  get.length = 8;
  get.target = target_rank;
  get.portal = portal;
  const Command command{get, {}, 0};
  const auto work = [&] {
    for (int i = 0; i < batch; ++i) {
      initiator_side.nic.on_command(command, initiator_side.out.clear_all());
      const Packet request = std::get<Send>(initiator_side.out.list.front()).packet;
      initiator_side.nic.on_packet_sent(request.message, initiator_side.out.clear_all());
      target_side.nic.on_packet(request, target_side.out.clear_all());
      const Packet reply = first_action<Send>(target_side.out).packet;
      target_side.nic.on_packet_sent(reply.message, target_side.out.clear_all());
      initiator_side.nic.on_packet(reply, initiator_side.out.clear_all());
      const DmaId dma = first_action<DmaWrite>(initiator_side.out).dma;
      initiator_side.nic.on_dma_done(dma, initiator_side.out.clear_all());
    }
  };
  work();
  if (first_action<PostCounter>(initiator_side.out).value.success != batch) give_up();
  measure({"get: command, request, reply, its DMA", [] {}, work});
}

// A counter that triggers the increment of the next, which triggers ...
void measure_triggered() {
  Side side(initiator_rank);
  for (uint32_t i = 1; i <= batch; ++i) side.command(CounterAlloc{CounterId{i}});
  uint64_t round = 0;
  const auto arm = [&] {
    ++round;
    for (uint32_t i = 0; i < batch; ++i) {
      const Command step{CounterInc{CounterId{i + 1}, {1, 0}}, Trigger{CounterId{i}, round, 0}, 0};
      side.nic.on_command(step, side.out.clear_all());
    }
  };
  const auto fire = [&] {
    side.command(CounterInc{CounterId{0}, {1, 0}});
    for (int i = 0; i < batch; ++i) side.nic.on_continue(side.out.clear_all());
  };
  arm();
  fire();
  if (first_action<PostCounter>(side.out).counter != CounterId{batch}) give_up();
  measure({"triggered chain, a step: fired, executed, counted", arm, fire});
  arm();
  measure({"triggered command: registered", fire, arm});
}

// A handler's DMA calls, 64 in flight.
void measure_handler_calls() {
  Side side(initiator_rank);
  std::vector<uint8_t> memory(1 << 20);
  std::vector<uint8_t> source(1 << 20);
  Context context;
  context.payload_entry = 1;
  side.command(ContextCreate{ContextId{0}, context});
  Entry entry;
  entry.start = memory.data();
  entry.length = memory.size();
  entry.context = ContextId{0};
  side.command(Append{EntryId{0}, portal, ListKind::priority, entry});
  Packet packet = arriving_put(source, 0);
  packet.message_length = 2048;
  packet.payload.length = 2048;
  HandlerCall call;
  call.call = SPL_CALL_DMA_TO_HOST_NB;
  call.options = PTL_DMA_NO_EVENT;
  call.local_memory = LocalMemory::packet;
  call.local = source.data();
  call.length = 4;
  HerId her;
  std::vector<DmaId> open_dmas(batch);
  const auto end = [&] {
    if (!her.exists()) return;
    for (const DmaId dma : open_dmas) side.nic.on_dma_done(dma, side.out.clear_all());
    side.nic.on_handler_done(her, HandlerEnd::returned, SUCCESS, side.out.clear_all());
  };
  const auto begin = [&] {
    end();
    ++packet.message;
    side.nic.on_packet(packet, side.out.clear_all());
    her = first_action<BufferPacket>(side.out).her;
    side.nic.on_her_ready(her, side.out.clear_all());
    for (DmaId& dma : open_dmas) {
      if (side.nic.on_handler_call(her, call, side.out.clear_all())) give_up();
      dma = first_action<DmaWrite>(side.out).dma;
    }
  };
  const auto pairs = [&] {
    for (DmaId& dma : open_dmas) {
      side.nic.on_dma_done(dma, side.out.clear_all());
      if (side.nic.on_handler_call(her, call, side.out.clear_all())) give_up();
      dma = std::get<DmaWrite>(side.out.list.front()).dma;
    }
  };
  const auto messages = [&] {
    for (int i = 0; i < batch; ++i) {
      ++packet.message;
      side.nic.on_packet(packet, side.out.clear_all());
      const HerId message_her = std::get<BufferPacket>(side.out.list.front()).her;
      side.nic.on_her_ready(message_her, side.out.clear_all());
      side.nic.on_handler_done(message_her, HandlerEnd::returned, SUCCESS, side.out.clear_all());
    }
  };
  measure({"handler: a DMA call with its end", begin, pairs});
  measure({"handler: a message of one packet, its handler, the end", [] {}, messages});
}

int measure_all() {
  std::vector<uint8_t> memory(4096);
  std::printf("%-58s %9s %9s\n", "one operation of the engine, ns of host time", "median", "least");
  Put put = put_of(memory);
  measure_initiator("put: command, packet sent", "", put);
  Put with_events = put;
  with_events.queue = queue;
  with_events.event_send_disable = false;
  measure_initiator("put with a send event: command, packet sent", "", with_events);
  put.counter = counter;
  put.ack_request = AckRequest::ct_ack;
  measure_initiator("", "acknowledgement that counts", put);
  with_events.ack_request = AckRequest::ack;
  measure_initiator("", "acknowledgement with an event", with_events);
  measure_target("put arrives: packet, DMA, counter", 1, false, AckRequest::none);
  measure_target("put arrives under flow control: packet, DMA, counter", 1, false, AckRequest::none, true);
  measure_target("put arrives: packet, DMA, event", 1, true, AckRequest::none);
  measure_target("put arrives: packet, DMA, counter, acknowledgement", 1, false, AckRequest::ct_ack);
  for (const uint32_t entries : {10u, 100u, 1000u, 10000u}) {
    const std::string name = "put arrives, matches the last of " + std::to_string(entries) + " entries";
    measure_target(name.c_str(), entries, false, AckRequest::none);
  }
  measure_gets();
  measure_triggered();
  measure_handler_calls();
  return 0;
}

}  // namespace
}  // namespace spinloom::nic

int main(int argc, char** argv) {
  if (argc > 1) spinloom::nic::name_filter = argv[1];
  return spinloom::nic::measure_all();
}
