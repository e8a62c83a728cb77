// BlobType - a type that a blob could have been made of.
//
// Contract: type_of() gives a type whose type map is the blob's, with its extent; whoever has only the blob of a type
//   prints it so. How the type was written is lost, and so are its basic types: blocks of 16 B are complex numbers,
//   others are made of the widest integers that fit. A type beyond the limits of types is an error.
// Invariants: (1) the type's own blob walks over the same pieces.
// Threads: pure. Time: none.
#pragma once

#include "base/result.hpp"
#include "memory/layout/blob.hpp"
#include "memory/layout/type.hpp"

namespace spinloom::layout {

Result<Type> type_of(const Blob& blob);

}  // namespace spinloom::layout
