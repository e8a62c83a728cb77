#include "goal/patterns.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <string>
#include <utility>

namespace spinloom::goal {
namespace {

using schedule::Awaits;
using schedule::Builder;
using schedule::Kind;
using schedule::Peer;
using schedule::Schedule;
using schedule::Shape;

// Makes the operations of one rank after the other.
class Maker {
 public:
  Maker(uint32_t count, uint64_t bytes)
      : ranks(count),
        schedule(count),
        send_(number_of(Kind::send, Peer::absolute, bytes)),
        receive_(number_of(Kind::receive, Peer::absolute, bytes)),
        send_on_(number_of(Kind::send, Peer::relative, bytes)),
        receive_on_(number_of(Kind::receive, Peer::relative, bytes)) {}

  const uint32_t ranks;
  Schedule schedule;

  uint32_t send_to(uint32_t rank) { return builder_.add(send_, rank); }
  uint32_t receive_from(uint32_t rank) { return builder_.add(receive_, rank); }
  // So many ranks further on, so many before.
  uint32_t send_on(uint32_t distance) { return builder_.add(send_on_, distance); }
  uint32_t receive_from_before(uint32_t distance) { return builder_.add(receive_on_, ranks - distance); }
  uint32_t join() { return builder_.add(number_of(Kind::compute, Peer::absolute, 0), 0); }
  void require(uint32_t after, uint32_t before) { builder_.require(after, before, Awaits::end); }

  void give(uint32_t rank) { schedule.give({&rank, 1}, builder_.take()); }
  void give(const std::vector<uint32_t>& some) { schedule.give(some, builder_.take()); }
  void give_all_from(uint32_t first) {
    std::vector<uint32_t> all(ranks - first);
    std::iota(all.begin(), all.end(), first);
    give(all);
  }

 private:
  uint32_t number_of(Kind kind, Peer peer, uint64_t bytes) {
    Shape shape;
    shape.size = bytes;
    shape.kind = kind;
    shape.peer = peer;
    return schedule.number_of(shape);
  }

