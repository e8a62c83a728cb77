// GaplessType - a datatype with the same basic types in the same order as another, without its gaps.
//
// Contract: of() makes one, or returns the one that it made for the datatype before: the `kept_max` that were used last
//   are kept. A datatype without gaps that starts at its buffer stands for itself. A type may be used in calls of the
//   MPI as long as a pointer to it is held, and is freed when there is none. drop_kept() drops those that are kept,
//   before the MPI ends.
// Invariants: (1) size and extent are the other's size, the lower bound is 0; (2) a message of one matches a receive of
//   the other, element by element.
// Threads: any. Time: none.
#pragma once

#include <memory>

#include "base/result.hpp"
#include "mpi/abi/abi.hpp"
#include "mpi/messages/message.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

class GaplessType {
 public:
  static constexpr size_t kept_max = 256;
  // `form`: that of `type`. Returns an Error where the MPI cannot make the type.
  [[nodiscard]] static Result<std::shared_ptr<const GaplessType>> of(Datatype type, const FormPointer& form);
  static void drop_kept();

  // True if the MPI may cut a message of this type anywhere, so that a receiver of the other type does not take it
  // (CHOICES.md).
  [[nodiscard]] bool is_cut_anywhere() const;

  GaplessType(Datatype type, bool is_own, bool is_mixed) : type_(type), is_own_(is_own), is_mixed_(is_mixed) {}
  GaplessType(const GaplessType&) = delete;
  GaplessType& operator=(const GaplessType&) = delete;
  ~GaplessType();
  [[nodiscard]] Datatype type() const { return type_; }

 private:
  Datatype type_;
  bool is_own_;  // false for a basic type and for one of the program's: they are not freed
  bool is_mixed_;  // made of several basic types
};

}  // namespace spinloom::mpi::SPINLOOM_ABI
