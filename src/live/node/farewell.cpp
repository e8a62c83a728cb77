#include "live/node/farewell.hpp"

#include <sstream>

namespace spinloom::live {
namespace {

constexpr uint32_t named_max = 8;  // the most peers that one text names
constexpr int64_t ps_per_s = 1'000'000'000'000;

// True if `limit` has passed since `from`; a limit of Time::never() never passes.
bool has_passed(Time now, Time from, Time limit) { return limit != Time::never() && now - from >= limit; }

}  // namespace

void Farewell::begin(Time now) {
  begun_ = now;
  for (Peer& peer : peers_) {
    if (peer.fate != Fate::late) continue;
    if (peer.left.may_write || has_passed(now, peer.late_at, limit_)) peer.fate = Fate::waited_for;
  }
}

bool Farewell::is_late(Time now, const Peer& peer) const {
  return peer.fate == Fate::late || has_passed(now, begun_, limit_);
}

bool Farewell::update(Time now, nic::Rank peer, const Outstanding& left) {
  Peer& known = peers_[peer.value];
  if (left.is_lost) {
    const bool owed = known.left.packets > 0;
    if (!known.left.is_lost) known = {left, now, owed ? Fate::silent : Fate::waited_for, {}};
    return false;
  }
  const bool late = is_late(now, known);
  if (left != known.left) known = {left, now, known.fate == Fate::late ? Fate::late : Fate::waited_for, known.late_at};
  if (left.packets == 0 && !left.may_write && left.replies == 0) {
    known.fate = Fate::waited_for;
    return false;
  }
  if (late) {
    if (known.fate != Fate::late) known.late_at = now;
    known.fate = Fate::late;
    return false;
  }
  if (left.may_write) return true;  // otherwise the peer's bytes could land in memory that the program uses again
  if (left.is_awaited) return true;
  known.fate = now - known.since >= patience ? Fate::silent : Fate::waited_for;
  return known.fate == Fate::waited_for;
}

bool Farewell::may_be_written() const {
  for (const Peer& peer : peers_) {
    if (peer.left.is_lost || peer.fate == Fate::waited_for) continue;
    if (peer.left.replies > 0 || (peer.left.may_write && peer.fate == Fate::late)) return true;
  }
  return false;
}

std::string Farewell::owing_text() const {
  std::ostringstream line;
  uint32_t named = 0;
  for (uint32_t rank = 0; rank < peers_.size(); ++rank) {
    const Peer& peer = peers_[rank];
    if (peer.left.is_lost || peer.fate == Fate::waited_for || peer.left.replies == 0 || ++named > named_max) continue;
    line << (named == 1 ? "" : "; ") << "rank " << rank << " has not replied";
  }
  if (named > named_max) line << "; and " << named - named_max << " more ranks";
  return line.str();
}

std::string Farewell::late_text() const {
  std::ostringstream line;
  uint32_t named = 0;
  for (uint32_t rank = 0; rank < peers_.size(); ++rank) {
    const Peer& peer = peers_[rank];
    const bool has_taken_all = peer.left.packets == 0 && !peer.left.may_write;
    if (peer.fate != Fate::late || peer.late_at < begun_ || has_taken_all || ++named > named_max) continue;
    line << (named == 1 ? "" : "; ") << "rank " << rank;
    if (peer.left.may_write) {
      line << " may still write to this process's memory, where a message of its lands";
    } else {
      line << " has not taken " << peer.left.packets - peer.left.control_packets << " packets with " << peer.left.bytes
           << " B";
    }
  }
  if (named > named_max) line << "; and " << named - named_max << " more ranks";
  return line.str();
}

std::string Farewell::loss_text() const {
  std::ostringstream line;
  uint32_t named = 0;
  for (uint32_t rank = 0; rank < peers_.size(); ++rank) {
    const Peer& peer = peers_[rank];
    const Outstanding& left = peer.left;
    if (peer.fate == Fate::waited_for || left.packets == left.control_packets || ++named > named_max) continue;
    line << (named == 1 ? "lost, for it was not taken: " : "; ") << left.packets - left.control_packets
         << " packets with " << left.bytes << " B to rank " << rank;
    if (left.is_lost) {
      line << ", which is gone";
    } else if (peer.fate == Fate::late) {
      line << ", which has not taken all in " << limit_.ps / ps_per_s << " s";
    } else {
      line << ", which took nothing for " << patience.ps / ps_per_s << " s";
    }
  }
  if (named > named_max) line << "; and some to " << named - named_max << " more ranks";
  return line.str();
}

}  // namespace spinloom::live
