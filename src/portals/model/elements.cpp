#include "portals/model/elements.hpp"

#include <algorithm>
#include <cstring>

namespace spinloom::model {
namespace {

template <class Number>
bool holds(AtomicKind relation, Number operand, Number target) {
  switch (relation) {
    case AtomicKind::compare_swap: return operand == target;
    case AtomicKind::compare_swap_not_equal: return operand != target;
    case AtomicKind::compare_swap_less_equal: return operand <= target;
    case AtomicKind::compare_swap_less: return operand < target;
    case AtomicKind::compare_swap_greater_equal: return operand >= target;
    case AtomicKind::compare_swap_greater: return operand > target;
    default: return true;
  }
}

template <class Number>
uint64_t changed(AtomicKind kind, uint64_t operand_bits, uint64_t source_bits, uint64_t target_bits) {
  const auto source = static_cast<Number>(source_bits);
  const auto target = static_cast<Number>(target_bits);
  const bool source_is_true = source_bits != 0;
  const bool target_is_true = target_bits != 0;
  switch (kind) {
    case AtomicKind::min: return static_cast<uint64_t>(std::min(source, target));
    case AtomicKind::max: return static_cast<uint64_t>(std::max(source, target));
    case AtomicKind::sum: return source_bits + target_bits;
    case AtomicKind::product: return source_bits * target_bits;
    case AtomicKind::logical_or: return source_is_true || target_is_true ? 1 : 0;
    case AtomicKind::logical_and: return source_is_true && target_is_true ? 1 : 0;
    case AtomicKind::bit_or: return source_bits | target_bits;
    case AtomicKind::bit_and: return source_bits & target_bits;
    case AtomicKind::logical_xor: return source_is_true != target_is_true ? 1 : 0;
    case AtomicKind::bit_xor: return source_bits ^ target_bits;
    case AtomicKind::masked_swap: return (operand_bits & source_bits) | (~operand_bits & target_bits);
    default: return holds(kind, static_cast<Number>(operand_bits), target) ? source_bits : target_bits;
  }
}

}  // namespace

void apply(const Movement& movement, std::span<const uint8_t> source, std::span<uint8_t> target) {
  const auto operand = static_cast<uint64_t>(movement.operand);
  for (size_t at = 0; at + element_bytes <= source.size(); at += element_bytes) {
    uint64_t from = 0;
    uint64_t to = 0;
    std::memcpy(&from, source.data() + at, element_bytes);
    std::memcpy(&to, target.data() + at, element_bytes);
    to = movement.is_signed ? changed<int64_t>(movement.atomic, operand, from, to)
                            : changed<uint64_t>(movement.atomic, operand, from, to);
    std::memcpy(target.data() + at, &to, element_bytes);
  }
}

}  // namespace spinloom::model
