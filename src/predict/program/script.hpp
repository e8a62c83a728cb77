// Script - a recorded program as rounds of messages that have met: what is replayed at other prices.
//
// Contract: script_of() takes the traces of all ranks. Collective operations have become messages, wildcards what they
//   met, requests what began them. Time between calls is computation, time inside of calls is not: the replay decides
//   how long a rank waits. Time between polls in vain is one or the other, depending on PollMeaning. Calls that cannot
//   be replayed (one-sided communication, files, collectives of intercommunicators) keep their recorded time and are
//   counted. Where a rank's trace ends early, all ranks are cut before the first call that needs what is missing;
//   otherwise a message without a partner is an error.
// Invariants: (1) each leg has one partner with the same bytes and tag; partners come in the same order at both ends;
//   (2) tags differ between communicators, and between what ranks send and what collective operations do.
// Threads: plain values. Time: of the recording host, in ns.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "predict/program/collectives.hpp"
#include "predict/program/layouts.hpp"
#include "predict/program/rounds.hpp"
#include "predict/trace/trace.hpp"

namespace spinloom::predict {

struct Step {
  enum class Kind : uint8_t {
    compute,  // `value` ns between calls
    fixed,  // `value` ns of a call that is not replayed
    act,  // action `value` begins
    await,  // `count` entries of `awaited` from `value` on: actions that have ended
  };
  Kind kind = Kind::compute;
  uint32_t event = 0;  // the number of the trace's event that it comes from
  uint64_t value = 0;  // its meaning depends on the kind
  uint32_t count = 0;  // await only
};

// These values stand in place of a leg's tag. `dropped`: the leg has no partner and is not replayed. `unresolved`: the
// tag is not known yet, and `peer` is the communicator.
inline constexpr uint32_t dropped = 0;
inline constexpr uint32_t unresolved = UINT32_MAX;

// The meaning of the time between polls in vain (MPI_Test, MPI_Iprobe) that follow each other.
enum class PollMeaning : uint8_t {
  wait,  // the program waits: the replay knows how long
  work,  // the program computes, for the time beyond that of the polls themselves
  rule,  // each rank's polls decide: it computes if those in vain are at least twice as far apart as a poll takes
};

// The rounds that one call begins, each of legs. The call waits for them if it is blocking.
struct Action {
  uint32_t event = 0;
  uint32_t first_round = 0;
  uint32_t rounds_end = 0;
  bool is_blocking = true;
  bool is_awaited = true;
  bool is_synchronous = false;  // its sends end when they have matched
  bool is_collective = false;
  bool may_be_cancelled = false;  // the program asked for a cancel, and the trace does not give its outcome
};

struct ScriptRound {
  uint32_t first_leg = 0;
  uint32_t legs_end = 0;
  uint32_t first_copy = 0;
  uint32_t copies_end = 0;
  uint64_t combined_bytes = 0;
};

// The times of a recorded rank from the end of MPI_Init to the beginning of MPI_Finalize.
struct RecordedTimes {
  uint64_t total_ns = 0;
  uint64_t compute_ns = 0;  // the time between calls
  uint64_t fixed_ns = 0;  // the time in calls that are not replayed
  uint64_t communication_ns = 0;  // the time in calls that are replayed
  uint64_t polled_ns = 0;  // part of communication_ns: in polls in vain and between them
  uint64_t between_polls_ns = 0;  // part of compute_ns: between polls in vain
};

struct RankScript {
  std::vector<Step> steps;
  std::vector<Action> actions;
  std::vector<ScriptRound> rounds;
  std::vector<Leg> legs;
  std::vector<bool> synchronous;  // one for each leg: it belongs to a synchronous send, at either end
  std::vector<Copy> copies;
  std::vector<uint32_t> awaited;  // numbers of actions, for the steps that await some
  RecordedTimes recorded;
  uint32_t cut_event = UINT32_MAX;  // steps of this event and of later ones are not replayed
};

// The number of calls that were treated in some way, and the recorded time that they keep.
struct Note {
  uint64_t count = 0;
  uint64_t time_ns = 0;
};

struct Script {
  std::vector<RankScript> ranks;
  std::vector<layout::Blob> layouts;  // a Part's type is an index of these
  std::map<std::string, Note> left_out;  // the key is the call, and what was done with it
  std::map<std::string, uint64_t> algorithms;  // "allreduce recursive-doubling": calls of all ranks
};

// The traces of ranks 0, 1, ... of one program.
[[nodiscard]] Result<Script> script_of(std::span<const trace::RankTrace> traces, const Algorithms& algorithms,
                                       PollMeaning polls = PollMeaning::rule);

}  // namespace spinloom::predict
