#include "memory/peer/kernel_copy.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

namespace spinloom::peer {
namespace {

constexpr uint32_t call_blocks_max = 512;  // blocks of each side; more gain nothing and take more of the stack
static_assert(call_blocks_max <= IOV_MAX, "what the kernel takes");
constexpr uint64_t call_bytes_max = uint64_t{1} << 30;  // the kernel copies less than 2^31 bytes at once
// Measured: reading up to this many unwanted bytes costs at most half as much as another block. A gap is shorter than
// a page, so that it lies on the pages of its neighbours.
constexpr uint64_t gap_bytes_max = 2048;
static_assert(gap_bytes_max < 4096, "a gap is on no page of its own");

using Call = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);

struct Kind {
  Call call;
  const char* name;
  bool writes;
  uint64_t gap_max;
};
constexpr Kind reading{process_vm_readv, "process_vm_readv", false, gap_bytes_max};
constexpr Kind writing{process_vm_writev, "process_vm_writev", true, 0};

iovec vector_of(uint64_t address, uint64_t length) { return {reinterpret_cast<void*>(address), length}; }

// The arguments of one system call.
class Batch {
 public:
  explicit Batch(const Word& known) {
    if (known.address == 0) return;
    word_ = known.value;
    theirs_[0] = vector_of(known.address, sizeof word_);
    ours_[0] = {&word_, sizeof word_};
    theirs_count_ = ours_count_ = 1;
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  // Adds the next `bytes` bytes of both lists, or as many as one call takes.
  void fill(BlockCursor theirs, BlockCursor ours, uint64_t bytes, uint64_t gap_max) {
    uint64_t end = 0;  // end of the block added last
    bool first = true;
    for (bytes = std::min(bytes, call_bytes_max); bytes > 0 && ours_count_ + 2 <= most; first = false) {
      const uint64_t gap = theirs.address() - end;
      if (first || gap > gap_max) {
        if (theirs_count_ == most) return;
        theirs_[theirs_count_++] = vector_of(theirs.address(), 0);
      } else if (gap > 0) {
        ours_[ours_count_++] = {thrown_away_, gap};
        theirs_[theirs_count_ - 1].iov_len += gap;
      }
      const uint64_t wanted = std::min(theirs.left(), bytes);
      const uint64_t added = add_ours(ours, wanted);
      theirs_[theirs_count_ - 1].iov_len += added;
      end = theirs.address() + added;
      bytes -= added;
      theirs.skip(added);
      if (added < wanted) return;
    }
  }
  [[nodiscard]] ssize_t copy(Call call, int64_t id) const {
    return call(static_cast<pid_t>(id), ours_, ours_count_, theirs_, theirs_count_, 0);
  }
  // Returns the wanted bytes among those that a call has copied: not the known word, and no gaps.
  [[nodiscard]] uint64_t wanted_of(uint64_t copied) const {
    uint64_t wanted = 0;
    for (uint32_t i = 0; i < ours_count_ && copied > 0; ++i) {
      const uint64_t of_this = std::min<uint64_t>(copied, ours_[i].iov_len);
      if (ours_[i].iov_base != thrown_away_ && ours_[i].iov_base != &word_) wanted += of_this;
      copied -= of_this;
    }
    return wanted;
  }

 private:
  static constexpr uint32_t most = call_blocks_max;

  // Adds the next `bytes` of our blocks; returns the number of bytes for which there was room.
  uint64_t add_ours(BlockCursor& ours, uint64_t bytes) {
    uint64_t added = 0;
    while (added < bytes && ours_count_ < most) {
      const uint64_t now = std::min(ours.left(), bytes - added);
      ours_[ours_count_++] = vector_of(ours.address(), now);
      added += now;
      ours.skip(now);
    }
    return added;
  }

  uint32_t theirs_count_ = 0;
  uint32_t ours_count_ = 0;
  uint64_t word_ = 0;
  iovec theirs_[most];
  iovec ours_[most];
  uint8_t thrown_away_[gap_bytes_max];
};

Error ended(const Process& process) {
  return fail(Code::environment, "process ", process.id(), " has ended; its memory is gone");
}

Copied copy(const Kind& kind, const Process& process, const Word& known, BlockCursor& theirs, BlockCursor& ours,
            uint64_t bytes) {
  Copied out;
  while (out.bytes < bytes) {
    Batch batch(known);
    batch.fill(theirs, ours, bytes - out.bytes, kind.gap_max);
    if (kind.writes && !process.holds()) return {out.bytes, ended(process)};
    const ssize_t copied = batch.copy(kind.call, process.id());
    const int error = copied < 0 ? errno : EFAULT;  // a partial copy does not report why it stopped
    if (!kind.writes && !process.holds()) return {out.bytes, ended(process)};
    const uint64_t wanted = copied < 0 ? 0 : batch.wanted_of(static_cast<uint64_t>(copied));
    if (wanted == 0) {
      return {out.bytes, fail(Code::environment, kind.name, " of ", bytes, " B of process ", process.id(), ", after ",
                              out.bytes, " B: ", std::strerror(error))};
    }
    theirs.skip(wanted);
    ours.skip(wanted);
    out.bytes += wanted;
  }
  return out;
}

}  // namespace

Copied kernel_read(const Process& from, BlockCursor& theirs, BlockCursor& ours, uint64_t bytes) {
  return copy(reading, from, {}, theirs, ours, bytes);
}

Copied kernel_write(const Process& to, const Word& known, BlockCursor& theirs, BlockCursor& ours, uint64_t bytes) {
  return copy(writing, to, known, theirs, ours, bytes);
}

}  // namespace spinloom::peer
