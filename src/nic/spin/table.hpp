// Table - objects under the small ids that the host picks.
//
// Contract: create() makes an object under an id that is free and within the limit. find() returns the object or
//   null. remove() frees the id. User trouble is an Error that names the object and the limit.
// Invariants: (1) an index names at most one object, under one id: its other generations name nothing; (2) addresses
//   are stable until remove().
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.hpp"
#include "nic/spin/ids.hpp"

namespace spinloom::spin {

template <class IdType, class T>
class Table {
 public:
  // `kind_name` and `limit_name` appear in errors: for example "queue", "limits::queue_count_max".
  Table(const char* kind_name, uint32_t limit, const char* limit_name)
      : kind_name_(kind_name), limit_(limit), limit_name_(limit_name) {}

  [[nodiscard]] Result<T*> create(IdType id) {
    if (id.value >= limit_) {
      return fail(Code::exhausted, kind_name_, " id ", id, " is beyond the limit of ", limit_, " (", limit_name_, ")");
    }
    if (id.value >= objects_.size()) objects_.resize(id.value + 1);
    std::unique_ptr<Named>& place = objects_[id.value];
    if (place) return fail(Code::invalid, kind_name_, " ", id, " is already in use");
    place = std::make_unique<Named>();
    place->id = id;
    ++size_;
    return &place->object;
  }

  [[nodiscard]] T* find(IdType id) const {
    Named* const found = id.value < objects_.size() ? objects_[id.value].get() : nullptr;
    return found != nullptr && found->id == id ? &found->object : nullptr;
  }

  [[nodiscard]] Result<T*> get(IdType id) const {
    if (T* object = find(id)) return object;
    return fail(Code::invalid, kind_name_, " ", id, " does not exist");
  }

  void remove(IdType id) {
    SPL_ASSERT(find(id) != nullptr, kind_name_, " ", id);
    SPL_ASSERT(size_ > 0, kind_name_, " ", id);
    objects_[id.value].reset();
    --size_;
  }

  // Visits all objects in the order of their ids.
  template <class Visit>
  void for_each(Visit visit) const {
    for (uint32_t i = 0; i < objects_.size(); ++i) {
      if (objects_[i]) visit(objects_[i]->id, objects_[i]->object);
    }
  }

  [[nodiscard]] uint32_t size() const { return size_; }

 private:
  struct Named {
    T object{};
    IdType id;
  };
  const char* kind_name_;
  uint32_t limit_;
  const char* limit_name_;
  std::vector<std::unique_ptr<Named>> objects_;
  uint32_t size_ = 0;
};

}  // namespace spinloom::spin
