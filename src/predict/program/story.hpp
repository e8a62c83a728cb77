// Story - one rank's trace as steps of a Script. For script.cpp only.
//
// Contract: a poll takes the median time of the polls that are alone in the trace; without any, the shortest time of a
//   poll among those that follow each other. story_of() leaves legs with the bytes that the rank knew: receives may get
//   fewer.
// Threads: pure. Time: of the recording host, in ns.
#pragma once

#include <map>
#include <string>
#include <tuple>

#include "predict/program/script.hpp"
#include "predict/trace/communicators.hpp"

namespace spinloom::predict {

// Numbers for the tags of a schedule, from 1 on; equal tags have one.
class Tags {
 public:
  enum class Kind : uint8_t { message, collective, nonblocking, persistent };
  uint32_t intern(uint32_t communicator, Kind kind, uint64_t value) {
    const auto next = static_cast<uint32_t>(numbers_.size() + 1);
    return numbers_.try_emplace({communicator, kind, value}, next).first->second;
  }
  [[nodiscard]] std::string describe(uint32_t number) const;

 private:
  std::map<std::tuple<uint32_t, Kind, uint64_t>, uint32_t> numbers_;
};

struct StoryContext {
  const trace::Communicators& communicators;
  const Layouts& layouts;
  const Algorithms& algorithms;
  Tags& tags;
  Script& script;  // takes the notes of what is left out and of algorithms
  PollMeaning polls = PollMeaning::wait;
};

[[nodiscard]] Result<RankScript> story_of(const trace::RankTrace& trace, const StoryContext& context);

// Finds which legs of all ranks are partners. Sets bytes, drops legs that nobody awaits, and cuts.
[[nodiscard]] Status pair_legs(std::span<const trace::RankTrace> traces, std::vector<RankScript>& ranks,
                               const Tags& tags);

}  // namespace spinloom::predict
