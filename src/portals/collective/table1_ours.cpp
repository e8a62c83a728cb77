#include "portals/collective/table1_ours.hpp"

#include <algorithm>
#include <bit>

#include "portals/collective/choice.hpp"
#include "portals/collective/needs.hpp"

namespace spinloom::collective {
namespace {

constexpr uint64_t log_of_power(uint64_t ranks) { return static_cast<uint64_t>(std::bit_width(ranks - 1)); }

constexpr Formula our_ranks{"P", [](uint64_t p, uint64_t) { return p; }};
constexpr Formula our_ranks_less{"P - 1", [](uint64_t p, uint64_t) { return p - 1; }};
constexpr Formula our_twice_ranks_less{"2 (P - 1)", [](uint64_t p, uint64_t) { return 2 * (p - 1); }};
constexpr Formula our_log{"log(P)", [](uint64_t p, uint64_t) { return log_of_power(p); }};
constexpr Formula our_log_more{"log(P) + 1", [](uint64_t p, uint64_t) { return log_of_power(p) + 1; }};
constexpr Formula our_log_twice{"2 log(P)", [](uint64_t p, uint64_t) { return 2 * log_of_power(p); }};
constexpr Formula our_log_twice_more{"2 log(P) + 1", [](uint64_t p, uint64_t) { return 2 * log_of_power(p) + 1; }};
constexpr Formula our_log_twice_less{"2 log(P) - 1", [](uint64_t p, uint64_t) { return 2 * log_of_power(p) - 1; }};
constexpr Formula our_log_thrice_less{"3 log(P) - 1", [](uint64_t p, uint64_t) { return 3 * log_of_power(p) - 1; }};
constexpr Formula our_blocks_packed{"P + log(P) - 1", [](uint64_t p, uint64_t) { return p + log_of_power(p) - 1; }};
constexpr Formula our_log_messages{"log(P) S", [](uint64_t p, uint64_t s) { return log_of_power(p) * s; }};
constexpr Formula our_ranks_less_messages{"(P - 1) S", [](uint64_t p, uint64_t s) { return (p - 1) * s; }};
constexpr Formula our_messages{"P S", [](uint64_t p, uint64_t s) { return p * s; }};
constexpr Formula our_rounds_of_messages{"P (log(P) + 1/2) S",
                                         [](uint64_t p, uint64_t s) { return (p * log_of_power(p) + p / 2) * s; }};

constexpr Table1Ours our_rows[] = {
    {},
    {.from_ranks = 8, .reason = "of 2 ranks nobody passes on what it gets, of 4 one rank does, to one other"},
    {.from_ranks = 4, .reason = "of 2 ranks nobody passes on what it gets"},
    {.entries = our_ranks,
     .memory = our_messages,
     .reason =
         "an entry takes one message, so that an early one of the next start overwrites nothing; the table has one "
         "entry for all. A rank has a block for each other one, as the table's next row says, too"},
    {.entries = our_log_twice_more,
     .triggered = our_blocks_packed,
     .counters = our_log_twice_less,
     .memory = our_rounds_of_messages,
     .from_ranks = 8,
     .reason =
         "Bruck's algorithm packs the blocks of a round: copies, counters for their order, and places for what is "
         "packed and lands in each round, because a message may come early. The table has neither"},
    {.entries = our_log_twice_more,
     .counters = our_log_more,
     .memory = our_log_messages,
     .reason =
         "a descriptor for each counter that sums count on, beside the entries; the table counts one side. A "
         "counter more, because the result is waited for, too; and each operand has a place of its own, because its "
         "message may come early"},
    {.entries = our_log_thrice_less,
     .triggered = our_log_twice_less,
     .counters = our_log_twice_less,
     .memory = our_log_messages,
     .reason =
         "a descriptor for each counter, beside the entries. A sum is waited for by the next send and, with a "
         "receive, by the next sum: two counters for a round, but the last; and the first send waits for nothing. "
         "Each operand has a place of its own, because its message may come early"},
    {},
    {.triggered = our_log,
     .from_ranks = 4,
     .reason =
         "a rank that passes blocks on copies its own one out of them when they have come; of 2 ranks nobody does"},
    {.entries = our_ranks,
     .reason = "an entry takes one message, so that an early one of the next start overwrites nothing"},
    {.entries = our_log_more,
     .from_ranks = 4,
     .reason =
         "an entry takes one message, so that an early one of the next start overwrites nothing; of 2 ranks nobody "
         "passes blocks on"},
    {.entries = our_twice_ranks_less,
     .triggered = our_ranks_less,
     .counters = our_ranks_less,
     .memory = our_ranks_less_messages,
     .reason =
         "the root combines P - 1 messages, not P; its sums have descriptors, beside the entries, and each operand "
         "but the "
         "first a place of its own, because its message may come early"},
    {.entries = our_log_twice,
     .counters = our_log,
     .memory = our_log_messages,
     .reason =
         "a descriptor for each sum, beside the entries. The last sum at the root is waited for by nobody, but a rank "
         "below it that sends on waits for its last one; and each operand has a place of its own, because its message "
         "may come early"},
};

}  // namespace

std::span<const Table1Ours> table1_ours() { return our_rows; }

Result<Table1Count> table1_count(const Table1Row& row, uint32_t ranks, uint64_t bytes) {
  SPL_ASSIGN(const Algorithm* const algorithm, find(row.operation, row.algorithm));
  const CallShape shape{.ranks = ranks, .bytes = bytes, .segment_bytes = bytes};
  Needs largest;
  uint64_t memory_bytes = 0;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    SPL_ASSIGN(const std::vector<Round> rounds, rounds_of(*algorithm, shape, 0, rank));
    const Needs needs = needs_of(unread_graph_of(rounds), bytes);
    largest.take_maxima(needs);
    memory_bytes = std::max(memory_bytes, needs.own_bytes + callers_bytes(rounds));
  }
  return Table1Count{largest.entries, largest.triggered, largest.counters, memory_bytes};
}

}  // namespace spinloom::collective
