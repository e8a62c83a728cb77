#include "predict/goal/nics/seam.hpp"

#include <algorithm>

#include "portals/interface/perform.hpp"

namespace spinloom::goal {

using schedule::Kind;

Result<std::unique_ptr<Seam>> Seam::create(Engine& engine, Job& job, const simulated::Profile& profile, uint64_t L_ps) {
  const Time needed = arrival_time(profile) + profile.link.switch_latency + profile.link.wire;
  const Time L{static_cast<int64_t>(std::min(L_ps, time_ps_most))};
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
      out_(out),
      in_(arrival_time(profile)),
      envoy_(nic::Rank::any(), job.nics.limits_beyond()) {
  Payloads& payloads = job.payloads;
  nic::Entry text;
  text.start = const_cast<uint8_t*>(payloads.whole());  // only read: it takes no puts
  text.length = payloads.whole_bytes();
  text.ignore_bits = UINT64_MAX;
  text.options.op_put = false;
  text.options.op_get = true;
  text.options.event_comm_disable = true;
  nic::Entry window = text;
  window.start = payloads.windows_memory();
  window.length = payloads.windows_bytes();
  window.match_bits = 0;
  window.ignore_bits = ~reads_text;
  window.options.op_put = true;
  std::vector<nic::CommandBody> setup = {nic::QueueAlloc{event_queue, UINT32_MAX}};
  for (const nic::PortalIndex portal : {messages_portal, bytes_portal, windows_portal}) {
    setup.emplace_back(nic::PortalAlloc{portal, event_queue});
  }
  setup.emplace_back(nic::Append{{0, 0}, bytes_portal, nic::ListKind::priority, text});
  setup.emplace_back(nic::Append{{1, 0}, windows_portal, nic::ListKind::priority, window});
  setup.emplace_back(nic::Append{{2, 0}, windows_portal, nic::ListKind::priority, text});
  nic::Actions actions;
  for (const nic::CommandBody& one : setup) envoy_.on_command(nic::Command{one, {}, 0}, actions);
}

Status Seam::trouble() const { return trouble_of(nic::Rank::any_value, envoy_); }

// Takes a message from message level to NICs.
void Seam::leaves(uint64_t at_ps, const Event& message) {
  Time at = Time{static_cast<int64_t>(job_.start_ps + at_ps)} + out_;
  const Doing doing{job_.schedule, job_.payloads, message.source, message.operation};
  switch (message.carried) {
    case Carried::whole:
    case Carried::request:
      ++job_.unmatched;
      return say(message.source, message_put(doing, message.carried == Carried::request), at);
    case Carried::answer: {  // `operation` is the send, `shape` the receive
      const Event data{.rank = message.source,
                       .operation = message.operation,
                       .source = message.rank,
                       .shape = message.shape,
                       .carried = Carried::data};
      const uint64_t bytes = Doing{job_.schedule, job_.payloads, message.rank, message.operation}.shape().size;
      return say(message.source, bytes_get(nic::Rank{message.rank}, message.operation, bytes, ask(data, bytes, 0)), at);
    }
    case Carried::data: return answer({message.source, message.operation}, at);
    case Carried::put:
    case Carried::ask: return one_sided(message, at);
    case Carried::reply: return answer({message.rank, message.operation}, at);
  }
}

void Seam::one_sided(const Event& message, Time at) {
  const Doing doing{job_.schedule, job_.payloads, message.source, message.operation};
  const schedule::Shape& shape = doing.shape();
  nic::ReplyTo report;
  report.queue = event_queue;
  if (shape.kind == Kind::get || shape.kind == Kind::fetch) {
    const Event reply{.rank = message.source,
                      .operation = message.operation,
                      .source = message.rank,
                      .shape = message.shape,
                      .carried = Carried::reply};
    report = ask(reply, shape.size, shape.kind == Kind::fetch ? Windows::before_mask : 0);
  }
  for (const nic::CommandBody& one : one_sided_commands(doing, report, job_.nics.atomic_bytes_most())) {
    say(message.source, one, at);
  }
}

nic::ReplyTo Seam::ask(const Event& event, uint64_t bytes, uint8_t mask) {
  const auto [slot, asked] = asked_.make();
  newest_asked_ = slot;
  asked = {{event, bytes, 0}, mask, job_.payloads.memory(bytes)};
  nic::ReplyTo reply;
  reply.local = job_.payloads.address(asked.memory);
  reply.queue = event_queue;
  reply.user_ptr = slot;
  return reply;
}

void Seam::answered(uint32_t slot) {
  const Asked& asked = asked_[slot];
  const Event& event = asked.incoming.event;
  const uint32_t source = event.carried == Carried::data ? event.source : event.rank;
  const Status right =
      job_.payloads.check(asked.memory.data(), asked.incoming.total, event.rank, source, event.operation, asked.mask);
  if (!right && !job_.error) job_.error = right.error();
  asked_[slot].memory = {};
  asked_.give_back(slot);
}

// Answers the packets that were held because they asked for something.
void Seam::answer(Key asked, Time at) {
  const auto found = held_.find(asked);
  SPL_ASSERT(found != held_.end(), "nothing was asked of operation ", asked.second, " of rank ", asked.first);
  const std::vector<std::unique_ptr<simulated::Arrival>> packets = std::move(found->second);
  held_.erase(found);
  for (const auto& one : packets) {
    nic::Packet packet = one->packet;
    const bool is_bytes = packet.fields.portal_index == bytes_portal.value;
    if (is_bytes) packet.fields.remote_offset += job_.payloads.place(asked.first, static_cast<uint32_t>(asked.second));
    if (packet.operation == nic::Operation::fetch_atomic) packet.fields.remote_offset += window_begin(packet);
    nic::Actions actions;
    envoy_.on_packet(packet, actions);
    perform(packet.target.value, actions, at);
  }
}

void Seam::say(uint32_t rank, const nic::CommandBody& command, Time& at) {
  nic::Actions actions;
  envoy_.on_command(nic::Command{command, {}, 0}, actions);
  perform(rank, actions, at);
}

void Seam::hear(const nic::Packet& packet, Time at) {
  nic::Actions actions;
  envoy_.on_packet(packet, actions);
  perform(packet.target.value, actions, at);
}

// Nothing takes time here; packets of several messages follow each other on the link.
void Seam::perform(uint32_t rank, nic::Actions& actions, Time& at) {
  std::vector<nic::Packet> packets;
  std::vector<nic::DmaId> done;
  bool goes_on = false;
  const auto transfer = [&](const auto& action) {
    if (job_.payloads.moves()) (void)portals::perform(action);
    done.push_back(action.dma);
  };
  portals::perform_each(
      actions, {},
      portals::Overloaded{
          [&](const nic::Send& send) {
            packets.push_back(send.packet);
            nic::Packet& packet = packets.back();
            packet.source = nic::Rank{rank};
            const bool asks =
                packet.operation == nic::Operation::get || packet.operation == nic::Operation::fetch_atomic;
            if (asks) asked_by_name_[packet.fields.request.reply_to] = newest_asked_;
            if (!send.last) return;
            Time next = at;
            for (const nic::Packet& one : packets) {
              const Time line = profile_.link.byte_time.time_of(Bytes{static_cast<int64_t>(one.payload.length)});
              next = next + std::max(line, profile_.link.gap);
            }
            const uint64_t message = packet.message;
            job_.nics.enter(std::exchange(packets, {}), std::exchange(at, next), [this, rank, message] {
              nic::Actions sent;
              envoy_.on_packet_sent(message, sent);
              Time now = job_.nics.clock().now();
              perform(rank, sent, now);
            });
          },
          [&](const nic::DmaWrite& write) { transfer(write); },
          [&](const nic::ApplyAtomic& atomic) { transfer(atomic); },
          [&](const nic::PostEvent& event) {
            if (event.event.kind == nic::EventKind::reply) answered(static_cast<uint32_t>(event.event.user_ptr));
          },
          [&](const nic::Continue&) { goes_on = true; },
          [](const auto&) {},
      });
  for (const nic::DmaId dma : done) {
    nic::Actions more;
    envoy_.on_dma_done(dma, more);
    perform(rank, more, at);
  }
  if (!goes_on) return;
  nic::Actions more;
  envoy_.on_continue(more);
  perform(rank, more, at);
}

}  // namespace spinloom::goal
