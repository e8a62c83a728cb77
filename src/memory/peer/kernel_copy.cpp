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

struct Direction {
  Call call;
  const char* name;
  bool is_write;
  uint64_t gap_max;
};
constexpr Direction reading{process_vm_readv, "process_vm_readv", false, gap_bytes_max};
constexpr Direction writing{process_vm_writev, "process_vm_writev", true, 0};

iovec vector_of(uint64_t address, uint64_t length) { return {reinterpret_cast<void*>(address), length}; }

// The arguments of one system call.
class Batch {
 public:
  explicit Batch(const KnownWord& known) {
    if (known.address == 0) return;
    known_value_ = known.value;
    theirs_[0] = vector_of(known.address, sizeof known_value_);
    ours_[0] = {&known_value_, sizeof known_value_};
    theirs_count_ = ours_count_ = 1;
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  // Adds the next `bytes` bytes of both lists, or as many as one call takes.
  void fill(BlockCursor theirs, BlockCursor ours, uint64_t bytes, uint64_t gap_max) {
    uint64_t end = 0;  // end of the block added last
    bool first = true;
    for (bytes = std::min(bytes, call_bytes_max); bytes > 0 && ours_count_ + 2 <= blocks_max; first = false) {
      const uint64_t gap = theirs.address() - end;
      if (first || gap > gap_max) {
        if (theirs_count_ == blocks_max) return;
        theirs_[theirs_count_++] = vector_of(theirs.address(), 0);
      } else if (gap > 0) {
        ours_[ours_count_++] = {discarded_, gap};
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
  [[nodiscard]] uint64_t wanted_bytes_of(uint64_t copied) const {
    uint64_t wanted = 0;
    for (uint32_t i = 0; i < ours_count_ && copied > 0; ++i) {
      const uint64_t block_bytes = std::min<uint64_t>(copied, ours_[i].iov_len);
      if (ours_[i].iov_base != discarded_ && ours_[i].iov_base != &known_value_) wanted += block_bytes;
      copied -= block_bytes;
    }
    return wanted;
  }

 private:
  static constexpr uint32_t blocks_max = call_blocks_max;

  // Adds the next `bytes` of our blocks; returns the number of bytes for which there was room.
  uint64_t add_ours(BlockCursor& ours, uint64_t bytes) {
    uint64_t added = 0;
    while (added < bytes && ours_count_ < blocks_max) {
      const uint64_t chunk_bytes = std::min(ours.left(), bytes - added);
      ours_[ours_count_++] = vector_of(ours.address(), chunk_bytes);
      added += chunk_bytes;
      ours.skip(chunk_bytes);
    }
    return added;
  }

  uint32_t theirs_count_ = 0;
  uint32_t ours_count_ = 0;
  uint64_t known_value_ = 0;
  iovec theirs_[blocks_max];
  iovec ours_[blocks_max];
  uint8_t discarded_[gap_bytes_max];
};

Error process_ended(const Process& process) {
  return fail(Code::environment, "process ", process.id(), " has ended; its memory is gone");
}

CopyResult copy(const Direction& direction, const Process& process, const KnownWord& known, BlockCursor& theirs,
                BlockCursor& ours, uint64_t bytes) {
  CopyResult result;
  while (result.bytes < bytes) {
    Batch batch(known);
    batch.fill(theirs, ours, bytes - result.bytes, direction.gap_max);
    if (direction.is_write && !process.is_alive()) return {result.bytes, process_ended(process)};
    const ssize_t copied = batch.copy(direction.call, process.id());
    const int error = copied < 0 ? errno : EFAULT;  // a partial copy does not report why it stopped
    if (!direction.is_write && !process.is_alive()) return {result.bytes, process_ended(process)};
    const uint64_t wanted = copied < 0 ? 0 : batch.wanted_bytes_of(static_cast<uint64_t>(copied));
    if (wanted == 0) {
      return {result.bytes, fail(Code::environment, direction.name, " of ", bytes, " B of process ", process.id(),
                                 ", after ", result.bytes, " B: ", std::strerror(error))};
    }
    theirs.skip(wanted);
    ours.skip(wanted);
    result.bytes += wanted;
  }
  return result;
}

}  // namespace

CopyResult kernel_read(const Process& from, BlockCursor& theirs, BlockCursor& ours, uint64_t bytes) {
  return copy(reading, from, {}, theirs, ours, bytes);
}

CopyResult kernel_write(const Process& to, const KnownWord& known, BlockCursor& theirs, BlockCursor& ours,
                        uint64_t bytes) {
  return copy(writing, to, known, theirs, ours, bytes);
}

}  // namespace spinloom::peer
