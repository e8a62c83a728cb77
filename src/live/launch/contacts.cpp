#include "live/launch/contacts.hpp"

#include <algorithm>
#include <utility>

namespace spinloom::live {

void Contacts::add(uint32_t rank, Time now) {
  peers_.push_back({rank, now, now + pause_first, pause_first});
  update_next();
}

void Contacts::remove(uint32_t rank) {
  std::erase_if(peers_, [rank](const Peer& peer) { return peer.rank == rank; });
  update_next();
}

Contacts::Due Contacts::take_due(Time now) {
  Due due;
  for (Peer& peer : peers_) {
    if (has_passed(now, peer, limit_)) {
      due.timed_out.push_back(peer.rank);
      continue;
    }
    if (will_report() && has_passed(now, peer, report_after)) {
      due.to_report = peer.rank;
      reported_ = true;
    }
    if (now < peer.ask_at) continue;
    due.to_ask.push_back(peer.rank);
    peer.pause = std::min(peer.pause * 2, pause_max);
    peer.ask_at = now + peer.pause;
  }
  update_next();
  return due;
}

void Contacts::update_next() {
  next_ = Time::never();
  for (const Peer& peer : peers_) {
    next_ = std::min(next_, peer.ask_at);
    if (limit_ != Time::never()) next_ = std::min(next_, peer.since + limit_);
    if (will_report()) next_ = std::min(next_, peer.since + report_after);
  }
}

}  // namespace spinloom::live
