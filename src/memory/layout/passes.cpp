#include "memory/layout/passes.hpp"

#include <algorithm>
#include <utility>

#include "base/result.hpp"

namespace spinloom::layout {
namespace {

thread_local PassLog* current_log = nullptr;

void count_pass(std::string_view step) {
  if (current_log != nullptr) current_log->count(step);
}

bool continues(int64_t stride, int64_t inner_count, int64_t inner_stride) {
  int64_t next = 0;
  return !__builtin_mul_overflow(inner_count, inner_stride, &next) && next == stride;
}

bool same_nest(const NestPtr& a, const NestPtr& b) {
  if (a == b) return true;
  if (a->kind != b->kind || a->count != b->count || a->size != b->size || a->block != b->block ||
      a->stride != b->stride || a->offsets != b->offsets || a->lengths != b->lengths ||
      a->children.size() != b->children.size()) {
    return false;
  }
  return std::equal(a->children.begin(), a->children.end(), b->children.begin(), same_nest);
}

// Moves the first offset to 0 and returns where it was.
int64_t anchor(std::vector<int64_t>& offsets) {
  const int64_t first = offsets.front();
  for (int64_t& offset : offsets) offset -= first;
  return first;
}

int64_t count_touching(const std::vector<int64_t>& offsets, int64_t block) {
  int64_t touching = 0;
  for (size_t i = 1; i < offsets.size(); ++i) touching += offsets[i] - offsets[i - 1] == block ? 1 : 0;
  return touching;
}

bool all_equal(const std::vector<int64_t>& lengths) {
  return std::all_of(lengths.begin(), lengths.end(), [&](int64_t l) { return l == lengths[0]; });
}

// Merges neighbours; runs of equal lengths become scatter().
PlacedNest merged(std::vector<int64_t> displacements, std::vector<int64_t> lengths);

PlacedNest make_vector(int64_t displacement, int64_t count, int64_t block, int64_t stride) {
  Nest nest;
  nest.kind = NestKind::vector;
  nest.count = count;
  nest.block = block;
  nest.size = count * block;
  nest.stride = count == 1 ? 0 : stride;
  return {displacement, std::make_shared<const Nest>(std::move(nest))};
}

}  // namespace

PassLog::PassLog() : outer_log_(current_log) { current_log = this; }
PassLog::~PassLog() { current_log = outer_log_; }

PlacedNest run_of(int64_t displacement, int64_t bytes) {
  if (bytes == 0) return {};
  return make_vector(displacement, 1, bytes, 0);
}

PlacedNest displaced(PlacedNest placed, int64_t by) {
  if (!placed.empty()) placed.displacement += by;
  return placed;
}

std::optional<int64_t> regular_step(const std::vector<int64_t>& offsets) {
  if (offsets.size() < 2) return std::nullopt;
  const int64_t step = offsets[1] - offsets[0];
  for (size_t i = 2; i < offsets.size(); ++i) {
    if (offsets[i] - offsets[i - 1] != step) return std::nullopt;
  }
  return step;
}

void merge_neighbours(std::vector<int64_t>& offsets, std::vector<int64_t>& lengths) {
  size_t kept_count = 0;
  for (size_t i = 0; i < offsets.size(); ++i) {
    if (lengths[i] == 0) continue;
    if (kept_count > 0 && offsets[kept_count - 1] + lengths[kept_count - 1] == offsets[i]) {
      lengths[kept_count - 1] += lengths[i];
      count_pass("neighbours merged");
      continue;
    }
    offsets[kept_count] = offsets[i];
    lengths[kept_count] = lengths[i];
    ++kept_count;
  }
  offsets.resize(kept_count);
  lengths.resize(kept_count);
}

PlacedNest repeat(int64_t count, int64_t stride, const PlacedNest& child) {
  if (count == 0 || child.empty()) return {};
  if (count == 1) {
    count_pass("levels of count 1 dropped");
    return child;
  }
  const Nest& inner = *child.nest;
  if (inner.is_run()) {
    if (stride == inner.block) {
      count_pass("runs that touch collapsed");
      return run_of(child.displacement, count * inner.block);
    }
    return make_vector(child.displacement, count, inner.block, stride);
  }
  if (inner.kind == NestKind::vector && continues(stride, inner.count, inner.stride)) {
    count_pass("strides fused");
    return make_vector(child.displacement, count * inner.count, inner.block, inner.stride);
  }
  if (inner.kind == NestKind::loop && continues(stride, inner.count, inner.stride)) {
    count_pass("strides fused");
    Nest fused = inner;
    fused.count *= count;
    fused.size *= count;
    return {child.displacement, std::make_shared<const Nest>(std::move(fused))};
  }
  Nest nest;
  nest.kind = NestKind::loop;
  nest.count = count;
  nest.stride = stride;
  nest.block = inner.size;
  nest.size = count * inner.size;
  nest.depth = inner.depth + 1;
  nest.children = {child.nest};
  return {child.displacement, std::make_shared<const Nest>(std::move(nest))};
}

PlacedNest scatter(std::vector<int64_t> displacements, const PlacedNest& child) {
  if (displacements.empty() || child.empty()) return {};
  if (displacements.size() == 1) return displaced(child, displacements[0]);
  const Nest& inner = *child.nest;
  if (const auto step = regular_step(displacements)) {
    count_pass("regular list made a stride");
    return displaced(repeat(static_cast<int64_t>(displacements.size()), *step, child), displacements[0]);
  }
  if (inner.is_run()) {
    const int64_t touching = count_touching(displacements, inner.block);
    if (touching > 0 && !stays_a_list(static_cast<int64_t>(displacements.size()), touching)) {
      std::vector<int64_t> lengths(displacements.size(), inner.block);
      return displaced(merged(std::move(displacements), std::move(lengths)), child.displacement);
    }
  }
  Nest nest;
  nest.kind = inner.is_run() ? NestKind::list : NestKind::child_list;
  nest.count = static_cast<int64_t>(displacements.size());
  nest.block = inner.size;
  nest.size = nest.count * inner.size;
  const int64_t first = anchor(displacements);
  nest.offsets = std::move(displacements);
  if (!inner.is_run()) {
    nest.depth = inner.depth + 1;
    nest.children = {child.nest};
  }
  return {child.displacement + first, std::make_shared<const Nest>(std::move(nest))};
}

PlacedNest scatter_runs(std::vector<int64_t> displacements, std::vector<int64_t> lengths) {
  if (static_cast<int64_t>(lengths.size()) >= long_list_min && all_equal(lengths) && lengths[0] > 0) {
    count_pass("equal lengths made one length");
    return scatter(std::move(displacements), run_of(0, lengths[0]));
  }
  return merged(std::move(displacements), std::move(lengths));
}

namespace {

PlacedNest merged(std::vector<int64_t> displacements, std::vector<int64_t> lengths) {
  merge_neighbours(displacements, lengths);
  if (displacements.empty()) return {};
  if (all_equal(lengths)) {
    if (lengths.size() > 1) count_pass("equal lengths made one length");
    return scatter(std::move(displacements), run_of(0, lengths[0]));
  }
  Nest nest;
  nest.kind = NestKind::runs;
  nest.count = static_cast<int64_t>(displacements.size());
  for (const int64_t length : lengths) nest.size += length;
  const int64_t first = anchor(displacements);
  nest.offsets = std::move(displacements);
  nest.lengths = std::move(lengths);
  return {first, std::make_shared<const Nest>(std::move(nest))};
}

// Drops empty members and moves members of members up.
std::vector<PlacedNest> flattened(std::vector<PlacedNest> members) {
  const auto stays = [](const PlacedNest& member) { return !member.empty() && member.nest->kind != NestKind::members; };
  if (std::all_of(members.begin(), members.end(), stays)) return members;
  std::vector<PlacedNest> flat;
  for (PlacedNest& member : members) {
    if (member.empty()) continue;
    if (member.nest->kind == NestKind::members) {
      count_pass("members moved up");
      for (size_t i = 0; i < member.nest->children.size(); ++i) {
        flat.push_back({member.displacement + member.nest->offsets[i], member.nest->children[i]});
      }
    } else {
      flat.push_back(std::move(member));
    }
  }
  return flat;
}

}  // namespace

PlacedNest gather(std::vector<PlacedNest> members) {
  std::vector<PlacedNest> nests = flattened(std::move(members));
  if (nests.empty()) return {};
  if (nests.size() == 1) return nests[0];
  std::vector<int64_t> displacements;
  displacements.reserve(nests.size());
  for (const PlacedNest& member : nests) displacements.push_back(member.displacement);
  if (std::all_of(nests.begin(), nests.end(), [](const PlacedNest& p) { return p.nest->is_run(); })) {
    count_pass("struct of runs made a list of runs");
    std::vector<int64_t> lengths;
    lengths.reserve(nests.size());
    for (const PlacedNest& member : nests) lengths.push_back(member.nest->block);
    return scatter_runs(std::move(displacements), std::move(lengths));
  }
  if (std::all_of(nests.begin(), nests.end(), [&](const PlacedNest& p) { return same_nest(p.nest, nests[0].nest); })) {
    count_pass("struct of one type made a list");
    return scatter(std::move(displacements), {0, nests[0].nest});
  }
  Nest nest;
  nest.kind = NestKind::members;
  nest.count = static_cast<int64_t>(nests.size());
  nest.children.reserve(nests.size());
  for (PlacedNest& member : nests) {
    nest.size += member.nest->size;
    nest.depth = std::max(nest.depth, member.nest->depth + 1);
    nest.children.push_back(std::move(member.nest));
  }
  const int64_t first = anchor(displacements);
  nest.offsets = std::move(displacements);
  return {first, std::make_shared<const Nest>(std::move(nest))};
}

namespace {

std::string describe_nest(const Nest& nest) {
  switch (nest.kind) {
    case NestKind::vector:
      if (nest.is_run()) return text("run(", nest.block, " B)");
      return text("vector(", nest.count, ", ", nest.block, " B, stride ", nest.stride, " B)");
    case NestKind::list: return text("list(", nest.count, " x ", nest.block, " B)");
    case NestKind::runs: return text("runs(", nest.count, ", ", nest.size, " B)");
    case NestKind::loop:
      return text("loop(", nest.count, ", stride ", nest.stride, " B, ", describe_nest(*nest.children[0]), ")");
    case NestKind::child_list: return text("list(", nest.count, ", ", describe_nest(*nest.children[0]), ")");
    case NestKind::members: {
      std::string out = "members(";
      for (size_t i = 0; i < nest.children.size(); ++i) {
        if (i == 16) return out + text(", .. ", nest.children.size() - i, " more)");
        out += text(i == 0 ? "" : ", ", nest.offsets[i], " + ", describe_nest(*nest.children[i]));
      }
      return out + ")";
    }
  }
  return "";
}

}  // namespace

std::string describe(const PlacedNest& placed) {
  if (placed.empty()) return "nothing";
  return text(placed.displacement, " + ", describe_nest(*placed.nest));
}

}  // namespace spinloom::layout
