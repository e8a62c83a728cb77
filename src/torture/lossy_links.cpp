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
  wire::ReliableConfig made;
  made.secret = secret;
  made.datagram_bytes = config.datagram_bytes;
  made.window = config.window;
  made.copy_bytes = config.copy_bytes;
  made.ack_delay = Time{flight_ps_max};
  made.acks_after = 8;
  made.timeout_first = Time{6 * flight_ps_max};
  made.timeout_min = Time{3 * flight_ps_max};
  made.timeout_max = Time{50 * flight_ps_max};
  made.timeouts_max = config.dead != 0 ? 15 : 40;
  if (config.dead != 0) made.keepalive = Time{100 * flight_ps_max};
  return made;
}

}  // namespace

LossyLinks::LossyLinks(const Config& config, uint64_t seed, FaultCounts& faults, bool trace)
    : config_(config),
      random_(seed, "links"),
      faults_(faults),
      trace_(trace),
      dead_(config.ranks),
      talked_(config.ranks, std::vector<bool>(config.ranks)),
      told_lost_(talked_) {
  for (uint32_t rank = 0; rank < config.ranks; ++rank) {
    stages_.push_back(std::make_unique<wire::Reliable>(nic::Rank{rank}, stage_config(config)));
    for (uint32_t peer = 0; peer < config.ranks; ++peer) {
      const Status added = stages_.back()->add_peer(nic::Rank{peer}, 1);
      SPL_ASSERT(added.ok(), added.error().message);
    }
  }
  sure_[0] = 5 + random_.below(20);
  sure_[1] = 30 + random_.below(20);
}

LossyLinks::~LossyLinks() = default;

void LossyLinks::kill(uint32_t rank) {
  dead_[rank] = true;
  std::erase_if(air_, [rank](const auto& one) { return one.second.to == rank; });
  for (uint32_t other = 0; other < stages_.size(); ++other) {
    if (other == rank) continue;
    if (random_.chance(1, 2)) {
      news_.emplace(now_ + Time{random_.between(1, news_ps_max)}, News{other, rank});
    } else if (!talked_[other][rank]) {  // a rank that has never talked to it has no time-outs
      news_.emplace(now_ + Time{news_ps_max}, News{other, rank});
    }
  }
}

void LossyLinks::tell(uint32_t rank, uint32_t dead, Ends& ends) {
  if (dead_[rank] || told_lost_[rank][dead]) return;
  if (trace_) std::printf("link: rank %u is told that rank %u is dead\n", rank, dead);
  told_lost_[rank][dead] = true;
  std::erase_if(air_, [&](const auto& one) { return one.second.to == rank && one.second.from == dead; });
  ends.lost(rank, nic::Rank{dead});
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
      ends.left(rank, send.slot);
    } else if (send.last && !send.at_once && packet.operation != nic::Operation::ack) {
      ends.sent(rank, packet.message);
    }
    return;
  }
  wire::Out out;
  if (!spare_.empty()) {
    out = std::move(spare_.back());
    spare_.pop_back();
  }
  const Status taken = stages_[rank]->on_send(now_, packet, options, out);
  SPL_ASSERT(taken.ok(), taken.error().message);
  spare_.push_back(std::move(out));
  finish(rank, ends);
}

// Carries out the requests of a stage in the last element of `spare_`. An end may send again meanwhile, which needs
// another element.
void LossyLinks::finish(uint32_t rank, Ends& ends) {
  wire::Out out = std::move(spare_.back());
  spare_.pop_back();
  for (const wire::Out::Transmit& one : out.transmit) launch_one(rank, one.to.value, out.datagram(one));
  for (const uint64_t message : out.message_sent) ends.sent(rank, message);
  for (const uint64_t ticket : out.released) {
    if (ticket != nobody_waits) ends.left(rank, nic::OutboundSlotId{static_cast<uint32_t>(ticket - 1)});
  }
  for (const wire::Out::Lost& lost : out.lost) {
    if (!dead_[lost.peer.value]) {
      ++refused_;
      refusal_ = text("rank ", rank, " lost rank ", lost.peer, ", which is there");
    }
    if (trace_) std::printf("link: rank %u lost rank %u\n", rank, lost.peer.value);
    if (told_lost_[rank][lost.peer.value]) continue;  // the rank knows from a watcher
    told_lost_[rank][lost.peer.value] = true;
    ends.lost(rank, lost.peer);
  }
  for (const nic::Packet& packet : out.deliver) ends.arrive(rank, packet);
  out.clear();
  spare_.push_back(std::move(out));
}

