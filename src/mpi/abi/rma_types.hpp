// RmaTypes - what accesses to windows on the NIC must know of a datatype: where its bytes lie, and what they are
// elements of.
//
// Contract: of() describes a datatype; null: it cannot be built here. op_of() gives the NIC's number of an operation of
//   MPI.
// Invariants: (1) whether the NIC changes elements follows from their basic type alone, not from the operation: so all
//   accumulating calls on an element go the same way, and are atomic with each other.
// Threads: the caller's lock. Time: none.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "mpi/abi/abi.hpp"
#include "mpi/entry/handle_map.hpp"
#include "mpi/messages/message.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

// A piece of a message's memory, by its distance from the buffer.
struct MemoryBlock {
  int64_t offset = 0;
  int64_t bytes = 0;
};
using MemoryBlocks = std::shared_ptr<const std::vector<MemoryBlock>>;

struct RmaType {
  FormPointer form;  // known
  std::optional<Datatype> element;  // the basic type that all of it is made of; nothing if there are several
  FormPointer element_form;
  std::optional<ptl_datatype_t> code;  // the NIC's number of the element; nothing: the NIC cannot change such elements
  MemoryBlocks long_blocks;  // the blocks of one element of the type, in packed order, if they are long and not many
};

class RmaTypes {
 public:
  // The pointer holds until the next call.
  [[nodiscard]] const RmaType* of(Datatype type);
  // Returns the operation's number in spinloom/rma.h. Nothing: the NIC has no such operation.
  [[nodiscard]] static std::optional<int> op_of(Op op);
  // Returns the contiguous pieces of `count` elements, in packed order.
  [[nodiscard]] static std::vector<MemoryBlock> blocks_of(const Form& form, int64_t count);

 private:
  HandleMap<std::unique_ptr<RmaType>> types_;
  uint64_t changes_ = 0;  // Types::changes() when `types_` was last used
};

}  // namespace spinloom::mpi::SPINLOOM_ABI
