// PmiUsers - whether something else in this process can speak to its launcher over PMI-1.
//
// Contract: pmi_has_other_users() is true where an object that is loaded, the program or a library, holds the name of
//   the variable PMI_FD. Nobody finds the descriptor without it, so that false means that the connection is ours alone.
// Invariants: (1) this library does not count; (2) what is loaded later is not seen, nor is a program for an
//   interpreter, whose text no object holds.
// Threads: any. Time: that of reading the constants of all loaded objects, some milliseconds.
#pragma once

namespace spinloom::live {

[[nodiscard]] bool pmi_has_other_users();

}  // namespace spinloom::live
