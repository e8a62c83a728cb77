#include "memory/gpu/draft_pieces.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "memory/layout/blocks.hpp"
#include "memory/layout/cursor.hpp"

namespace spinloom::gpu {
namespace {

class PieceWriter {
 public:
  explicit PieceWriter(int64_t bytes_max) : bytes_max_(bytes_max) {}

  // Adds a piece, or makes the last one longer. False: the table or the period would be too long.
  bool add(int64_t from, int64_t to, int64_t bytes) {
    const auto joined = [&](const std::vector<int64_t>& offsets, int64_t offset) {
      return offset == offsets.back() + (position_ - static_cast<int64_t>(table_.starts.back()));
    };
    if (table_.starts.empty() || !joined(table_.from, from) || !joined(table_.to, to)) {
      const auto is_narrow = [](int64_t offset) { return offset == static_cast<int32_t>(offset); };
      is_wide_ = is_wide_ || !is_narrow(from) || !is_narrow(to);
      const int64_t pieces_max = bytes_max_ / (is_wide_ ? wide_piece_bytes : piece_bytes);
      if (static_cast<int64_t>(table_.starts.size()) >= pieces_max) return false;
      table_.starts.push_back(static_cast<uint32_t>(position_));
      table_.from.push_back(from);
      table_.to.push_back(to);
    }
    position_ += bytes;
    return position_ <= part_bytes_max;
  }
  [[nodiscard]] int64_t position() const { return position_; }
  std::shared_ptr<const PieceTable> finish() {
    table_.starts.push_back(static_cast<uint32_t>(position_));
    const auto contiguous = [&](const std::vector<int64_t>& offsets) { return offsets.size() == 1 && offsets[0] == 0; };
    if (contiguous(table_.from)) table_.from.clear();
    if (contiguous(table_.to)) table_.to.clear();
    return std::make_shared<PieceTable>(std::move(table_));
  }

 private:
  int64_t bytes_max_;
  bool is_wide_ = false;  // an offset needs 64 bits
  int64_t position_ = 0;
  PieceTable table_;
};

}  // namespace

std::optional<Draft> pieces_of_side(const Side& side, bool is_from, const DraftOptions& options) {
  PieceWriter writer(options.pieces_bytes_max);
  bool fits = side.blob->size() <= part_bytes_max;
  const Status visited = fits ? layout::for_each_block(*side.blob, 1,
                                                       [&](const layout::Piece& piece) {
                                                         const int64_t packed = writer.position();
                                                         fits = is_from ? writer.add(piece.offset, packed, piece.bytes)
                                                                        : writer.add(packed, piece.offset, piece.bytes);
                                                         return fits;
                                                       })
                              : Status();
  if (!visited || !fits) return std::nullopt;
  Draft draft;
  draft.pieces = writer.finish();
  draft.block = side.blob->size();
  DraftLevel elements{side.count, {draft.block}, {draft.block}};
  (is_from ? elements.from : elements.to).stride = side.blob->extent();
  draft.levels = {elements};
  return draft;
}

Result<std::optional<Draft>> pieces_of_both(const Message& message, const DraftOptions& options) {
  SPL_ASSIGN(layout::Cursor from, layout::Cursor::open(*message.from.blob, message.from.count));
  SPL_ASSIGN(layout::Cursor to, layout::Cursor::open(*message.to.blob, message.to.count));
  if (from.total() > part_bytes_max) return std::optional<Draft>();
  SPL_TRY(from.seek(0));
  SPL_TRY(to.seek(0));
  PieceWriter writer(options.pieces_bytes_max);
  layout::Piece read = from.next(from.total());
  layout::Piece written = to.next(to.total());
  while (read.bytes > 0) {
    const int64_t bytes = std::min(read.bytes, written.bytes);
    if (!writer.add(read.offset, written.offset, bytes)) return std::optional<Draft>();
    const auto step = [&](layout::Piece& piece, layout::Cursor& cursor) {
      piece = {piece.offset + bytes, piece.bytes - bytes};
      if (piece.bytes == 0) piece = cursor.next(cursor.total());
    };
    step(read, from);
    step(written, to);
  }
  Draft draft;
  draft.block = from.total();
  draft.pieces = writer.finish();
  return std::optional<Draft>(std::move(draft));
}

}  // namespace spinloom::gpu