  Builder builder_;
  const uint32_t send_;
  const uint32_t receive_;
  const uint32_t send_on_;
  const uint32_t receive_on_;
};

void dissemination(Maker& make) {
  uint32_t before = 0;
  for (uint64_t distance = 1; distance < make.ranks; distance *= 2) {
    const uint32_t sent = make.send_on(static_cast<uint32_t>(distance));
    if (distance > 1) make.require(sent, before);
    before = make.receive_from_before(static_cast<uint32_t>(distance));
  }
  make.give_all_from(0);
}

// The tree in which the children of a rank are so many ranks further on: powers of two below its own lowest bit, the
// largest first.
std::vector<uint32_t> children(uint32_t rank, uint32_t ranks) {
  const uint64_t end = rank == 0 ? std::bit_ceil(uint64_t{ranks}) : rank & (~rank + 1);
  std::vector<uint32_t> distances;
  for (uint64_t distance = end / 2; distance > 0; distance /= 2) {
    if (rank + distance < ranks) distances.push_back(static_cast<uint32_t>(distance));
  }
  return distances;
}

template <class Make>
void binomial(Maker& make, const Make& make_one) {
  // By what a Program depends on: the distance to the parent, those to the children.
  std::map<std::pair<uint32_t, std::vector<uint32_t>>, std::vector<uint32_t>> alike;
  for (uint32_t rank = 0; rank < make.ranks; ++rank) {
    alike[{rank & (~rank + 1), children(rank, make.ranks)}].push_back(rank);
  }
  for (const auto& [distances, some] : alike) {
    make_one(distances.first, distances.second);
    make.give(some);
  }
}

void binomial_broadcast(Maker& make) {
  binomial(make, [&](uint32_t parent, const std::vector<uint32_t>& distances) {
    const uint32_t received = parent == 0 ? 0 : make.receive_from_before(parent);
    for (const uint32_t distance : distances) {
      const uint32_t sent = make.send_on(distance);
      if (parent != 0) make.require(sent, received);
    }
  });
}

void binomial_reduce(Maker& make) {
  binomial(make, [&](uint32_t parent, const std::vector<uint32_t>& distances) {
    std::vector<uint32_t> received;
    for (auto one = distances.rbegin(); one != distances.rend(); ++one) {
      received.push_back(make.receive_from_before(make.ranks - *one));
    }
    if (parent == 0) return;
    const uint32_t sent = make.send_on(make.ranks - parent);
    for (const uint32_t one : received) make.require(sent, one);
  });
}

void linear_gather(Maker& make) {
  for (uint32_t rank = 1; rank < make.ranks; ++rank) make.receive_from(rank);
  make.give(0);
  make.send_to(0);
  make.give_all_from(1);
}

void linear_scatter(Maker& make) {
  for (uint32_t rank = 1; rank < make.ranks; ++rank) make.send_to(rank);
  make.give(0);
  make.receive_from(0);
  make.give_all_from(1);
}

// In each step with another rank, when that of the step before has both sent and received.
void pairwise_exchange(Maker& make) {
  uint32_t before = 0;
  for (uint32_t distance = 1; distance < make.ranks; ++distance) {
    const uint32_t sent = make.send_on(distance);
    const uint32_t received = make.receive_from_before(distance);
    if (distance > 1) {
      for (const uint32_t one : {sent, received}) {
        make.require(one, before);
        make.require(one, before + 1);
      }
    }
    before = sent;
  }
  make.give_all_from(0);
}

void linear_alltoall(Maker& make) {
  for (uint32_t distance = 1; distance < make.ranks; ++distance) {
    make.send_on(distance);
    make.receive_from_before(distance);
  }
  make.give_all_from(0);
}

void ring_allreduce(Maker& make) {
  uint32_t before = 0;
  for (uint64_t step = 0; step < 2 * uint64_t{make.ranks - 1}; ++step) {
    const uint32_t sent = make.send_on(1);
    if (step > 0) make.require(sent, before);
    before = make.receive_from_before(1);
  }
  make.give_all_from(0);
}

void recursive_doubling_allreduce(Maker& make) {
  for (uint32_t rank = 0; rank < make.ranks; ++rank) {
    uint32_t before = 0;
    for (uint64_t bit = 1; bit < make.ranks; bit *= 2) {
      const auto peer = static_cast<uint32_t>(rank ^ bit);
      const uint32_t sent = make.send_to(peer);
      if (bit > 1) make.require(sent, before);
      before = make.receive_from(peer);
    }
    make.give(rank);
  }
}

void linear_barrier(Maker& make) {
  std::vector<uint32_t> received;
  for (uint32_t rank = 1; rank < make.ranks; ++rank) received.push_back(make.receive_from(rank));
  const uint32_t joined = make.join();
  for (const uint32_t one : received) make.require(joined, one);
  for (uint32_t rank = 1; rank < make.ranks; ++rank) make.require(make.send_to(rank), joined);
  make.give(0);
  make.send_to(0);
  make.receive_from(0);
  make.give_all_from(1);
}

struct Pattern {
  std::string_view name;
  void (*make)(Maker&);
};

constexpr Pattern patterns[] = {
    {"dissemination", dissemination},
    {"binomial_broadcast", binomial_broadcast},
    {"binomial_reduce", binomial_reduce},
    {"linear_gather", linear_gather},
    {"linear_scatter", linear_scatter},
    {"pairwise_exchange", pairwise_exchange},
    {"linear_alltoall", linear_alltoall},
    {"ring_allreduce", ring_allreduce},
    {"recursive_doubling_allreduce", recursive_doubling_allreduce},
    {"linear_barrier", linear_barrier},
};

constexpr uint32_t ranks_most = 1U << 29;  // operations of a rank are at most four times as many

}  // namespace

Result<Schedule> make_pattern(std::string_view name, uint32_t ranks, uint64_t bytes) {
  const auto* const pattern = std::ranges::find(patterns, name, &Pattern::name);
  if (pattern == std::end(patterns)) {
    std::string known;
    for (const Pattern& one : patterns) known += text(known.empty() ? "" : ", ", one.name);
    return fail(Code::invalid, "there is no pattern '", name, "'; the patterns are ", known);
  }
  if (ranks < 2 || ranks > ranks_most) {
    return fail(Code::invalid, name, " of ", ranks, " ranks: give 2 to ", ranks_most, " ranks");
  }
  if (name == "recursive_doubling_allreduce" && !std::has_single_bit(ranks)) {
    return fail(Code::invalid, name, " of ", ranks, " ranks: give a power of two");
  }
  if (name == "ring_allreduce") bytes = bytes / ranks + (bytes % ranks != 0 ? 1 : 0);
  Maker make(ranks, bytes);
  pattern->make(make);
  return std::move(make.schedule);
}

std::vector<std::string_view> pattern_names() {
  std::vector<std::string_view> names;
  for (const Pattern& one : patterns) names.push_back(one.name);
  return names;
}

}  // namespace spinloom::goal
