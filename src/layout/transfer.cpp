#include "layout/transfer.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "layout/cursor.hpp"

namespace spinloom::layout {

Status copy(const Source& from, const Target& to) {
  SPL_ASSIGN(Cursor source, Cursor::open(from.blob, from.count));
  SPL_ASSIGN(Cursor target, Cursor::open(to.blob, to.count));
  if (source.total() != target.total()) {
    return fail(Code::invalid, "a copy from ", source.total(), " bytes to ", target.total(), " bytes");
  }
  constexpr int64_t all = std::numeric_limits<int64_t>::max();
  Piece out{};
  for (Piece in = source.next(all); in.bytes > 0; in = source.next(all)) {
    while (in.bytes > 0) {
      if (out.bytes == 0) out = target.next(all);
      const int64_t bytes = std::min(in.bytes, out.bytes);
      std::memcpy(to.base + out.offset, from.base + in.offset, static_cast<size_t>(bytes));
      in.offset += bytes;
      in.bytes -= bytes;
      out.offset += bytes;
      out.bytes -= bytes;
    }
  }
  return {};
}

}  // namespace spinloom::layout
