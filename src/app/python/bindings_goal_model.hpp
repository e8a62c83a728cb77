// BindingsGoalModel - the arguments and results of runs of schedules, as Python has them.
//
// Contract: a rate is (numerator, denominator) of ps for a byte; numbers that make no rate are an error with its name.
//   Noise is (period, length, seed, together). A network is the fields that goal_network.parse() gives.
// Threads: with Python's lock. Time: none.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>

#include "base/units.hpp"
#include "predict/goal/model/model.hpp"
#include "predict/goal/model/record.hpp"
#include "predict/schedule/schedule.hpp"
#include "simulated/network/topology.hpp"

namespace spinloom::app {

using Ratio = std::pair<int64_t, int64_t>;
using Noise = std::tuple<uint64_t, uint64_t, uint64_t, bool>;

// The record of a run, which Python keeps for later questions.
struct KeptRecord {
  std::shared_ptr<const goal::Record> record;
};

[[nodiscard]] Rate rate(const char* name, const Ratio& ratio);
[[nodiscard]] network::Config network_of(const nanobind::dict& fields);
[[nodiscard]] goal::Noise noise_of(const Noise& noise);
[[nodiscard]] nanobind::dict dict_of(const goal::Outcome& outcome);
// Returns what CPUs did, a tuple for each operation but arrivals: rank, CPU, what, begin, end, and the rank and
// operation that sent the message. A computation has rank -1; other operations that receive nothing have their own.
// The last is the number of the operation.
[[nodiscard]] nanobind::list spans_of(const schedule::Schedule& schedule, const goal::Record& record);
// Returns the messages that were received, a tuple each: rank and operation of the sender, rank and operation of the
// receiver, when the first byte left, when the last one was there, bytes.
[[nodiscard]] nanobind::list messages_of(const schedule::Schedule& schedule, const goal::Record& record);

}  // namespace spinloom::app
