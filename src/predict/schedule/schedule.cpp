#include "predict/schedule/schedule.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

namespace spinloom::schedule {
namespace {

template <class T>
uint64_t hash_of(const Values<T>& values) {
  static_assert(std::has_unique_object_representations_v<T>);
  const auto* const bytes = reinterpret_cast<const char*>(values.data());
  return std::hash<std::string_view>{}({bytes, values.size() * sizeof(T)});
}

uint64_t hash_of(const Program& program) {
  return hash_of(program.operations) ^ 31 * hash_of(program.edges) ^ program.passes;
}

uint64_t hash_of(const Shape& shape, TransferLayouts layouts) {
  const uint64_t shape_bits = (uint64_t{shape.tag} << 32 | uint64_t{shape.cpu} << 24) ^ uint64_t { shape.nic } << 16 ^
                              (static_cast<uint64_t>(shape.kind) << 8 | static_cast<uint64_t>(shape.peer));
  const uint64_t layout_bits = ~(uint64_t{layouts.local} << 32 | layouts.remote);
  const uint64_t mixed = ((shape.size ^ layout_bits) * 0x9e37'79b9'7f4a'7c15 ^ shape_bits) * 0xff51'afd7'ed55'8ccd;
  return mixed ^ mixed >> 32;
}

constexpr uint32_t no_shape = UINT32_MAX;

}  // namespace

const char* name_of(Kind kind) {
  constexpr const char* names[kinds] = {"", "send", "recv", "calc", "put", "get", "atomic", "fetch", "arrived"};
  return names[static_cast<size_t>(kind)];
}

std::vector<uint32_t> Program::dependency_counts() const {
  std::vector<uint32_t> counts(size());
  for (uint32_t number = 0; number < size(); ++number) {
    for_each_edge(number, [&](Edge edge) { counts[edge.to()] += edge.join() == Join::all; });
  }
  const std::vector<bool> has_any_edges = have_any_edges();
  for (size_t number = 0; number < has_any_edges.size(); ++number) counts[number] += has_any_edges[number];
  return counts;
}

std::vector<bool> Program::have_any_edges() const {
  std::vector<bool> has_any_edges;
  if (std::ranges::all_of(edges, [](Edge edge) { return edge.join() == Join::all; })) return has_any_edges;
  has_any_edges.resize(size());
  for (uint32_t number = 0; number < size(); ++number) {
    for_each_edge(number, [&](Edge edge) {
      if (edge.join() == Join::first) has_any_edges[edge.to()] = true;
    });
  }
  return has_any_edges;
}

bool Program::is_forward() const {
  for (uint32_t number = 0; number < operations.size(); ++number) {
    for (const Edge edge : edges_of(number)) {
      if (edge.to() <= number) return false;
    }
  }
  return true;
}

Program Program::unrolled() const {
  if (passes == 1) return *this;
  return {unrolled_operations(), unrolled_edges(), 1};
}

std::vector<Operation> Program::unrolled_operations() const {
  std::vector<Operation> written_out;
  written_out.reserve(size());
  uint32_t edges_end = 0;
  for (uint32_t number = 0; number < size(); ++number) {
    for_each_edge(number, [&](Edge /*edge*/) { ++edges_end; });
    written_out.push_back(operation(number));
    written_out.back().edges_end = edges_end;
  }
  return written_out;
}

std::vector<Edge> Program::unrolled_edges() const {
  std::vector<Edge> written_out;
  written_out.reserve(edges.size() * passes);
  for (uint32_t number = 0; number < size(); ++number)
    for_each_edge(number, [&](Edge edge) { written_out.push_back(edge); });
  return written_out;
}

bool Schedule::repeats() const {
  return std::ranges::any_of(programs_, [](const Program& one) { return one.passes != 1; });
}

Schedule Schedule::unrolled() const {
  Schedule copy = *this;
  for (Program& program : copy.programs_) program = program.unrolled();
  copy.programs_by_hash_.clear();
  copy.hashed_ = 0;
  return copy;
}

uint64_t Schedule::operations() const {
  const auto add = [this](uint64_t sum, uint32_t number) { return sum + programs_[number].size(); };
  return std::accumulate(program_of_.begin(), program_of_.end(), uint64_t{0}, add);
}

uint64_t Schedule::memory_bytes() const {
  uint64_t sum = (program_of_.size() + shape_slots_.size()) * sizeof(uint32_t) + shapes_.size() * sizeof(Shape) +
                 transfer_layouts_.size() * sizeof(TransferLayouts);
  // A layout is there twice: layout_numbers_ has it as a key.
  for (const Layout& layout : layouts_) sum += 2 * (sizeof(Layout) + layout.blob.size());
  for (const Program& program : programs_) {
    sum += sizeof(Program);
    if (!program.operations.is_borrowed()) {
      sum += program.operations.size() * sizeof(Operation) + program.edges.size() * sizeof(Edge);
    }
  }
  return sum;
}

std::string Schedule::describe(uint32_t rank, const Operation& operation) const {
  const Shape& shape = this->shape(operation);
  if (shape.kind == Kind::compute) return text("computation of ", shape.size);
  if (shape.kind == Kind::arrived) return text("arrival of ", shape.size, " with tag ", shape.tag);
  const uint32_t other = peer(rank, operation);
  const bool is_inbound = shape.kind == Kind::receive || shape.kind == Kind::get || shape.kind == Kind::fetch;
  std::string description = text(shape.kind == Kind::receive ? "receive" : name_of(shape.kind), " of ", shape.size,
                                 is_inbound ? " B from " : " B to ", other == any ? "any rank" : text(other));
  if (shape.tag != 0) description += text(" with ", shape.tag == any ? "any tag" : text("tag ", shape.tag));
  return description;
}

// The slot that has the number of a Shape, or the free one where it would be.
size_t Schedule::slot_of(const Shape& shape, TransferLayouts layouts) const {
  size_t slot = hash_of(shape, layouts) & (shape_slots_.size() - 1);
  while (shape_slots_[slot] != no_shape &&
         (shapes_[shape_slots_[slot]] != shape || transfer_layouts(shape_slots_[slot]) != layouts)) {
    slot = (slot + 1) & (shape_slots_.size() - 1);
  }
  return slot;
}

void Schedule::index_shapes(size_t slots) {
  shape_slots_.assign(slots, no_shape);
  for (uint32_t number = 0; number < shapes_.size(); ++number) {
    shape_slots_[slot_of(shapes_[number], transfer_layouts(number))] = number;
  }
}

uint32_t Schedule::intern_shape(const Shape& shape, TransferLayouts layouts) {
  if (2 * (shapes_.size() + 1) > shape_slots_.size()) index_shapes(std::max<size_t>(16, 2 * shape_slots_.size()));
  uint32_t& number = shape_slots_[slot_of(shape, layouts)];
  if (number == no_shape) {
    number = static_cast<uint32_t>(shapes_.size());
    if (layouts != TransferLayouts()) transfer_layouts_.resize(shapes_.size());
    shapes_.push_back(shape);
    if (layouts != TransferLayouts() || !transfer_layouts_.empty()) transfer_layouts_.push_back(layouts);
  }
  return number;
}

uint32_t Schedule::intern_layout(const Layout& layout) {
  const auto [entry, is_new] =
      layout_numbers_.try_emplace({layout.blob, layout.count}, static_cast<uint32_t>(layouts_.size()));
  if (is_new) layouts_.push_back(layout);
  return entry->second;
}

Schedule::Schedule(Parts parts)
    : program_of_(std::move(parts.program_of)),
      programs_(std::move(parts.programs)),
      shapes_(std::move(parts.shapes)),
      transfer_layouts_(std::move(parts.transfer_layouts)),
      layouts_(std::move(parts.layouts)),
      source_(std::move(parts.source)) {
  size_t slots = 16;
  while (slots < 2 * (shapes_.size() + 1)) slots *= 2;
  index_shapes(slots);
  for (uint32_t number = 0; number < layouts_.size(); ++number) {
    layout_numbers_.try_emplace({layouts_[number].blob, layouts_[number].count}, number);
  }
}

// Turns peers into distances, of the same Shapes. Returns false if there are no peers, or some are no ranks.
bool Schedule::make_distances(uint32_t rank, std::vector<Operation>& operations) const {
  bool has_peers = false;
  for (Operation& operation : operations) {
    if (!has_peer(shapes_[operation.shape].kind) || operation.peer == any) continue;
    if (operation.peer >= ranks()) return false;
    has_peers = true;
    operation.peer = static_cast<uint32_t>((uint64_t{operation.peer} + ranks() - rank) % ranks());
  }
  return has_peers;
}

// Says that the peers are distances.
void Schedule::make_relative(std::vector<Operation>& operations) {
  for (Operation& operation : operations) {
    Shape shape = shapes_[operation.shape];
    if (!has_peer(shape.kind) || operation.peer == any) continue;
    shape.peer = Peer::relative;
    operation.shape = intern_shape(shape, transfer_layouts(operation));
  }
}

// Indexes the Programs of a file only when others are added.
void Schedule::index_programs() {
  for (; hashed_ < programs_.size(); ++hashed_) programs_by_hash_.emplace(hash_of(programs_[hashed_]), hashed_);
}

const uint32_t* Schedule::find_program(const Program& program) {
  index_programs();
  const auto [first, last] = programs_by_hash_.equal_range(hash_of(program));
  const auto same = std::find_if(first, last, [&](const auto& one) { return programs_[one.second] == program; });
  return same == last ? nullptr : &same->second;
}

uint32_t Schedule::add_program(Program program) {
  programs_.push_back(std::move(program));
  index_programs();
  return static_cast<uint32_t>(programs_.size() - 1);
}

// The first of several Programs that differ only by where their ranks lie is kept with absolute peers, because the
// others are not known yet; the second is kept with relative ones, for itself and all others.
void Schedule::intern(uint32_t rank, Program program) {
  if (const uint32_t* const known = find_program(program)) {
    program_of_[rank] = *known;
    return;
  }
  std::vector<Operation> operations(program.operations.begin(), program.operations.end());
  const bool has_distances = make_distances(rank, operations);
  Program distances{operations, program.edges, program.passes};
  if (!has_distances || distance_hashes_.insert(hash_of(distances)).second) {
    program_of_[rank] = add_program(std::move(program));
    return;
  }
  make_relative(operations);
  distances.operations = operations;
  const uint32_t* const known = find_program(distances);
  program_of_[rank] = known != nullptr ? *known : add_program(std::move(distances));
}

void Schedule::intern_for(std::span<const uint32_t> ranks, Program program) {
  const uint32_t* const known = find_program(program);
  const uint32_t number = known != nullptr ? *known : add_program(std::move(program));
  for (const uint32_t rank : ranks) program_of_[rank] = number;
}

uint32_t Builder::add(uint32_t shape, uint32_t peer) {
  operations_.push_back({shape, peer, 0});
  return size() - 1;
}

void Builder::require(uint32_t after, uint32_t before, Awaits awaits, Join join) {
  requirements_.push_back({before, Edge(after, awaits, join)});
}

// Sorts edges by operation, those that wait for its end before those for its start, in the order in which they were
// added.
Program Builder::take(uint32_t passes) {
  if (passes == 1) std::erase_if(requirements_, [this](const Requirement& one) { return one.edge.to() >= size(); });
  for (const Requirement& one : requirements_) ++operations_[one.before].edges_end;
  std::vector<uint32_t> next(operations_.size());
  uint32_t end = 0;
  for (uint32_t number = 0; number < size(); ++number) {
    next[number] = end;
    end = operations_[number].edges_end += end;
  }
  std::vector<Edge> edges(requirements_.size(), Edge(0, Awaits::end));
  for (const Awaits awaits : {Awaits::end, Awaits::start}) {
    for (const Requirement& one : requirements_) {
      if (one.edge.awaits() == awaits) edges[next[one.before]++] = one.edge;
    }
  }
  Program program{operations_, edges, passes};
  operations_.clear();
  requirements_.clear();
  return program;
}

}  // namespace spinloom::schedule
