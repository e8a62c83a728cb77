// PmiUsers - says whether something else in this process can speak to its launcher over PMI-1.
//
// Contract: pmi_has_other_users() is true where a loaded object, the program or a library, contains the name of the
//   variable PMI_FD. Nobody can find the descriptor without that name, so false means that only we use the
//   connection.
// Invariants: (1) this library does not count; (2) two cases are not seen: objects that are loaded later, and a
//   program for an interpreter, whose text is in no object.
// Threads: any. Time: that of reading the constants of all loaded objects, some milliseconds.
#pragma once

namespace spinloom::live {

[[nodiscard]] bool pmi_has_other_users();

}  // namespace spinloom::live
