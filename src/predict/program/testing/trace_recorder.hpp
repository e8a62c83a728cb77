// Test support - traces by hand.
//
// Contract: a Recorder makes one rank's trace: each call takes `in_call_ns`, after `gap` ns of computation.
// Threads: tests run in one thread. Time: of an imagined host, in ns.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "memory/layout/blob.hpp"
#include "memory/layout/text.hpp"
#include "predict/program/schedule_of.hpp"
#include "predict/schedule/check.hpp"
#include "predict/trace/trace.hpp"

namespace spinloom::predict::test {

using trace::Call;
using trace::CallForm;
using trace::Signature;

inline constexpr uint32_t type_byte = 0;
inline constexpr uint32_t type_columns = 1;  // 4 blocks of 8 B, 32 B apart

class Recorder {
 public:
  static constexpr uint64_t in_call_ns = 10;

  Recorder(uint32_t rank, uint32_t ranks) {
    made.rank = rank;
    made.ranks = ranks;
    made.types.push_back({"MPI_BYTE", 1, 1, {}, 0});
    const auto blob = layout::Blob::build(*layout::parse("vector(4, 1, 4, double)")).value();
    made.types.push_back({"", blob.size(), blob.extent(), {blob.bytes().begin(), blob.bytes().end()}, 0});
    trace::CommEntry world{.rank = rank};
    for (uint32_t one = 0; one < ranks; ++one) world.world_ranks.push_back(one);
    made.comms = {world, {.rank = 0, .world_ranks = {rank}}};
    call(0, {.call = Call::Init});
  }

  // Returns the number of a communicator of these ranks of the world.
  uint32_t communicator(const std::vector<uint32_t>& members) {
    const auto place = std::ranges::find(members, made.rank);
    made.comms.push_back({.rank = static_cast<uint32_t>(place - members.begin()), .world_ranks = members});
    return static_cast<uint32_t>(made.comms.size() - 1);
  }

  Recorder& call(uint64_t gap_ns, Signature signature, uint64_t time_ns = in_call_ns, uint32_t polls = 0) {
    if (signature.comm == trace::none && signature.call != Call::Init) signature.comm = 0;
    now_ns_ += gap_ns;
    made.signatures.push_back(std::move(signature));
    const auto number = static_cast<uint32_t>(made.signatures.size() - 1);
    made.events.push_back({number, polls, now_ns_, now_ns_ + time_ns});
    now_ns_ += time_ns;
    return *this;
  }
  Recorder& send(uint64_t gap_ns, int32_t peer, int64_t bytes, int32_t tag = 0) {
    return call(gap_ns, {.call = Call::Send, .peer = peer, .tag = tag, .sends = {{0, bytes, type_byte}}});
  }
  Recorder& receive(uint64_t gap_ns, int32_t peer, int64_t bytes, int32_t tag = 0) {
    return call(gap_ns, {.call = Call::Recv, .peer = peer, .tag = tag, .receives = {{0, bytes, type_byte}}});
  }
  Recorder& isend(uint64_t gap_ns, int32_t peer, int64_t bytes, uint32_t request, int32_t tag = 0) {
    return call(gap_ns, {.call = Call::Send,
                         .form = CallForm::nonblocking,
                         .peer = peer,
                         .tag = tag,
                         .sends = {{0, bytes, type_byte}},
                         .requests = {request}});
  }
  Recorder& ireceive(uint64_t gap_ns, int32_t peer, int64_t bytes, uint32_t request, int32_t tag = 0) {
    return call(gap_ns, {.call = Call::Recv,
                         .form = CallForm::nonblocking,
                         .peer = peer,
                         .tag = tag,
                         .receives = {{0, bytes, type_byte}},
                         .requests = {request}});
  }
  Recorder& wait(uint64_t gap_ns, std::vector<uint32_t> requests, std::vector<trace::Match> matches = {}) {
    return call(gap_ns, {.call = Call::Waitall, .requests = std::move(requests), .matches = std::move(matches)});
  }
  Recorder& iallreduce(uint64_t gap_ns, int64_t bytes, uint32_t request) {
    return call(gap_ns, {.call = Call::Allreduce,
                         .form = CallForm::nonblocking,
                         .sends = {{0, bytes, type_byte}},
                         .receives = {{0, bytes, type_byte}},
                         .requests = {request}});
  }
  trace::RankTrace end(uint64_t gap_ns = 0) {
    call(gap_ns, {.call = Call::Finalize});
    made.has_ended = true;
    return made;
  }

  trace::RankTrace made;

 private:
  uint64_t now_ns_ = 1'000;
};

inline Script script(const std::vector<trace::RankTrace>& traces, const std::vector<std::string>& choices = {}) {
  auto found = script_of(traces, parse_choices(choices).value());
  EXPECT_TRUE(found.ok()) << (found.ok() ? "" : found.error().message);
  return found.ok() ? std::move(*found) : Script();
}

inline std::string error_of(const std::vector<trace::RankTrace>& traces) {
  const auto found = script_of(traces, {});
  return found.ok() ? "" : found.error().message;
}

// Returns the priced schedule, and checks that all its messages meet.
inline PricedSchedule priced(const Script& script, const Costs& costs = {}) {
  auto made = schedule_of(script, costs);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
  const Status found = schedule::check(made->schedule);
  EXPECT_TRUE(found.ok()) << (found.ok() ? "" : found.error().message);
  return std::move(*made);
}

}  // namespace spinloom::predict::test
