// Printable - text from outside as a terminal may show it.
//
// Contract: printable() leaves letters, blanks, tabs and the ends of lines as they are. What a terminal would obey or
//   hide stands there as in a string of C or Python: control characters and escapes (\x1b), bytes that are no UTF-8
//   (\xff), characters that change the direction of text (\u202e) and those without width. A text that went through it
//   once stays the same. python/spinloom/common/printable.py is the same for the command line; a test compares the two.
// Threads: any. Time: none.
#pragma once

#include <string>
#include <string_view>

namespace spinloom {

[[nodiscard]] std::string printable(std::string_view text);

}  // namespace spinloom
