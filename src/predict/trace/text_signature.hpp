// TextSignature - the signature of a call that a text trace has.
//
// Contract: signature_of() fills in what the recorder would, but for requests and matches; `type_of` gives numbers for
//   types. A call that names ranks outside its communicator is an error.
// Threads: pure. Time: none.
#pragma once

#include <functional>

#include "base/result.hpp"
#include "predict/trace/text_call.hpp"

namespace spinloom::trace {

struct TextFacts {
  bool is_mpich = false;  // MPICH says -2 for any source and -1 for nobody; elsewhere it is the other way round
  uint32_t comm = none;  // this rank's number of the call's communicator
  std::function<uint32_t(const TextType&)> type_of;
};

[[nodiscard]] Result<Signature> signature_of(const TextCall& call, const TextFacts& facts);
[[nodiscard]] Result<TypeEntry> entry_of(const TextType& type);

}  // namespace spinloom::trace
