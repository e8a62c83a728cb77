// Test bounds - runs all code that reads a blob, and tells whether each access stayed where the blob's header says.
//
// Contract: stays_in_bounds() walks cuts of one and of several elements with the walker, the segment and the cursor,
//   and copies where the message is small, into memory of its exact reach (so that a sanitizer sees one byte beyond).
//   It returns an empty string, or what went wrong. The blob must have passed Blob::validate() or be ours.
// Threads: pure. Time: bounded for any blob.
#pragma once

#include <string>

#include "memory/layout/blob.hpp"

namespace spinloom::layout::test {

std::string stays_in_bounds(const Blob& blob);

}  // namespace spinloom::layout::test
