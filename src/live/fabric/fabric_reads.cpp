#include "live/fabric/fabric_reads.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace spinloom::live {

void FabricReads::begin(const FabricRead& read) {
  open_.push_back(std::make_shared<Open>(Open{read, 0, 0, true}));
  advance();
}

// Sees to a piece for this read, which is then the last in `free_`.
FabricReads::Room FabricReads::make_room(const Open& read) {
  size_t of_peer = 0;
  for (const Piece& piece : pieces_) of_peer += piece.of && piece.of->read.peer == read.read.peer ? 1 : 0;
  const bool first = read.asked == read.landed;
  const bool full = of_peer >= pieces_of_peer || on_their_way_ >= pieces_max;
  if (full && !(read.read.alone && first)) return Room::later;
  if (!free_.empty()) return Room::there;
  auto memory = port_.landing(piece_bytes);
  if (!memory) return on_their_way_ > 0 ? Room::later : Room::never;
  pieces_.push_back({*memory, nullptr, 0, 0});
  free_.push_back(pieces_.size() - 1);
  return Room::there;
}

void FabricReads::advance() {
  for (auto one = open_.begin(); one != open_.end();) {
    const std::shared_ptr<Open> read = *one;
    Room room = Room::there;
    while (read->asked < read->read.length && read->well) {
      room = make_room(*read);
      if (room != Room::there) break;
      const size_t index = free_.back();
      Piece& piece = pieces_[index];
      piece.length = std::min(piece_bytes, read->read.length - read->asked);
      piece.offset = read->asked;
      const FabricPlace from{read->read.from.key, read->read.from.address + piece.offset};
      if (!port_.read(read->read.peer, from, piece.memory, piece.length, index)) break;
      piece.of = read;
      free_.pop_back();
      ++on_their_way_;
      read->asked += piece.length;
    }
    if (room == Room::never) {
      refused_.push_back(read->read);
      one = open_.erase(one);
    } else {
      ++one;
    }
  }
}

std::vector<FabricRead> FabricReads::refused() { return std::exchange(refused_, {}); }

std::optional<FabricReads::Ended> FabricReads::ended(uint64_t token, bool well) {
  Piece& piece = pieces_.at(token);
  const std::shared_ptr<Open> read = std::exchange(piece.of, nullptr);
  free_.push_back(token);
  if (!read) return std::nullopt;
  --on_their_way_;
  if (well) std::memcpy(read->read.to + piece.offset, piece.memory, piece.length);
  read->well = read->well && well;
  read->landed += piece.length;
  const bool over = read->landed == (read->well ? read->read.length : read->asked);
  if (over) open_.erase(std::find(open_.begin(), open_.end(), read));
  advance();
  if (!over) return std::nullopt;
  return Ended{read->read, read->well};
}

std::vector<FabricRead> FabricReads::abandon(nic::Rank peer) {
  std::vector<FabricRead> abandoned;
  for (Piece& piece : pieces_) {
    if (!piece.of || piece.of->read.peer != peer) continue;
    piece.of = nullptr;
    --on_their_way_;
  }
  std::erase_if(open_, [&](const std::shared_ptr<Open>& one) {
    if (one->read.peer != peer) return false;
    abandoned.push_back(one->read);
    return true;
  });
  advance();
  return abandoned;
}

}  // namespace spinloom::live
