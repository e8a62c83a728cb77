// Machine - the steps that Portals 4 allows from a state: calls of the ranks, and what their interfaces do meanwhile.
//
// Contract: next() adds every state that one step leads to; false if the state is an end, because there is no step, or
//   none that must come. A program may be followed along an observed outcome: then only steps that agree with it are
//   added. The rules are those of the Portals 4 interface; nothing here knows an implementation of it.
// Invariants: (1) outcome_of() of an end is what the program has seen; (2) every run ends, because each step uses
//   something up.
// Threads: pure; one machine may be asked by several. Time: none.
#pragma once

#include <array>
#include <vector>

#include "portals/model/outcome.hpp"
#include "portals/model/program.hpp"
#include "portals/model/rules.hpp"
#include "portals/model/state.hpp"

namespace spinloom::model {

// Properties of a program that make steps fewer without taking outcomes away.
struct Traits {
  explicit Traits(const Program& program);
  // Counters whose value matters before the end.
  std::vector<std::vector<bool>> watched;
  std::vector<bool> has_scatter_lists;  // one for each rank
  // True for operations whose memory may be written while they use it, or that write memory which is in use: their
  // bytes move element by element. Indexed by rank and place.
  std::vector<std::vector<bool>> races;
  bool has_races = false;  // true if there is such an operation
};

// An observed outcome, as a machine follows it: all events of a queue, taken or not.
struct Followed {
  Followed(const Program& program, const Outcome& observed);
  const Outcome* outcome;
  std::vector<std::array<std::vector<Event>, 2>> events;
};

class Machine {
 public:
  explicit Machine(const Program& program, const Rules& rules = {}, const Followed* followed = nullptr)
      : program_(program), rules_(rules), traits_(program), followed_(followed) {}

  [[nodiscard]] State first() const;
  bool next(const State& state, std::vector<State>& states) const;
  // A rank that has died has an empty outcome.
  [[nodiscard]] static Outcome outcome_of(const State& end);
  // True if the end is the followed outcome; its events and what its calls returned have agreed on the way.
  [[nodiscard]] bool is_followed(const State& end) const;

 private:
  friend class Step;
  [[nodiscard]] bool may_pass_settle(const State& state) const;
  [[nodiscard]] const Operation& operation(OperationName name) const {
    return program_.ranks[name.rank].operations[name.place];
  }
  [[nodiscard]] bool follows(uint16_t rank) const { return followed_ != nullptr && rank != program_.killed; }
  [[nodiscard]] const Setup& setup(uint16_t rank) const { return program_.ranks[rank].setup; }

  const Program& program_;
  Rules rules_;
  Traits traits_;
  const Followed* followed_;
};

}  // namespace spinloom::model
