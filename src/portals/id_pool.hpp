// IdPool - which ids of one kind are in use; the last one given back is the next one given out.
//
// Contract: take() gives an unused id or Code::exhausted with the name of the limit.
// Invariants: (1) an id is in use from take() to give_back(); (2) ids stay below the limit.
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>
#include <vector>

#include "base/assert.hpp"
#include "base/result.hpp"

namespace spinloom::portals {

template <class IdType>
class IdPool {
 public:
  // `what` and `limit_name` appear in errors.
  IdPool(const char* what, uint32_t limit, const char* limit_name)
      : what_(what), limit_(limit), limit_name_(limit_name) {}

  [[nodiscard]] bool has_free() const { return !free_.empty() || used_.size() < limit_; }

  [[nodiscard]] Result<IdType> take() {
    if (!free_.empty()) {
      const IdType id{free_.back()};
      free_.pop_back();
      used_[id.value] = true;
      return id;
    }
    if (used_.size() >= limit_) {
      return fail(Code::exhausted, "all ", limit_, " ids of ", what_, " are in use (", limit_name_, ")");
    }
    used_.push_back(true);
    return IdType{static_cast<uint32_t>(used_.size() - 1)};
  }

  // One particular id.
  [[nodiscard]] Status take(IdType id) {
    if (id.value >= limit_) {
      return fail(Code::invalid, what_, " ", id, " is beyond the limit of ", limit_, " (", limit_name_, ")");
    }
    if (in_use(id)) return fail(Code::invalid, what_, " ", id, " is already in use");
    while (used_.size() <= id.value) {
      free_.push_back(static_cast<uint32_t>(used_.size()));
      used_.push_back(false);
    }
    for (size_t i = 0; i < free_.size(); ++i) {
      if (free_[i] != id.value) continue;
      free_[i] = free_.back();
      free_.pop_back();
      break;
    }
    used_[id.value] = true;
    return {};
  }

  void give_back(IdType id) {
    SPL_ASSERT(in_use(id), what_, " ", id, " given back twice");
    used_[id.value] = false;
    free_.push_back(id.value);
  }

  [[nodiscard]] bool in_use(IdType id) const { return id.value < used_.size() && used_[id.value]; }

  [[nodiscard]] Status check(IdType id) const {
    if (in_use(id)) return {};
    return fail(Code::invalid, what_, " ", id, " does not exist");
  }

 private:
  const char* what_;
  uint32_t limit_;
  const char* limit_name_;
  std::vector<bool> used_;
  std::vector<uint32_t> free_;
};

}  // namespace spinloom::portals
