#include "mpi/moving/way.hpp"

#include <algorithm>
#include <cmath>

#include "mpi/messages/record.hpp"

namespace spinloom::mpi {
namespace {

constexpr double line_bytes = 64;
constexpr double near_bytes = 1 << 20;  // bytes of a message's lines that the caches next to a core hold

double deep_lines(double lines) { return std::max(0.0, lines - near_bytes / line_bytes); }

// Returns a limit to the number of distinct cache lines that a message touches. Where elements lie between each other,
// as columns of a matrix do, the first blocks of all elements form one run, and so do the second ones: a run's lines
// count once.
double distinct_lines_max(const Form& form, double bytes) {
  const auto extent = std::abs(static_cast<double>(form.extent));
  const auto size = static_cast<double>(form.size);
  const double elements = std::max(1.0, bytes / size);
  const double span = static_cast<double>(form.true_extent) + (elements - 1) * extent;
  const double run = form.block_bytes + (elements - 1) * extent;
  const double runs = size / form.block_bytes;
  return std::max(bytes / line_bytes, std::min(span / line_bytes + 1, runs * (run / line_bytes + 1)));
}

}  // namespace

const char* name_of(Way way) {
  switch (way) {
    case Way::pass: return "pass";
    case Way::packed: return "packed";
    case Way::staged: return "staged";
    case Way::mapped: return "mapped";
    case Way::joint: return "joint";
    case Way::cma: return "cma";
    case Way::device: return "device";
    case Way::within: return "within";
  }
  return "pass";
}

Work work_of(const Form& form, int64_t bytes) {
  const auto all = static_cast<double>(bytes);
  if (form.block_bytes <= 0) return {all, 1, all / line_bytes, 1};  // one run
  const double lines = std::min(all / line_bytes * form.spread, distinct_lines_max(form, all));
  return {all, std::max(1.0, all / form.block_bytes), lines, lines * form.jumps};
}

Costs costs_of(const Prices& prices, const Work& work, int64_t chunk_bytes) {
  const double own_ns = work.blocks * prices.block_ns + work.lines * prices.near_line_ns;
  const double pack_ns = own_ns;
  const double packed_lines = work.bytes / line_bytes;
  const double unpack_ns = own_ns + packed_lines * prices.far_line_ns;
  // The second half of the work begins when the first chunk is ready.
  const double chunks = std::max(1.0, work.bytes / static_cast<double>(chunk_bytes));
  const double fetch_ns = work.jumps * prices.far_jump_ns + (work.lines - work.jumps) * prices.far_line_ns;
  // Packed lines are written and read once more.
  const double deep_packed_ns = deep_lines(work.lines + packed_lines) * prices.deep_line_ns;
  const double deep_ns = deep_lines(work.lines) * prices.deep_line_ns;
  const double copy_ns = own_ns + fetch_ns + deep_ns;
  return {prices.staged_ns + std::max(pack_ns, unpack_ns) + std::min(pack_ns, unpack_ns) / chunks + deep_packed_ns,
          prices.mapped_ns + copy_ns, prices.joint_ns + copy_ns / 2,
          prices.cma_ns + work.blocks * prices.cma_block_ns + packed_lines * prices.cma_line_ns + deep_ns};
}

Choice choose(const Settings& settings, const Form& form, int64_t count, int64_t bytes, Reach reach) {
  if (settings.path == Path::pass) return {Way::pass, "asked for"};
  if (bytes < settings.min_bytes || bytes <= Record::most) return {Way::pass, "short"};
  if (!form.is_known) return {Way::pass, "a type that is not known here"};
  if (form.record_bytes == 0) return {Way::pass, "no record ends where an element ends"};
  const bool passes_contiguous = form.is_contiguous(count) && !reach.offers_contiguous;
  if (reach.is_within && !passes_contiguous) return {Way::within, "to itself, copied once"};
  if (settings.path == Path::joint && reach.is_mapped && reach.sender_waits) return {Way::joint, "asked for", true};
  if ((settings.path == Path::mapped || settings.path == Path::joint) && reach.is_mapped)
    return {Way::mapped, "asked for"};
  if (settings.path == Path::cma && reach.is_cma_open) return {Way::cma, "asked for"};
  if (passes_contiguous) return {Way::pass, "contiguous"};
  if (settings.path == Path::staged) return {Way::staged, "asked for"};
  if (settings.path != Path::automatic) return {Way::staged, "the way that was asked for is not open"};
  const Costs estimate = costs_of(settings.prices, work_of(form, bytes), form.chunk_bytes(settings.chunk_bytes));
  const bool joins = estimate.joint_ns < estimate.mapped_ns;
  const bool lacks_mapping = !reach.is_mapped && estimate.mapped_ns <= estimate.staged_ns;
  Choice best{Way::staged, lacks_mapping ? cannot_be_mapped : "packing takes least here"};
  double best_ns = estimate.staged_ns;
  const auto consider = [&](bool is_open, double ns, Choice choice) {
    if (!is_open || ns > best_ns) return;
    best_ns = ns;
    best = choice;
  };
  consider(reach.is_cma_open, estimate.cma_ns, {Way::cma, "one copy by system calls takes least here"});
  consider(reach.is_mapped, estimate.mapped_ns, {Way::mapped, "one copy takes least here", joins});
  consider(reach.is_mapped && reach.sender_waits && joins, estimate.joint_ns,
           {Way::joint, "one copy by both ends takes least here", true});
  return best;
}

}  // namespace spinloom::mpi
