// Test call - a random call of a collective operation, and what every rank must have in the end, by a plain reference.
//
// Contract: random_call() lays blocks of random bytes: those of regular calls one behind the other, others in any order
//   with gaps. `expected` has all bytes that are received into, gaps too. Elements are maps x -> a x + b modulo 2^32:
//   one after the other is associative, but not commutative.
// Threads: tests run in one thread. Time: none.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "portals/collective/catalogue.hpp"
#include "portals/collective/testing/byte_play.hpp"

namespace spinloom::collective::test {

inline constexpr uint64_t element = 8;

struct RankCall {
  Collective call;
  Memory send;  // areas
  Memory receive;
  Memory expected;
};

struct TestCall {
  std::vector<RankCall> ranks = {};
  Operator combine = {};
  bool is_reduction = false;
};

// `any_operator`: one that does not commute; otherwise both halves of elements are added.
[[nodiscard]] TestCall random_call(Operation operation, uint32_t size, uint32_t root, bool any_operator,
                                   Random& random);
// Gives the same call other bytes. The operator must be addition, if there is one.
void vary(TestCall& call);

// All algorithms, and names of theirs that tests may have.
[[nodiscard]] std::vector<Algorithm> catalogue();
[[nodiscard]] std::string name_of(const Algorithm& algorithm);

}  // namespace spinloom::collective::test

namespace spinloom::collective {

inline void PrintTo(const Algorithm& algorithm, std::ostream* out) { *out << test::name_of(algorithm); }

}  // namespace spinloom::collective
