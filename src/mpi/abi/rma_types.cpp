#include "mpi/abi/rma_types.hpp"

#include <algorithm>

#include "memory/layout/blocks.hpp"
#include "mpi/abi/layer.hpp"
#include "spinloom/rma.h"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

FormPointer whole_form(Datatype type) {
  const FormPointer& form = layer.types.form(type);
  if (form->known) return form;
  auto made = decode_whole_type(type);
  if (!made) made = type_as_packed(type);
  return made ? make_form(*made) : form;
}

std::optional<ptl_datatype_t> code_of(Datatype element) {
  if (element == handles().byte) return PTL_UINT8_T;
  for (const auto& one : numbers()) {
    if (one.handle == element) return one.code;
  }
  return std::nullopt;
}

}  // namespace

const RmaType* RmaTypes::of(Datatype type) {
  if (type == handles().type_null) return nullptr;
  if (const uint64_t changes = layer.types.changes(); changes != changes_) {
    changes_ = changes;
    known_ = {};
  }
  const std::unique_ptr<RmaType>* found = known_.find(key_of(type));
  if (found == nullptr) {
    auto made = std::make_unique<RmaType>();
    made->form = whole_form(type);
    made->element = element_of_type(type);
    if (made->element) {
      made->element_form = whole_form(*made->element);
      made->code = code_of(*made->element);
    }
    found = &known_.put(key_of(type), std::move(made));
  }
  return (*found)->form->known ? found->get() : nullptr;
}

std::optional<int> RmaTypes::op_of(Op op) {
  if (op == op_replace()) return static_cast<int>(SPL_RMA_REPLACE);
  if (op == op_no_op()) return static_cast<int>(SPL_RMA_NO_OP);
  for (const auto& one : operations()) {
    if (one.handle == op) return one.code;
  }
  return std::nullopt;
}

std::vector<Stretch> RmaTypes::stretches(const Form& form, int64_t count) {
  std::vector<Stretch> found;
  if (count <= 0 || form.size <= 0) return found;
  if (form.contiguous(count)) {
    found.push_back({form.true_lb, form.size * count});
  } else if (!form.layout) {
    for (int64_t i = 0; i < count; ++i) found.push_back({i * form.extent, form.size});
  } else {
    const auto add = [&found](const layout::Piece& piece) {
      found.push_back({piece.offset, piece.bytes});
      return true;
    };
    if (!layout::for_each_block(form.layout->blob(), count, add).ok()) found.clear();
  }
  return found;
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
