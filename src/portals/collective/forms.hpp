// Forms - the time of each algorithm by a Model, without playing it.
//
// Contract: a Form returns the time of the NICs' work if all ranks begin together. It leaves out both o, in which a CPU
//   begins and a CPU sees the end. It takes at most some thousand steps for any number of ranks.
//   form_of() finds a Form by an operation and the name of an algorithm; null: there is none. With at least two ranks,
//   g and h <= L + m, and data that segments divide, the Form's time and 2 o together are the result of play() for the
//   algorithm's Graphs. `is_near`: if messages meet in a NIC, they differ from that result by at most a third.
// Threads: pure. Time: modelled, in picoseconds.
#pragma once

#include <cstdint>
#include <string_view>

#include "portals/collective/catalogue.hpp"
#include "portals/collective/model.hpp"

namespace spinloom::collective {

struct CallShape {
  uint32_t ranks = 2;
  uint64_t bytes = 0;  // all data of a broadcast, a reduction or a scan, else the block of a rank
  uint64_t element_bytes = 1;  // shares and segments have whole elements
  uint64_t segment_bytes = UINT64_MAX;
};

using Form = Picoseconds(const Model&, const CallShape&);

struct NamedForm {
  Operation operation;
  std::string_view algorithm;
  Form* form = nullptr;
  bool is_near = false;
};

[[nodiscard]] const NamedForm* form_of(Operation operation, std::string_view algorithm);

}  // namespace spinloom::collective
