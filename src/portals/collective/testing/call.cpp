#include "portals/collective/testing/call.hpp"

#include <cstring>
#include <numeric>

#include "portals/collective/call.hpp"
#include "portals/collective/testing/edges.hpp"

namespace spinloom::collective::test {
namespace {

using enum Operation;

struct Map {
  uint32_t a;
  uint32_t b;
};
static_assert(sizeof(Map) == element);

Map map_at(const uint8_t* bytes) {
  Map map{};
  std::memcpy(&map, bytes, element);
  return map;
}
void in_order(uint8_t* into, const uint8_t* lower, const uint8_t* higher) {
  const Map first = map_at(lower);
  const Map then = map_at(higher);
  const Map composed{first.a * then.a, first.b * then.a + then.b};
  std::memcpy(into, &composed, element);
}
void sum(uint8_t* into, const uint8_t* lower, const uint8_t* higher) {
  const Map composed{map_at(lower).a + map_at(higher).a, map_at(lower).b + map_at(higher).b};
  std::memcpy(into, &composed, element);
}

Memory random_bytes(uint64_t bytes, Random& random) {
  Memory memory(bytes);
  for (uint8_t& byte : memory) byte = static_cast<uint8_t>(random.next());
  return memory;
}

Memory reduced(const std::vector<Memory>& operands, size_t end, const Operator& combine) {
  Memory result = operands[0];
  for (size_t rank = 1; rank < end; ++rank) {
    for (uint64_t at = 0; at < result.size(); at += element) combine(&result[at], &result[at], &operands[rank][at]);
  }
  return result;
}

// Blocks of some sizes in an area.
struct LaidBlocks {
  std::vector<Part> parts;
  Memory memory;

  LaidBlocks(const std::vector<uint64_t>& bytes, Area area, bool regular, bool gaps, Random& random) {
    std::vector<size_t> order(bytes.size());
    std::iota(order.begin(), order.end(), size_t{0});
    for (size_t left = order.size(); gaps && left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);
    parts.resize(bytes.size());
    uint64_t at = 0;
    for (const size_t number : order) {
      if (gaps) at += random.below(4);
      parts[number] = algorithms::packed(bytes[number], {.at = at, .area = area});
      at += bytes[number];
    }
    memory = random_bytes(at, random);
    if (regular) parts = {algorithms::packed(bytes.empty() ? 0 : bytes.front(), {.area = area})};
  }
  [[nodiscard]] Memory block(uint32_t number) const {
    const Part part = algorithms::block(parts, number);
    const auto begin = memory.begin() + static_cast<ptrdiff_t>(part.place.at);
    return {begin, begin + static_cast<ptrdiff_t>(part.bytes)};
  }
};
void put(const Memory& block, const Part& part, Memory& memory) {
  ASSERT_EQ(block.size(), part.bytes);
  std::ranges::copy(block, memory.begin() + static_cast<ptrdiff_t>(part.place.at));
}

bool is_neighborhood(Operation operation) { return operation >= neighbor_allgather && operation <= neighbor_alltoallw; }
// All of what a rank sends goes to each of its peers.
bool sends_one_block(Operation operation) {
  switch (operation) {
    case gather:
    case gatherv:
    case allgather:
    case allgatherv:
    case neighbor_allgather:
    case neighbor_allgatherv: return true;
    default: return false;
  }
}
bool has_root(Operation operation) {
  return operation == gather || operation == gatherv || operation == scatter || operation == scatterv;
}

struct Builder {
  Operation operation;
  uint32_t size;
  uint32_t root;
  Random& random;
  bool in_place;
  TestCall test_call = {};

  // Sizes are 0 now and then; those of data that are not combined are no whole elements.
  uint64_t random_size() {
    if (random.below(8) == 0) return 0;
    const uint64_t most = size < 25 && random.below(16) == 0 ? 400 : 40;
    return is_reduction(operation) ? element * random.below(most) : random.below(5 * most);
  }
  RankCall& add() {
    RankCall& rank_call = test_call.ranks.emplace_back();
    rank_call.call.rank = static_cast<uint32_t>(test_call.ranks.size()) - 1;
    rank_call.call.size = size;
    rank_call.call.root = root;
    return rank_call;
  }

