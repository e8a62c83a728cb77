// Types - what the layer knows of the datatypes that a program uses, by their handles.
//
// Contract: form() describes a datatype; the first call for a handle asks the MPI how it was made, builds the same type
//   from layout::Type, and compares sizes and bounds with the MPI's.
// Invariants: (1) a handle is forgotten when its datatype is freed: the MPI calls an attribute's delete function then;
//   (2) a type that cannot be built here, or whose sizes differ, has a Form that is not `known`.
// Threads: the caller's lock. Time: none.
#pragma once

#include "mpi/abi/abi.hpp"
#include "mpi/handle_map.hpp"
#include "mpi/message.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

class Types {
 public:
  [[nodiscard]] bool begin();  // false: the MPI refused
  // The pointer holds until the next call; copy it to keep it.
  [[nodiscard]] const FormPointer& form(Datatype type) {
    const uint64_t key = key_of(type);
    if (key == last_key_ && !forgotten_.any()) return *last_;
    return find(type);
  }
  void forget(Datatype type) { forgotten_.add(key_of(type)); }  // needs no lock
  // Whether the MPI has taken a call with this type without an error, so that it is committed.
  [[nodiscard]] bool is_tried(Datatype type) { return tried_.find(key_of(type)) != nullptr; }
  void set_tried(Datatype type) { tried_.put(key_of(type), true); }

 private:
  [[nodiscard]] const FormPointer& find(Datatype type);

  HandleMap<FormPointer> forms_;
  Forgotten forgotten_;
  HandleMap<bool> tried_;
  uint64_t last_key_ = ~uint64_t{0};
  const FormPointer* last_ = nullptr;
  int keyval_ = 0;
};

}  // namespace spinloom::mpi::SPINLOOM_ABI
