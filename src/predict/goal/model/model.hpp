// Model - when each rank of a schedule ends, by our own rules: LogGOPS in which operations have ends and NICs have
// queues.
//
// Contract: run() gives the times of each rank, or an error. Errors are a peer that is no rank, too many CPUs and NICs,
//   a noise or a network that cannot be, a time that does not fit, and a run that `watch` has ended. Where the schedule
//   stalls, the error says which operations wait for which. With s bytes, of which n = max(s - 1, 0) cost something:
//   - An operation is free at the time at which the last of those that it waits for has ended (or begun), and of those
//     of its any-of edges the first. It then needs its CPU: for c = o + n O if it is a send, for its time if it is a
//     computation; a receive is posted in no time. It ends when its CPU has done that. A CPU that is busy makes it
//     wait, the first come first.
//   - A message leaves a CPU when c is over and joins the queue of its NIC. A NIC sends one message after the other,
//     each for g + n G, and receives one after the other, each for g + n G. The last byte comes n G after the first
//     one, which comes L after it has left. Nobody's CPU is needed.
//   - A message that is there with its last byte matches the first posted receive of its source and tag, or waits for
//     one. The receive's CPU then works for c, as soon as it is free, and the receive has ended.
//         T(s <= S) = c + L + n G + c        from the send's begin to the receive's end, if nothing else happens
//   - A send of s > S is a request of one byte (c + L). Where it matches, an answer of one byte goes back (L) and then
//     the data come (n G + L); all three go through the queues of the NICs. The send ends when its last byte has left.
//     Only the sent size counts.
//         T(s > S) = c + L + w + L + n G + L + c        w: what the request waits for its receive
//   - A put, get, atomic or fetch goes through the same queues and needs no CPU at its target, whatever its size. A
//     put, atomic or fetch has been done when its last byte is there, a get when the last of its bytes has left there.
//     Then it counts for the `arrived`s that wait, which need no CPU either.
//         T(put) = c + L + n G; it has ended after c + n G
//         T(get) = o + L + (n G + L);    T(fetch) = c + (L + n G) + (L + n G).
//   - Without a `network` all NICs are on one switch that never makes them wait: a crossbar. With one, the first byte
//     of a message is at its first switch L after it has left and then goes through `simulated/network/network.hpp` in
//     packets; it needs `hop` for each link between switches, and waits where others are. The NICs at both ends are as
//     before; the receiving one takes what comes in packets.
//         T(s <= S) = c + L + h hop + n G + c         h: links between the switches of both
//   - At one moment, what waits for a CPU begins first, then come ends of messages, sends, receives, computations.
//   - With `layout` a CPU packs before a message leaves and unpacks when one has come: a send, put, atomic or fetch
//     with a layout at its own end costs its CPU so much more for each byte, and so does a receive. What NICs do is
//     free.
//   - With `tags_apart` a receive of any tag takes no message that has one of them.
//   - With `noise` a CPU is away at times; its work then ends later. NICs are not.
//   A rank ends when the last of its operations has ended.
// Threads: pure; one run is one thread's. Time: modelled, in picoseconds; rates are rational, the time of n bytes is
//   rounded up once.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "predict/goal/model/matching.hpp"
#include "predict/goal/model/watch.hpp"
#include "predict/schedule/schedule.hpp"
#include "simulated/network/topology.hpp"

namespace spinloom::goal {

// In each period the CPUs of a rank are away for length_ps. The seed gives when each rank's periods begin; with
// `is_synchronised`, those of all ranks begin at 0.
struct Noise {
  uint64_t period_ps = 1'000'000'000;
  uint64_t length_ps = 10'000'000;
  uint64_t seed = 1;
  bool is_synchronised = false;
};

struct Model {
  uint64_t L_ps = 2'500'000;
  uint64_t o_ps = 1'500'000;
  uint64_t g_ps = 1'000'000;
  Rate G{6000, 1};  // the time for each byte
  Rate O{0, 1};
  uint64_t S_bytes = 65535;
  uint64_t unit_ps = 1000;  // the unit of a schedule's computations
  // The time of a CPU for each byte that a layout scatters; without it layouts cost nothing.
  std::optional<Rate> layout = {};
  std::optional<network::Config> network = {};
  std::optional<Noise> noise = {};
  TagsApart tags_apart = {};  // tags that a receive of any tag does not take
};

// No modelled time is later than this, which is 53 days.
inline constexpr uint64_t time_ps_max = uint64_t{1} << 62;

struct Outcome {
  // The times of each rank.
  std::vector<uint64_t> finish_ps;
  std::vector<uint64_t> compute_ps;  // all its CPUs' time in computations, with the noise that comes in between
  std::vector<uint64_t> overhead_ps;  // the time in o, O and layouts, with the noise that comes in between
  uint64_t makespan_ps = 0;
  uint64_t events = 0;  // operations that began and messages that came; at NICs, events of their clock
};

class Record;

// `record` is filled in if the run completes.
[[nodiscard]] Result<Outcome> run(const schedule::Schedule& schedule, const Model& model, Record* record = nullptr,
                                  const Watch& watch = {});

}  // namespace spinloom::goal
