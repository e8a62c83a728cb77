#include "mpi/abi/rma_types.hpp"

#include <algorithm>
#include <utility>

#include "memory/layout/blocks.hpp"
#include "mpi/abi/layer.hpp"
#include "spinloom/rma.h"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

FormPointer form_of_all_bytes(Datatype type) {
  const FormPointer& form = layer.types.form(type);
  if (form->is_known) return form;
  auto decoded = decode_whole_type(type);
  if (!decoded) decoded = type_as_packed(type);
  return decoded ? make_form(*decoded) : form;
}

std::optional<ptl_datatype_t> code_of(Datatype element) {
  if (element == handles().byte) return PTL_UINT8_T;
  for (const auto& entry : numbers()) {
    if (entry.handle == element) return entry.code;
  }
  return std::nullopt;
}

MemoryBlocks long_blocks_of(const Form& form) {
  constexpr int64_t least_bytes = 512;  // the mean length; shorter blocks are copied faster by the layout's kernels
  constexpr size_t most_blocks = 4096;
  if (!form.layout || form.block_bytes < static_cast<double>(least_bytes)) return nullptr;
  std::vector<MemoryBlock> blocks;
  const auto add = [&blocks](const layout::Piece& piece) {
    blocks.push_back({piece.offset, piece.bytes});
    return blocks.size() <= most_blocks;
  };
  const bool are_all = layout::for_each_block(form.layout->blob(), 1, add).ok() && blocks.size() <= most_blocks;
  const bool are_long = form.size >= least_bytes * static_cast<int64_t>(blocks.size());
  return are_all && are_long ? std::make_shared<const std::vector<MemoryBlock>>(std::move(blocks)) : nullptr;
}

// The type that was found last, of the process's RmaTypes. Under the lock.
struct LatestType {
  uint64_t key = 0;
  const RmaType* type = nullptr;
} latest_type;

}  // namespace

const RmaType* RmaTypes::of(Datatype type) {
  if (type == handles().type_null) return nullptr;
  if (const uint64_t changes = layer.types.changes(); changes != changes_) {
    changes_ = changes;
    types_ = {};
    latest_type = {};
  }
  if (latest_type.type != nullptr && latest_type.key == key_of(type)) return latest_type.type;
  const std::unique_ptr<RmaType>* found = types_.find(key_of(type));
  if (found == nullptr) {
    auto described = std::make_unique<RmaType>();
    described->form = form_of_all_bytes(type);
    described->long_blocks = long_blocks_of(*described->form);
    described->element = element_of_type(type);
    if (described->element) {
      described->element_form = form_of_all_bytes(*described->element);
      described->code = code_of(*described->element);
    }
    found = &types_.put(key_of(type), std::move(described));
  }
  if (!(*found)->form->is_known) return nullptr;
  latest_type = {key_of(type), found->get()};
  return latest_type.type;
}

std::optional<int> RmaTypes::op_of(Op op) {
  if (op == op_replace()) return static_cast<int>(SPL_RMA_REPLACE);
  if (op == op_no_op()) return static_cast<int>(SPL_RMA_NO_OP);
  for (const auto& entry : operations()) {
    if (entry.handle == op) return entry.code;
  }
  return std::nullopt;
}

std::vector<MemoryBlock> RmaTypes::blocks_of(const Form& form, int64_t count) {
  std::vector<MemoryBlock> blocks;
  if (count <= 0 || form.size <= 0) return blocks;
  if (form.is_contiguous(count)) {
    blocks.push_back({form.true_lb, form.size * count});
  } else if (!form.layout) {
    for (int64_t i = 0; i < count; ++i) blocks.push_back({i * form.extent, form.size});
  } else {
    const auto add = [&blocks](const layout::Piece& piece) {
      blocks.push_back({piece.offset, piece.bytes});
      return true;
    };
    if (!layout::for_each_block(form.layout->blob(), count, add).ok()) blocks.clear();
  }
  return blocks;
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
