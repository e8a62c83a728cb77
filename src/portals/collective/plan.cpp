#include "portals/collective/plan.hpp"

#include <map>
#include <set>
#include <tuple>

namespace spinloom::collective {
namespace {

constexpr uint32_t no_set = UINT32_MAX;
constexpr uint32_t no_owner = UINT32_MAX;

// The condition for which some operations wait.
struct Set {
  std::vector<uint32_t> operations;
  bool is_any = false;
  uint32_t any_set = no_set;  // another Set that has to come, too
  uint32_t owner = no_owner;     // the operation whose spl_enable() has to come, too
  uint32_t counter = counter_none;
  uint64_t value = 0;  // the counter's value when all has come
  auto key() const { return std::tie(operations, is_any, any_set, owner); }
  bool operator<(const Set& other) const { return key() < other.key(); }
  [[nodiscard]] bool is_end_of(uint32_t operation) const {
    return operations.size() == 1 && operations[0] == operation && !is_any && any_set == no_set && owner == no_owner;
  }
};

class PlanMaker {
 public:
  PlanMaker(const Graph& graph, const std::vector<uint32_t>& weights, bool cached)
      : operations_(graph.operations), weights_(weights), cached_(cached), sets_with_(operations_.size()) {
    plan_.growth.assign(counters_first, 0);
    plan_.has_any.assign(counters_first, false);
    plan_.is_uncertain.assign(counters_first, false);
    plan_.counts_on.resize(operations_.size());
    plan_.begins.resize(operations_.size());
  }

  Plan make() {
    for (uint32_t number = 0; number < operations_.size(); ++number) find_sets(number);
    for (Set& set : sets_) set.counter = new_counter(set.is_any);
    for (uint32_t number = 0; number < operations_.size(); ++number) count(number);
    for (Set& set : sets_) wait_for_the_rest(set);
    for (uint32_t number = 0; number < operations_.size(); ++number) {
      begin(number);
      if (!operations_[number].optional) continue;
      const uint32_t counter = plan_.counts_on[number];
      plan_.is_uncertain[counter] = true;
      plan_.has_any[counter] = false;
      plan_.is_certain = false;
    }
    plan_.triggered += static_cast<uint32_t>(plan_.relays.size());
    plan_.descriptors = static_cast<uint32_t>(descriptors_.size());
    return std::move(plan_);
  }

 private:
  uint32_t new_counter(bool is_any) {
    plan_.growth.push_back(0);
    plan_.has_any.push_back(is_any);
    plan_.is_uncertain.push_back(false);
    return static_cast<uint32_t>(plan_.growth.size() - 1);
  }
  uint32_t number_of(Set set) {
    const auto [found, is_new] = index_.try_emplace(set, static_cast<uint32_t>(sets_.size()));
    if (is_new) {
      for (const uint32_t operation : set.operations) sets_with_[operation].push_back(found->second);
      sets_.push_back(std::move(set));
    }
    return found->second;
  }
  void find_sets(uint32_t number) {
    const Vertex& operation = operations_[number];
    Set all{.operations = operation.all, .owner = operation.cpu_dependent ? number : no_owner};
    if (!operation.any.empty()) {
      const uint32_t any_set = number_of({.operations = operation.any, .is_any = true});
      if (all.operations.empty() && all.owner == no_owner) return set_of_.push_back(any_set);
      all.any_set = any_set;
    }
    const bool waits = !all.operations.empty() || all.owner != no_owner;
    set_of_.push_back(waits ? number_of(std::move(all)) : no_set);
  }

  // The counter of operation `number`, and relays to the sets that hear of it in no other way.
  void count(uint32_t number) {
    const std::vector<uint32_t>& sets = sets_with_[number];
    const uint32_t weight = weights_[number];
    if (sets.empty()) {
      const uint32_t counter = operations_[number].optional ? counter_apart : counter_done;
      plan_.counts_on[number] = counter;
      plan_.growth[counter] += weight;
      return;
    }
    if (sets.size() == 1 && (!sets_[sets[0]].is_any || weight == 1)) {
      plan_.counts_on[number] = sets_[sets[0]].counter;
      return add(sets_[sets[0]], weight);
    }
    uint32_t own = counter_none;
    for (const uint32_t set : sets) {
      if (!sets_[set].is_end_of(number)) continue;
      own = sets_[set].counter;
      add(sets_[set], weight);
    }
    if (own == counter_none) {
      own = new_counter(false);
      plan_.growth[own] = weight;
    }
    plan_.counts_on[number] = own;
    for (const uint32_t set : sets) {
      if (!sets_[set].is_end_of(number)) relay({own, weight}, sets_[set]);
    }
  }
  void add(Set& set, uint64_t counts) {
    plan_.growth[set.counter] += counts;
    set.value = set.is_any ? 1 : set.value + counts;
  }
  void relay(Wait when, Set& set) {
    plan_.relays.push_back({when, set.counter});
    add(set, 1);
  }
  void wait_for_the_rest(Set& set) {
    if (set.any_set != no_set) relay({sets_[set.any_set].counter, 1}, set);
    if (set.owner != no_owner) add(set, 1);
  }

  void begin(uint32_t number) {
    const VertexKind kind = operations_[number].kind;
    if (kind == VertexKind::receive || kind == VertexKind::expose) {
      ++plan_.entries;
      return;
    }
    descriptors_.insert(plan_.counts_on[number]);
    Wait& begins = plan_.begins[number];
    if (const uint32_t set = set_of_[number]; set != no_set) {
      begins = {sets_[set].counter, sets_[set].value};
    } else if (cached_) {
      begins = {counter_gate, 1};
      plan_.growth[counter_gate] = 1;
    } else {
      return;
    }
    plan_.triggered += weights_[number];
  }

  const std::vector<Vertex>& operations_;
  const std::vector<uint32_t>& weights_;
  bool cached_;
  Plan plan_;
  std::vector<Set> sets_;
  std::map<Set, uint32_t> index_;
  std::vector<std::vector<uint32_t>> sets_with_;  // the sets that contain each operation
  std::vector<uint32_t> set_of_;  // the set for which each operation waits
  std::set<uint32_t> descriptors_;
};

}  // namespace

Plan plan_of(const Graph& graph, const std::vector<uint32_t>& weights, bool cached) {
  return PlanMaker(graph, weights, cached).make();
}

}  // namespace spinloom::collective
