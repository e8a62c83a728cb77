#include "memory/layout/oracle.hpp"

#include <algorithm>
#include <cstring>

#include "base/checked.hpp"
#include "base/limits.hpp"

namespace spinloom::layout::oracle {
namespace {

Status check_packed(const Type& type, int64_t count, size_t bytes) {
  SPL_TRY(check_count(type, count));
  if (static_cast<int64_t>(bytes) != count * type.size()) {
    return fail(Code::invalid, "a packed buffer of ", bytes, " bytes for ", count, " elements of ", type.size(),
                " bytes: it must hold ", count * type.size());
  }
  return {};
}

// Says which block, gap or guard owns a byte; offset counts from the buffer address.
std::string owner_of(const Type& type, int64_t count, int64_t offset) {
  int64_t index = 0;
  int64_t packed = 0;
  std::string owner;
  for_each_block(type, count, [&](const Block& block) {
    if (offset >= block.offset && offset < block.offset + block.bytes) {
      owner = text("byte ", offset - block.offset, " of block ", index, " (", block.bytes, " B at offset ",
                   block.offset, ", packed byte ", packed + offset - block.offset, ")");
    }
    ++index;
    packed += block.bytes;
  });
  if (!owner.empty()) return owner;
  const Reach touched = reach(type, count);
  return offset >= touched.first && offset < touched.last ? "a gap between blocks" : "a guard outside the type";
}

}  // namespace

Status check_count(const Type& type, int64_t count) {
  if (count < 0) return fail(Code::invalid, "count is ", count, ", it must not be negative");
  SPL_ASSIGN(const int64_t bytes, checked::mul(count, type.size()));
  if (bytes > limits::oracle_bytes_max) {
    return fail(Code::overflow, "a message of ", bytes, " bytes exceeds oracle_bytes_max = ", limits::oracle_bytes_max);
  }
  if (bytes > 0) {
    SPL_ASSIGN(const int64_t last, checked::mul(count - 1, type.extent()));
    SPL_ASSIGN([[maybe_unused]] const int64_t last_lb, checked::add(last, type.true_lb()));
    SPL_ASSIGN([[maybe_unused]] const int64_t last_ub, checked::add(last, type.true_ub()));
  }
  return {};
}

Reach reach(const Type& type, int64_t count) {
  if (count == 0 || type.size() == 0) return {};
  const int64_t last = (count - 1) * type.extent();
  return {type.true_lb() + std::min<int64_t>(0, last), type.true_ub() + std::max<int64_t>(0, last)};
}

BlockSummary summarise(const Type& type, int64_t count) {
  BlockSummary summary;
  for_each_block(type, count, [&](const Block& block) {
    summary.bytes_min = summary.blocks == 0 ? block.bytes : std::min(summary.bytes_min, block.bytes);
    summary.bytes_max = std::max(summary.bytes_max, block.bytes);
    summary.bytes += block.bytes;
    ++summary.blocks;
  });
  return summary;
}

Regions regions_per_packet(const Type& type, int64_t count, int64_t packet_bytes) {
  SPL_ASSERT(packet_bytes > 0, "packets of ", packet_bytes, " bytes");
  Regions regions;
  int64_t packed = 0;
  for_each_block(type, count, [&](const Block& block) {
    // Counts the packet boundaries strictly inside (packed, packed + bytes).
    const int64_t cuts = (packed + block.bytes - 1) / packet_bytes - packed / packet_bytes;
    regions.regions += 1 + cuts;
    packed += block.bytes;
  });
  regions.packets = (packed + packet_bytes - 1) / packet_bytes;
  return regions;
}

Status pack(const Type& type, int64_t count, const std::byte* base, std::span<std::byte> out) {
  SPL_TRY(check_packed(type, count, out.size()));
  std::byte* to = out.data();
  for_each_primitive_of(type, count, [&](int64_t offset, int64_t bytes) {
    std::memcpy(to, base + offset, static_cast<size_t>(bytes));
    to += bytes;
  });
  return {};
}

Status unpack(const Type& type, int64_t count, std::span<const std::byte> in, std::byte* base) {
  SPL_TRY(check_packed(type, count, in.size()));
  const std::byte* from = in.data();
  for_each_primitive_of(type, count, [&](int64_t offset, int64_t bytes) {
    std::memcpy(base + offset, from, static_cast<size_t>(bytes));
    from += bytes;
  });
  return {};
}

Status compare(const Type& type, int64_t count, std::span<const std::byte> packed,
               std::span<const std::byte> destination, int64_t base, std::span<const std::byte> before) {
  std::vector<std::byte> expected(before.begin(), before.end());
  return compare_over(type, count, packed, destination, base, expected);
}

Status compare_over(const Type& type, int64_t count, std::span<const std::byte> packed,
                    std::span<const std::byte> destination, int64_t base, std::span<std::byte> before) {
  SPL_TRY(check_packed(type, count, packed.size()));
  if (before.size() != destination.size()) {
    return fail(Code::invalid, "destination of ", destination.size(), " bytes and ", before.size(),
                " bytes from before: they must be equally long");
  }
  const Reach touched = reach(type, count);
  if (touched.last > touched.first &&
      (base + touched.first < 0 || base + touched.last > static_cast<int64_t>(destination.size()))) {
    return fail(Code::invalid, "the type touches offsets ", touched.first, " to ", touched.last,
                " from its base, the destination holds ", -base, " to ",
                static_cast<int64_t>(destination.size()) - base);
  }
  SPL_TRY(unpack(type, count, packed, before.data() + base));
  const auto difference = std::mismatch(before.begin(), before.end(), destination.begin());
  if (difference.first == before.end()) return {};
  const int64_t offset = difference.first - before.begin() - base;
  return fail(Code::mismatch, "destination offset ", offset, " holds ", std::to_integer<int>(*difference.second),
              ", expected ", std::to_integer<int>(*difference.first), ": ", owner_of(type, count, offset));
}

Result<bool> overlaps(const Type& type, int64_t count) {
  SPL_TRY(check_count(type, count));
  std::vector<Block> blocks;
  bool sorted = true;
  for_each_block(type, count, [&](const Block& block) {
    sorted = sorted && (blocks.empty() || blocks.back().offset + blocks.back().bytes <= block.offset);
    blocks.push_back(block);
  });
  if (sorted) return false;
  std::sort(blocks.begin(), blocks.end(), [](const Block& a, const Block& b) { return a.offset < b.offset; });
  for (size_t i = 1; i < blocks.size(); ++i) {
    if (blocks[i - 1].offset + blocks[i - 1].bytes > blocks[i].offset) return true;
  }
  return false;
}

}  // namespace spinloom::layout::oracle
