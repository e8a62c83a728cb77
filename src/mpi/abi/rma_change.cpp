// Accumulating accesses to mapped memory whose elements MPI_Reduce_local changes, part by part.
#include "mpi/abi/rma_change.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <span>

#include "mpi/abi/layer.hpp"
#include "mpi/abi/rma_window.hpp"
#include "mpi/moving/combine.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

constexpr int64_t packed_bytes_max = 16 << 10;  // elements that do not lie together are packed in parts of this length

// The contiguous pieces of a message, in packed order: all of it, where it is contiguous, else the `blocks` of each
// element of its type.
class Pieces {
 public:
  Pieces(const Form& form, const MemoryBlocks& blocks, int64_t count, void* address)
      : whole_{form.true_lb, form.size * count},
        blocks_(form.is_contiguous(count) ? std::span(&whole_, 1) : std::span(*blocks)),
        extent_(form.extent),
        element_(static_cast<uint8_t*>(address)) {}
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;
  // Returns the next bytes, as many as lie together, at most so many.
  std::span<uint8_t> next(int64_t bytes_max) {
    if (done_ == blocks_[block_].bytes) {
      done_ = 0;
      if (++block_ == blocks_.size()) {
        block_ = 0;
        element_ += extent_;
      }
    }
    const MemoryBlock& block = blocks_[block_];
    const int64_t bytes = std::min(bytes_max, block.bytes - done_);
    uint8_t* const start = element_ + block.offset + done_;
    done_ += bytes;
    return {start, static_cast<size_t>(bytes)};
  }
  // Loads the start of this element's next block into the caches: by itself the processor loads ahead within a page.
  void prefetch_next_block() const {
    if (block_ + 1 >= blocks_.size()) return;
    const uint8_t* const start = element_ + blocks_[block_ + 1].offset;
    for (size_t line = 0; line < 8; ++line) __builtin_prefetch(start + 64 * line);
  }

 private:
  MemoryBlock whole_;
  std::span<const MemoryBlock> blocks_;
  int64_t extent_;
  uint8_t* element_;
  size_t block_ = 0;
  int64_t done_ = 0;  // bytes of the block that next() has returned
};

// Elements of a message, part by part: where they lie, if they lie together, else packed.
class Side {
 public:
  Side(const Form& form, int64_t count, void* address, int64_t bytes_max)
      : message_(form, count, address),
        together_(form.is_contiguous(count) ? static_cast<uint8_t*>(address) + form.true_lb : nullptr),
        packed_(together_ == nullptr ? std::make_unique_for_overwrite<uint8_t[]>(static_cast<size_t>(bytes_max))
                                     : nullptr) {}
  [[nodiscard]] uint8_t* part(int64_t first) const { return together_ != nullptr ? together_ + first : packed_.get(); }
  void load(Range range) const {
    if (together_ == nullptr) message_.pack(range, packed_.get());
  }
  void store(Range range) const {
    if (together_ == nullptr) message_.unpack(range, packed_.get());
  }

 private:
  Message message_;
  uint8_t* together_;
  std::unique_ptr<uint8_t[]> packed_;
};

}  // namespace

int RmaWindow::change_in_place(const Buffer* from, const Buffer* result, const RemoteBuffer& remote,
                               const Accumulation& change, Op op) {
  if (change.bytes == INT64_MAX) return error_rma_range;
  uint8_t* const start = start_of(remote, *change.theirs, way_->memory_of(remote.target));
  if (start == nullptr) return error_rma_range;
  const auto has_long_blocks = [](const Form& form, int64_t count, const MemoryBlocks& blocks) {
    return blocks != nullptr || form.is_contiguous(count);
  };
  const bool is_whole = change.theirs->is_contiguous(remote.count) &&
                        (from == nullptr || change.own->is_contiguous(from->count)) &&
                        (result == nullptr || change.into->is_contiguous(result->count));
  if (!is_whole && from != nullptr && result == nullptr &&
      has_long_blocks(*change.theirs, remote.count, change.their_blocks) &&
      has_long_blocks(*change.own, from->count, change.own_blocks)) {
    return change_where_they_lie(*from, {start, remote.count, remote.type}, remote.target, change, op);
  }
  const int64_t size = change.element_form->size;
  const int64_t part_bytes = is_whole ? change_bytes_max : packed_bytes_max;
  const int64_t most = std::min(change.bytes, std::max(size, part_bytes / size * size));
  const Side theirs(*change.theirs, remote.count, start, most);
  std::optional<Side> sent;
  std::optional<Side> back;
  if (from != nullptr) sent.emplace(*change.own, from->count, from->address, most);
  if (result != nullptr) back.emplace(*change.into, result->count, result->address, most);
  int code = success;
  for (int64_t done = 0; done < change.bytes && code == success; done += most) {
    const Range range{done, std::min(done + most, change.bytes)};
    const auto bytes = static_cast<size_t>(range.last - range.first);
    uint8_t* const there = theirs.part(done);
    if (sent) sent->load(range);
    change_under_lock(remote.target, [&] {
      const bool is_replaced = sent && op == op_replace();
      if (back || !is_replaced) theirs.load(range);
      if (back) std::memcpy(back->part(done), there, bytes);
      if (!sent) return;
      if (is_replaced) {
        std::memcpy(there, sent->part(done), bytes);
      } else {
        code = real.Reduce_local(sent->part(done), there, static_cast<int>(bytes / static_cast<size_t>(size)),
                                 change.element, op);
      }
      if (code == success) theirs.store(range);
    });
    if (back) back->store(range);
  }
  return code;
}

int RmaWindow::change_where_they_lie(const Buffer& from, const Buffer& there, int target, const Accumulation& change,
                                     Op op) {
  Pieces operands(*change.own, change.own_blocks, from.count, from.address);
  Pieces elements(*change.theirs, change.their_blocks, there.count, there.address);
  const int64_t size = change.element_form->size;
  // The lock is given back after so many bytes, sooner where threads of this process wait for it, too.
  const int64_t most = std::max(size, (layer.is_threaded ? packed_bytes_max : change_bytes_max) / size * size);
  const std::optional<int> known = change.code ? RmaTypes::op_of(op) : std::nullopt;
  const bool leaves_cache = change.bytes >= (256 << 10);
  int code = success;
  const auto change_elements = [&](std::span<const uint8_t> operand, uint8_t* into) {
    const auto count = static_cast<int64_t>(operand.size()) / size;
    if (known && static_cast<int64_t>(operand.size()) <= combine_bytes_max &&
        combine(*known, *change.code, operand.data(), into, count)) {
      return;
    }
    code = real.Reduce_local(operand.data(), into, static_cast<int>(count), change.element, op);
  };
  for (int64_t done = 0; done < change.bytes && code == success; done += most) {
    change_under_lock(target, [&] {
      int64_t left = std::min(most, change.bytes - done);
      while (left > 0 && code == success) {
        std::span<uint8_t> into = elements.next(left);
        if (leaves_cache) {
          elements.prefetch_next_block();
          operands.prefetch_next_block();
        }
        left -= static_cast<int64_t>(into.size());
        while (!into.empty() && code == success) {
          const std::span<const uint8_t> operand = operands.next(static_cast<int64_t>(into.size()));
          if (op == op_replace()) {
            std::memcpy(into.data(), operand.data(), operand.size());
          } else {
            change_elements(operand, into.data());
          }
          into = into.subspan(operand.size());
        }
      }
    });
  }
  return code;
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
