// TextCall - a call as a line of a text trace has it, read by its form: which argument is what.
//
// Contract: read_call() reads a line whose name form_of() knows. What the line does not have keeps its default.
//   has_counts is false if the wrapper wrote only the addresses of lists of counts.
// Invariants: (1) counts, sizes, ranks and tags are those of an int; a communicator's rank is below its size.
// Threads: pure. Time: the writing host's, in ns.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "predict/trace/text_line.hpp"
#include "predict/trace/trace.hpp"

namespace spinloom::trace {

// The relation of a new communicator's members to those of its parent.
enum class TextGroup : uint8_t { same, reordered, split, untold };

struct TextForm {
  std::string_view name;  // the name without "MPI_"
  Call call = Call::Init;
  CallForm call_form = CallForm::blocking;
  // One letter for each argument: b buffer, n count, v list of counts, d list of displacements, t type, p peer, g tag,
  // r root; c communicator, q request, m place of a handle of a communicator that is made or freed, i number, _ an
  // argument that is not needed.
  std::string_view arguments;
  TextGroup new_group = TextGroup::untold;
};
// Returns how to read the arguments of the call with this name; null if calls of this name are not imported.
[[nodiscard]] const TextForm* form_of(std::string_view name);
// True if a call that is not imported moves no data between ranks, so that leaving it out changes no message.
[[nodiscard]] bool is_local(std::string_view name);

struct TextType {
  uint64_t number = 0;  // the wrapper's number of a basic type, or the MPI's handle
  int64_t size = 0;
  int64_t extent = 0;
  auto operator<=>(const TextType&) const = default;
};

struct TextComm {
  uint64_t handle = 0;
  uint32_t rank = 0;
  uint32_t size = 0;
  auto operator<=>(const TextComm&) const = default;
};

struct TextEnd {
  uint64_t buffer = 0;
  std::vector<int64_t> counts;  // one, or one for each rank of the communicator
  std::vector<int64_t> displacements;
  TextType type;
  int32_t peer = any;
  int32_t tag = 0;
};

struct TextCall {
  const TextForm* form = nullptr;
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
  bool has_begin = false;
  bool has_end = false;
  std::vector<TextEnd> ends;
  bool has_comm = false;
  TextComm comm;
  int32_t root = any;
  uint64_t request = 0;  // the place of the handle, or of the first of them
  int64_t requests = 0;
  uint64_t comm_place = 0;  // the place of the handle of a communicator that is made or freed
  std::vector<int64_t> numbers;
  bool has_counts = true;
};

[[nodiscard]] Result<TextCall> read_call(const TextForm& form, const TextLine& line);

}  // namespace spinloom::trace
