#include "live/fabric/fabric_reads.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace spinloom::live {

void FabricReads::begin(const FabricRead& read) {
  open_.push_back(std::make_shared<OpenRead>(OpenRead{read, 0, 0, true}));
  advance();
}

// Sees to a piece for this read, which is then the last in `free_`.
FabricReads::Admission FabricReads::admit_piece(const OpenRead& read) {
  size_t of_peer = 0;
  for (const Piece& piece : pieces_) of_peer += piece.read && piece.read->read.peer == read.read.peer ? 1 : 0;
  const bool first = read.requested_bytes == read.ended_bytes;
  const bool full = of_peer >= pieces_of_peer || on_their_way_ >= pieces_max;
  if (full && !(read.read.is_blocking && first)) return Admission::later;
  if (!free_.empty()) return Admission::now;
  auto memory = port_.make_read_buffer(piece_bytes);
  if (!memory) return on_their_way_ > 0 ? Admission::later : Admission::never;
  pieces_.push_back({*memory, nullptr, 0, 0});
  free_.push_back(pieces_.size() - 1);
  return Admission::now;
}

void FabricReads::advance() {
  for (auto one = open_.begin(); one != open_.end();) {
    const std::shared_ptr<OpenRead> read = *one;
    Admission admission = Admission::now;
    while (read->requested_bytes < read->read.length && read->succeeded) {
      admission = admit_piece(*read);
      if (admission != Admission::now) break;
      const size_t index = free_.back();
      Piece& piece = pieces_[index];
      piece.length = std::min(piece_bytes, read->read.length - read->requested_bytes);
      piece.offset = read->requested_bytes;
      const FabricRegion from{read->read.from.key, read->read.from.address + piece.offset};
      if (!port_.read(read->read.peer, from, piece.memory, piece.length, index)) break;
      piece.read = read;
      free_.pop_back();
      ++on_their_way_;
      read->requested_bytes += piece.length;
    }
    if (admission == Admission::never) {
      refused_.push_back(read->read);
      one = open_.erase(one);
    } else {
      ++one;
    }
  }
}

std::vector<FabricRead> FabricReads::take_refused() { return std::exchange(refused_, {}); }

std::optional<FabricReads::EndedRead> FabricReads::end_piece(uint64_t token, bool succeeded) {
  Piece& piece = pieces_.at(token);
  const std::shared_ptr<OpenRead> read = std::exchange(piece.read, nullptr);
  free_.push_back(token);
  if (!read) return std::nullopt;
  --on_their_way_;
  if (succeeded) std::memcpy(read->read.to + piece.offset, piece.memory, piece.length);
  read->succeeded = read->succeeded && succeeded;
  read->ended_bytes += piece.length;
  const bool over = read->ended_bytes == (read->succeeded ? read->read.length : read->requested_bytes);
  if (over) open_.erase(std::find(open_.begin(), open_.end(), read));
  advance();
  if (!over) return std::nullopt;
  return EndedRead{read->read, read->succeeded};
}

std::vector<FabricRead> FabricReads::abandon(nic::Rank peer) {
  std::vector<FabricRead> abandoned;
  for (Piece& piece : pieces_) {
    if (!piece.read || piece.read->read.peer != peer) continue;
    piece.read = nullptr;
    --on_their_way_;
  }
  std::erase_if(open_, [&](const std::shared_ptr<OpenRead>& one) {
    if (one->read.peer != peer) return false;
    abandoned.push_back(one->read);
    return true;
  });
  advance();
  return abandoned;
}

}  // namespace spinloom::live
