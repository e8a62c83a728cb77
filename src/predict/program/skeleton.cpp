#include "predict/program/skeleton.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "memory/layout/blob.hpp"
#include "memory/layout/text.hpp"

namespace spinloom::predict {
namespace {

using trace::Call;
using trace::CallForm;
using trace::RankTrace;
using trace::Signature;

constexpr uint32_t type_byte = 0;
constexpr uint32_t skeleton_ranks_max = 1U << 13;  // the trace of each has a list of all
constexpr uint64_t calls_max = 1U << 28;  // the calls of all ranks

// The types of all steps, by their text forms. Number 0 is a byte.
class SkeletonTypeTable {
 public:
  Result<uint32_t> intern(const std::string& form) {
    if (const auto known = numbers_.find(form); known != numbers_.end()) return known->second;
    const auto type = layout::parse(form);
    if (!type.ok()) return type.error();
    const auto blob = layout::Blob::build(*type);
    if (!blob.ok()) return blob.error();
    entries.push_back({form, blob->size(), blob->extent(), {blob->bytes().begin(), blob->bytes().end()}, 0});
    const auto number = static_cast<uint32_t>(entries.size() - 1);
    numbers_.emplace(form, number);
    return number;
  }

  std::vector<trace::TypeEntry> entries{{"MPI_BYTE", 1, 1, {}, 0}};

 private:
  std::map<std::string, uint32_t> numbers_;
};

struct NumberedTypes {
  uint32_t sent = 0;
  uint32_t received = 0;
};

Signature signature_of(Call call) {
  Signature signature;
  signature.call = call;
  signature.comm = 0;
  return signature;
}

// Signatures are kept once: those of a repeated step are the same.
class SkeletonWriter {
 public:
  explicit SkeletonWriter(RankTrace& trace) : trace_(trace) {}

  void call(Signature signature) {
    const auto found = std::ranges::find(trace_.signatures, signature);
    const auto number = static_cast<uint32_t>(found - trace_.signatures.begin());
    if (found == trace_.signatures.end()) trace_.signatures.push_back(std::move(signature));
    trace_.events.push_back({number, 0, now_ns_, now_ns_});
  }
  void compute(uint64_t ns) { now_ns_ += ns; }

