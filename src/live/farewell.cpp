#include "live/farewell.hpp"

#include <sstream>

namespace spinloom::live {
namespace {

constexpr uint32_t named_max = 8;  // peers of a line

}  // namespace

bool Farewell::waits(Time now, nic::Rank peer, const Untaken& left) {
  Peer& known = peers_[peer.value];
  if (left.gone) {
    if (!known.left.gone) known = {left, now, known.left.packets > 0};
    return false;
  }
  if (left != known.left) known = {left, now, false};
  if (left.writes) return true;  // however long: its bytes would land in memory that is the program's again
  known.given_up = left.packets > 0 && now - known.since >= patience;
  return left.packets > 0 && !known.given_up;
}

std::string Farewell::lost() const {
  std::ostringstream line;
  uint32_t named = 0;
  for (uint32_t rank = 0; rank < peers_.size(); ++rank) {
    const Untaken& left = peers_[rank].left;
    if (!peers_[rank].given_up || left.packets == left.notes || ++named > named_max) continue;
    line << (named == 1 ? "lost, for it was not taken: " : "; ") << left.packets - left.notes << " packets with "
         << left.bytes << " B to rank " << rank;
    if (left.gone) {
      line << ", which is gone";
    } else {
      line << ", which took nothing for " << patience.ps / 1'000'000'000'000 << " s";
    }
  }
  if (named > named_max) line << "; and some to " << named - named_max << " more ranks";
  return line.str();
}

}  // namespace spinloom::live
