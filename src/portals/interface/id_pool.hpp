// IdPool - the ids of one kind that are in use; the id given back last is the next one given out.
//
// Contract: take() gives an unused id or Code::exhausted with the name of the limit. take(id) takes that very id, or
//   returns Code::invalid.
// Invariants: (1) an id is in use from take() to give_back(); (2) indices stay below the limit; (3) if ids have a
//   generation, an index gets another generation each time: an old id never means a new object.
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>
#include <vector>

#include "base/assert.hpp"
#include "base/result.hpp"
#include "nic/portals/ids.hpp"

namespace spinloom::portals {

template <class IdType>
class IdPool {
 public:
  // `what` and `limit_name` appear in errors.
  IdPool(const char* what, uint32_t limit, const char* limit_name)
      : what_(what), limit_(limit), limit_name_(limit_name) {}

  [[nodiscard]] bool has_free() const { return !free_.empty() || places_.size() < limit_; }

  [[nodiscard]] Result<IdType> take() {
    if (!free_.empty()) {
      Place& place = places_[free_.back()];
      free_.pop_back();
      place.is_used = true;
      return place.id;
    }
    if (places_.size() >= limit_) {
      return fail(Code::exhausted, "all ", limit_, " ids of ", what_, " are in use (", limit_name_, ")");
    }
    places_.push_back({IdType{static_cast<uint32_t>(places_.size())}, true});
    return places_.back().id;
  }

  [[nodiscard]] Status take(IdType id) {
    if (id.value >= limit_) {
      return fail(Code::invalid, what_, " ", id, " is beyond the limit of ", limit_, " (", limit_name_, ")");
    }
    if (in_use(id)) return fail(Code::invalid, what_, " ", id, " is already in use");
    while (places_.size() <= id.value) {
      const auto index = static_cast<uint32_t>(places_.size());
      free_.push_back(index);
      places_.push_back({IdType{index}, false});
    }
    for (size_t i = 0; i < free_.size(); ++i) {
      if (free_[i] != id.value) continue;
      free_[i] = free_.back();
      free_.pop_back();
      break;
    }
    places_[id.value].is_used = true;
    return {};
  }

  void give_back(IdType id) {
    SPL_ASSERT(in_use(id), what_, " ", id, " given back twice");
    places_[id.value] = {nic::next_of(id), false};
    free_.push_back(id.value);
  }

  // Gives an id in use to another owner, under a new id with the same index.
  void pass_on(IdType from, IdType to) {
    SPL_ASSERT(in_use(from) && from.value == to.value, what_, " ", from);
    places_[from.value].id = to;
  }

  [[nodiscard]] bool in_use(IdType id) const {
    return id.value < places_.size() && places_[id.value].is_used && places_[id.value].id == id;
  }

  [[nodiscard]] Status check(IdType id) const {
    if (in_use(id)) return {};
    return fail(Code::invalid, what_, " ", id, " does not exist");
  }

  // Throws InternalError if an invariant is broken. For tests: looks at all ids.
  void check_invariants() const {
    size_t used = 0;
    for (const Place& place : places_) used += place.is_used ? 1 : 0;
    SPL_ASSERT(used + free_.size() == places_.size() && places_.size() <= limit_, used, " of ", places_.size(),
               " ids of ", what_, " are in use, and ", free_.size(), " are free");
    for (const uint32_t index : free_) SPL_ASSERT(!places_[index].is_used, what_, " ", index, " is in use and free");
  }

 private:
  struct Place {
    IdType id;  // the next id of this index, unless in use
    bool is_used = false;
  };
  const char* what_;
  uint32_t limit_;
  const char* limit_name_;
  std::vector<Place> places_;
  std::vector<uint32_t> free_;
};

}  // namespace spinloom::portals