  void add_whole_data() {  // barrier, broadcast
    const uint64_t bytes = operation == barrier ? 0 : random_size() * (1 + random.below(3));
    const Memory data = random_bytes(bytes, random);
    for (uint32_t rank = 0; rank < size; ++rank) {
      RankCall& rank_call = add();
      rank_call.call.sends = {algorithms::packed(bytes)};
      rank_call.call.receives = {algorithms::packed(bytes, {.area = Area::receive})};
      if (operation == barrier) continue;
      if (rank == root) rank_call.send = data;
      if (rank != root) rank_call.receive = random_bytes(bytes, random), rank_call.expected = data;
    }
  }

  void add_reductions() {
    const bool scatters = operation == reduce_scatter || operation == reduce_scatter_block;
    std::vector<uint64_t> bytes(scatters ? size : 1, random_size());
    if (operation == reduce_scatter) {
      for (uint64_t& block_bytes : bytes) block_bytes = random_size();
    }
    std::vector<LaidBlocks> operands;
    std::vector<Memory> all;
    for (uint32_t rank = 0; rank < size; ++rank) {
      operands.emplace_back(bytes, in_place ? Area::receive : Area::send, operation == reduce_scatter_block, false,
                            random);
      all.push_back(operands.back().memory);
    }
    for (uint32_t rank = 0; rank < size; ++rank) {
      RankCall& rank_call = add();
      rank_call.call.in_place = in_place;
      rank_call.call.element_bytes = element;
      rank_call.call.sends = operands[rank].parts;
      const uint64_t received = bytes[scatters ? rank : 0];
      rank_call.call.receives = {algorithms::packed(received, {.area = Area::receive})};
      const bool receives = operation != reduce || rank == root;
      if (!receives && in_place) {  // only at the root
        rank_call.call.in_place = false;
        for (Part& part : rank_call.call.sends) part.place.area = Area::send;
      }
      (rank_call.call.in_place ? rank_call.receive : rank_call.send) = operands[rank].memory;
      if (!rank_call.call.in_place && receives) rank_call.receive = random_bytes(received, random);
      rank_call.expected = rank_call.receive;
      if (!receives || (operation == exscan && rank == 0)) continue;
      const size_t end = operation == exscan ? rank : operation == scan ? rank + 1 : size;
      Memory result = reduced(all, end, test_call.combine);
      if (scatters) {
        const auto begin = result.begin() + std::accumulate(bytes.begin(), bytes.begin() + rank, uint64_t{0});
        result = Memory(begin, begin + static_cast<ptrdiff_t>(received));
      }
      std::ranges::copy(result, rank_call.expected.begin());
    }
  }

