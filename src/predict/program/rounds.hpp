// Rounds - the words of portals/collective/rounds.hpp. The type of a Part is one of the rank's trace, in a Script one
//   of its layouts; the peer of a Leg is one of the communicator where a collective makes it, of the world in a Script.
//
// Threads: plain values. Time: none.
#pragma once

#include "portals/collective/rounds.hpp"
#include "predict/trace/trace.hpp"

namespace spinloom::predict {

using collective::Copy, collective::Leg, collective::DataLayout, collective::Part, collective::Round,
    collective::Rounds, collective::Side;
static_assert(collective::untyped == trace::none);

}  // namespace spinloom::predict
