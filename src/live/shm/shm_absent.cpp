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
bool ShmTransport::expect(uint32_t rank) {
  Peer& peer = *peers_[rank];
  if (options_.rendezvous == nullptr || std::exchange(peer.awaited, true)) return false;
  if (!peer.waits()) ++waiting_;
  contacts_.add(rank, monotonic_now());
  ask(rank);
  return false;
}

void ShmTransport::expect_no_more(uint32_t rank) {
  Peer& peer = *peers_[rank];
  if (!std::exchange(peer.awaited, false)) return;
  contacts_.remove(rank);
  if (!peer.waits()) --waiting_;
  look_at_ = pause_ = Time{};
}

void ShmTransport::ask(uint32_t rank) {
  if (options_.rendezvous->ask(rank) == Rendezvous::Asked::gone) gone(nic::Rank{rank}, "");
}

void ShmTransport::met(nic::Rank rank) {
  const Peer& peer = *peers_[rank.value];
  if (!peer.awaited) return;
  expect_no_more(rank.value);
  std::ignore = attach(rank.value);
}

// Notes that a peer is gone; poll() tells the client later.
void ShmTransport::gone(nic::Rank rank, const std::string& why) {
  Peer& peer = *peers_[rank.value];
  if (peer.lost || peer.departed) return;
  expect_no_more(rank.value);
  std::ignore = depart(rank.value, why);  // `rank` may also be attached
}

bool ShmTransport::look_for_absent() {
  const Time now = monotonic_now();
  if (now < contacts_.next()) return false;
  const Contacts::Due due = contacts_.due(now);
  for (const uint32_t rank : due.ask) ask(rank);
  for (const uint32_t rank : due.late) {
    gone(nic::Rank{rank}, text("it has not called PtlInit in ", contacts_.limit().ps / ps_in_one_s,
                               " s; where it needs longer, set SPINLOOM_START_S (0: wait for ever)"));
  }
  if (due.tell && peers_[*due.tell]->awaited) {
    log::emit(log::Level::warning, "live",
              text("rank ", *due.tell, " has not called PtlInit for ", Contacts::told_after.ps / ps_in_one_s,
                   " s; what is sent to it waits"));
  }
  return !departed_.empty();
}

}  // namespace spinloom::live
