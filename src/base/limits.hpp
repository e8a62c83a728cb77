// Limits - the named limits that several parts of the project share. Going beyond one is an Error, or a stop, that
// names it. A limit that concerns one file alone stands in that file.
//
// The Python package reads the limits that it needs from spinloom._core.limits (app/python/bindings_errors.cpp).
// Where limits depend on each other, a static_assert here says how.
#pragma once

#include <cstdint>

namespace spinloom::limits {

// Layouts.
inline constexpr int64_t type_depth_max = 64;           // nesting of constructors
inline constexpr int64_t type_list_max = int64_t{1} << 27;  // entries of one index list
inline constexpr int64_t blob_depth_max = 16;           // levels of a normalised program
inline constexpr int64_t blob_bytes_max = int64_t{1} << 31;
inline constexpr int64_t oracle_bytes_max = int64_t{1} << 34;

// Memory of a simulated receive, which is held twice.
inline constexpr int64_t destination_bytes_max = int64_t{1} << 31;
inline constexpr int64_t message_blocks_max = int64_t{1} << 26;     // listed blocks of one message

// The NIC.
inline constexpr uint32_t hpu_count_max = 256;
inline constexpr uint32_t vhpu_count_max = 1 << 20;
inline constexpr uint32_t portal_table_max = 256;
inline constexpr uint32_t portal_tables = 4;  // one for each network interface of a process
inline constexpr uint32_t payload_bytes_max = 1 << 16;
inline constexpr uint32_t early_packets_max = 1 << 20;  // packets that may wait for the header of their message
inline constexpr uint32_t queue_count_max = 1 << 16;
inline constexpr uint32_t counter_count_max = 1 << 20;
inline constexpr uint32_t entry_count_max = 1 << 20;
inline constexpr uint32_t context_count_max = 1 << 16;
inline constexpr uint32_t stream_count_max = 1 << 10;       // streaming puts that have not ended yet
inline constexpr uint32_t outbound_packets_max = 1 << 16;   // packets in the outbound buffer
inline constexpr uint32_t packets_per_call_max = 4096;  // packets of one message before others get a turn
inline constexpr uint64_t datagram_bytes_max = 65507;  // the longest payload of UDP over IPv4

// Simulated jobs.
inline constexpr uint32_t rank_count_max = 4096;

// Handlers.
inline constexpr uint32_t handler_stack_bytes = 8192;
inline constexpr uint64_t handler_budget_cycles = 10'000'000;
inline constexpr uint32_t slice_cycles = 256;
// Handlers that a handler run allows for each packet; more count as endless.
inline constexpr uint64_t handlers_a_packet_max = 256;
inline constexpr uint32_t debug_text_bytes = 80;          // one debug line; a longer one is cut
inline constexpr uint64_t handler_log_lines_max = 10'000;  // debug lines and reasons in a handler log

// Recordings of one message.
inline constexpr uint64_t trace_spans_max = 1 << 20;
inline constexpr uint64_t depth_points_max = 4096;

static_assert(blob_depth_max <= type_depth_max, "normalisation only removes levels");

}  // namespace spinloom::limits
