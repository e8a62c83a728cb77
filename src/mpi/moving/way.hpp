// Way - chooses the way of a message.
//
// Contract: costs_of() returns the time that packing, mapping, joint copying and system calls take by the model, for a
//   receiver whose type is like the sender's. choose() first decides messages that are short, of an unknown type, to
//   the rank itself, or contiguous where those may not be offered. Then it returns the way that the settings name; if
//   that is not open, `mapped` in place of `joint`, else `staged`; if they name none, the cheapest open way. Its
//   sentence gives the reason.
// The model: a packed message is gathered and scattered at once, by two cores; its packed lines change cores. A message
//   that is copied where it lies changes cores with all lines that it touches, and one core works, or two that share
//   the lines. System calls cost by the block.
// Threads: pure. Time: none; the costs are host time.
#pragma once

#include <array>
#include <cstdint>

#include "mpi/messages/message.hpp"
#include "mpi/messages/settings.hpp"

namespace spinloom::mpi {

enum class Way : uint8_t {
  pass,  // the MPI carries it
  packed,  // the MPI carries its packed bytes
  staged,  // packed into shared memory
  mapped,  // offered where it lies, in memory that the receiver maps
  joint,  // offered like mapped, and the sender helps to copy
  cma,  // offered where it lies, to be read by system calls
  device,  // offered where it lies, in a GPU's memory that the receiver maps
  within,  // offered where it lies, to the rank itself
};

[[nodiscard]] const char* name_of(Way way);
// True if the message stays where it lies until the receiver copies it.
[[nodiscard]] constexpr bool is_offered(Way way) {
  return way == Way::mapped || way == Way::joint || way == Way::cma || way == Way::device || way == Way::within;
}

// The ways in which a message may be offered.
struct Reach {
  bool is_mapped = false;  // the receiver maps the message's memory
  bool sender_waits = false;  // the sender does nothing else until the message is taken
  bool is_cma_open = false;  // the receiver can read the message by system calls
  bool offers_contiguous = false;  // contiguous messages may be offered, too
  bool is_within = false;  // the receiver is the rank itself
};

struct Costs {
  double staged_ns = 0;
  double mapped_ns = 0;
  double joint_ns = 0;
  double cma_ns = 0;
};

// The memory that a copy of a message touches.
struct Work {
  double bytes = 0;
  double blocks = 0;
  double lines = 0;  // cache lines that the copy touches
  double jumps = 0;  // those lines that do not follow the line before
};
[[nodiscard]] Work work_of(const Form& form, int64_t bytes);
[[nodiscard]] Costs costs_of(const Prices& prices, const Work& work, int64_t chunk_bytes);

inline constexpr const char* cannot_be_mapped = "the buffer cannot be mapped";

struct Choice {
  Way way = Way::pass;
  const char* why = "";
  bool joins = false;  // the sender helps to copy, or would if it happened to wait
};

[[nodiscard]] Choice choose(const Settings& settings, const Form& form, int64_t count, int64_t bytes, Reach reach);

}  // namespace spinloom::mpi
