// BlobType - a type that a blob could have been made of.
//
// Contract: type_of() gives a type whose type map is the blob's, in bytes, with its extent; whoever has only the blob of
//   a type prints it so. How the type was written is lost. A type beyond the limits of types is an error.
// Invariants: (1) the type's own blob walks over the same pieces.
// Threads: pure. Time: none.
#pragma once

#include "base/result.hpp"
#include "layout/blob.hpp"
#include "layout/type.hpp"

namespace spinloom::layout {

Result<Type> type_of(const Blob& blob);

}  // namespace spinloom::layout
