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

constexpr int type_depth_max = 64;

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
    TypeContents contents;
    return !contents.read_envelope(type) || contents.combiner == combiners.named || contents.is_f90();
  }
  // MPI_COMBINER_F90_REAL, _COMPLEX, _INTEGER: basic types too, which must not be freed.
  [[nodiscard]] bool is_f90() const { return combiner >= combiners.f90_first && combiner <= combiners.f90_last; }
  // Reads the combiner and the numbers of arguments. False: the MPI refused; so does read().
  [[nodiscard]] bool read_envelope(Datatype type) {
    if (real.Type_get_envelope_c != nullptr) {
      Count integers_count = 0;
      Count addresses_count = 0;
      if (real.Type_get_envelope_c(type, &integers_count, &addresses_count, &counts_count_, &types_count_, &combiner) !=
          success) {
        return false;
      }
      integers_count_ = integers_count;
      addresses_count_ = addresses_count;
      return true;
    }
    int numbers[3] = {0, 0, 0};
    if (real.Type_get_envelope(type, &numbers[0], &numbers[1], &numbers[2], &combiner) != success) return false;
    integers_count_ = numbers[0];
    addresses_count_ = numbers[1];
    types_count_ = numbers[2];
    return true;
  }
  [[nodiscard]] bool read(Datatype type) {
    if (!read_envelope(type)) return false;
    if (combiner == combiners.named || is_f90()) return true;
    integers.resize(static_cast<size_t>(integers_count_) + 1);
    addresses.resize(static_cast<size_t>(addresses_count_) + 1);
    counts.resize(static_cast<size_t>(counts_count_) + 1);
    std::vector<Datatype> children(static_cast<size_t>(types_count_));
    const int done =
        real.Type_get_contents_c != nullptr && counts_count_ > 0
            ? real.Type_get_contents_c(type, integers_count_, addresses_count_, counts_count_, types_count_,
                                       integers.data(), addresses.data(), counts.data(), children.data())
            : real.Type_get_contents(type, static_cast<int>(integers_count_), static_cast<int>(addresses_count_),
                                     static_cast<int>(types_count_), integers.data(), addresses.data(),
                                     children.data());
    if (done != success) return false;
    types = std::move(children);
    has_large_counts = counts_count_ > 0;
    return true;
  }

  // True if a constructor with large counts has made the type: counts, lengths and displacements are in `counts`.
  bool has_large_counts = false;

 private:
  Count integers_count_ = 0;
  Count addresses_count_ = 0;
  Count counts_count_ = 0;
  Count types_count_ = 0;
};

// Takes a constructor's arguments in the order of the MPI standard, section "Decoding a Datatype".
class TypeArguments {
 public:
  explicit TypeArguments(const TypeContents& contents) : contents_(contents) {}

  int64_t number() {  // a count, block length or size
    return contents_.has_large_counts ? contents_.counts.at(count_++) : contents_.integers.at(integer_++);
  }
  int64_t plain() { return contents_.integers.at(integer_++); }  // an int in both forms: a rank, an order
  int64_t displacement() {  // a displacement in bytes
    return contents_.has_large_counts ? contents_.counts.at(count_++) : contents_.addresses.at(address_++);
  }
  std::vector<int64_t> numbers(int64_t n) {
    std::vector<int64_t> list(static_cast<size_t>(n));
    for (int64_t& value : list) value = number();
    return list;
  }
  std::vector<int64_t> plains(int64_t n) {
    std::vector<int64_t> list(static_cast<size_t>(n));
    for (int64_t& value : list) value = plain();
    return list;
  }
  std::vector<int64_t> displacements(int64_t n) {
    std::vector<int64_t> list(static_cast<size_t>(n));
    for (int64_t& value : list) value = displacement();
    return list;
  }

 private:
  const TypeContents& contents_;
  size_t integer_ = 0;
  size_t address_ = 0;
  size_t count_ = 0;
};

}  // namespace spinloom::mpi::SPINLOOM_ABI
