// Executions - those of handlers for messages of Portals.
//
// Threads: one owner. Time: none.
#pragma once

#include "nic/action.hpp"
#include "spin/executions.hpp"

namespace spinloom::nic {

using Execution = spin::Execution<Her>;
using Executions = spin::Executions<Her>;

}  // namespace spinloom::nic