void LossyLinks::launch_one(uint32_t from, uint32_t to, std::span<const uint8_t> bytes) {
  // A rank's message to itself for a schedule names addresses, which differ from run to run: its bytes are not hashed.
  hash_ = wire::siphash({hash_, from}, from == to ? std::span<const uint8_t>{} : bytes);
  const uint64_t number = datagrams_++;
  const bool any = config_.drop + config_.duplicate + config_.reorder + config_.corrupt > 0;
  const bool sure = any && (number == sure_[0] || number == sure_[1]);
  const uint32_t rates[4] = {config_.drop, config_.duplicate, config_.reorder, config_.corrupt};
  bool hit[4];
  for (int i = 0; i < 4; ++i) hit[i] = rates[i] > 0 && random_.below(1000) < rates[i];
  if (sure) {
    uint64_t which = random_.below(4);
    while (rates[which] == 0) which = (which + 1) % 4;
    hit[which] = true;
  }
  if (!dead_[from]) talked_[from][to] = true;
  if (dead_[to] || dead_[from]) return;
  Flying flying{from, to, false, {bytes.begin(), bytes.end()}};
  if (hit[3]) {
    ++of(faults_, Fault::corrupt);
    flying.bytes[random_.below(flying.bytes.size())] ^= static_cast<uint8_t>(1 + random_.below(255));
    flying.damaged = true;
  }
  int64_t copies = 1;
  if (hit[1]) {
    ++of(faults_, Fault::duplicate);
    copies = 2;
  }
  if (hit[0]) {
    ++of(faults_, Fault::drop);
    --copies;
  }
  for (; copies > 0; --copies) {
    int64_t flight = random_.between(1, flight_ps_max);
    if (hit[2]) flight *= random_.between(2, late_times_max);
    air_.emplace(now_ + Time{flight}, flying);
  }
  if (hit[2]) ++of(faults_, Fault::reorder);
  if (trace_) {
    std::printf("link: datagram %llu of %u to %u, %zu B%s%s%s%s\n", static_cast<unsigned long long>(number), from, to,
                bytes.size(), hit[0] ? ", dropped" : "", hit[1] ? ", twice" : "", hit[2] ? ", late" : "",
                hit[3] ? ", damaged" : "");
  }
}

bool LossyLinks::step(Ends& ends) {
  uint32_t timed = 0;
  Time timer = Time::never();
  for (uint32_t rank = 0; rank < stages_.size(); ++rank) {
    if (!dead_[rank] && stages_[rank]->timer() < timer) {
      timer = stages_[rank]->timer();
      timed = rank;
    }
  }
  if (spare_.empty()) spare_.emplace_back();
  const Time datagram = air_.empty() ? Time::never() : air_.begin()->first;
  if (!news_.empty() && news_.begin()->first <= std::min(timer, datagram)) {
    now_ = std::max(now_, news_.begin()->first);
    const News news = news_.begin()->second;
    news_.erase(news_.begin());
    tell(news.rank, news.dead, ends);
    return true;
  }
  if (!air_.empty() && air_.begin()->first <= timer) {
    now_ = std::max(now_, air_.begin()->first);
    const Flying flying = std::move(air_.begin()->second);
    air_.erase(air_.begin());
    wire::Out out = std::move(spare_.back());
    spare_.pop_back();
    talked_[flying.to][flying.from] = true;
    const Status taken = stages_[flying.to]->on_datagram(now_, flying.bytes, out);
    const bool of_dead = !taken && taken.error().code == Code::environment;  // it was under way when its rank died
    if (taken.ok() == flying.damaged && !of_dead && refusal_.empty()) {
      ++refused_;
      refusal_ = taken.ok() ? text("rank ", flying.to, " took a damaged datagram") : taken.error().message;
    }
    spare_.push_back(std::move(out));
    finish(flying.to, ends);
    return true;
  }
  if (timer == Time::never() || (ending_ && idle())) return false;
  now_ = std::max(now_, timer);
  wire::Out out = std::move(spare_.back());
  spare_.pop_back();
  stages_[timed]->on_timer(now_, out);
  spare_.push_back(std::move(out));
  finish(timed, ends);
  return true;
}

bool LossyLinks::losses_told() const {
  for (uint32_t rank = 0; rank < stages_.size(); ++rank) {
    for (uint32_t peer = 0; peer < stages_.size(); ++peer) {
      if (!dead_[rank] && dead_[peer] && talked_[rank][peer] && !told_lost_[rank][peer]) return false;
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

std::string LossyLinks::waiting() const {
  std::string line;
  for (const auto& stage : stages_) line += stage->waiting() + " ";
  return line + text(air_.size(), " datagrams under way");
}

Status LossyLinks::sound() const {
  if (refusal_.empty()) return {};
  return fail(Code::mismatch, "links: ", refusal_);
}

}  // namespace spinloom::torture
