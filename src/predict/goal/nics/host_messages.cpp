// Host: the commands of messages to its NIC, and the NIC's events.
#include <algorithm>

#include "predict/goal/model/engine.hpp"
#include "predict/goal/nics/commands.hpp"
#include "predict/goal/nics/host.hpp"

namespace spinloom::goal {

namespace {

constexpr nic::EntryId overflow_entry{0, 0};  // the first that a host takes

}  // namespace

std::vector<nic::Command> Host::setup(Payloads& payloads, uint32_t rank) {
  nic::Entry overflow;
  overflow.start = payloads.overflow_memory(rank);
  overflow.length = payloads.overflow_bytes(rank);
  overflow.ignore_bits = UINT64_MAX;
  overflow.options.manage_local = true;
  overflow.options.event_comm_disable = true;
  overflow.options.event_unlink_disable = true;
  std::vector<nic::Command> commands;
  commands.push_back({nic::QueueAlloc{event_queue, UINT32_MAX}, {}, 0});
  commands.push_back({nic::PortalAlloc{messages_portal, event_queue}, {}, 0});
  commands.push_back({nic::PortalAlloc{bytes_portal, event_queue}, {}, 0});
  commands.push_back({nic::Append{overflow_entry, messages_portal, nic::ListKind::overflow, overflow}, {}, 0});
  open_windows(payloads, rank, commands);
  return commands;
}

nic::EntryId Host::take_entry() {
  const auto taken = entries_.take();
  if (taken) return *taken;
  stop(taken.error());
  return {};
}

void Host::send_message(uint32_t number) {
  const Job::Costs& costs = job_.costs[operation(number).shape];
  const nic::Put put = message_put({job_.schedule, job_.payloads, rank_, number}, costs.is_rendezvous);
  if (!costs.is_rendezvous) {
    job_.nics.port(rank_).put(put);
    return on_end(number);
  }
  nic::Entry entry;
  entry.start = const_cast<uint8_t*>(job_.payloads.send_data(rank_, number));  // only read: it takes no puts
  entry.length = costs.size;
  entry.options.op_put = false;
  entry.options.op_get = true;
  entry.options.use_once = true;
  entry.options.event_unlink_disable = true;
  entry.match_rank = put.target;
  entry.match_bits = number;
  entry.user_ptr = number;
  const nic::EntryId id = take_entry();
  if (!id.exists()) return;
  submit(nic::Append{id, bytes_portal, nic::ListKind::priority, entry});
  job_.nics.port(rank_).put(put);
}

void Host::post(uint32_t number) {
  const uint32_t source = job_.schedule.peer(rank_, operation(number));
  const uint32_t tag = shape(number).tag;
  const nic::EntryId id = take_entry();
  if (!id.exists()) return;
  const auto [slot, receive] = receives_.make();
  receive.operation = number;
  receive.post_order = next_post_++;
  const uint64_t bytes = job_.payloads.receive_bytes(rank_, tag);
  receive.memory = job_.payloads.allocate(bytes);
  nic::Entry entry;
  entry.start = job_.payloads.address(receive.memory);
  entry.length = bytes;
  entry.options.use_once = true;
  entry.options.event_unlink_disable = true;
  entry.match_rank = source == schedule::any ? nic::Rank::any() : nic::Rank{source};
  entry.match_bits = tag == schedule::any ? 0 : tag;
  entry.ignore_bits = tag == schedule::any ? UINT64_MAX : ~tag_mask;
  entry.user_ptr = slot;
  submit(nic::Append{id, messages_portal, nic::ListKind::priority, entry});
}

void Host::read_events() {
  portals::Port& port = job_.nics.port(rank_);
  while (const auto event = port.take_event(event_queue)) {
    if (event->fail != nic::Fail::ok) {
      return stop(fail(Code::fault, "rank ", rank_, ": ", name_of(event->kind), " of ", event->requested_bytes,
                       " B failed: ", name_of(event->fail)));
    }
    if (event->user_ptr >= one_sided_mark) {
      on_one_sided_end(static_cast<uint32_t>(event->user_ptr));
      continue;
    }
    switch (event->kind) {
      case nic::EventKind::put:
      case nic::EventKind::put_overflow: on_match(*event); break;
      case nic::EventKind::reply: {
        const auto slot = static_cast<uint32_t>(event->user_ptr);
        queue_or_work({Step::deliver, receives_[slot].operation, slot});
        break;
      }
      case nic::EventKind::get:
        entries_.give_back(event->entry);
        on_end(static_cast<uint32_t>(event->user_ptr));
        break;
      default: SPL_ASSERT(false, "nobody asked for the event ", name_of(event->kind));
    }
  }
  if (!waiting_arrivals_.empty()) count_arrivals();
}

void Host::on_match(const nic::Event& event) {
  entries_.give_back(event.entry);
  const auto slot = static_cast<uint32_t>(event.user_ptr);
  Receive& receive = receives_[slot];
  receive.has_matched = true;
  receive.source = event.initiator.value;
  receive.send = operation_number(event.match_bits);
  receive.size = event.hdr_data;
  const bool is_late = event.kind == nic::EventKind::put_overflow;
  if (job_.hosts[receive.source] != nullptr) job_.hosts[receive.source]->matched_[receive.send] = true;
  job_.unmatched -= 2;
  if (job_.record != nullptr) {
    job_.record->match(now(), rank_, receive.operation, receive.source, receive.send, is_late);
  }
  if (event.requested_bytes == receive.size) {
    SPL_ASSERT(event.manipulated_bytes == receive.size, event.manipulated_bytes, " of ", receive.size, " B");
    if (is_late) receive.overflow_address = event.start;
    return queue_or_work({Step::deliver, receive.operation, slot});
  }
  receive.memory = job_.payloads.allocate(receive.size);
  nic::ReplyTo reply;
  reply.local = job_.payloads.address(receive.memory);
  reply.queue = event_queue;
  reply.user_ptr = slot;
  submit(bytes_get(event.initiator, receive.send, receive.size, reply));
}

// The sender's size counts. A message that came before its receive is also copied.
uint64_t Host::delivery_ps(const Receive& receive) {
  const schedule::Operation& sent = job_.schedule.program(receive.source).operations[receive.send];
  const uint64_t copy_ps = receive.overflow_address == 0 ? 0 : time_ps(job_.copy_rate, receive.size);
  return job_.costs[sent.shape].cpu_ps + job_.costs[operation(receive.operation).shape].layout_ps + copy_ps;
}

void Host::on_delivered(uint32_t slot) {
  Receive& receive = receives_[slot];
  if (receive.overflow_address != 0) job_.payloads.copy(receive.memory, receive.overflow_address, receive.size);
  const Status status = job_.payloads.check(receive.memory.data(), receive.size, rank_, receive.source, receive.send);
  if (!status) return stop(status.error());
  const uint32_t number = receive.operation;
  receive.memory = {};
  receives_.give_back(slot);
  on_end(number);
}

std::vector<uint32_t> Host::posted() const {
  std::vector<std::pair<uint64_t, uint32_t>> in_order;
  receives_.for_each([&](uint32_t, const Receive& receive) {
    if (!receive.has_matched) in_order.emplace_back(receive.post_order, receive.operation);
  });
  std::ranges::sort(in_order);
  std::vector<uint32_t> operations;
  for (const auto& [place, number] : in_order) operations.push_back(number);
  return operations;
}

}  // namespace spinloom::goal
