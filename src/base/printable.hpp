// Printable - text from outside as a terminal may show it.
//
// Contract: printable() leaves letters, blanks, tabs and line feeds as they are. It writes characters that a terminal
//   would obey or hide as in a string of C or Python. These are other control characters (\x1b), bytes that are no
//   UTF-8 (\xff), characters that change the direction of text (\u202e) and those without width. A second pass changes
//   nothing. python/spinloom/common/printable.py is the same for the command line; a test compares both.
// Threads: any. Time: none.
#pragma once

#include <string>
#include <string_view>

namespace spinloom {

[[nodiscard]] std::string printable(std::string_view text);

}  // namespace spinloom
