#include "simulated/node/node.hpp"

#include <algorithm>

#include "simulated/node/node_codes.hpp"

namespace spinloom::simulated {
namespace {

nic::NicLimits limits_of(const Profile& profile, const NodeOptions& options) {
  nic::NicLimits limits;
  limits.payload_bytes = options.payload_bytes;
  limits.hpus = options.hpus;
  limits.packet_buffer_bytes = static_cast<uint64_t>(profile.memory.packet_buffer_bytes);
  limits.nic_memory_bytes = static_cast<uint64_t>(profile.memory.state_bytes);
  limits.iovec_entries = static_cast<uint32_t>(profile.iovec.entries);
  limits.handler_messages = static_cast<uint32_t>(profile.scheduler.messages);
  limits.outbound_packets = static_cast<uint32_t>(profile.memory.outbound_packets);
  return limits;
}

}  // namespace

Result<std::unique_ptr<Node>> Node::create(EventQueue& events, Network& network, const Profile& profile, nic::Rank rank,
                                           const NodeOptions& options, const std::vector<hpu::Image>& images) {
  SPL_TRY(nic::check(limits_of(profile, options)));
  if (options.slice_cycles == 0) return fail(Code::invalid, "a slice has at least one cycle");
  std::unique_ptr<Node> node(new Node(events, network, profile, rank, options));
  SPL_ASSIGN(node->hpus_, HpuBank::create(events, *node, profile, options.hpus, options.slice_cycles));
  node->hpus_->install(images);
  network.attach(rank, *node);
  return node;
}

Node::Node(EventQueue& events, Network& network, const Profile& profile, nic::Rank rank, const NodeOptions& options)
    : events_(events),
      network_(network),
      profile_(profile),
      rank_(rank),
      nic_(rank, limits_of(profile, options), &memory_),
      nic_memory_(static_cast<size_t>(profile.memory.state_bytes)),
      pcie_(profile),
      fabric_(profile, options.hpus),
      vhpus_(options.hpus) {}

void Node::record(Trace* trace, DepthSeries* dma_queue) {
  trace_ = trace;
  dma_queue_ = dma_queue;
  hpus_->record(trace);
}

void Node::submit(const nic::Command& command) {
  const auto* write = std::get_if<nic::MemoryWrite>(&command.body);
  const auto* append = std::get_if<nic::Append>(&command.body);
  // Bytes that come with the command: for NIC memory, or the first elements of a scatter list.
  int64_t carried = write == nullptr ? 0 : static_cast<int64_t>(write->bytes.size());
  if (append != nullptr) {
    const auto elements = static_cast<int64_t>(append->entry.iovec.size());
    carried += std::min(elements, profile_.iovec.entries) * static_cast<int64_t>(sizeof(nic::IovecElement));
  }
  const int64_t bytes = profile_.pcie.event_bytes + carried;
  const Service service = pcie_.command(events_.now(), bytes);
  const uint32_t slot = commands_.take();
  commands_[slot] = command;
  events_.at(service.end + profile_.host.command_latency, *this, command_arrives, slot);
}

Status Node::wait() {
  const uint64_t before = mailbox_.changes();
  while (mailbox_.changes() == before) {
    if (!events_.step()) {
      return fail(Code::stalled, "the simulation cannot go on at ", events_.now(), ": rank ", rank_, " waits, and ",
                  nic_.describe_waiting(), ", ", inbound_.size(), " packets wait at the parser");
    }
  }
  return {};
}

Status Node::host_work(const portals::HostWork& work) {
  SPL_ASSERT(!is_working_, "one host program per node");
  const HostCost cost = host_cost(profile_, work);
  statistics_.host_line_fetches += cost.line_fetches();
  statistics_.host_line_writebacks += cost.line_writebacks;
  const Time duration = cost.total();
  statistics_.host_busy += duration;
  is_working_ = true;
  if (trace_ != nullptr) {
    trace_->span(
        {Track::host_work, 0, work.blocks.in_vectors + work.blocks.listed, events_.now(), events_.now() + duration});
  }
  events_.at(events_.now() + duration, *this, work_done, 0);
  while (is_working_) {
    const bool stepped = events_.step();
    SPL_ASSERT(stepped, "the end of the work is scheduled");
  }
  return {};
}

bool Node::on_handler_call(const nic::Her& her, const nic::HandlerCall& call) {
  nic::Actions actions;
  std::swap(actions, scratch_);  // keeps the storage of the hot path
  actions.clear();
  if (log_ != nullptr) log_->record_call(call.call);
  const bool stop = nic_.on_handler_call(her.id, call, actions);
  perform(actions);
  std::swap(actions, scratch_);
  return stop;
}

void Node::on_handler_end(const nic::Her& her, nic::HandlerEnd end, uint32_t code, uint64_t cycles,
                          const std::string& reason) {
  if (end != nic::HandlerEnd::returned) handler_trouble_ = reason;
  if (log_ != nullptr) log_->record_end(end, code, {events_.now(), her.hpu.value, her.kind, reason, 0});
  const Time finish = Rate::cycle_of(profile_.scheduler.clock).time_of_cycles(profile_.scheduler.finish_cycles);
  const uint32_t slot = ended_.take();
  ended_[slot] = {her.id, end, code, cycles};
  events_.at(events_.now() + finish, *this, handler_ends, slot);
}

void Node::end_handler(uint32_t slot) {
  const HandlerEnded ended = ended_[slot];
  ended_.give_back(slot);
  nic::Actions actions;
  nic_.on_handler_done(ended.her, ended.end, ended.code, actions, ended.cycles);
  perform(actions);
  parse_next();  // a slot may have become free
}

void Node::on_event(uint32_t code, uint64_t argument) {
  const auto slot = static_cast<uint32_t>(argument);
  switch (static_cast<NodeCode>(code)) {
    case command_arrives: {
      const nic::Command command = std::move(commands_[slot]);
      commands_.give_back(slot);
      nic::Actions actions;
      if (const auto* create = std::get_if<nic::ContextCreate>(&command.body)) {
        if (const Status able = hpus_->check_image(create->context.image); !able) {
          nic::Answer refusal{command.token, able.error()};
          return perform(refusal);
        }
      }
      nic_.on_command(command, actions);
      perform(actions);
      return;
    }
    case parse_ends: return end_parsing();
    case her_ready: {
      nic::Actions actions;
      nic_.on_her_ready(nic::HerId{slot}, actions);
      perform(actions);
      return parse_next();  // packets of a stopped message give their slots back here
    }
    case handler_ends: return end_handler(slot);
    case dma_ends: return end_dma_write(slot);
    case dma_source_read: return source_read(slot);
    case fetch_ends: return end_fetch(slot);
    case atomic_ends: return end_dma(nic::DmaId{slot});
    case store_ends: return end_store(slot);
    case host_reads: {
      HostDelivery delivery = std::move(deliveries_[slot]);
      deliveries_.give_back(slot);
      switch (delivery.kind) {
        case HostDelivery::Kind::event:
          statistics_.last_event = events_.now();
          mailbox_.add(delivery.event.queue, delivery.event.event);
          break;
        case HostDelivery::Kind::counter: mailbox_.set(delivery.counter.counter, delivery.counter.value); break;
        case HostDelivery::Kind::answer:
          mailbox_.answer(delivery.answer.token, std::move(delivery.answer.result));
          break;
      }
      if (watcher_) watcher_();
      return;
    }
    case continues: {
      nic::Actions actions;
      nic_.on_continue(actions);
      return perform(actions);
    }
    case work_done: is_working_ = false; return;
    case iovec_refilled: return take_scattered();
    case read_asked: return read_pieces_asked(slot);
    case read_here: return send_gathered(slot);
    case reply_read: return read_reply(slot);
  }
  SPL_ASSERT(false, "event code ", code);
}

}  // namespace spinloom::simulated
