#include "torture/lossy_links.hpp"

#include <cstdio>
#include <utility>

#include "nic/wire/packet_format.hpp"
#include "nic/wire/siphash.hpp"

namespace spinloom::torture {
namespace {

constexpr wire::SipKey secret = {0x6f6c6e6970730001, 0x6f74657274757265};
constexpr uint64_t nobody_waits = UINT64_MAX;  // a ticket whose release is ignored
constexpr int64_t flight_ps_max = 1000;  // the longest flight of a datagram that is not reordered
constexpr int64_t late_times_max = 8;
constexpr int64_t news_ps_max = 3 * flight_ps_max;  // the longest time until a watcher's news arrive

wire::ReliableConfig stage_config(const Config& config) {
  wire::ReliableConfig stage;
  stage.secret = secret;
  stage.datagram_bytes = config.datagram_bytes;
  stage.window = config.window;
  stage.copy_bytes = config.copy_bytes;
  stage.ack_delay = Time{flight_ps_max};
  stage.acks_after = 8;
  stage.timeout_first = Time{6 * flight_ps_max};
  stage.timeout_min = Time{3 * flight_ps_max};
  stage.timeout_max = Time{50 * flight_ps_max};
  stage.timeouts_max = config.dead != 0 ? 15 : 40;
  if (config.dead != 0) stage.keepalive = Time{100 * flight_ps_max};
  return stage;
}

}  // namespace

LossyLinks::LossyLinks(const Config& config, uint64_t seed, FaultCounts& faults, bool trace)
    : config_(config),
      random_(seed, "links"),
      faults_(faults),
      trace_(trace),
      dead_(config.ranks),
      has_contact_(config.ranks, std::vector<bool>(config.ranks)),
      knows_lost_(has_contact_) {
  for (uint32_t rank = 0; rank < config.ranks; ++rank) {
    stages_.push_back(std::make_unique<wire::Reliable>(nic::Rank{rank}, stage_config(config)));
    for (uint32_t peer = 0; peer < config.ranks; ++peer) {
      const Status added = stages_.back()->add_peer(nic::Rank{peer}, 1);
      SPL_ASSERT(added.ok(), added.error().message);
    }
  }
  certain_faults_[0] = 5 + random_.below(20);
  certain_faults_[1] = 30 + random_.below(20);
}

LossyLinks::~LossyLinks() = default;

void LossyLinks::kill(uint32_t rank) {
  dead_[rank] = true;
  std::erase_if(in_flight_, [rank](const auto& entry) { return entry.second.to == rank; });
  for (uint32_t other = 0; other < stages_.size(); ++other) {
    if (other == rank) continue;
    if (random_.chance(1, 2)) {
      loss_notices_.emplace(now_ + Time{random_.between(1, news_ps_max)}, LossNotice{other, rank});
    } else if (!has_contact_[other][rank]) {  // a rank that has never talked to it has no time-outs
      loss_notices_.emplace(now_ + Time{news_ps_max}, LossNotice{other, rank});
    }
  }
}

void LossyLinks::notify_loss(uint32_t rank, uint32_t dead, Ends& ends) {
  if (dead_[rank] || knows_lost_[rank][dead]) return;
  if (trace_) std::printf("link: rank %u is told that rank %u is dead\n", rank, dead);
  knows_lost_[rank][dead] = true;
  std::erase_if(in_flight_, [&](const auto& entry) { return entry.second.to == rank && entry.second.from == dead; });
  ends.on_lost(rank, nic::Rank{dead});
}

void LossyLinks::send(uint32_t rank, const nic::Send& send, Ends& ends) {
  wire::SendOptions options;
  nic::Packet packet = send.packet;
  std::vector<uint8_t> gathered;
  if (!send.pieces.empty()) {
    gathered.resize(packet.payload.length);
    nic::gather(send.pieces, gathered.data());
    packet.payload.bytes = gathered.data();
    options.copy = true;
  }
  if (send.slot.exists()) options.ticket = uint64_t{send.slot.value} + 1;
  if (send.at_once) {
    options.copy = true;
    options.ticket = nobody_waits;
  }
  if (packet.target.value >= stages_.size()) {  // an unreachable host: the bytes are read and dropped
    if (send.slot.exists()) {
      ends.on_left(rank, send.slot);
    } else if (send.last && !send.at_once && packet.operation != nic::Operation::ack) {
      ends.on_sent(rank, packet.message);
    }
    return;
  }
  wire::Output out;
  if (!spare_outputs_.empty()) {
    out = std::move(spare_outputs_.back());
    spare_outputs_.pop_back();
  }
  const Status status = stages_[rank]->on_send(now_, packet, options, out);
  SPL_ASSERT(status.ok(), status.error().message);
  spare_outputs_.push_back(std::move(out));
  carry_out(rank, ends);
}

// Carries out the requests of a stage in the last element of `spare_outputs_`. An end may send again meanwhile, which
// needs another element.
void LossyLinks::carry_out(uint32_t rank, Ends& ends) {
  wire::Output out = std::move(spare_outputs_.back());
  spare_outputs_.pop_back();
  for (const wire::Output::Transmit& transmit : out.transmit) launch(rank, transmit.to.value, out.datagram(transmit));
  for (const uint64_t message : out.message_sent) ends.on_sent(rank, message);
  for (const uint64_t ticket : out.released) {
    if (ticket != nobody_waits) ends.on_left(rank, nic::OutboundSlotId{static_cast<uint32_t>(ticket - 1)});
  }
  for (const wire::Output::Lost& lost : out.lost) {
    if (!dead_[lost.peer.value]) {
      refusal_ = text("rank ", rank, " lost rank ", lost.peer, ", which is there");
    }
    if (trace_) std::printf("link: rank %u lost rank %u\n", rank, lost.peer.value);
    if (knows_lost_[rank][lost.peer.value]) continue;  // the rank knows from a watcher
    knows_lost_[rank][lost.peer.value] = true;
    ends.on_lost(rank, lost.peer);
  }
  for (const nic::Packet& packet : out.deliver) ends.on_arrival(rank, packet);
  out.clear();
  spare_outputs_.push_back(std::move(out));
}

void LossyLinks::launch(uint32_t from, uint32_t to, std::span<const uint8_t> bytes) {
  // A rank's message to itself for a schedule names addresses, which differ from run to run: its bytes are not hashed.
  hash_ = wire::siphash({hash_, from}, from == to ? std::span<const uint8_t>{} : bytes);
  const uint64_t number = datagrams_++;
  const bool has_faults = config_.drop + config_.duplicate + config_.reorder + config_.corrupt > 0;
  const bool is_certain = has_faults && (number == certain_faults_[0] || number == certain_faults_[1]);
  const uint32_t rates[4] = {config_.drop, config_.duplicate, config_.reorder, config_.corrupt};
  bool hit[4];
  for (int i = 0; i < 4; ++i) hit[i] = rates[i] > 0 && random_.below(1000) < rates[i];
  if (is_certain) {
    uint64_t which = random_.below(4);
    while (rates[which] == 0) which = (which + 1) % 4;
    hit[which] = true;
  }
  if (!dead_[from]) has_contact_[from][to] = true;
  if (dead_[to] || dead_[from]) return;
  InFlight datagram{from, to, false, {bytes.begin(), bytes.end()}};
  if (hit[3]) {
    ++count_of(faults_, Fault::corrupt);
    datagram.bytes[random_.below(datagram.bytes.size())] ^= static_cast<uint8_t>(1 + random_.below(255));
    datagram.damaged = true;
  }
  int64_t copies = 1;
  if (hit[1]) {
    ++count_of(faults_, Fault::duplicate);
    copies = 2;
  }
  if (hit[0]) {
    ++count_of(faults_, Fault::drop);
    --copies;
  }
  for (; copies > 0; --copies) {
    int64_t flight = random_.between(1, flight_ps_max);
    if (hit[2]) flight *= random_.between(2, late_times_max);
    in_flight_.emplace(now_ + Time{flight}, datagram);
  }
  if (hit[2]) ++count_of(faults_, Fault::reorder);
  if (trace_) {
    std::printf("link: datagram %llu of %u to %u, %zu B%s%s%s%s\n", static_cast<unsigned long long>(number), from, to,
                bytes.size(), hit[0] ? ", dropped" : "", hit[1] ? ", twice" : "", hit[2] ? ", late" : "",
                hit[3] ? ", damaged" : "");
  }
}

bool LossyLinks::step(Ends& ends) {
  uint32_t timer_rank = 0;
  Time timer = Time::never();
  for (uint32_t rank = 0; rank < stages_.size(); ++rank) {
    if (!dead_[rank] && stages_[rank]->timer() < timer) {
      timer = stages_[rank]->timer();
      timer_rank = rank;
    }
  }
  if (spare_outputs_.empty()) spare_outputs_.emplace_back();
  const Time arrival = in_flight_.empty() ? Time::never() : in_flight_.begin()->first;
  if (!loss_notices_.empty() && loss_notices_.begin()->first <= std::min(timer, arrival)) {
    now_ = std::max(now_, loss_notices_.begin()->first);
    const LossNotice notice = loss_notices_.begin()->second;
    loss_notices_.erase(loss_notices_.begin());
    notify_loss(notice.rank, notice.dead, ends);
    return true;
  }
  if (!in_flight_.empty() && in_flight_.begin()->first <= timer) {
    now_ = std::max(now_, in_flight_.begin()->first);
    const InFlight datagram = std::move(in_flight_.begin()->second);
    in_flight_.erase(in_flight_.begin());
    wire::Output out = std::move(spare_outputs_.back());
    spare_outputs_.pop_back();
    has_contact_[datagram.to][datagram.from] = true;
    const Status status = stages_[datagram.to]->on_datagram(now_, datagram.bytes, out);
    const bool is_from_dead =
        !status && status.error().code == Code::environment;  // it was under way when its rank died
    if (status.ok() == datagram.damaged && !is_from_dead && refusal_.empty()) {
      refusal_ = status.ok() ? text("rank ", datagram.to, " took a damaged datagram") : status.error().message;
    }
    spare_outputs_.push_back(std::move(out));
    carry_out(datagram.to, ends);
    return true;
  }
  if (timer == Time::never() || (ending_ && idle())) return false;
  now_ = std::max(now_, timer);
  wire::Output out = std::move(spare_outputs_.back());
  spare_outputs_.pop_back();
  stages_[timer_rank]->on_timer(now_, out);
  spare_outputs_.push_back(std::move(out));
  carry_out(timer_rank, ends);
  return true;
}

bool LossyLinks::losses_told() const {
  for (uint32_t rank = 0; rank < stages_.size(); ++rank) {
    for (uint32_t peer = 0; peer < stages_.size(); ++peer) {
      if (!dead_[rank] && dead_[peer] && has_contact_[rank][peer] && !knows_lost_[rank][peer]) return false;
    }
  }
  return true;
}

bool LossyLinks::idle() const {
  for (uint32_t rank = 0; rank < stages_.size(); ++rank) {
    if (!dead_[rank] && !stages_[rank]->idle()) return false;
  }
  return true;
}

std::string LossyLinks::describe_waiting() const {
  std::string line;
  for (const auto& stage : stages_) line += stage->describe_waiting() + " ";
  return line + text(in_flight_.size(), " datagrams under way");
}

Status LossyLinks::check_stages() const {
  if (refusal_.empty()) return {};
  return fail(Code::mismatch, "links: ", refusal_);
}

}  // namespace spinloom::torture
