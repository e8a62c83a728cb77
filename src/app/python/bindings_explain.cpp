// spinloom._core: the functions under `spinloom explain` and `spinloom calibrate`: facts of a datatype, lines by
// cache level, and measured copies.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "app/measure/copy_probe.hpp"
#include "app/measure/line_walk.hpp"
#include "app/python/bindings_support.hpp"
#include "memory/layout/block_statistics.hpp"
#include "memory/layout/kernel.hpp"
#include "memory/layout/leaves.hpp"
#include "memory/layout/normalise.hpp"
#include "memory/layout/passes.hpp"
#include "memory/layout/text.hpp"

namespace spinloom::app {
namespace {

nb::list histogram_of(const layout::BlockStatistics& blocks) {
  nb::list out;
  for (size_t k = 0; k < blocks.bins.size(); ++k) {
    if (blocks.bins[k].blocks == 0) continue;
    nb::dict bin;
    bin["bytes_from"] = int64_t{1} << k;
    bin["blocks"] = blocks.bins[k].blocks;
    bin["bytes"] = blocks.bins[k].bytes;
    out.append(bin);
  }
  return out;
}

nb::dict leaf_of(const layout::LeafGroup& leaves) {
  static constexpr const char* shapes[] = {"single", "vector", "dense", "across", "list", "runs", "structs"};
  nb::dict out;
  out["shape"] = shapes[static_cast<size_t>(leaves.shape)];
  out["block_bytes"] = leaves.block_bytes;
  out["nodes"] = leaves.nodes;
  out["turns"] = leaves.turns;
  out["blocks"] = leaves.blocks;
  out["bytes"] = leaves.bytes;
  out["changes"] = leaves.length_changes;
  out["crowded"] = leaves.crowded_blocks;
  return out;
}

nb::dict explain(const std::string& text_form, int64_t count) {
  const layout::Type type = unwrap(layout::parse(text_form));
  nb::dict passes;
  nb::list leaves;
  std::string normal_form;
  {
    const layout::PassLog log;
    const layout::PlacedNest placed = layout::normalise(type);
    normal_form = layout::describe(placed);
    for (const auto& [step, times] : log.counts()) passes[std::string(step).c_str()] = times;
  }
  // The leaves are those of the message: elements that follow each other may have another shape than one of them.
  const layout::Type message = count > 1 ? unwrap(layout::contiguous(count, type)) : type;
  if (count > 0) {
    for (const layout::LeafGroup& each : layout::leaves_of(layout::normalise(message))) leaves.append(leaf_of(each));
  }
  // A committed layout keeps its lists, too.
  const layout::Blob blob = unwrap(layout::Blob::build(type, {.keep_lists = true}));
  const layout::BlockStatistics blocks = unwrap(without_lock([&] { return layout::block_statistics(blob, count); }));
  nb::dict out;
  out["text"] = layout::print(type);
  out["count"] = count;
  out["size_bytes"] = type.size();
  out["lb_bytes"] = type.lb();
  out["extent_bytes"] = type.extent();
  out["true_lb_bytes"] = type.true_lb();
  out["true_extent_bytes"] = type.true_extent();
  out["blocks"] = blocks.blocks;
  out["block_bytes_min"] = blocks.bytes_min;
  out["block_bytes_max"] = blocks.bytes_max;
  out["blocks_forward"] = blocks.forward_blocks;
  out["histogram"] = histogram_of(blocks);
  out["normal_form"] = normal_form;
  out["passes"] = passes;
  out["leaves"] = leaves;
  out["kernel"] = layout::kernel_name(blob);
  out["blob_bytes"] = static_cast<int64_t>(blob.bytes().size());
  out["blob_width"] = blob.is_narrow() ? 32 : 64;
  out["blob_depth"] = blob.depth();
  return out;
}

std::vector<CacheLevel> caches_of(const std::vector<std::pair<int64_t, int64_t>>& levels) {
  std::vector<CacheLevel> caches;
  for (const auto& [bytes, ways] : levels) caches.push_back({bytes, ways});
  return caches;
}

nb::dict line_walk(const std::string& text_form, int64_t count, const std::string& movement,
                   const std::vector<std::pair<int64_t, int64_t>>& levels,
                   const std::vector<std::pair<int64_t, int64_t>>& page_levels, bool by_memory) {
  const layout::Blob blob = unwrap(layout::Blob::build(unwrap(layout::parse(text_form))));
  const Movement kind = unwrap(movement_named(movement));
  const WalkOrder order = by_memory ? WalkOrder::memory : WalkOrder::packed;
  const LineWalk walk = unwrap(
      without_lock([&] { return walk_lines(blob, count, kind, caches_of(levels), caches_of(page_levels), order); }));
  nb::list line_counts;
  for (const LineWalk::LineCounts& source : walk.levels)
    line_counts.append(nb::make_tuple(source.next, source.strided, source.scattered));
  nb::dict out;
  out["accesses"] = walk.accesses;
  out["levels"] = line_counts;
  out["pages"] = walk.pages;
  return out;
}

std::vector<double> probe(const std::string& text_form, int64_t count, const std::string& movement, int samples,
                          bool checked) {
  const Movement kind = unwrap(movement_named(movement));
  return unwrap(without_lock([&] { return probe_copy(text_form, count, kind, samples, checked); }));
}

}  // namespace

void bind_explain(nb::module_& module) {
  module.def("explain", &explain, nb::arg("text"), nb::arg("count") = 1,
             "Sizes, bounds, blocks, normal form and compact program of a datatype.");
  module.def(
      "line_walk", &line_walk, nb::arg("text"), nb::arg("count"), nb::arg("movement"), nb::arg("levels"),
      nb::arg("page_levels"), nb::arg("by_memory"),
      "Cache lines by the level that a repeated copy finds them in: (next, strided, scattered) behind each level.");
  module.def("probe_copy", &probe, nb::arg("text"), nb::arg("count"), nb::arg("movement"), nb::arg("samples"),
             nb::arg("checked") = true, "Measured host times of a copy in ns, bytes compared unless not checked.");
}

}  // namespace spinloom::app
