// The part of ShmTransport for peers whose cards have not come: asking, waiting, giving up.
#include <tuple>
#include <utility>

#include "base/log.hpp"
#include "live/node/futex.hpp"
#include "live/shm/shm_transport.hpp"

namespace spinloom::live {
namespace {

constexpr int64_t ps_in_one_s = 1'000'000'000'000;

}  // namespace

// Asks for the card of a peer that is needed now. Always returns false: the peer is not attached.
bool ShmTransport::await_card(uint32_t rank) {
  Peer& peer = *peers_[rank];
  if (options_.rendezvous == nullptr || std::exchange(peer.card_awaited, true)) return false;
  if (!peer.waits()) ++waiting_peers_;
  contacts_.add(rank, monotonic_now());
  ask_for_card(rank);
  return false;
}

void ShmTransport::stop_awaiting(uint32_t rank) {
  Peer& peer = *peers_[rank];
  if (!std::exchange(peer.card_awaited, false)) return;
  contacts_.remove(rank);
  if (!peer.waits()) --waiting_peers_;
  retry_at_ = retry_pause_ = Time{};
}

void ShmTransport::ask_for_card(uint32_t rank) {
  if (options_.rendezvous->ask(rank) == Rendezvous::AskResult::gone) peer_lost(nic::Rank{rank}, "");
}

void ShmTransport::card_arrived(nic::Rank rank) {
  const Peer& peer = *peers_[rank.value];
  if (!peer.card_awaited) return;
  stop_awaiting(rank.value);
  std::ignore = attach(rank.value);
}

// Notes that a peer is gone; poll() tells the client later.
void ShmTransport::peer_lost(nic::Rank rank, const std::string& why) {
  Peer& peer = *peers_[rank.value];
  if (peer.lost || peer.loss_noted) return;
  stop_awaiting(rank.value);
  std::ignore = note_loss(rank.value, why);  // `rank` may also be attached
}

bool ShmTransport::check_awaited() {
  const Time now = monotonic_now();
  if (now < contacts_.next()) return false;
  const Contacts::Due due = contacts_.take_due(now);
  for (const uint32_t rank : due.to_ask) ask_for_card(rank);
  for (const uint32_t rank : due.timed_out) {
    peer_lost(nic::Rank{rank}, text("it has not called PtlInit in ", contacts_.limit().ps / ps_in_one_s,
                                    " s; where it needs longer, set SPINLOOM_START_S (0: wait for ever)"));
  }
  if (due.to_report && peers_[*due.to_report]->card_awaited) {
    log::emit(log::Level::warning, "live",
              text("rank ", *due.to_report, " has not called PtlInit for ", Contacts::report_after.ps / ps_in_one_s,
                   " s; what is sent to it waits"));
  }
  return !noted_losses_.empty();
}

}  // namespace spinloom::live
