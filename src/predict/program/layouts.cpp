#include "predict/program/layouts.hpp"

#include <string_view>

#include "memory/layout/block_statistics.hpp"

namespace spinloom::predict {

Result<Layouts> Layouts::build(std::span<const trace::RankTrace> traces) {
  Layouts made;
  std::map<std::string, Known, std::less<>> seen;  // by the bytes of blobs
  for (const trace::RankTrace& one : traces) {
    std::vector<Known>& types = made.types_.emplace_back();
    for (const trace::TypeEntry& type : one.types) {
      Known& known = types.emplace_back();
      if (type.blob.empty() || type.size_bytes == 0) continue;
      const std::string_view bytes{reinterpret_cast<const char*>(type.blob.data()), type.blob.size()};
      if (const auto found = seen.find(bytes); found != seen.end()) {
        known = found->second;
        continue;
      }
      auto blob = layout::Blob::validate(type.blob);
      if (!blob) {
        return fail(blob.error().code, "rank ", one.rank, ", type ", types.size() - 1, ": ", blob.error().message);
      }
      const auto blocks = layout::block_statistics(*blob, 1);
      known.is_block = blocks && blocks->blocks == 1;
      if (!known.is_block || blob->extent() != blob->size()) {
        known.number = static_cast<uint32_t>(made.blobs_.size());
        made.blobs_.push_back(*blob);
      }
      seen.emplace(bytes, known);
    }
  }
  return made;
}

}  // namespace spinloom::predict
