// The part of ShmTransport for peers: attaching, greeting, losing.
#include "live/shm/shm_transport.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <tuple>
#include <utility>

#include "base/log.hpp"

namespace spinloom::live {

ShmTransport::ShmTransport(TransportClient& client, Segment& own, uint32_t rank, const std::vector<BusinessCard>& cards,
                           const ShmOptions& options, Watch watch)
    : client_(client),
      own_(own),
      rank_(rank),
      cards_(cards),
      options_(options),
      watch_(std::move(watch)),
      heap_(process_heap()),
      peers_(cards.size()),
      seen_attached_(local_ranks_max / 64),
      contacts_(options.wait_for_peers) {
  small_packet_.target = nic::Rank{rank};
  for (uint32_t peer = 0; peer < peers_.size(); ++peer) {
    peers_[peer] = std::make_unique<Peer>();
    peers_[peer]->in_process = options.shared_address_space && peer != rank &&
                               cards[peer].machine == cards[rank].machine && cards[peer].pid == cards[rank].pid;
    ChannelMemory* const channel = peers_[peer]->in_process ? own_.inner_channel_of(peer) : own_.channel_of(peer);
    peers_[peer]->reader = ChannelReader(channel);
    peers_[peer]->shared_copy = peer::SharedCopy(channel->shared_copy);
  }
  std::ignore = own_.publish_heap();
}

// Attaches the peer's segment and tells the peer that we have; returns whether we have it. A peer that cannot be found
// is gone. The client hears that later, from poll(), because we may be in the middle of the engine's actions here.
bool ShmTransport::attach(uint32_t rank) {
  Peer& peer = *peers_[rank];
  if (peer.attached || peer.loss_noted) return peer.attached;
  if (!cards_[rank].exists()) return await_card(rank);
  auto segment = open_segment(rank);
  if (!segment) {
    const bool left = segment.error().code == Code::invalid;
    const char* const cure =
        options_.rendezvous != nullptr ? "; with SPINLOOM_MEET=start the ranks agree on a way" : "";
    return note_loss(rank, left ? "" : segment.error().message + cure);
  }
  peer.segment = std::move(*segment);
  peer.channel_out = peer.in_process ? peer.segment.inner_channel_of(rank_) : peer.segment.channel_of(rank_);
  peer.writer = ChannelWriter(peer.channel_out);
  peer.attached = true;
  peer.needs_fence = peer.segment.header().fences != 0 || own_.header().fences != 0;
  begin_reading(rank);
  if (!peer.in_process) watch_(peer.memory.process().descriptor(), nic::Rank{rank});
  SegmentHeader& header = peer.segment.header();
  header.attached_peers[rank_ / 64].fetch_or(uint64_t{1} << (rank_ % 64));
  header.doorbell.ring(true);
  if (header.closed.load() == 0) return true;
  std::ignore = note_loss(rank, "");  // the peer may have looked at our bit for the last time before we set it
  return true;
}

// Returns the peer's segment, and prepares `peer.memory`. An Error of Code::invalid means that the peer is gone, any
// other that it cannot be reached.
Result<Segment> ShmTransport::open_segment(uint32_t rank) {
  Peer& peer = *peers_[rank];
  const BusinessCard& card = cards_[rank];
  auto segment = peer.in_process
                     ? Segment::attach_here(rank, card.nonce)
                     : Segment::attach(card.pid, card.file, rank, static_cast<uint32_t>(cards_.size()), card.nonce);
  if (!segment) return segment;
  if (segment->header().closed.load() != 0) return fail(Code::invalid, "rank ", rank, " has left");
  if (peer.in_process) {
    const bool heap = options_.copy_mode == CopyMode::heap, nothing = options_.copy_mode == CopyMode::twice;
    const peer::Reach most = heap ? peer::Reach::heap : nothing ? peer::Reach::nothing : peer::Reach::memory;
    peer.memory = peer::PeerMemory::of_this_process(most, why_memory_unread());
    return segment;
  }
  peer::Process process;
  if (const int error = process.open(card.pid)) {
    return fail(error == ESRCH ? Code::invalid : Code::environment, "pidfd_open: ", std::strerror(error), "; ",
                remedy_for(error));
  }
  const uint64_t nonce = segment->header().self + offsetof(SegmentHeader, nonce);
  peer.memory = peer::PeerMemory(std::move(process), {nonce, card.nonce[0]});
  return segment;
}

// Says why no memory of peers is read but their heaps, or none at all; empty if other memory may be read.
std::string ShmTransport::why_memory_unread() const {
  if (options_.copy_mode == CopyMode::heap) return "SPINLOOM_COPY=heap";
  return options_.copy_mode == CopyMode::twice ? "SPINLOOM_COPY=two-copy" : "";
}

// Notes that a peer is gone, or, with a reason, that it cannot be reached. The first such reason is printed. Always
// returns false, which attach() passes on.
bool ShmTransport::note_loss(uint32_t rank, std::string why) {
  Peer& peer = *peers_[rank];
  peer.loss_noted = true;
  noted_losses_.push_back(rank);
  peer.unreachable = std::move(why);
  if (options_.rendezvous != nullptr && !peer.unreachable.empty()) {
    options_.rendezvous->send_gone(rank, text("it has given this rank up: ", peer.unreachable));
  }
  if (peer.unreachable.empty() || std::exchange(warned_, true)) return false;
  log::emit(log::Level::warning, "live",
            text("rank ", rank, " cannot be reached, what is sent to it fails: ", peer.unreachable));
  return false;
}

void ShmTransport::begin_reading(uint32_t rank) {
  Peer& peer = *peers_[rank];
  if (std::exchange(peer.is_reading, true)) return;
  readable_peers_.push_back(rank);
  const std::string why_not = why_memory_unread();
  if (!peer.in_process && why_not.empty()) std::ignore = peer.memory.try_reading();
  if (!peer.in_process && !why_not.empty()) peer.memory.skip_reading(why_not);
  peer.reader.set_reader_reach(peer.memory.reach());
  offer_help(rank);
  map_heap(peer);
}

// Looks for peers that have attached to us since the last look.
void ShmTransport::attach_new_peers() {
  SegmentHeader& header = own_.header();
  for (uint32_t word = 0; word * 64 < peers_.size(); ++word) {
    uint64_t fresh = header.attached_peers[word].load(std::memory_order_acquire) & ~seen_attached_[word];
    seen_attached_[word] |= fresh;
    for (; fresh != 0; fresh &= fresh - 1) {
      const uint32_t rank = word * 64 + static_cast<uint32_t>(std::countr_zero(fresh));
      if (rank < peers_.size() && rank != rank_ && !peers_[rank]->lost) std::ignore = attach(rank);
    }
  }
}

bool ShmTransport::has_news() const {
  if (!noted_losses_.empty()) return true;
  for (const uint32_t rank : readable_peers_) {
    const Peer& peer = *peers_[rank];
    if (!peer.lost && (!peer.reader.empty() || (peer.shared_copy.is_active() && peer.shared_copy.is_helper_done())))
      return true;
  }
  SegmentHeader& header = own_.header();
  for (uint32_t word = 0; word * 64 < peers_.size(); ++word) {
    if ((header.attached_peers[word].load(std::memory_order_relaxed) & ~seen_attached_[word]) != 0) return true;
  }
  return false;
}

// A full channel is tried again after a pause, because a peer that takes something out of it does not ring our
// doorbell. Peers that are gone are reported at once, peers without a card are asked again in time.
Time ShmTransport::timer() const {
  if (!noted_losses_.empty()) return Time{};
  if (waiting_peers_ == 0) return Time::never();
  return waiting_peers_ == contacts_.count() ? contacts_.next() : std::min(retry_at_, contacts_.next());
}

bool ShmTransport::drained() const { return waiting_peers_ == 0 && open_loans_ == 0 && shared_copies_ == 0; }

Outstanding ShmTransport::outstanding(nic::Rank rank) const {
  const Peer& peer = *peers_[rank.value];
  if (peer.lost) return peer.outstanding_at_loss;
  Outstanding totals;
  for (const auto* const queue : {&peer.answers, &peer.waiting}) {
    for (const Waiting& waiting : *queue) {
      const bool is_control =
          waiting.returned_loan != no_loan || waiting.outbound.packet.operation == nic::Operation::ack;
      ++totals.packets;
      totals.control_packets += is_control ? 1 : 0;
      totals.bytes += is_control ? 0 : waiting.outbound.packet.payload.length - waiting.done;
    }
  }
  for (const Loan& loan : peer.loans) {
    totals.packets += loan.open ? 1 : 0;
    totals.bytes += loan.open ? loan.bytes : 0;
  }
  totals.may_write = peer.shared_copy.is_active();
  totals.is_awaited = peer.card_awaited;
  if (peer.attached) totals.progress = peer.writer.progress();
  return totals;
}

std::string ShmTransport::describe(nic::Rank rank) {
  if (rank.value >= peers_.size()) return "no such rank";
  Peer& peer = *peers_[rank.value];
  const bool known = cards_[rank.value].exists();
  if (!known && !peer.lost && !peer.loss_noted) return "when it has come";
  if (known && !peer.lost && rank.value != rank_) std::ignore = attach(rank.value);
  if (!peer.unreachable.empty()) return "not reached: " + peer.unreachable;
  return peer.lost || peer.loss_noted ? "gone" : peer.memory.describe();
}

// A peer that attaches from now on finds our segment closed. Attached peers get a `bye`, and peers whose cards we wait
// for a message by the rendezvous.
void ShmTransport::say_goodbye() {
  own_.header().closed.store(1);
  attach_new_peers();
  for (uint32_t rank = 0; rank < peers_.size(); ++rank) {
    Peer* const peer = peers_[rank].get();
    if (peer->card_awaited) options_.rendezvous->send_gone(rank, "");
    if (!peer->attached || peer->lost) continue;
    const ChannelWriter::Room room = peer->writer.reserve(0);
    if (room.cell == nullptr) continue;  // the peer notices the end of our process, too, without `bye`
    Cell cell;
    cell.kind = CellKind::bye;
    peer->writer.publish(room, cell);
    peer->segment.header().doorbell.ring(peer->needs_fence);
  }
}

// Reads what the peer published before its end, which is at most a channel full. The number of reads has a limit, so
// that this ends even for a peer that lives and is only out of reach.
void ShmTransport::process_ended(nic::Rank rank) {
  Peer& peer = *peers_[rank.value];
  if (peer.lost) return;
  for (uint32_t reads = 0; reads < ChannelMemory::cells_count && !peer.lost && read_cells(rank.value); ++reads) {
  }
  if (!peer.lost) lose(rank.value);
}

// Loses the peers that note_loss() has noted, after taking what they had sent before: it lies in our own memory.
// Returns whether there were any.
bool ShmTransport::lose_noted() {
  if (noted_losses_.empty()) return false;
  for (const uint32_t rank : std::exchange(noted_losses_, {})) process_ended(nic::Rank{rank});
  return true;
}

void ShmTransport::lose(uint32_t rank) {
  Peer& peer = *peers_[rank];
  peer.outstanding_at_loss = outstanding(nic::Rank{rank});
  peer.outstanding_at_loss.is_lost = true;
  peer.lost = true;
  peer.memory.unmap_heap();
  std::ignore = end_shared_copy(rank);
  client_.lost(nic::Rank{rank});
  if (peer.waits()) --waiting_peers_;
  for (auto* const queue : {&peer.answers, &peer.waiting}) {
    for (const Waiting& waiting : std::exchange(*queue, {})) {
      if (waiting.returned_loan == no_loan) client_.sent(completion_of(waiting.outbound));
    }
  }
  for (Loan& loan : peer.loans) {
    if (!std::exchange(loan.open, false)) continue;
    --open_loans_;
    --peer.open_loans;
    client_.sent(loan.completion);
  }
}

}  // namespace spinloom::live
