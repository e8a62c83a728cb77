#include "predict/program/layouts.hpp"

#include <string_view>

#include "memory/layout/block_statistics.hpp"

namespace spinloom::predict {

Result<Layouts> Layouts::build(std::span<const trace::RankTrace> traces) {
  Layouts layouts;
  std::map<std::string, TypeLayout, std::less<>> by_blob;  // the key is the bytes of a blob
  for (const trace::RankTrace& trace : traces) {
    std::vector<TypeLayout>& types = layouts.types_.emplace_back();
    for (const trace::TypeEntry& type : trace.types) {
      TypeLayout& entry = types.emplace_back();
      if (type.blob.empty() || type.size_bytes == 0) continue;
      const std::string_view bytes{reinterpret_cast<const char*>(type.blob.data()), type.blob.size()};
      if (const auto found = by_blob.find(bytes); found != by_blob.end()) {
        entry = found->second;
        continue;
      }
      auto blob = layout::Blob::validate(type.blob);
      if (!blob) {
        return fail(blob.error().code, "rank ", trace.rank, ", type ", types.size() - 1, ": ", blob.error().message);
      }
      const auto blocks = layout::block_statistics(*blob, 1);
      entry.is_block = blocks && blocks->blocks == 1;
      if (!entry.is_block || blob->extent() != blob->size()) {
        entry.number = static_cast<uint32_t>(layouts.blobs_.size());
        layouts.blobs_.push_back(*blob);
      }
      by_blob.emplace(bytes, entry);
    }
  }
  return layouts;
}

}  // namespace spinloom::predict
