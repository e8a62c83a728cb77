// Accumulating accesses to mapped memory whose elements MPI_Reduce_local changes, part by part.
#include "mpi/abi/rma_change.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "mpi/abi/layer.hpp"
#include "mpi/abi/rma_window.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

constexpr int64_t packed_bytes_max = 16 << 10;  // elements that do not lie together are packed in parts of this length
constexpr double long_block_bytes = 512;

}  // namespace

int RmaWindow::change_in_place(const Buffer* from, const Buffer* result, const RemoteBuffer& remote,
                               const Accumulation& change, Op op) {
  // Elements that do not lie together are packed, changed and unpacked, part by part.
  struct Side {
    Message message;
    uint8_t* together;  // its first byte, if its bytes are contiguous; else null
    std::vector<uint8_t> packed;
    Side(const Form& form, int64_t count, void* address, int64_t most)
        : message(form, count, address),
          together(form.is_contiguous(count) ? static_cast<uint8_t*>(address) + form.true_lb : nullptr),
          packed(together == nullptr ? static_cast<size_t>(most) : 0) {}
    [[nodiscard]] uint8_t* part(int64_t first) { return together != nullptr ? together + first : packed.data(); }
  };
  if (change.bytes == INT64_MAX) return error_rma_range;
  uint8_t* const start = start_of(remote, *change.theirs, way_->memory_of(remote.target));
  if (start == nullptr) return error_rma_range;
  const int64_t size = change.element_form->size;
  const bool is_packed = !change.theirs->is_contiguous(remote.count) ||
                         (from != nullptr && !change.own->is_contiguous(from->count)) ||
                         (result != nullptr && !change.into->is_contiguous(result->count));
  const int64_t part_bytes = is_packed ? packed_bytes_max : change_bytes_max;
  const int64_t most = std::min(change.bytes, std::max(size, part_bytes / size * size));
  Side theirs(*change.theirs, remote.count, start, most);
  std::optional<Side> sent;
  std::optional<Side> back;
  if (from != nullptr) sent.emplace(*change.own, from->count, from->address, most);
  if (result != nullptr) back.emplace(*change.into, result->count, result->address, most);
  int code = success;
  const auto has_long_blocks = [](const Form& form, int64_t count) {
    return form.block_bytes >= long_block_bytes || form.is_contiguous(count);
  };
  if (is_packed && from != nullptr && result == nullptr && has_long_blocks(*change.theirs, remote.count) &&
      has_long_blocks(*change.own, from->count)) {
    // Long blocks are changed where they lie.
    const std::vector<MemoryBlock> operands = RmaTypes::blocks_of(*change.own, from->count);
    size_t own_block = 0;
    int64_t own_at = 0;
    for (const MemoryBlock& block : RmaTypes::blocks_of(*change.theirs, remote.count)) {
      for (int64_t at = 0; at < block.bytes && code == success;) {
        const MemoryBlock& own = operands[own_block];
        const int64_t bytes = std::min({most, block.bytes - at, own.bytes - own_at});
        const uint8_t* const operand = static_cast<const uint8_t*>(from->address) + own.offset + own_at;
        uint8_t* const there = start + block.offset + at;
        change_under_lock(remote.target, [&] {
          if (op == op_replace()) {
            std::memcpy(there, operand, static_cast<size_t>(bytes));
          } else {
            code = real.Reduce_local(operand, there, static_cast<int>(bytes / size), change.element, op);
          }
        });
        at += bytes;
        own_at += bytes;
        if (own_at < own.bytes) continue;
        ++own_block;
        own_at = 0;
      }
    }
    return code;
  }
  for (int64_t done = 0; done < change.bytes && code == success; done += most) {
    const Range range{done, std::min(done + most, change.bytes)};
    const auto bytes = static_cast<size_t>(range.last - range.first);
    uint8_t* const there = theirs.part(done);
    const uint8_t* operands = nullptr;
    if (sent) {
      if (sent->together == nullptr) sent->message.pack(range, sent->packed.data());
      operands = sent->part(done);
    }
    change_under_lock(remote.target, [&] {
      const bool is_replaced = operands != nullptr && op == op_replace();
      if (theirs.together == nullptr && (back || !is_replaced)) theirs.message.pack(range, there);
      if (back) std::memcpy(back->part(done), there, bytes);
      if (operands == nullptr) return;
      if (is_replaced) {
        std::memcpy(there, operands, bytes);
      } else {
        code =
            real.Reduce_local(operands, there, static_cast<int>(bytes / static_cast<size_t>(size)), change.element, op);
      }
      if (theirs.together == nullptr && code == success) theirs.message.unpack(range, there);
    });
    if (back && back->together == nullptr) back->message.unpack(range, back->packed.data());
  }
  return code;
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
