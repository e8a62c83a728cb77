// TypeContents, TypeArguments - how a datatype was made, as the MPI tells it.
//
// Contract: read() asks the MPI for the arguments of the constructor; TypeArguments takes them in the order of the MPI
//   standard.
// Invariants: (1) the datatypes among them are freed with their TypeContents, unless they are basic types.
// Threads: one. Time: none.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "mpi/abi/abi.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

constexpr int type_depth_most = 64;

// The arguments that a datatype was made with. Its datatypes are freed with it, unless they are basic types.
struct TypeContents {
  int combiner = 0;
  std::vector<int> integers;
  std::vector<Aint> addresses;
  std::vector<Count> counts;
  std::vector<Datatype> types;

  TypeContents() = default;
  TypeContents(const TypeContents&) = delete;
  TypeContents& operator=(const TypeContents&) = delete;
  ~TypeContents() {
    for (Datatype& type : types) {
      if (!is_basic(type)) real.Type_free(&type);
    }
  }

  static bool is_basic(Datatype type) {
    TypeContents own;
    return !own.read_envelope(type) || own.combiner == combiners.named || own.is_f90();
  }
  // MPI_COMBINER_F90_REAL, _COMPLEX, _INTEGER: basic types too, which must not be freed.
  [[nodiscard]] bool is_f90() const { return combiner >= combiners.f90_first && combiner <= combiners.f90_last; }
  // Reads the combiner and the numbers of arguments. False: the MPI refused; so does read().
  [[nodiscard]] bool read_envelope(Datatype type) {
    if (real.Type_get_envelope_c != nullptr) {
      Count integers_count = 0;
      Count addresses_count = 0;
      if (real.Type_get_envelope_c(type, &integers_count, &addresses_count, &counts_, &types_, &combiner) != success) {
        return false;
      }
      integers_ = integers_count;
      addresses_ = addresses_count;
      return true;
    }
    int of[3] = {0, 0, 0};
    if (real.Type_get_envelope(type, &of[0], &of[1], &of[2], &combiner) != success) return false;
    integers_ = of[0];
    addresses_ = of[1];
    types_ = of[2];
    return true;
  }
  [[nodiscard]] bool read(Datatype type) {
    if (!read_envelope(type)) return false;
    if (combiner == combiners.named || is_f90()) return true;
    integers.resize(static_cast<size_t>(integers_) + 1);
    addresses.resize(static_cast<size_t>(addresses_) + 1);
    counts.resize(static_cast<size_t>(counts_) + 1);
    std::vector<Datatype> children(static_cast<size_t>(types_));
    const int done =
        real.Type_get_contents_c != nullptr && counts_ > 0
            ? real.Type_get_contents_c(type, integers_, addresses_, counts_, types_, integers.data(), addresses.data(),
                                       counts.data(), children.data())
            : real.Type_get_contents(type, static_cast<int>(integers_), static_cast<int>(addresses_),
                                     static_cast<int>(types_), integers.data(), addresses.data(), children.data());
    if (done != success) return false;
    types = std::move(children);
    large = counts_ > 0;
    return true;
  }

  bool large = false;  // made by a constructor with large counts: counts, lengths and displacements are in `counts`

 private:
  Count integers_ = 0;
  Count addresses_ = 0;
  Count counts_ = 0;
  Count types_ = 0;
};

// Takes a constructor's arguments in the order of the MPI standard, section "Decoding a Datatype".
class TypeArguments {
 public:
  explicit TypeArguments(const TypeContents& contents) : contents_(contents) {}

  int64_t number() {  // a count, block length or size
    return contents_.large ? contents_.counts.at(count_++) : contents_.integers.at(integer_++);
  }
  int64_t plain() { return contents_.integers.at(integer_++); }  // an int in both forms: a rank, an order
  int64_t place() {  // a displacement in bytes
    return contents_.large ? contents_.counts.at(count_++) : contents_.addresses.at(address_++);
  }
  std::vector<int64_t> numbers(int64_t n) {
    std::vector<int64_t> list(static_cast<size_t>(n));
    for (int64_t& one : list) one = number();
    return list;
  }
  std::vector<int64_t> plains(int64_t n) {
    std::vector<int64_t> list(static_cast<size_t>(n));
    for (int64_t& one : list) one = plain();
    return list;
  }
  std::vector<int64_t> places(int64_t n) {
    std::vector<int64_t> list(static_cast<size_t>(n));
    for (int64_t& one : list) one = place();
    return list;
  }

 private:
  const TypeContents& contents_;
  size_t integer_ = 0;
  size_t address_ = 0;
  size_t count_ = 0;
};

}  // namespace spinloom::mpi::SPINLOOM_ABI
