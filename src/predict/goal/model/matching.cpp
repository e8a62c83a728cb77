#include "predict/goal/model/matching.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "predict/schedule/schedule.hpp"

namespace spinloom::goal {
namespace {

constexpr uint32_t nothing = UINT32_MAX;
using schedule::any;

bool has_wildcard(const Matching::Item& item) { return item.source == any || item.tag == any; }

}  // namespace

void Matching::add(List& list, const Item& item) {
  uint32_t node = free_;
  if (node == nothing) {
    node = static_cast<uint32_t>(nodes_.size());
    nodes_.emplace_back();
  } else {
    free_ = nodes_[node].next;
  }
  nodes_[node] = {item, nothing, list.last, nothing, 0};
  (list.last == nothing ? list.first : nodes_[list.last].next) = node;
  list.last = node;
  ++list.size;
  if (list.table != nothing) {
    Table& table = tables_[list.table];
    if (list.size <= table.chains.size() && table.next_number < nothing) {
      append(table, node);
      return;
    }
  } else if (list.size <= short_max) {
    return;
  }
  rebuild_table(list);
}

bool Matching::take(List& list, uint32_t source, uint32_t tag, Item& taken) {
  Table* const table = list.table == nothing ? nullptr : &tables_[list.table];
  const bool must_walk = table == nullptr || source == any || tag == any;
  const uint32_t number = must_walk ? walk(list, source, tag) : look_up(*table, source, tag);
  if (number == nothing) return false;
  Node& node = nodes_[number];
  taken = node.item;
  (node.previous == nothing ? list.first : nodes_[node.previous].next) = node.next;
  (node.next == nothing ? list.last : nodes_[node.next].previous) = node.previous;
  --list.size;
  if (table != nullptr) unchain(*table, number);
  if (table != nullptr && list.size == 0) {
    *table = {};
    free_tables_.push_back(std::exchange(list.table, nothing));
  }
  node.next = free_;
  free_ = number;
  return true;
}

Matching::Chain& Matching::chain_of(Table& table, uint32_t source, uint32_t tag) {
  const uint64_t hash = (uint64_t{source} << 32 | tag) * 0x9e37'79b9'7f4a'7c15;
  return table.chains[(hash >> 32) & (table.chains.size() - 1)];
}

// Makes the Table of a list anew.
void Matching::rebuild_table(List& list) {
  if (list.table == nothing && free_tables_.empty()) {
    list.table = static_cast<uint32_t>(tables_.size());
    tables_.emplace_back();
  } else if (list.table == nothing) {
    list.table = free_tables_.back();
    free_tables_.pop_back();
  }
  Table& table = tables_[list.table];
  size_t chains = 2 * short_max;
  while (chains < 2 * size_t{list.size}) chains *= 2;
  table = {std::vector<Chain>(chains), 0, 0};
  for (uint32_t node = list.first; node != nothing; node = nodes_[node].next) append(table, node);
}

void Matching::append(Table& table, uint32_t node) {
  Node& appended = nodes_[node];
  appended.number = table.next_number++;
  appended.next_in_chain = nothing;
  if (has_wildcard(appended.item)) ++table.wildcards;
  Chain& chain = chain_of(table, appended.item.source, appended.item.tag);
  (chain.first == nothing ? chain.first : nodes_[chain.last].next_in_chain) = node;
  chain.last = node;
}

// Returns the first node with exactly this source and tag.
uint32_t Matching::first_of(Table& table, uint32_t source, uint32_t tag) const {
  for (uint32_t node = chain_of(table, source, tag).first; node != nothing; node = nodes_[node].next_in_chain) {
    const Item& item = nodes_[node].item;
    if (item.source == source && item.tag == tag) return node;
  }
  return nothing;
}

uint32_t Matching::look_up(Table& table, uint32_t source, uint32_t tag) const {
  uint32_t earliest = first_of(table, source, tag);
  if (table.wildcards == 0) return earliest;
  const std::pair<uint32_t, uint32_t> others[] = {{source, any}, {any, tag}, {any, any}};
  for (const auto& [other_source, other_tag] : others) {
    if (other_tag == any && tags_apart_.has(tag)) continue;
    const uint32_t other = first_of(table, other_source, other_tag);
    if (other != nothing && (earliest == nothing || nodes_[other].number < nodes_[earliest].number)) earliest = other;
  }
  return earliest;
}

uint32_t Matching::walk(const List& list, uint32_t source, uint32_t tag) const {
  const auto meet = [](uint32_t one, uint32_t other) { return one == other || one == any || other == any; };
  const auto tags_meet = [&](uint32_t one, uint32_t other) {
    return one == other || (meet(one, other) && !tags_apart_.has(one) && !tags_apart_.has(other));
  };
  for (uint32_t node = list.first; node != nothing; node = nodes_[node].next) {
    const Item& item = nodes_[node].item;
    if (meet(item.source, source) && tags_meet(item.tag, tag)) return node;
  }
  return nothing;
}

void Matching::unchain(Table& table, uint32_t node) {
  const Node& removed = nodes_[node];
  if (has_wildcard(removed.item)) --table.wildcards;
  Chain& chain = chain_of(table, removed.item.source, removed.item.tag);
  uint32_t before = nothing;
  for (uint32_t current = chain.first; current != node; current = nodes_[current].next_in_chain) {
    SPL_ASSERT(current != nothing, "a node is not in its chain");
    before = current;
  }
  (before == nothing ? chain.first : nodes_[before].next_in_chain) = removed.next_in_chain;
  if (chain.last == node) chain.last = before;
}

}  // namespace spinloom::goal
