// Text - the one-line notation of datatypes: parse and print.
//
// Contract: the grammar stands in docs/formats/layout.md. parse() returns the type or an Error that gives
//   line, column, what was found and what was expected; nesting and list lengths are limited while reading.
//   print() gives one line; lists print as they were written. print_beginning() gives its first bytes in a time that
//   does not grow with what follows them.
// Invariants: parse(print(t)) is t again: Type::same().
// Threads: pure. Time: none.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "memory/layout/type.hpp"

namespace spinloom::layout {

Result<Type> parse(std::string_view source);
std::string print(const Type& type);
std::string print_beginning(const Type& type, size_t bytes_max);

}  // namespace spinloom::layout
