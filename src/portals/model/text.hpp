// Text - programs and outcomes for people.
//
// Contract: one line for each operation, call and event; fields at their defaults are left out.
// Threads: pure. Time: none.
#pragma once

#include <string>

#include "portals/model/outcome.hpp"
#include "portals/model/program.hpp"

namespace spinloom::model {

[[nodiscard]] const char* name_of(OperationKind kind);
[[nodiscard]] const char* name_of(EventKind kind);
[[nodiscard]] const char* name_of(Fail fail);
[[nodiscard]] const char* name_of(Code code);

[[nodiscard]] std::string text_of(const Program& program);
[[nodiscard]] std::string text_of(const Event& event);
[[nodiscard]] std::string text_of(const Program& program, const Outcome& outcome);

}  // namespace spinloom::model
