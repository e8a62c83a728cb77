#include "live/launch/contacts.hpp"

#include <algorithm>
#include <utility>

namespace spinloom::live {

void Contacts::add(uint32_t rank, Time now) {
  peers_.push_back({rank, now, now + pause_first, pause_first});
  find_next();
}

void Contacts::remove(uint32_t rank) {
  std::erase_if(peers_, [rank](const Peer& peer) { return peer.rank == rank; });
  find_next();
}

Contacts::Due Contacts::due(Time now) {
  Due due;
  for (Peer& peer : peers_) {
    if (has_passed(now, peer, limit_)) {
      due.late.push_back(peer.rank);
      continue;
    }
    if (tells() && has_passed(now, peer, told_after)) {
      due.tell = peer.rank;
      told_ = true;
    }
    if (now < peer.ask_at) continue;
    due.ask.push_back(peer.rank);
    peer.pause = std::min(peer.pause * 2, pause_most);
    peer.ask_at = now + peer.pause;
  }
  find_next();
  return due;
}

void Contacts::find_next() {
  next_ = Time::never();
  for (const Peer& peer : peers_) {
    next_ = std::min(next_, peer.ask_at);
    if (limit_ != Time::never()) next_ = std::min(next_, peer.since + limit_);
    if (tells()) next_ = std::min(next_, peer.since + told_after);
  }
}

}  // namespace spinloom::live