  void add_blocks() {
    const bool gathers = operation == gather || operation == gatherv;
    const bool is_grid = is_neighborhood(operation) && random.below(2) == 0;
    const auto connections = [&] {
      if (is_grid) return grid(size, random);
      if (is_neighborhood(operation)) return some_to_some(size, random);
      if (has_root(operation)) return gathers ? all_to_one(size, root) : one_to_all(size, root);
      return all_to_all(size);
    };
    const auto [edges, sources, destinations] = connections();

    const bool regular = !has_lists(operation);
    const bool exchanges = operation == alltoallv || operation == alltoallw;
    const uint64_t each = random_size();
    std::vector<std::vector<uint64_t>> sent(size), received(size);
    for (uint32_t rank = 0; rank < size; ++rank) {
      const size_t to = is_neighborhood(operation) ? destinations[rank].size() : size;
      sent[rank].resize(sends_one_block(operation) ? 1 : to);
      const bool sends_none = !regular && !in_place && random.below(8) == 0;
      for (uint32_t number = 0; number < sent[rank].size() && !sends_none; ++number) {
        const bool mirrors = exchanges && in_place && number < rank;  // both directions have as many bytes
        sent[rank][number] = regular ? each : mirrors ? sent[number][rank] : random_size();
      }
      received[rank].resize(is_neighborhood(operation) ? sources[rank].size() : size, regular ? each : 0);
    }
    const auto number_of = [&](uint32_t number) { return sends_one_block(operation) ? 0 : number; };
    for (const Edge& edge : edges) {
      received[edge.to][edge.to_number] = sent[edge.from][number_of(edge.from_number)];
    }
    std::vector<LaidBlocks> sends, receives;
    for (uint32_t rank = 0; rank < size; ++rank) {
      if (has_root(operation) && rank != root) (gathers ? received : sent)[rank].clear();
      if (has_root(operation) && !gathers) received[rank] = {received[rank][root]};
      sends.emplace_back(sent[rank], Area::send, regular || sent[rank].size() == 1, !regular, random);
      receives.emplace_back(received[rank], Area::receive, regular || received[rank].size() == 1, !regular, random);
    }
    for (uint32_t rank = 0; rank < size; ++rank) {
      RankCall& rank_call = add();
      rank_call.call.is_grid = is_grid;
      rank_call.call.in_place = in_place && (!has_root(operation) || rank == root);
      rank_call.call.sends = sends[rank].parts;
      rank_call.call.receives = receives[rank].parts;
      rank_call.call.sources = sources[rank];
      rank_call.call.destinations = destinations[rank];
      rank_call.send = sends[rank].memory;
      rank_call.receive = receives[rank].memory;
      rank_call.expected = rank_call.receive;
    }
    for (const Edge& edge : edges) {
      RankCall& to = test_call.ranks[edge.to];
      const bool scatters = operation == scatter || operation == scatterv;
      const Part part = algorithms::block(to.call.receives, scatters ? 0 : edge.to_number);
      const bool own_stays = edge.from == edge.to && test_call.ranks[edge.from].call.in_place;
      if (own_stays) continue;
      // In place each sends what lies where it receives: its own block, or that for the receiver.
      if (in_place && (operation == allgather || operation == allgatherv)) {
        put(receives[edge.from].block(edge.from), part, to.expected);
      } else if (in_place && !has_root(operation)) {
        put(receives[edge.from].block(edge.to), part, to.expected);
      } else {
        put(sends[edge.from].block(number_of(edge.from_number)), part, to.expected);
      }
    }
  }
};

bool may_be_in_place(Operation operation) {
  return operation != barrier && operation != bcast && !is_neighborhood(operation);
}

}  // namespace

TestCall random_call(Operation operation, uint32_t size, uint32_t root, bool any_operator, Random& random) {
  Builder builder{operation, size, root, random, may_be_in_place(operation) && random.below(3) == 0};
  builder.test_call.combine = any_operator ? in_order : sum;
  builder.test_call.is_reduction = is_reduction(operation);
  if (is_reduction(operation)) {
    builder.add_reductions();
  } else if (operation == barrier || operation == bcast) {
    builder.add_whole_data();
  } else {
    builder.add_blocks();
  }
  return std::move(builder.test_call);
}

// Three times the operands have three times the sum, and what is only moved stays as it is.
void vary(TestCall& call) {
  for (RankCall& rank_call : call.ranks) {
    for (Memory* const memory : {&rank_call.send, &rank_call.receive, &rank_call.expected}) {
      if (!call.is_reduction) {
        for (uint8_t& byte : *memory) byte = static_cast<uint8_t>(3 * byte + 1);
        continue;
      }
      for (uint64_t at = 0; at < memory->size(); at += element) {
        const Map old = map_at(memory->data() + at);
        const Map now{3 * old.a, 3 * old.b};
        std::memcpy(memory->data() + at, &now, element);
      }
    }
  }
}

std::vector<Algorithm> catalogue() {
  std::vector<Algorithm> all;
  for (uint32_t operation = 0; operation < operation_count; ++operation) {
    for (const Algorithm& one : algorithms_of(static_cast<Operation>(operation))) all.push_back(one);
  }
  return all;
}

std::string name_of(const Algorithm& algorithm) {
  std::string name = text(collective::name_of(algorithm.operation), "_", algorithm.name);
  std::ranges::replace(name, '-', '_');
  return name;
}

}  // namespace spinloom::collective::test
