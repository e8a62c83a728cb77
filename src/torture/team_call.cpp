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
    made_.members.resize(size);
  }

  TeamCall make() {
    Call& call = made_.call;
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
      for (TeamCall::Member& one : made_.members) one.receive_bytes = call.bytes;
      for (uint32_t to = 0; to < size_; ++to) {
        if (to != call.root) made_.moves.push_back({call.root, to, 0, 0, call.bytes});
      }
    } else if (call.operation != barrier) {
      blocks();
    }
    return std::move(made_);
  }

 private:
  uint64_t any_bytes(uint64_t share = 1) {
    if (random_.chance(1, 8)) return 0;
    const uint64_t most = random_.chance(1, 2) ? 64 : std::max<uint64_t>(64, limits_.bytes / share);
    const uint64_t element = collective::is_reduction(made_.call.operation) ? nic::bytes_of(made_.call.type) : 1;
    return random_.below(most + 1) / element * element;
  }

  void reduction() {
    Call& call = made_.call;
    const bool in_place = random_.chance(1, 3);
    call.bytes = any_bytes(call.operation == reduce_scatter_block ? size_ : 1);
    uint64_t operand = call.operation == reduce_scatter_block ? call.bytes * size_ : call.bytes;
    std::vector<Call::Block> shares;
    if (call.operation == reduce_scatter) {
      operand = 0;
      for (uint32_t one = 0; one < size_; ++one) {
        const uint64_t bytes = any_bytes(size_);
        shares.push_back({bytes, operand});
        operand += bytes;
      }
      call.bytes = 0;
    }
    for (uint32_t number = 0; number < size_; ++number) {
      TeamCall::Member& one = made_.members[number];
      one.in_place = in_place && (call.operation != reduce || number == call.root);
      one.receives = shares;
      one.send_bytes = one.in_place ? 0 : operand;
      one.receive_bytes = operand;
    }
  }

  std::vector<Edge> edges() {
    const Operation operation = made_.call.operation;
    const uint32_t root = made_.call.root;
    std::vector<Edge> found;
    for (uint32_t from = 0; from < size_; ++from) {
      for (uint32_t to = 0; to < size_; ++to) {
        if (gathers(operation) && to != root) continue;
        if (scatters(operation) && from != root) continue;
        if (is_neighborhood(operation) && random_.chance(1, 2)) continue;
        const uint32_t received = scatters(operation) ? 0 : from;
        found.push_back({from, sends_one_block(operation) ? 0 : to, to, received});
      }
    }
    if (!is_neighborhood(operation)) return found;
    random_.shuffle(found);
    for (Edge& edge : found) {
      std::vector<int32_t>& destinations = made_.members[edge.from].destinations;
      std::vector<int32_t>& sources = made_.members[edge.to].sources;
      edge.from_number = sends_one_block(operation) ? 0 : static_cast<uint32_t>(destinations.size());
      edge.to_number = static_cast<uint32_t>(sources.size());
      destinations.push_back(static_cast<int32_t>(edge.to));
      sources.push_back(static_cast<int32_t>(edge.from));
    }
    return found;
  }

  // Lays out blocks of these sizes, in any order and with gaps.
  std::vector<Call::Block> laid(const std::vector<uint64_t>& bytes, uint64_t& end) {
    std::vector<size_t> order(bytes.size());
    std::iota(order.begin(), order.end(), size_t{0});
    random_.shuffle(order);
    std::vector<Call::Block> made(bytes.size());
    end = 0;
    for (const size_t one : order) {
      end += random_.below(4);
      made[one] = {bytes[one], end};
      end += bytes[one];
    }
    return made;
  }

  void blocks() {
    Call& call = made_.call;
    const Operation operation = call.operation;
    const std::vector<Edge> found = edges();
    const bool lists = collective::has_lists(operation);
    const bool in_place = !is_neighborhood(operation) && random_.chance(1, 3);
    call.bytes = lists ? 0 : any_bytes(size_);
    std::vector<std::vector<uint64_t>> sent(size_);
    std::vector<std::vector<uint64_t>> received(size_);
    const auto at = [](std::vector<uint64_t>& list, uint32_t number) -> uint64_t& {
      if (list.size() <= number) list.resize(number + 1);
      return list[number];
    };
    for (const Edge& edge : found) {
      uint64_t& bytes = at(sent[edge.from], edge.from_number);
      const bool is_new = !sends_one_block(operation) || bytes == 0;
      const bool mirrors = in_place && !has_root(operation) && edge.to < edge.from && !sends_one_block(operation);
      if (is_new) bytes = !lists ? call.bytes : mirrors ? at(sent[edge.to], edge.from) : any_bytes(size_);
    }
    // Blocks that go to several members have their sizes only now.
    for (const Edge& edge : found) at(received[edge.to], edge.to_number) = at(sent[edge.from], edge.from_number);
    for (uint32_t number = 0; number < size_; ++number) {
      TeamCall::Member& one = made_.members[number];
      one.in_place = in_place && (!has_root(operation) || number == call.root);
      if (lists) {
        if (sends_one_block(operation)) sent[number].resize(1);
        one.sends = laid(sent[number], one.send_bytes);
        one.receives = laid(received[number], one.receive_bytes);
      } else {
        one.send_bytes = call.bytes * sent[number].size();
        one.receive_bytes = call.bytes * received[number].size();
        for (uint64_t i = 0; i < sent[number].size(); ++i) one.sends.push_back({call.bytes, i * call.bytes});
        for (uint64_t i = 0; i < received[number].size(); ++i) one.receives.push_back({call.bytes, i * call.bytes});
      }
    }
    for (const Edge& edge : found) {
      const TeamCall::Member& from = made_.members[edge.from];
      const TeamCall::Member& to = made_.members[edge.to];
      if (edge.from == edge.to && from.in_place) continue;
      // In place, each member sends from where it receives, except roots of scatters, which receive nothing.
      const bool lies = from.in_place && !scatters(operation);
      const Call::Block& source = !lies                        ? from.sends[edge.from_number]
                                  : sends_one_block(operation) ? from.receives[edge.from]
                                                               : from.receives[edge.to];
      made_.moves.push_back({edge.from, edge.to, source.at, to.receives[edge.to_number].at, source.bytes});
    }
  }

  uint32_t size_;
  TeamCall::Limits limits_;
  Random& random_;
  TeamCall made_;
};

}  // namespace

