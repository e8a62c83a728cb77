#include "torture/team_call.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>

#include "portals/collective/fault_tolerant.hpp"

namespace spinloom::torture {
namespace {

using collective::Call;
using collective::Operation;
using enum collective::Operation;

bool is_neighborhood(Operation operation) { return operation >= neighbor_allgather && operation <= neighbor_alltoallw; }
bool gathers(Operation operation) { return operation == gather || operation == gatherv; }
bool scatters(Operation operation) { return operation == scatter || operation == scatterv; }
bool has_root(Operation operation) {
  return gathers(operation) || scatters(operation) || operation == bcast || operation == reduce;
}
// True if all data of a member go to each of its peers.
bool sends_one_block(Operation operation) {
  return gathers(operation) || operation == allgather || operation == allgatherv || operation == neighbor_allgather ||
         operation == neighbor_allgatherv;
}

struct Arithmetic {
  nic::AtomicOperation op;
  nic::Datatype type;
};
constexpr Arithmetic arithmetics[] = {
    {nic::AtomicOperation::sum, nic::Datatype::uint32},
    {nic::AtomicOperation::sum, nic::Datatype::uint8},
    {nic::AtomicOperation::max, nic::Datatype::int32},
    {nic::AtomicOperation::bit_xor, nic::Datatype::uint64},
};

template <class Element, class Combine>
void combine(Bytes& into, const uint8_t* from, const Combine& combined) {
  for (size_t at = 0; at + sizeof(Element) <= into.size(); at += sizeof(Element)) {
    Element a;
    Element b;
    std::memcpy(&a, &into[at], sizeof a);
    std::memcpy(&b, from + at, sizeof b);
    a = static_cast<Element>(combined(a, b));
    std::memcpy(&into[at], &a, sizeof a);
  }
}
void combine(const Call& call, Bytes& into, const uint8_t* from) {
  const auto add = [](auto a, auto b) { return a + b; };
  switch (call.type) {
    case nic::Datatype::uint8: return combine<uint8_t>(into, from, add);
    case nic::Datatype::uint32: return combine<uint32_t>(into, from, add);
    case nic::Datatype::int32: return combine<int32_t>(into, from, [](int32_t a, int32_t b) { return std::max(a, b); });
    default: return combine<uint64_t>(into, from, [](uint64_t a, uint64_t b) { return a ^ b; });
  }
}

// A transfer from one member to another: block `from_number` of one is block `to_number` of the other.
struct Edge {
  uint32_t from = 0;
  uint32_t from_number = 0;
  uint32_t to = 0;
  uint32_t to_number = 0;
};

class TeamCallMaker {
 public:
  TeamCallMaker(uint32_t size, const TeamCall::Limits& limits, Random& random)
      : size_(size), limits_(limits), random_(random) {
    team_call_.members.resize(size);
  }

  TeamCall make() {
    Call& call = team_call_.call;
    const auto algorithms =
        collective::algorithms_of(static_cast<Operation>(random_.below(collective::operation_count)));
    const collective::Algorithm& chosen = algorithms[random_.below(algorithms.size())];
    call.operation = chosen.operation;
    if (!random_.chance(1, 6)) call.algorithm = chosen.name;
    if (limits_.may_die && random_.chance(1, 4)) {
      call.operation = bcast;
      call.algorithm = collective::fault_tolerant_name;
    }
    if (has_root(call.operation)) call.root = static_cast<uint32_t>(random_.below(size_));
    if (random_.chance(1, 2)) call.segment_bytes = 8 * (1 + random_.below(64));
    const Arithmetic& arithmetic = arithmetics[random_.below(std::size(arithmetics))];
    if (collective::is_reduction(call.operation)) {
      call.op = arithmetic.op;
      call.type = arithmetic.type;
      reduction();
    } else if (call.operation == bcast) {
      call.bytes = any_bytes();
      for (TeamCall::Member& member : team_call_.members) member.receive_bytes = call.bytes;
      for (uint32_t to = 0; to < size_; ++to) {
        if (to != call.root) team_call_.moves.push_back({call.root, to, 0, 0, call.bytes});
      }
    } else if (call.operation != barrier) {
      blocks();
    }
    return std::move(team_call_);
  }

 private:
  uint64_t any_bytes(uint64_t share = 1) {
    if (random_.chance(1, 8)) return 0;
    const uint64_t most = random_.chance(1, 2) ? 64 : std::max<uint64_t>(64, limits_.bytes / share);
    const uint64_t element =
        collective::is_reduction(team_call_.call.operation) ? nic::bytes_of(team_call_.call.type) : 1;
    return random_.below(most + 1) / element * element;
  }

