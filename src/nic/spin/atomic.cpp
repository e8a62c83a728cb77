#include "nic/spin/atomic.hpp"

#include <cstring>

namespace spinloom::spin {
namespace {

bool is_floating(Datatype type) {
  return type == Datatype::float32 || type == Datatype::float64 || type == Datatype::long_double;
}
bool is_complex(Datatype type) {
  return type == Datatype::complex64 || type == Datatype::complex128 || type == Datatype::long_double_complex;
}

bool exists_for(AtomicOperation operation, Datatype type) {
  switch (operation) {
    case AtomicOperation::sum:
    case AtomicOperation::product:
    case AtomicOperation::swap:
    case AtomicOperation::compare_swap:
    case AtomicOperation::compare_swap_not_equal: return true;
    case AtomicOperation::min:
    case AtomicOperation::max:
    case AtomicOperation::compare_swap_less_equal:
    case AtomicOperation::compare_swap_less:
    case AtomicOperation::compare_swap_greater_equal:
    case AtomicOperation::compare_swap_greater: return !is_complex(type);
    default: return !is_complex(type) && !is_floating(type);
  }
}

}  // namespace

AtomicOperand operand_of(Datatype type, const void* element) {
  AtomicOperand operand{};
  auto* const to = reinterpret_cast<uint8_t*>(operand.data());
  const auto* const from = static_cast<const uint8_t*>(element);
  if (type != Datatype::long_double_complex) {
    std::memcpy(to, from, bytes_of(type));
    return operand;
  }
  std::memcpy(to, from, long_double_bytes);
  std::memcpy(to + long_double_bytes, from + bytes_of(Datatype::long_double), long_double_bytes);
  return operand;
}

void store_operand(Datatype type, const AtomicOperand& operand, void* element) {
  const auto* const from = reinterpret_cast<const uint8_t*>(operand.data());
  auto* const to = static_cast<uint8_t*>(element);
  if (type != Datatype::long_double_complex) {
    std::memcpy(to, from, bytes_of(type));
    return;
  }
  std::memset(to, 0, bytes_of(type));
  std::memcpy(to, from, long_double_bytes);
  std::memcpy(to + bytes_of(Datatype::long_double), from + long_double_bytes, long_double_bytes);
}

Status check(AtomicOperation operation, Datatype type, uint64_t length, bool fetching, uint64_t limit) {
  const int op_number = static_cast<int>(operation);
  const int type_number = static_cast<int>(type);
  if (op_number >= atomic_operations) return fail(Code::invalid, "atomic: there is no operation ", op_number);
  if (type_number >= datatypes) return fail(Code::invalid, "atomic: there is no datatype ", type_number);
  if (!exists_for(operation, type)) {
    return fail(Code::invalid, "atomic: operation ", op_number, " does not exist for datatype ", type_number);
  }
  if (is_swap(operation) && !fetching) {
    return fail(Code::invalid, "atomic: operation ", op_number, " is a swap: it returns the value before");
  }
  if (has_operand(operation) && length > bytes_of(type)) {
    return fail(Code::invalid, "atomic: operation ", op_number, " changes one element of ", bytes_of(type), " B, ",
                length, " B were given");
  }
  if (length > limit) {
    return fail(Code::invalid, "atomic: ", length, " B, the limit is ", limit, " B (", fetching ? "fetch_" : "",
                "atomic_bytes of the NIC, and one packet)");
  }
  return {};
}

}  // namespace spinloom::spin
