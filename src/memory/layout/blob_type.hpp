// BlobType - a type that a blob could have been made of.
//
// Contract: type_of() returns a type whose type map is the blob's, with its extent, for callers that print a type but
//   have only its blob. The text of the original type is lost, and so are its basic types: blocks of 16 B are complex
//   numbers, others are made of the widest integers that divide them. A type beyond the limits of types is an Error.
// Invariants: (1) the type's own blob walks over the same pieces.
// Threads: pure. Time: none.
#pragma once

#include "base/result.hpp"
#include "memory/layout/blob.hpp"
#include "memory/layout/type.hpp"

namespace spinloom::layout {

Result<Type> type_of(const Blob& blob);

}  // namespace spinloom::layout