 private:
  RankTrace& trace_;
  uint64_t now_ns_ = 1;  // no call has ended at 0
};

// Returns the rank `steps` steps further on in a dimension of a periodic grid.
uint32_t neighbour(const std::vector<uint32_t>& grid, uint32_t rank, size_t dimension, uint32_t steps) {
  uint32_t stride = 1;
  for (size_t inner = dimension + 1; inner < grid.size(); ++inner) stride *= grid[inner];
  const uint32_t extent = grid[dimension];
  const uint32_t place = rank / stride % extent;
  return rank - place * stride + (place + steps) % extent * stride;
}

void exchange_halo(const SkeletonStep& step, std::span<const NumberedTypes> types, uint32_t rank, SkeletonWriter& out) {
  std::vector<uint32_t> requests;
  for (const bool is_receive : {true, false}) {
    for (size_t dimension = 0; dimension < step.grid.size(); ++dimension) {
      const uint32_t extent = step.grid[dimension];
      if (extent == 1) continue;
      for (const bool is_up : {false, true}) {
        const uint32_t steps = is_up != is_receive ? 1 : extent - 1;  // data that goes up comes from below
        Signature signature = signature_of(is_receive ? Call::Recv : Call::Send);
        signature.form = CallForm::nonblocking;
        signature.peer = static_cast<int32_t>(neighbour(step.grid, rank, dimension, steps));
        signature.tag = static_cast<int32_t>(2 * dimension + (is_up ? 1 : 0));
        signature.requests = {static_cast<uint32_t>(requests.size())};
        requests.push_back(signature.requests[0]);
        auto& blocks = is_receive ? signature.receives : signature.sends;
        blocks = {{0, 1, is_receive ? types[dimension].received : types[dimension].sent}};
        out.call(std::move(signature));
      }
    }
  }
  out.compute(step.compute_ns);
  if (requests.empty()) return;
  Signature wait = signature_of(Call::Waitall);
  wait.requests = std::move(requests);
  out.call(std::move(wait));
}

void write_step(const SkeletonStep& step, std::span<const NumberedTypes> types, uint32_t rank, SkeletonWriter& out) {
  switch (step.kind) {
    case SkeletonStep::Kind::compute: out.compute(step.compute_ns); return;
    case SkeletonStep::Kind::halo: exchange_halo(step, types, rank, out); return;
    case SkeletonStep::Kind::alltoall: {
      Signature signature = signature_of(Call::Alltoall);
      signature.sends = {{0, 1, types[0].sent}};
      signature.receives = {{0, 1, types[0].received}};
      out.call(std::move(signature));
      return;
    }
    case SkeletonStep::Kind::allreduce: {
      Signature signature = signature_of(Call::Allreduce);
      signature.sends = {{0, static_cast<int64_t>(step.bytes), type_byte}};
      signature.receives = signature.sends;
      out.call(std::move(signature));
      return;
    }
  }
}

// Returns an upper bound: a dimension of one rank has no events.
uint64_t events_at_most(const SkeletonStep& step) {
  if (step.kind == SkeletonStep::Kind::halo) return 4 * step.grid.size() + 1;
  return step.kind == SkeletonStep::Kind::compute ? 0 : 1;
}

Status check_step(const SkeletonStep& step, uint32_t ranks, size_t number) {
  if (step.kind == SkeletonStep::Kind::halo) {
    uint64_t product = 1;
    for (const uint32_t extent : step.grid)
      product = std::min<uint64_t>(product * extent, uint64_t{skeleton_ranks_max} + 1);
    if (product != ranks || step.grid.empty()) {
      return fail(Code::invalid, "step ", number, ": the grid has ", step.grid.empty() ? 0 : product, " places for ",
                  ranks, " ranks");
    }
    if (step.types.size() != step.grid.size()) {
      return fail(Code::invalid, "step ", number, ": ", step.types.size(), " types for ", step.grid.size(),
                  " dimensions; each has its own");
    }
  }
  if (step.kind == SkeletonStep::Kind::alltoall && step.types.size() != 1) {
    return fail(Code::invalid, "step ", number, ": an all-to-all has one type for both its ends, not ",
                step.types.size());
  }
  if (step.bytes > INT64_MAX) return fail(Code::invalid, "step ", number, ": ", step.bytes, " bytes");
  return {};
}

Result<std::vector<NumberedTypes>> number_types(const SkeletonStep& step, size_t number, SkeletonTypeTable& table) {
  std::vector<NumberedTypes> numbered;
  for (const SkeletonTypes& pair : step.types) {
    const auto sent = table.intern(pair.sent);
    if (!sent.ok()) return sent.error();
    const auto received = table.intern(pair.received);
    if (!received.ok()) return received.error();
    const int64_t sent_bytes = table.entries[*sent].size_bytes;
    const int64_t received_bytes = table.entries[*received].size_bytes;
    if (sent_bytes != received_bytes) {
      return fail(Code::invalid, "step ", number, ": ", sent_bytes, " B are sent and ", received_bytes, " B received");
    }
    numbered.push_back({*sent, *received});
  }
  return numbered;
}

}  // namespace

Result<std::vector<RankTrace>> make_skeleton(uint32_t ranks, std::span<const SkeletonStep> steps, uint32_t repeats) {
  if (ranks == 0 || ranks > skeleton_ranks_max) {
    return fail(Code::invalid, "a skeleton of ", ranks, " ranks: give 1 to ", skeleton_ranks_max);
  }
  SkeletonTypeTable table;
  std::vector<std::vector<NumberedTypes>> types;
  uint64_t events = 2;
  for (size_t number = 0; number < steps.size(); ++number) {
    if (const Status checked = check_step(steps[number], ranks, number); !checked.ok()) return checked.error();
    auto numbered = number_types(steps[number], number, table);
    if (!numbered.ok()) return numbered.error();
    types.push_back(std::move(*numbered));
    events += events_at_most(steps[number]) * repeats;
  }
  if (events > calls_max / ranks) {
    return fail(Code::overflow, "the skeleton has ", events, " calls of ", ranks, " ranks; ", calls_max,
                " calls are the most: repeat it less often");
  }
  std::vector<RankTrace> traces(ranks);
  trace::CommEntry world;
  for (uint32_t rank = 0; rank < ranks; ++rank) world.world_ranks.push_back(rank);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    RankTrace& trace = traces[rank];
    trace.rank = rank;
    trace.ranks = ranks;
    trace.has_ended = true;
    trace.host = "imagined";
    trace.types = table.entries;
    world.rank = rank;
    trace::CommEntry itself;
    itself.world_ranks = {rank};
    trace.comms = {world, itself};
    SkeletonWriter out(trace);
    out.call(signature_of(Call::Init));
    for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
      for (size_t number = 0; number < steps.size(); ++number) write_step(steps[number], types[number], rank, out);
    }
    out.call(signature_of(Call::Finalize));
  }
  return traces;
}

}  // namespace spinloom::predict