  void reduction() {
    Call& call = team_call_.call;
    const bool in_place = random_.chance(1, 3);
    call.bytes = any_bytes(call.operation == reduce_scatter_block ? size_ : 1);
    uint64_t operand = call.operation == reduce_scatter_block ? call.bytes * size_ : call.bytes;
    std::vector<Call::Block> shares;
    if (call.operation == reduce_scatter) {
      operand = 0;
      for (uint32_t member = 0; member < size_; ++member) {
        const uint64_t bytes = any_bytes(size_);
        shares.push_back({bytes, operand});
        operand += bytes;
      }
      call.bytes = 0;
    }
    for (uint32_t number = 0; number < size_; ++number) {
      TeamCall::Member& member = team_call_.members[number];
      member.in_place = in_place && (call.operation != reduce || number == call.root);
      member.receives = shares;
      member.send_bytes = member.in_place ? 0 : operand;
      member.receive_bytes = operand;
    }
  }

  std::vector<Edge> draw_edges() {
    const Operation operation = team_call_.call.operation;
    const uint32_t root = team_call_.call.root;
    std::vector<Edge> edges;
    for (uint32_t from = 0; from < size_; ++from) {
      for (uint32_t to = 0; to < size_; ++to) {
        if (gathers(operation) && to != root) continue;
        if (scatters(operation) && from != root) continue;
        if (is_neighborhood(operation) && random_.chance(1, 2)) continue;
        const uint32_t received = scatters(operation) ? 0 : from;
        edges.push_back({from, sends_one_block(operation) ? 0 : to, to, received});
      }
    }
    if (!is_neighborhood(operation)) return edges;
    random_.shuffle(edges);
    for (Edge& edge : edges) {
      std::vector<int32_t>& destinations = team_call_.members[edge.from].destinations;
      std::vector<int32_t>& sources = team_call_.members[edge.to].sources;
      edge.from_number = sends_one_block(operation) ? 0 : static_cast<uint32_t>(destinations.size());
      edge.to_number = static_cast<uint32_t>(sources.size());
      destinations.push_back(static_cast<int32_t>(edge.to));
      sources.push_back(static_cast<int32_t>(edge.from));
    }
    return edges;
  }

  // Lays out blocks of these sizes, in any order and with gaps.
  std::vector<Call::Block> laid_out(const std::vector<uint64_t>& bytes, uint64_t& end) {
    std::vector<size_t> order(bytes.size());
    std::iota(order.begin(), order.end(), size_t{0});
    random_.shuffle(order);
    std::vector<Call::Block> blocks(bytes.size());
    end = 0;
    for (const size_t index : order) {
      end += random_.below(4);
      blocks[index] = {bytes[index], end};
      end += bytes[index];
    }
    return blocks;
  }

  void blocks() {
    Call& call = team_call_.call;
    const Operation operation = call.operation;
    const std::vector<Edge> edges = draw_edges();
    const bool has_lists = collective::has_lists(operation);
    const bool in_place = !is_neighborhood(operation) && random_.chance(1, 3);
    call.bytes = has_lists ? 0 : any_bytes(size_);
    std::vector<std::vector<uint64_t>> sent(size_);
    std::vector<std::vector<uint64_t>> received(size_);
    const auto at = [](std::vector<uint64_t>& list, uint32_t number) -> uint64_t& {
      if (list.size() <= number) list.resize(number + 1);
      return list[number];
    };
    for (const Edge& edge : edges) {
      uint64_t& bytes = at(sent[edge.from], edge.from_number);
      const bool is_new = !sends_one_block(operation) || bytes == 0;
      const bool mirrors_receive =
          in_place && !has_root(operation) && edge.to < edge.from && !sends_one_block(operation);
      if (is_new) bytes = !has_lists ? call.bytes : mirrors_receive ? at(sent[edge.to], edge.from) : any_bytes(size_);
    }
    // Blocks that go to several members have their sizes only now.
    for (const Edge& edge : edges) at(received[edge.to], edge.to_number) = at(sent[edge.from], edge.from_number);
    for (uint32_t number = 0; number < size_; ++number) {
      TeamCall::Member& member = team_call_.members[number];
      member.in_place = in_place && (!has_root(operation) || number == call.root);
      if (has_lists) {
        if (sends_one_block(operation)) sent[number].resize(1);
        member.sends = laid_out(sent[number], member.send_bytes);
        member.receives = laid_out(received[number], member.receive_bytes);
      } else {
        member.send_bytes = call.bytes * sent[number].size();
        member.receive_bytes = call.bytes * received[number].size();
        for (uint64_t i = 0; i < sent[number].size(); ++i) member.sends.push_back({call.bytes, i * call.bytes});
        for (uint64_t i = 0; i < received[number].size(); ++i) member.receives.push_back({call.bytes, i * call.bytes});
      }
    }
    for (const Edge& edge : edges) {
      const TeamCall::Member& from = team_call_.members[edge.from];
      const TeamCall::Member& to = team_call_.members[edge.to];
      if (edge.from == edge.to && from.in_place) continue;
      // In place, each member sends from where it receives, except roots of scatters, which receive nothing.
      const bool is_in_receive = from.in_place && !scatters(operation);
      const Call::Block& source = !is_in_receive               ? from.sends[edge.from_number]
                                  : sends_one_block(operation) ? from.receives[edge.from]
                                                               : from.receives[edge.to];
      team_call_.moves.push_back({edge.from, edge.to, source.at, to.receives[edge.to_number].at, source.bytes});
    }
  }

