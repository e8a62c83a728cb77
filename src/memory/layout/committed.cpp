#include "memory/layout/committed.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "base/checked.hpp"
#include "memory/layout/blob_pool.hpp"
#include "memory/layout/copy.hpp"
#include "memory/layout/overlap.hpp"
#include "memory/layout/transfer.hpp"

namespace spinloom::layout {
namespace {

struct MemoryRange {
  const std::byte* first;
  const std::byte* last;
};

MemoryRange range_of(const std::byte* base, const oracle::Reach& reach) {
  return {base + reach.first, base + reach.last};
}

// Like reach_of(), but without an Error, which costs more than a short copy. False: the caller must call reach_of().
bool reach_at_once(const Blob& blob, int64_t count, oracle::Reach& reach) {
  int64_t span = 0;
  return count > 0 && !__builtin_mul_overflow(count - 1, blob.extent(), &span) &&
         !__builtin_add_overflow(blob.true_lb(), std::min<int64_t>(0, span), &reach.first) &&
         !__builtin_add_overflow(blob.true_lb() + blob.true_extent(), std::max<int64_t>(0, span), &reach.last);
}

bool overlap(const MemoryRange& a, const MemoryRange& b) {
  const std::less<> before;
  return before(a.first, b.last) && before(b.first, a.last);
}

// Copies through a packed buffer, so that everything is read before anything is written.
Status copy_through_memory(const MessageBuffer<const std::byte>& from, const MessageBuffer<std::byte>& to,
                           int64_t total) {
  std::vector<std::byte> packed(static_cast<size_t>(total));
  SPL_TRY(layout::pack(from.layout->blob(), from.count, from.base, 0, total, packed));
  return layout::unpack(to.layout->blob(), to.count, to.base, 0, total, packed);
}

}  // namespace

Result<Committed> Committed::commit(const Type& type) {
  SPL_ASSIGN(const Blob new_blob, Blob::build(type, {.keep_lists = true}));
  Blob blob = BlobPool::process().intern(new_blob);
  auto struct_array = StructArray::from_blob(blob);
  return Committed(std::shared_ptr<Shared>(new Shared{type, std::move(blob), {}, std::move(struct_array)}));
}

Result<int64_t> packed_bytes(const Type& type, int64_t count) {
  if (count < 0) return fail(Code::invalid, "count is ", count, ", it must not be negative");
  return checked::mul(count, type.size());
}

Result<oracle::Reach> reach_of(const Type& type, int64_t count) {
  SPL_ASSIGN(const int64_t bytes, packed_bytes(type, count));
  if (bytes == 0) return oracle::Reach{};
  SPL_ASSIGN(const int64_t span, checked::mul(count - 1, type.extent()));
  SPL_ASSIGN(const int64_t first, checked::add(type.true_lb(), std::min<int64_t>(0, span)));
  SPL_ASSIGN(const int64_t last, checked::add(type.true_ub(), std::max<int64_t>(0, span)));
  return oracle::Reach{first, last};
}

Status Committed::check_receive(int64_t count) const {
  if (is_receive_checked(count)) return {};
  SPL_ASSIGN(const auto overlap, find_overlap(type(), count));
  if (overlap) {
    return fail(Code::invalid,
                "the type overlaps itself, so that receiving into it has no defined result: ", describe(*overlap));
  }
  const bool are_disjoint = std::abs(type().extent()) >= type().true_extent();  // elements stay clear of each other
  shared_->disjoint_count.store(are_disjoint ? std::numeric_limits<int64_t>::max() : count, std::memory_order_relaxed);
  return {};
}

Status Committed::pack(int64_t count, const std::byte* base, PackedRange range, std::span<std::byte> packed) const {
  return layout::pack(blob(), count, base, range.first, range.last, packed);
}

Status Committed::unpack(int64_t count, std::byte* base, PackedRange range, std::span<const std::byte> packed) const {
  SPL_TRY(check_receive(count));
  return layout::unpack(blob(), count, base, range.first, range.last, packed);
}

Status copy_any(const MessageBuffer<const std::byte>& from, const MessageBuffer<std::byte>& to) {
  const Source source{from.layout->blob(), from.count, from.base};
  const Target target{to.layout->blob(), to.count, to.base};
  oracle::Reach from_reach;
  oracle::Reach to_reach;
  int64_t bytes = 0;
  int64_t target_bytes = 0;
  if (to.layout->is_receive_checked(to.count) && !__builtin_mul_overflow(from.count, source.blob.size(), &bytes) &&
      !__builtin_mul_overflow(to.count, target.blob.size(), &target_bytes) && bytes == target_bytes && bytes > 0 &&
      reach_at_once(source.blob, from.count, from_reach) && reach_at_once(target.blob, to.count, to_reach) &&
      !overlap(range_of(from.base, from_reach), range_of(to.base, to_reach))) {
    return copy(source, target);
  }
  SPL_ASSIGN(const int64_t total, from.layout->packed_bytes(from.count));
  SPL_ASSIGN(const int64_t target_total, to.layout->packed_bytes(to.count));
  if (total != target_total) {
    return fail(Code::invalid, "the source has ", total, " bytes of data, the destination ", target_total,
                ": they must be equal");
  }
  SPL_ASSIGN(const oracle::Reach read, from.layout->reach(from.count));
  SPL_ASSIGN(const oracle::Reach written, to.layout->reach(to.count));
  SPL_TRY(to.layout->check_receive(to.count));
  if (total == 0) return {};
  if (overlap(range_of(from.base, read), range_of(to.base, written))) return copy_through_memory(from, to, total);
  return copy(source, target);
}

}  // namespace spinloom::layout
