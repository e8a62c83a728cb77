#include "predict/program/shrink.hpp"

#include <span>
#include <utility>

#include "memory/layout/blob.hpp"
#include "memory/layout/blob_type.hpp"
#include "memory/layout/oracle.hpp"
#include "memory/layout/type.hpp"

namespace spinloom::predict {
namespace {

// Returns a type with the first blocks of an element, or with the beginning of its only block.
Result<trace::TypeEntry> first_part(const trace::TypeEntry& type_entry, uint64_t divisor) {
  SPL_ASSIGN(const layout::Blob blob, layout::Blob::validate(type_entry.blob));
  SPL_ASSIGN(const layout::Type type, layout::type_of(blob));
  std::vector<int64_t> offsets;
  std::vector<int64_t> lengths;
  bool is_even = true;
  layout::oracle::for_each_block(type, 1, [&](const layout::oracle::Block& block) {
    is_even = is_even && (lengths.empty() || lengths.front() == block.bytes);
    offsets.push_back(block.offset);
    lengths.push_back(block.bytes);
  });
  const bool is_one_block = offsets.size() == 1 && static_cast<uint64_t>(lengths.front()) % divisor == 0;
  if (is_one_block) {
    lengths.front() /= static_cast<int64_t>(divisor);
  } else if (!is_even || offsets.size() % divisor != 0) {
    return fail(Code::unsupported, "a type of ", offsets.size(), is_even ? " blocks" : " blocks of several sizes",
                " is not to be divided by ", divisor);
  } else {
    offsets.resize(offsets.size() / divisor);
    lengths.resize(offsets.size());
  }
  SPL_ASSIGN(const layout::Type byte, layout::primitive("byte"));
  SPL_ASSIGN(const layout::Type part, layout::hindexed(std::move(offsets), std::move(lengths), byte));
  SPL_ASSIGN(const layout::Blob part_blob, layout::Blob::build(part));
  trace::TypeEntry entry;
  entry.size_bytes = part_blob.size();
  entry.extent_bytes = part_blob.extent();
  entry.blob.assign(part_blob.bytes().begin(), part_blob.bytes().end());
  return entry;
}

}  // namespace

Result<trace::Block> shrink(const trace::Block& block, uint64_t divisor, std::vector<trace::TypeEntry>& types) {
  trace::Block shrunk = block;
  if (divisor == 1 || block.count == 0 || block.type == trace::none) return shrunk;
  if (static_cast<uint64_t>(block.count) % divisor == 0) {
    shrunk.count = block.count / static_cast<int64_t>(divisor);
    return shrunk;
  }
  if (block.count != 1 || types[block.type].blob.empty()) {
    return fail(Code::unsupported, block.count, " elements are not to be divided by ", divisor);
  }
  SPL_ASSIGN(trace::TypeEntry part, first_part(types[block.type], divisor));
  for (size_t number = 0; number < types.size(); ++number) {
    if (types[number].blob == part.blob) {
      shrunk.type = static_cast<uint32_t>(number);
      return shrunk;
    }
  }
  shrunk.type = static_cast<uint32_t>(types.size());
  types.push_back(std::move(part));
  return shrunk;
}

}  // namespace spinloom::predict
