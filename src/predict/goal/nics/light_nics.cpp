#include "predict/goal/nics/light_nics.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "portals/interface/perform.hpp"

namespace spinloom::goal {

namespace {

nic::NicLimits light_limits(const simulated::Profile& profile) {
  nic::NicLimits limits;
  limits.payload_bytes = static_cast<uint32_t>(profile.link.payload);
  limits.transfer_bytes = std::numeric_limits<uint64_t>::max();  // every message is one packet
  limits.unexpected_headers = std::numeric_limits<uint32_t>::max();
  limits.hpus = 1;
  limits.nic_memory_bytes = 64;
  return limits;
}

constexpr int64_t counter_bytes = 16;
constexpr uint32_t last_tie = std::numeric_limits<uint32_t>::max();

}  // namespace

class LightNics::Node final : public portals::Port {
 public:
  Node(LightNics& nics, uint32_t rank)
      : engine(nic::Rank{rank}, light_limits(nics.profile_)), pcie(nics.profile_), nics_(nics), rank_(rank) {}

  [[nodiscard]] nic::Rank rank() const override { return nic::Rank{rank_}; }
  [[nodiscard]] Time now() const override { return nics_.clock_.now(); }
  void submit(const nic::Command& command) override {
    const simulated::Profile& profile = nics_.profile_;
    const simulated::Service service = pcie.command(now(), profile.pcie.event_bytes);
    nics_.schedule_at(service.end + profile.host.command_latency, commanded, rank_, command);
  }
  std::optional<Result<uint64_t>> take_answer(uint64_t token) override { return mail.take_answer(token); }
  std::optional<nic::Event> take_event(nic::QueueId queue) override { return mail.take_event(queue); }
  [[nodiscard]] nic::CounterValue counter(nic::CounterId counter) const override { return mail.counter(counter); }
  Status wait() override {
    const uint64_t before = mail.changes();
    while (mail.changes() == before) {
      if (!nics_.clock_.step()) {
        return fail(Code::stalled, "nothing can happen any more: rank ", rank_, " waits, and ",
                    engine.describe_waiting());
      }
    }
    return {};
  }
  [[nodiscard]] nic::HostMemory* memory() override { return nullptr; }
  Status host_work(const portals::HostWork&) override {
    return fail(Code::unsupported, "hosts of schedules work by the clock, not by their ports");
  }

  nic::Nic engine;
  simulated::Pcie pcie;
  simulated::Resource out;  // links
  simulated::Resource in;
  portals::Mailbox mail;
  std::deque<Message> inbound;
  nic::Actions actions;  // actions of the message that is being matched
  bool is_matching = false;
  Time last_landing{};
  uint32_t events_to_come = 0;  // events at this NIC that are scheduled

