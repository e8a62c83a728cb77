#include "memory/layout/iovec.hpp"

#include <limits>

namespace spinloom::layout {

Result<std::vector<Piece>> export_iovec(const Blob& blob, int64_t count, const IovecLimits& limits) {
  SPL_ASSIGN(Cursor cursor, Cursor::open(blob, count));
  std::vector<Piece> list;
  if (cursor.total() == 0) return list;
  SPL_TRY(cursor.seek(0));
  for (;;) {
    const Piece piece = cursor.next(std::numeric_limits<int64_t>::max());
    if (piece.bytes == 0) return list;
    if (!list.empty() && list.back().offset + list.back().bytes == piece.offset) {
      list.back().bytes += piece.bytes;
      continue;
    }
    if (static_cast<int64_t>(list.size()) >= limits.entries_max) {
      return fail(Code::exhausted, "a list of ", limits.entries_max, " pieces ends at packed byte ",
                  cursor.position() - piece.bytes, " of ", cursor.total(), "; raise IovecLimits::entries_max");
    }
    list.push_back(piece);
  }
}

}  // namespace spinloom::layout
