#include "mpi/messages/cma.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "memory/layout/cursor.hpp"

namespace spinloom::mpi {
namespace {

constexpr size_t list_blocks = 512;

// The blocks of one side, a list of them at a time.
class Side {
 public:
  // The side is one run.
  Side(uint64_t address, int64_t bytes) : list_bytes_(static_cast<uint64_t>(bytes)), unlisted_bytes_(0) {
    blocks_.push_back({address, list_bytes_});
    list_cursor_.emplace(blocks_);
  }
  // The side is the first `bytes` packed bytes of a layout.
  Side(layout::Cursor cursor, uint64_t buffer, int64_t bytes) : buffer_(buffer), unlisted_bytes_(bytes) {
    cursor_.emplace(cursor);
  }

  [[nodiscard]] peer::BlockCursor& cursor() { return *list_cursor_; }
  // Returns how many bytes of the list are left; if none are, makes the next list first.
  [[nodiscard]] uint64_t ready_bytes() {
    if (list_bytes_ == 0) refill();
    return list_bytes_;
  }
  void advance(uint64_t bytes) { list_bytes_ -= bytes; }

 private:
  void refill() {
    blocks_.clear();
    while (unlisted_bytes_ > 0 && blocks_.size() < list_blocks) {
      const layout::Piece piece = cursor_->next(unlisted_bytes_);
      if (piece.bytes == 0) break;
      const auto length = static_cast<uint64_t>(piece.bytes);
      const uint64_t address = buffer_ + static_cast<uint64_t>(piece.offset);
      if (!blocks_.empty() && blocks_.back().address + blocks_.back().length == address) {
        blocks_.back().length += length;
      } else {
        blocks_.push_back({address, length});
      }
      unlisted_bytes_ -= piece.bytes;
      list_bytes_ += length;
    }
    list_cursor_.emplace(blocks_);
  }

  std::optional<layout::Cursor> cursor_;
  uint64_t buffer_ = 0;
  std::vector<peer::Block> blocks_;
  std::optional<peer::BlockCursor> list_cursor_;
  uint64_t list_bytes_ = 0;
  int64_t unlisted_bytes_;
};

Result<Side> side_of(const layout::Blob& blob, int64_t count, uint64_t buffer, int64_t bytes) {
  SPL_ASSIGN(layout::Cursor cursor, layout::Cursor::open(blob, count));
  SPL_TRY(cursor.seek(0));
  return Side(std::move(cursor), buffer, bytes);
}

// Calls copy(their blocks, our blocks, bytes), which moves the next bytes, until `bytes` are copied.
template <class Copy>
Status copy_all(const RemotePlace& place, const Message& here, int64_t bytes, Copy&& copy) {
  const Form& form = here.form();
  const auto our_base = reinterpret_cast<uint64_t>(here.buffer());
  auto theirs = place.blob == nullptr ? Result<Side>(Side(place.buffer, bytes))
                                      : side_of(*place.blob, place.count, place.buffer, bytes);
  auto ours = form.is_contiguous(here.count())
                  ? Result<Side>(Side(our_base + static_cast<uint64_t>(form.true_lb), bytes))
                  : side_of(form.layout->blob(), here.count(), our_base, bytes);
  if (!theirs) return theirs.error();
  if (!ours) return ours.error();
  for (auto left_bytes = static_cast<uint64_t>(bytes); left_bytes > 0;) {
    const uint64_t step_bytes = std::min({theirs->ready_bytes(), ours->ready_bytes(), left_bytes});
    if (step_bytes == 0) return fail(Code::invalid, "a message of ", bytes, " B has fewer");
    if (const peer::CopyResult copied = copy(theirs->cursor(), ours->cursor(), step_bytes); !copied.ok())
      return copied.status;
    theirs->advance(step_bytes);
    ours->advance(step_bytes);
    left_bytes -= step_bytes;
  }
  return {};
}

}  // namespace

Status read_by_cma(const peer::Process& from, const RemotePlace& place, const Message& into, int64_t bytes) {
  return copy_all(place, into, bytes, [&](peer::BlockCursor& theirs, peer::BlockCursor& ours, uint64_t step_bytes) {
    return peer::kernel_read(from, theirs, ours, step_bytes);
  });
}

Status write_by_cma(const peer::Process& to, const peer::KnownWord& word, const RemotePlace& place, const Message& from,
                    int64_t bytes) {
  return copy_all(place, from, bytes, [&](peer::BlockCursor& theirs, peer::BlockCursor& ours, uint64_t step_bytes) {
    return peer::kernel_write(to, word, theirs, ours, step_bytes);
  });
}

}  // namespace spinloom::mpi
