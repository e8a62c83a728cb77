// Map - addresses and paths of the registers of a NIC of some shape.
//
// Contract: a group lies at its base, and its registers follow each other in the table's order, 4 bytes each. An
//   address or a path that names no register gives an Error; for a path it says which name is near, or which indices
//   there are. A path is GROUP/NAME/INDEX; the index may be left out where there is one register of that name.
// Invariants: (1) no two registers have one address; (2) in the board's shape all addresses are the table's.
// Threads: immutable after make(). Time: none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "nic/registers/table.hpp"

namespace spinloom::registers {

// A piece of memory; of 0 bytes: none.
struct Window {
  uint64_t address = 0;
  uint64_t bytes = 0;
  bool operator==(const Window&) const = default;
};

// One register: its name, and its index among the registers of that name.
struct RegisterInstance {
  Register id;
  uint32_t index = 0;
  bool operator==(const RegisterInstance&) const = default;
};

[[nodiscard]] inline const Description& describe(Register id) { return descriptions[static_cast<size_t>(id)]; }

class Map {
 public:
  // Returns an Error if a number of the shape is out of its range or a group does not fit in its 4 KiB.
  static Result<Map> make(const Shape& shape);

  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] uint32_t register_count() const { return register_count_; }
  [[nodiscard]] uint32_t count(Register id) const { return spans_[static_cast<size_t>(id)].count; }
  [[nodiscard]] uint32_t address(RegisterInstance place) const {
    return spans_[static_cast<size_t>(place.id)].address + 4 * place.index;
  }
  // Returns the number of the register among all registers, in the order of addresses.
  [[nodiscard]] uint32_t number(RegisterInstance place) const {
    return spans_[static_cast<size_t>(place.id)].number + place.index;
  }
  [[nodiscard]] RegisterInstance place_of_number(uint32_t number) const;

  [[nodiscard]] Result<RegisterInstance> at(uint32_t address) const;
  [[nodiscard]] Result<RegisterInstance> named(std::string_view path) const;
  [[nodiscard]] std::string path(RegisterInstance place) const;

  // True if a host may read and write these bytes of NIC memory; addresses are those that handlers use.
  [[nodiscard]] bool in_memory(uint64_t nic_address, uint64_t bytes) const;
  [[nodiscard]] bool in_handler_memory(uint64_t nic_address, uint64_t bytes) const;
  // The part of a window that lies before the end of handler memory; a window elsewhere as it is.
  [[nodiscard]] Window up_to_end_of_handler_memory(const Window& window) const;
  [[nodiscard]] bool in_program_memory(uint64_t nic_address, uint64_t bytes) const;

 private:
  struct Span {
    uint32_t address = 0;
    uint32_t count = 0;
    uint32_t number = 0;
  };
  explicit Map(const Shape& shape) : shape_(shape) {}

  Shape shape_;
  uint32_t register_count_ = 0;
  std::array<Span, register_kinds> spans_{};
};

}  // namespace spinloom::registers