TeamCall TeamCall::random(uint32_t size, const Limits& limits, Random& random) {
  return TeamCallMaker(size, limits, random).make();
}

Call TeamCall::of(uint32_t member, uint8_t* send, uint8_t* receive) const {
  const Member& one = members[member];
  Call made = call;
  const bool scattered = scatters(call.operation);
  made.send = (one.in_place && !scattered) || call.operation == bcast ? nullptr : send;
  made.receive = one.in_place && scattered ? nullptr : receive;
  made.sources = one.sources;
  made.destinations = one.destinations;
  if (!collective::has_lists(call.operation)) return made;
  if (made.send != nullptr && call.operation != reduce_scatter) made.sends = one.sends;
  made.receives = one.receives;
  return made;
}

TeamCall::Memory TeamCall::random_memory(Random& random) const {
  Memory made;
  for (const Member& one : members) {
    for (const auto& [list, bytes] :
         {std::pair(&made.send, one.send_bytes), std::pair(&made.receive, one.receive_bytes)}) {
      Bytes& memory = list->emplace_back(bytes);
      for (uint8_t& byte : memory) byte = static_cast<uint8_t>(random.next());
    }
  }
  return made;
}

std::vector<Bytes> TeamCall::played(const Memory& memory) const {
  std::vector<Bytes> end = memory.receive;
  const auto source = [&](uint32_t member) -> const Bytes& {
    const bool lies = call.operation == bcast || (members[member].in_place && !scatters(call.operation));
    return lies ? memory.receive[member] : memory.send[member];
  };
  for (const Move& move : moves) {
    if (move.bytes > 0) std::memcpy(&end[move.to][move.to_at], &source(move.from)[move.from_at], move.bytes);
  }
  if (!collective::is_reduction(call.operation)) return end;
  std::optional<Bytes> so_far;
  std::vector<Bytes> before(size());  // results of exclusive scans
  std::vector<Bytes> with(size());
  for (uint32_t member = 0; member < size(); ++member) {
    if (so_far) before[member] = *so_far;
    if (so_far) {
      combine(call, *so_far, source(member).data());
    } else {
      so_far = source(member);
    }
    with[member] = *so_far;
  }
  for (uint32_t member = 0; member < size(); ++member) {
    const Bytes& all = *so_far;
    Call::Block share{all.size(), 0};
    if (call.operation == reduce_scatter) share = members[member].receives[member];
    if (call.operation == reduce_scatter_block) share = {call.bytes, member * call.bytes};
    if (call.operation == reduce && member != call.root) continue;
    const Bytes& result = call.operation == scan ? with[member] : call.operation == exscan ? before[member] : all;
    if (result.empty()) continue;
    std::copy_n(result.begin() + static_cast<ptrdiff_t>(share.at), share.bytes, end[member].begin());
  }
  return end;
}

bool TeamCall::outlives_members() const { return call.algorithm == collective::fault_tolerant_name; }

std::string TeamCall::name() const {
  return text(collective::name_of(call.operation), call.algorithm.empty() ? "" : " by ", call.algorithm, ", root ",
              call.root, ", ", call.bytes, " B");
}

}  // namespace spinloom::torture