  uint32_t size_;
  TeamCall::Limits limits_;
  Random& random_;
  TeamCall team_call_;
};

}  // namespace

TeamCall TeamCall::random(uint32_t size, const Limits& limits, Random& random) {
  return TeamCallMaker(size, limits, random).make();
}

Call TeamCall::call_of(uint32_t member, uint8_t* send, uint8_t* receive) const {
  const Member& arguments = members[member];
  Call member_call = call;
  const bool is_scatter = scatters(call.operation);
  member_call.send = (arguments.in_place && !is_scatter) || call.operation == bcast ? nullptr : send;
  member_call.receive = arguments.in_place && is_scatter ? nullptr : receive;
  member_call.sources = arguments.sources;
  member_call.destinations = arguments.destinations;
  if (!collective::has_lists(call.operation)) return member_call;
  if (member_call.send != nullptr && call.operation != reduce_scatter) member_call.sends = arguments.sends;
  member_call.receives = arguments.receives;
  return member_call;
}

TeamCall::Memory TeamCall::random_memory(Random& random) const {
  Memory memory;
  for (const Member& member : members) {
    for (const auto& [list, bytes] :
         {std::pair(&memory.send, member.send_bytes), std::pair(&memory.receive, member.receive_bytes)}) {
      Bytes& contents = list->emplace_back(bytes);
      for (uint8_t& byte : contents) byte = static_cast<uint8_t>(random.next());
    }
  }
  return memory;
}

std::vector<Bytes> TeamCall::results_of(const Memory& memory) const {
  std::vector<Bytes> results = memory.receive;
  const auto source = [&](uint32_t member) -> const Bytes& {
    const bool is_in_receive = call.operation == bcast || (members[member].in_place && !scatters(call.operation));
    return is_in_receive ? memory.receive[member] : memory.send[member];
  };
  for (const Move& move : moves) {
    if (move.bytes > 0)
      std::memcpy(&results[move.to][move.to_offset], &source(move.from)[move.from_offset], move.bytes);
  }
  if (!collective::is_reduction(call.operation)) return results;
  std::optional<Bytes> partial;
  std::vector<Bytes> exclusive(size());  // results of exclusive scans
  std::vector<Bytes> inclusive(size());
  for (uint32_t member = 0; member < size(); ++member) {
    if (partial) exclusive[member] = *partial;
    if (partial) {
      combine(call, *partial, source(member).data());
    } else {
      partial = source(member);
    }
    inclusive[member] = *partial;
  }
  for (uint32_t member = 0; member < size(); ++member) {
    const Bytes& all = *partial;
    Call::Block block{all.size(), 0};
    if (call.operation == reduce_scatter) block = members[member].receives[member];
    if (call.operation == reduce_scatter_block) block = {call.bytes, member * call.bytes};
    if (call.operation == reduce && member != call.root) continue;
    const Bytes& result = call.operation == scan     ? inclusive[member]
                          : call.operation == exscan ? exclusive[member]
                                                     : all;
    if (result.empty()) continue;
    std::copy_n(result.begin() + static_cast<ptrdiff_t>(block.at), block.bytes, results[member].begin());
  }
  return results;
}

bool TeamCall::outlives_members() const { return call.algorithm == collective::fault_tolerant_name; }

std::string TeamCall::name() const {
  return text(collective::name_of(call.operation), call.algorithm.empty() ? "" : " by ", call.algorithm, ", root ",
              call.root, ", ", call.bytes, " B");
}

}  // namespace spinloom::torture
