// Rounds - the words of goal/rounds.hpp. The type of a Part is one of the rank's trace, in a Script one of its layouts;
//   the peer of a Leg is one of the communicator where a collective makes it, of the world in a Script.
//
// Threads: plain values. Time: none.
#pragma once

#include "goal/rounds.hpp"
#include "trace/trace.hpp"

namespace spinloom::predict {

using goal::Copy, goal::Leg, goal::Lie, goal::Part, goal::Round, goal::Rounds, goal::Side;
static_assert(goal::untyped == trace::none);

}  // namespace spinloom::predict