 private:
  LightNics& nics_;
  const uint32_t rank_;
};

LightNics::LightNics(const simulated::Profile& profile, uint32_t ranks, Setup setup, Sample sample,
                     simulated::Network::Switches switches)
    : profile_(profile),
      setup_(std::move(setup)),
      sample_(std::move(sample)),
      switches_(std::move(switches)),
      nodes_(ranks),
      released_(ranks) {}

LightNics::~LightNics() = default;

portals::Port& LightNics::port(uint32_t rank) { return node(rank); }

LightNics::Node& LightNics::node(uint32_t rank) {
  std::unique_ptr<Node>& node = nodes_[rank];
  if (node != nullptr) return *node;
  node = std::make_unique<Node>(*this, rank);
  nic_count_most_ = std::max(nic_count_most_, ++nic_count_);
  nic::Actions actions;
  for (const nic::Command& command : setup_(rank)) node->engine.on_command(command, actions);
  // Nothing takes time, and a counter that a host has not read is 0.
  for (const nic::Action& action : actions.list)
    SPL_ASSERT(std::holds_alternative<nic::PostCounter>(action), "an effect");
  return *node;
}

void LightNics::release(uint32_t rank) {
  released_[rank] = true;
  schedule_at(clock_.now(), may_be_dropped, rank, {});
}

// Drops the NIC of a released rank, unless it still expects something, or has a message that is open, outgoing or
// unexpected, or an open DMA.
void LightNics::drop_if_quiet(uint32_t rank) {
  std::unique_ptr<Node>& node = nodes_[rank];
  if (!released_[rank] || node == nullptr || node->events_to_come > 0) return;
  const nic::NicState state = node->engine.state();
  if (state.messages_open + state.messages_outgoing + state.unexpected_headers + state.dmas_open > 0) return;
  if (const Status status = trouble_of(rank, node->engine); !status) troubles_.push_back(status);
  node.reset();
  --nic_count_;
}

Status LightNics::trouble() const {
  for (const Status& status : troubles_) SPL_TRY(status);
  for (uint32_t rank = 0; rank < nodes_.size(); ++rank) {
    if (nodes_[rank] != nullptr) SPL_TRY(trouble_of(rank, nodes_[rank]->engine));
  }
  return {};
}

void LightNics::schedule_at(Time at, EventCode code, uint32_t rank, Content content) {
  if (code > crosses && code != may_be_dropped) ++node(rank).events_to_come;
  clock_.at(at, *this, code, pending_events_.take(rank, std::move(content)), code == may_be_dropped ? last_tie : 0);
}

Time LightNics::line_time(int64_t bytes) const {
  const Time line = profile_.link.byte_time.time_of(Bytes{bytes});
  if (bytes == 0) return line;
  const Time by_gaps =
      profile_.link.gap * (packet_count(bytes) - 1) + profile_.link.byte_time.time_of(Bytes{last_packet_bytes(bytes)});
  return std::max(line, by_gaps);
}

// The time in which simulated::Fabric reads for the host from packet memory.
Time LightNics::read_time(int64_t bytes) const {
  if (!profile_.clustered()) return profile_.memory.channel_byte_time.time_of(Bytes{bytes});
  return port_time(bytes) + Rate::cycle_of(profile_.hpu.clock).time_of_cycles(profile_.pulp.dma_latency);
}

// The time in which simulated::Fabric sends data that lie on the NIC.
Time LightNics::send_time(int64_t bytes) const {
  if (!profile_.clustered()) return {};
  return port_time(bytes) + Rate::cycle_of(profile_.hpu.clock).time_of_cycles(profile_.pulp.send_latency);
}

Time LightNics::port_time(int64_t bytes) const {
  return Rate::cycle_of(profile_.hpu.clock).time_of_cycles(div_ceil(bytes, profile_.pulp.port_width));
}

Time LightNics::link_time(int64_t bytes) const {
  return std::max(line_time(bytes), profile_.link.gap * std::max<int64_t>(packet_count(bytes), 1));
}

void LightNics::inject(std::vector<nic::Packet> packets, Time at, std::function<void()> sent) {
  for (const nic::Packet& packet : packets) {  // an atomic has several
    schedule_at(at, departs, packet.source.value, Message{packet, {}, 0});
    at = at + link_time(static_cast<int64_t>(packet.payload.length));
  }
  sent();
}

nic::NicLimits LightNics::limits_outside() const { return light_limits(profile_); }

void LightNics::on_event(uint32_t code, uint64_t slot) {
  PendingEvent event = std::move(pending_events_[static_cast<uint32_t>(slot)]);
  pending_events_.give_back(static_cast<uint32_t>(slot));
  const uint32_t rank = event.rank;
  if (code <= crosses) {
    auto& message = std::get<Message>(event.content);
    if (code == crosses) return cross(message, rank);
    const Time head = clock_.now() + profile_.link.switch_latency + profile_.link.wire;
    if (!switches_) return arrive_at_target(message, head);
    message.at = switches_->switch_of(rank);
    return schedule_at(head, crosses, rank, message);
  }
  if (code != may_be_dropped) {
    Node& node = this->node(rank);
    --node.events_to_come;
    handle(static_cast<EventCode>(code), node, event.content);
  }
  drop_if_quiet(rank);
}

void LightNics::cross(Message& message, uint32_t source) {
  const uint32_t target = message.packet.target.value;
  if (message.at == switches_->switch_of(target)) return arrive_at_target(message, clock_.now());
  const auto now_ps = static_cast<uint64_t>(clock_.now().ps);
  const network::Network::Move move = switches_->move(now_ps, message.at, target, message.packet.payload.length);
  message.at = move.to;
  schedule_at(Time{static_cast<int64_t>(move.at_ps)}, crosses, source, message);
}

// The switch serves the link to the target in this order.
void LightNics::arrive_at_target(Message& message, Time head) {
  const auto bytes = static_cast<int64_t>(message.packet.payload.length);
  const uint32_t target = message.packet.target.value;
  if (!sample_.has(target)) {
    auto arrival = std::make_unique<simulated::Arrival>();
    arrival->packet = message.packet;
    arrival->last_byte = head + line_time(bytes);
    return sink_->on_packet(std::move(arrival), head);
  }
  const Time first_byte = node(target).in.serve(head, link_time(bytes)).start;
  message.last_byte = first_byte + line_time(bytes);
  schedule_at(first_byte, arrives, target, message);
}

void LightNics::handle(EventCode code, Node& node, Content& content) {
  nic::Actions actions;
  switch (code) {
    case arrives: node.inbound.push_back(std::get<Message>(content)); return match_next(node);
    case matched: {
      const Message message = node.inbound.front();
      node.inbound.pop_front();
      node.is_matching = false;
      std::swap(actions, node.actions);
      perform(node, actions, &message);
      return match_next(node);
    }
    case landed: node.engine.on_dma_done(std::get<nic::DmaId>(content), actions); break;
    case operands: {  // they are here and have been changed; a write takes them back
      const auto& atomic = std::get<Operands>(content);
      return schedule_at(node.pcie.write(clock_.now(), atomic.bytes).end, landed, node.rank().value, atomic.dma);
    }
    case read: node.engine.on_packet_sent(std::get<uint64_t>(content), actions); break;
    case commanded: node.engine.on_command(std::get<nic::Command>(content), actions); break;
    case continues: node.engine.on_continue(actions); break;
    case readable: {
      auto& delivery = std::get<Delivery>(content);
      if (const auto* event = std::get_if<nic::PostEvent>(&delivery)) {
        node.mail.add(event->queue, event->event);
      } else if (const auto* counter = std::get_if<nic::PostCounter>(&delivery)) {
        node.mail.set(counter->counter, counter->value);
      } else {
        auto& answer = std::get<nic::Answer>(delivery);
        node.mail.answer(answer.token, std::move(answer.result));
      }
      if (watcher_) watcher_(node.rank().value);
      return;
    }
    case departs:
    case crosses:
    case may_be_dropped: return;
  }
  perform(node, actions, nullptr);
}

// The matching unit decides now; its decision takes effect when the unit has finished.
void LightNics::match_next(Node& node) {
  if (node.is_matching || node.inbound.empty()) return;
  node.is_matching = true;
  node.actions.clear();
  node.engine.on_packet(node.inbound.front().packet, node.actions);
  const Time match_time = node.actions.work.matched_by_message ? profile_.match.packet : profile_.match.header;
  schedule_at(clock_.now() + match_time, matched, node.rank().value, {});
}

void LightNics::perform(Node& node, nic::Actions& actions, const Message* message) {
  portals::perform_each(actions, {},
                        portals::Overloaded{
                            [&](const nic::Send& send) { perform(node, send); },
                            [&](const nic::DmaWrite& write) { perform(node, write, message); },
                            [&](const nic::ApplyAtomic& atomic) { perform(node, atomic, message); },
                            [&](const nic::PostEvent& event) { deliver(node, event, profile_.pcie.event_bytes); },
                            [&](const nic::PostCounter& counter) { deliver(node, counter, counter_bytes); },
                            [&](nic::Answer& answer) { deliver(node, std::move(answer), profile_.pcie.event_bytes); },
                            [&](const nic::Continue&) { schedule_at(clock_.now(), continues, node.rank().value, {}); },
                            [](const auto&) { SPL_ASSERT(false, "hosts of schedules have no handlers"); },
                        });
}

void LightNics::perform(Node& node, const nic::Send& send) {
  SPL_ASSERT(send.last && send.pieces.empty(), "a message is one packet");
  const auto bytes = static_cast<int64_t>(send.packet.payload.length);
  Time ready = clock_.now();
  if (bytes > 0 && send.from_device) ready = ready + send_time(bytes);
  if (bytes > 0 && !send.from_device) {
    ready = node.pcie.write(ready, 0).end + profile_.pcie.latency * 2;  // a read stays behind writes
  }
  const simulated::Service service = node.out.serve(ready, link_time(bytes));
  const uint32_t rank = node.rank().value;
  schedule_at(service.start, departs, rank, Message{send.packet, {}, 0});
  if (send.packet.operation != nic::Operation::ack) {
    schedule_at(service.start + line_time(bytes), read, rank, send.packet.message);
  }
}

// Packets follow each other over the link and then over PCIe, so the last one is in host memory when all of PCIe's work
// is done, or right behind the packet before it, or right behind its own last byte.
void LightNics::perform(Node& node, const nic::DmaWrite& write, const Message* message) {
  const auto bytes = static_cast<int64_t>(write.source.length);
  const Time now = clock_.now();
  Time end = std::max(now, node.last_landing);  // a write without bytes only keeps its place
  if (bytes > 0) {
    SPL_ASSERT(message != nullptr, "only messages bring bytes");
    const auto behind = [&](int64_t bytes_before_end) {  // a packet that is whole so many bytes before the last one
      return std::max(now, message->last_byte - profile_.link.byte_time.time_of(Bytes{bytes_before_end}));
    };
    const int64_t last = last_packet_bytes(bytes);
    const int64_t first = std::min(bytes, profile_.link.payload);
    end = node.pcie.write(behind(bytes - first) + read_time(first), bytes).end;
    Time last_read = behind(0) + read_time(last);
    if (bytes > first) {
      // Clusters share the port that the packet before it takes.
      if (profile_.clustered()) last_read = std::max(last_read, behind(last) + port_time(first) + read_time(last));
      end = std::max(
          end, behind(last) + read_time(first) + node.pcie.write_duration(first) + node.pcie.write_duration(last));
    }
    end = std::max(end, last_read + node.pcie.write_duration(last));
    node.last_landing = end;
  }
  schedule_at(end, landed, node.rank().value, write.dma);
}

// Reads host memory for an atomic as simulated::Node does.
void LightNics::perform(Node& node, const nic::ApplyAtomic& atomic, const Message* message) {
  SPL_ASSERT(message != nullptr, "only messages bring operands");
  const auto bytes = static_cast<int64_t>(atomic.source.length);
  const Time asked = node.pcie.write(std::max(clock_.now(), message->last_byte), 0).end + profile_.pcie.latency;
  schedule_at(node.pcie.command(asked, bytes).end + profile_.pcie.latency, operands, node.rank().value,
              Operands{atomic.dma, bytes});
}

void LightNics::deliver(Node& node, Delivery delivery, int64_t bytes) {
  const Time at = node.pcie.write(clock_.now(), bytes).end + profile_.pcie.latency;
  schedule_at(at, readable, node.rank().value, std::move(delivery));
}

}  // namespace spinloom::goal
