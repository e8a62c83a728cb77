// Matching - the lists of posted receives and of arrived messages of all ranks.
//
// Contract: add() appends to a list; take() removes and gives the first of a list that matches a source and a tag.
//   `any` on either side matches every source, and every tag but those that are set apart.
// Invariants: (1) the first in the order of the list wins; (2) a list that has become long has a Table until it is
//   empty; there the pairs (source, tag) have chains in the order of the list, and a search looks at the heads of up to
//   four chains.
// Threads: one owner. Time: none. Work: take() walks a list without a Table, and any list if its
//   source or tag is `any`.
#pragma once

#include <cstdint>
#include <vector>

#include "base/large_vector.hpp"

namespace spinloom::goal {

// Tags that `any` does not match, from the first to the last: those of collective operations, which have a context of
// their own in MPI.
struct TagsApart {
  uint32_t first = UINT32_MAX;
  uint32_t last = 0;
  [[nodiscard]] bool has(uint32_t tag) const { return first <= tag && tag <= last; }
  [[nodiscard]] bool is_empty() const { return first > last; }
};

class Matching {
 public:
  explicit Matching(TagsApart tags_apart = {}) : tags_apart_(tags_apart) {}

  struct List {
    uint32_t first = UINT32_MAX;
    uint32_t last = UINT32_MAX;
    uint32_t table = UINT32_MAX;
    uint32_t size = 0;
  };
  struct Item {
    uint32_t source;
    uint32_t tag;
    uint32_t operation;
    uint32_t shape;
  };
  static constexpr uint32_t short_max = 32;

  void add(List& list, const Item& item);
  // Returns false if nothing matches.
  [[nodiscard]] bool take(List& list, uint32_t source, uint32_t tag, Item& taken);
  [[nodiscard]] const Item* first_or_none(const List& list) const {
    return list.size == 0 ? nullptr : &nodes_[list.first].item;
  }

 private:
  struct Node {
    Item item;
    uint32_t next;
    uint32_t previous;
    uint32_t next_in_chain;  // the next of the chain
    uint32_t number;  // its place in the order, in lists with a Table
  };
  struct Chain {
    uint32_t first = UINT32_MAX;
    uint32_t last = UINT32_MAX;
  };
  struct Table {
    std::vector<Chain> chains;  // the size is a power of two
    uint32_t next_number = 0;
    uint32_t wildcards = 0;  // the number of items that have `any`
  };

  [[nodiscard]] static Chain& chain_of(Table& table, uint32_t source, uint32_t tag);
  void rebuild_table(List& list);
  void append(Table& table, uint32_t node);
  [[nodiscard]] uint32_t first_of(Table& table, uint32_t source, uint32_t tag) const;
  [[nodiscard]] uint32_t look_up(Table& table, uint32_t source, uint32_t tag) const;
  [[nodiscard]] uint32_t walk(const List& list, uint32_t source, uint32_t tag) const;
  void unchain(Table& table, uint32_t node);

  TagsApart tags_apart_;
  LargeVector<Node> nodes_;
  std::vector<Table> tables_;
  std::vector<uint32_t> free_tables_;
  uint32_t free_ = UINT32_MAX;
};

}  // namespace spinloom::goal
