#include "predict/goal/nics/seam.hpp"

#include <algorithm>

#include "portals/interface/perform.hpp"

namespace spinloom::goal {

using schedule::Kind;

Result<std::unique_ptr<Seam>> Seam::create(Engine& engine, Job& job, const simulated::Profile& profile, uint64_t L_ps) {
  const Time needed = arrival_time(profile) + profile.link.switch_latency + profile.link.wire;
  const Time L{static_cast<int64_t>(std::min(L_ps, time_ps_max))};
  if (L < needed) {
    return fail(Code::invalid, "L is ", L_ps,
                " ps, but from the link of a NIC to the host of another one a byte needs ", needed.ps,
                " ps by the profile; leave L to the profile");
  }
  return std::unique_ptr<Seam>(new Seam(engine, job, profile, L - needed));
}

Seam::Seam(Engine& engine, Job& job, const simulated::Profile& profile, Time out)
    : engine_(engine),
      job_(job),
      profile_(profile),
      out_latency_(out),
      in_latency_(arrival_time(profile)),
      proxy_(nic::Rank::any(), job.nics.limits_outside()) {
  Payloads& payloads = job.payloads;
  nic::Entry random_data;
  random_data.start = const_cast<uint8_t*>(payloads.random_data());  // only read: it takes no puts
  random_data.length = payloads.random_data_bytes();
  random_data.ignore_bits = UINT64_MAX;
  random_data.options.op_put = false;
  random_data.options.op_get = true;
  random_data.options.event_comm_disable = true;
  nic::Entry window = random_data;
  window.start = payloads.windows_memory();
  window.length = payloads.windows_bytes();
  window.match_bits = 0;
  window.ignore_bits = ~get_bit;
  window.options.op_put = true;
  std::vector<nic::CommandBody> setup = {nic::QueueAlloc{event_queue, UINT32_MAX}};
  for (const nic::PortalIndex portal : {messages_portal, bytes_portal, windows_portal}) {
    setup.emplace_back(nic::PortalAlloc{portal, event_queue});
  }
  setup.emplace_back(nic::Append{{0, 0}, bytes_portal, nic::ListKind::priority, random_data});
  setup.emplace_back(nic::Append{{1, 0}, windows_portal, nic::ListKind::priority, window});
  setup.emplace_back(nic::Append{{2, 0}, windows_portal, nic::ListKind::priority, random_data});
  nic::Actions actions;
  for (const nic::CommandBody& command : setup) proxy_.on_command(nic::Command{command, {}, 0}, actions);
}

Status Seam::trouble() const { return trouble_of(nic::Rank::any_value, proxy_); }

// Takes a message from message level to NICs.
void Seam::on_message(uint64_t at_ps, const Event& message) {
  Time at = Time{static_cast<int64_t>(job_.start_ps + at_ps)} + out_latency_;
  const OperationRef ref{job_.schedule, job_.payloads, message.source, message.operation};
  switch (message.message_kind) {
    case MessageKind::eager:
    case MessageKind::request:
      ++job_.unmatched;
      return submit(message.source, message_put(ref, message.message_kind == MessageKind::request), at);
    case MessageKind::answer: {  // `operation` is the send, `shape` the receive
      const Event data{.rank = message.source,
                       .operation = message.operation,
                       .source = message.rank,
                       .shape = message.shape,
                       .message_kind = MessageKind::data};
      const uint64_t bytes = OperationRef{job_.schedule, job_.payloads, message.rank, message.operation}.shape().size;
      return submit(message.source,
                    bytes_get(nic::Rank{message.rank}, message.operation, bytes, begin_read(data, bytes, 0)), at);
    }
    case MessageKind::data: return answer_held({message.source, message.operation}, at);
    case MessageKind::put:
    case MessageKind::get_request: return submit_one_sided(message, at);
    case MessageKind::reply: return answer_held({message.rank, message.operation}, at);
  }
}

void Seam::submit_one_sided(const Event& message, Time at) {
  const OperationRef ref{job_.schedule, job_.payloads, message.source, message.operation};
  const schedule::Shape& shape = ref.shape();
  nic::ReplyTo report;
  report.queue = event_queue;
  if (shape.kind == Kind::get || shape.kind == Kind::fetch) {
    const Event reply{.rank = message.source,
                      .operation = message.operation,
                      .source = message.rank,
                      .shape = message.shape,
                      .message_kind = MessageKind::reply};
    report = begin_read(reply, shape.size, shape.kind == Kind::fetch ? Windows::initial_mask : 0);
  }
  for (const nic::CommandBody& command : one_sided_commands(ref, report, job_.nics.atomic_bytes_max())) {
    submit(message.source, command, at);
  }
}

nic::ReplyTo Seam::begin_read(const Event& event, uint64_t bytes, uint8_t mask) {
  const auto [slot, read] = pending_reads_.make();
  newest_read_ = slot;
  read = {{event, bytes, 0}, mask, job_.payloads.allocate(bytes)};
  nic::ReplyTo reply;
  reply.local = job_.payloads.address(read.memory);
  reply.queue = event_queue;
  reply.user_ptr = slot;
  return reply;
}

void Seam::finish_read(uint32_t slot) {
  const PendingRead& read = pending_reads_[slot];
  const Event& event = read.incoming.event;
  const uint32_t source = event.message_kind == MessageKind::data ? event.source : event.rank;
  const Status status = job_.payloads.check(read.memory.data(), read.incoming.total_bytes, event.rank, source,
                                            event.operation, read.mask);
  if (!status && !job_.error) job_.error = status.error();
  pending_reads_[slot].memory = {};
  pending_reads_.give_back(slot);
}

// Answers the packets that were held because they asked for something.
void Seam::answer_held(OperationOrMessage id, Time at) {
  const auto held = held_packets_.find(id);
  SPL_ASSERT(held != held_packets_.end(), "nothing was asked of operation ", id.second, " of rank ", id.first);
  const std::vector<std::unique_ptr<simulated::Arrival>> packets = std::move(held->second);
  held_packets_.erase(held);
  for (const auto& arrival : packets) {
    nic::Packet packet = arrival->packet;
    const bool is_bytes = packet.fields.portal_index == bytes_portal.value;
    if (is_bytes) packet.fields.remote_offset += job_.payloads.data_offset(id.first, static_cast<uint32_t>(id.second));
    if (packet.operation == nic::Operation::fetch_atomic) packet.fields.remote_offset += window_begin(packet);
    nic::Actions actions;
    proxy_.on_packet(packet, actions);
    perform(packet.target.value, actions, at);
  }
}

void Seam::submit(uint32_t rank, const nic::CommandBody& command, Time& at) {
  nic::Actions actions;
  proxy_.on_command(nic::Command{command, {}, 0}, actions);
  perform(rank, actions, at);
}

void Seam::process(const nic::Packet& packet, Time at) {
  nic::Actions actions;
  proxy_.on_packet(packet, actions);
  perform(packet.target.value, actions, at);
}

// Nothing takes time here; packets of several messages follow each other on the link.
void Seam::perform(uint32_t rank, nic::Actions& actions, Time& at) {
  std::vector<nic::Packet> packets;
  std::vector<nic::DmaId> finished_dmas;
  bool must_continue = false;
  const auto transfer = [&](const auto& action) {
    if (job_.payloads.has_memory()) (void)portals::perform(action);
    finished_dmas.push_back(action.dma);
  };
  portals::perform_each(
      actions, {},
      portals::Overloaded{
          [&](const nic::Send& send) {
            packets.push_back(send.packet);
            nic::Packet& packet = packets.back();
            packet.source = nic::Rank{rank};
            const bool is_read =
                packet.operation == nic::Operation::get || packet.operation == nic::Operation::fetch_atomic;
            if (is_read) pending_reads_by_request_[packet.fields.request.reply_to] = newest_read_;
            if (!send.last) return;
            Time next = at;
            for (const nic::Packet& sent : packets) {
              const Time line_time = profile_.link.byte_time.time_of(Bytes{static_cast<int64_t>(sent.payload.length)});
              next = next + std::max(line_time, profile_.link.gap);
            }
            const uint64_t message = packet.message;
            job_.nics.inject(std::exchange(packets, {}), std::exchange(at, next), [this, rank, message] {
              nic::Actions sent;
              proxy_.on_packet_sent(message, sent);
              Time now = job_.nics.clock().now();
              perform(rank, sent, now);
            });
          },
          [&](const nic::DmaWrite& write) { transfer(write); },
          [&](const nic::ApplyAtomic& atomic) { transfer(atomic); },
          [&](const nic::PostEvent& event) {
            if (event.event.kind == nic::EventKind::reply) finish_read(static_cast<uint32_t>(event.event.user_ptr));
          },
          [&](const nic::Continue&) { must_continue = true; },
          [](const auto&) {},
      });
  for (const nic::DmaId dma : finished_dmas) {
    nic::Actions actions_of_dma;
    proxy_.on_dma_done(dma, actions_of_dma);
    perform(rank, actions_of_dma, at);
  }
  if (!must_continue) return;
  nic::Actions continued;
  proxy_.on_continue(continued);
  perform(rank, continued, at);
}

}  // namespace spinloom::goal
