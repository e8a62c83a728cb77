// Config - the numbers of a scenario, by the names in its file (data/scenarios/*.toml).
//
// Contract: set() takes one number, by its table and name: `drop` of the table [faults] is "faults.drop". An unknown
//   name, or a value out of its range, is an Error that lists the legal names or the range.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "torture/faults.hpp"

namespace spinloom::torture {

// The kinds of exchanges between ranks. The table [work] of the file gives each kind a weight.
enum class Work : uint8_t {
  put,         // one put to an entry of its own: options, truncation, refusals
  get,
  atomic,
  fetch_atomic,
  swap,
  queue,       // puts in a row to use-once entries: first come, first served
  append,      // puts in a row to one entry that keeps the offset and leaves when it is nearly full
  unexpected,  // puts that come before their entry: overflow list, claims, searches
  chain,       // triggered puts from rank to rank
  release,     // several triggered commands of one counter, released by one count
  shared,      // fetch-and-add and atomics of all ranks on the same words
  iovec,       // operations on lists of memory pieces
  stream,      // streaming puts
  process,     // process-puts: handlers fill the packets
  scatter,     // payload handlers place the bytes
  forward,     // handlers put, get and add at another rank
  misbehave,   // handlers that fail, fault, loop or write where they may not
  flow,        // a portal table entry that is disabled: too few entries, a small queue, or by the host
  counted,     // operations without events at the target: only a counter shows that the bytes are there
  overrun,     // event queues that are too small, without flow control: the newest events stay
  crowd,       // more unexpected puts than a portal table entry keeps headers for
  cancel,      // appends and puts that wait for a counter, and are cancelled
  collective,  // collective calls of several teams, as schedules of the NICs
  // The works of Ethernet NICs, in runs of their own:
  frame_echo,     // frames that handlers answer, drop, pass on or fail on
  frame_message,  // messages in reliable packets, which handlers write to host memory and acknowledge
  frame_ring,     // frames that go to a ring in host memory
  frame_stray,    // frames of any length, with any bytes
  frame_host,     // frames that the host sends
  frame_change,   // the host activates, removes and installs contexts, changes rules and runs handlers
};
inline constexpr size_t work_count = 29;
inline constexpr Work first_frame_work = Work::frame_echo;
[[nodiscard]] const char* name_of(Work work);

struct Config {
  uint32_t ranks = 2;
  uint32_t messages = 60;      // a run has at least this many
  uint32_t at_a_time = 12;     // exchanges under way at the same time
  uint32_t size_max = 1500;    // the longest message
  uint32_t payload_bytes = 256;
  uint32_t packet_buffer_packets = 64;
  uint32_t hpus = 4;
  uint32_t early_packets = 64;
  uint32_t handler_messages = 256;
  uint32_t at_once_bytes = 0;
  uint32_t unexpected_headers = 1 << 16;  // the most headers that a portal table entry keeps
  uint32_t datagram_bytes = 1472;
  uint32_t window = 16;
  uint32_t copy_bytes = 64;
  uint32_t limited = 0;  // 1: engines of collective calls have few counters, triggered operations and entries
  uint32_t dead = 0;  // 1: one rank, or the program of a frame NIC's host, stops somewhere in the middle
  uint32_t drop = 0;  // this and the next three: rates of faults in 1000 datagrams or frames
  uint32_t duplicate = 0;
  uint32_t reorder = 0;
  uint32_t corrupt = 0;
  std::vector<uint32_t> weights = std::vector<uint32_t>(work_count, 0);

  [[nodiscard]] Status set(std::string_view name, int64_t value);
  [[nodiscard]] static std::vector<std::string> names();
};

// True if a work of Ethernet NICs has a weight.
[[nodiscard]] bool has_frames(const Config& config);

// Returns an Error if the numbers do not fit together.
[[nodiscard]] Status check(const Config& config);

}  // namespace spinloom::torture
