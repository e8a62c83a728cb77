// Plain list - a type that is one list of runs which normalisation would not change. Its blob is written straight
// from the type's own lists, which may have millions of entries.
//
// Contract: plain_list(type) says where those lists are, if the type has that form. Without keep_lists,
//   write_plain_list() gives the same bytes as normalisation and the general writer would (checked for random types).
//   It gives nothing where the blob would be too long, or where a pass would change the list: an empty block, blocks
//   that touch (more than a few in a long list), equal steps. With keep_lists, a list of equal blocks of 4, 8, 12 or 16
//   bytes stays one as long as no more than five eighths of them touch the one before. It does not stay one if they
//   merge to few runs (a struct) or to equal runs (a shorter list).
// Threads: pure. Time: O(entries).
#pragma once

#include <cstdint>
#include <optional>

#include "memory/layout/blob_write.hpp"
#include "memory/layout/type.hpp"

namespace spinloom::layout {

struct PlainList {
  const TypeNode* node = nullptr;  // one of the four list constructors
  int64_t unit = 1;  // bytes of one displacement
  int64_t element = 0;  // bytes of one element of a block
  int64_t displacement = 0;  // displacement of an element's first byte
};

std::optional<PlainList> plain_list(const Type& type);

template <class W>
std::optional<Words> write_plain_list(const Type& type, const PlainList& list, bool keep_lists);

}  // namespace spinloom::layout
