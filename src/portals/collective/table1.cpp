#include "portals/collective/table1.hpp"

#include <bit>

namespace spinloom::collective {
namespace {

constexpr uint64_t log_up(uint64_t ranks) { return ranks <= 1 ? 0 : static_cast<uint64_t>(std::bit_width(ranks - 1)); }

constexpr Formula zero{"0", [](uint64_t, uint64_t) -> uint64_t { return 0; }};
constexpr Formula one{"1", [](uint64_t, uint64_t) -> uint64_t { return 1; }};
constexpr Formula two{"2", [](uint64_t, uint64_t) -> uint64_t { return 2; }};
constexpr Formula ranks{"P", [](uint64_t p, uint64_t) { return p; }};
constexpr Formula log{"log(P)", [](uint64_t p, uint64_t) { return log_up(p); }};
constexpr Formula log_less{"log(P) - 1", [](uint64_t p, uint64_t) { return log_up(p) - (p > 1 ? 1 : 0); }};
constexpr Formula log_twice{"2 log(P)", [](uint64_t p, uint64_t) { return 2 * log_up(p); }};
constexpr Formula message{"S", [](uint64_t, uint64_t bytes) { return bytes; }};
constexpr Formula messages{"P S", [](uint64_t p, uint64_t bytes) { return p * bytes; }};

using enum Operation;

constexpr Table1Row rows[] = {
    {bcast, "linear", "linear", ranks, one, zero, zero, message},
    {bcast, "binary tree", "binary", log, two, two, one, message},
    {bcast, "binomial tree", "binomial", log, two, log_less, one, message},
    {alltoall, "linear", "linear", ranks, two, zero, zero, message},
    {alltoall, "recursive doubling", "bruck", log, two, log_less, one, messages},
    {allreduce, "binomial tree", "tree", log, log, log_twice, log, message},
    {allreduce, "recursive doubling", "recursive-doubling", log, log, log_twice, log, message},
    {scatter, "linear", "linear", ranks, one, zero, zero, messages},
    {scatter, "binomial tree", "binomial", log, two, log_less, one, messages},
    {gather, "linear", "linear", ranks, one, zero, zero, messages},
    {gather, "binomial tree", "binomial", log, two, one, one, messages},
    {reduce, "linear", "linear", ranks, ranks, ranks, ranks, message},
    {reduce, "binomial tree", "binomial", log, log, log, log_less, message},
};

}  // namespace

std::span<const Table1Row> table1() { return rows; }

}  // namespace spinloom::collective
