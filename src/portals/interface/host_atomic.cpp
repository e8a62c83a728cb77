#include "portals/interface/host_atomic.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

namespace spinloom::portals {
namespace {

using nic::AtomicOperation;
using nic::Datatype;

template <class Part>
struct Complex {
  Part re;
  Part im;
  bool operator==(const Complex&) const = default;
};

template <class T>
inline constexpr bool is_complex = false;
template <class Part>
inline constexpr bool is_complex<Complex<Part>> = true;

template <class T>
constexpr T sum(T a, T b) {
  if constexpr (is_complex<T>) {
    return {a.re + b.re, a.im + b.im};
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}

template <class T>
constexpr T product(T a, T b) {
  if constexpr (is_complex<T>) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else {
    return a * b;
  }
}

// The target's new value. `nic::check` has refused operations that do not exist for the datatype.
template <class T>
constexpr T new_value(AtomicOperation operation, T target, T source, T operand) {
  switch (operation) {
    case AtomicOperation::sum: return sum(target, source);
    case AtomicOperation::product: return product(target, source);
    case AtomicOperation::swap: return source;
    case AtomicOperation::compare_swap: return operand == target ? source : target;
    case AtomicOperation::compare_swap_not_equal: return operand != target ? source : target;
    default: break;
  }
  if constexpr (!is_complex<T>) {
    switch (operation) {
      case AtomicOperation::min: return std::min(target, source);
      case AtomicOperation::max: return std::max(target, source);
      case AtomicOperation::compare_swap_less_equal: return operand <= target ? source : target;
      case AtomicOperation::compare_swap_less: return operand < target ? source : target;
      case AtomicOperation::compare_swap_greater_equal: return operand >= target ? source : target;
      case AtomicOperation::compare_swap_greater: return operand > target ? source : target;
      default: break;
    }
  }
  if constexpr (std::is_integral_v<T>) {
    switch (operation) {
      case AtomicOperation::logical_or: return static_cast<T>(target != 0 || source != 0);
      case AtomicOperation::logical_and: return static_cast<T>(target != 0 && source != 0);
      case AtomicOperation::logical_xor: return static_cast<T>((target != 0) != (source != 0));
      case AtomicOperation::bit_or: return static_cast<T>(target | source);
      case AtomicOperation::bit_and: return static_cast<T>(target & source);
      case AtomicOperation::bit_xor: return static_cast<T>(target ^ source);
      case AtomicOperation::masked_swap: return static_cast<T>((operand & source) | (~operand & target));
      default: break;
    }
  }
  SPL_ASSERT(false, "operation ", static_cast<int>(operation), " does not exist for its datatype");
}

static_assert(sizeof(long double) == 16, "an x86 long double: 10 bytes that count, and 6 more");

// The compiler does not see that the datatype is T's, so the operand comes by way of room for the longest one.
template <class T>
T operand_of(const nic::ApplyAtomic& apply) {
  std::array<uint8_t, sizeof(Complex<long double>)> longest{};
  nic::store_operand(apply.datatype, apply.operand, longest.data());
  T operand;
  std::memcpy(&operand, longest.data(), sizeof operand);
  return operand;
}

// The operation is known to the compiler, which makes vectors of the elements.
template <class T, AtomicOperation operation>
void perform_as(const nic::ApplyAtomic& apply) {
  const T operand = operand_of<T>(apply);
  uint8_t* const to = apply.host;
  const uint8_t* const from = apply.source.bytes;
  const uint64_t bytes = apply.source.length / sizeof(T) * sizeof(T);
  if (apply.before != nullptr && bytes > 0) std::memcpy(apply.before, to, bytes);
  for (uint64_t at = 0; at < bytes; at += sizeof(T)) {
    T target;
    T source;
    std::memcpy(&target, to + at, sizeof target);
    std::memcpy(&source, from + at, sizeof source);
    const T after = new_value(operation, target, source, operand);
    std::memcpy(to + at, &after, sizeof after);
  }
}

template <class T, size_t... operation>
void perform_on(const nic::ApplyAtomic& apply, std::index_sequence<operation...> /*all*/) {
  static constexpr std::array functions{&perform_as<T, static_cast<AtomicOperation>(operation)>...};
  functions[static_cast<size_t>(apply.operation)](apply);
}
template <class T>
void perform_on(const nic::ApplyAtomic& apply) {
  perform_on<T>(apply, std::make_index_sequence<nic::atomic_operations>());
}

// Performs an atomic by a compare and exchange an element.
template <class T, class Bits>
void perform_shared(const nic::ApplyAtomic& apply) {
  const T operand = operand_of<T>(apply);
  for (uint64_t at = 0; at + sizeof(T) <= apply.source.length; at += sizeof(T)) {
    const std::atomic_ref target(*reinterpret_cast<Bits*>(apply.host + at));
    T source;
    std::memcpy(&source, apply.source.bytes + at, sizeof source);
    Bits before = target.load(std::memory_order_relaxed);
    Bits after = 0;
    do {
      after = std::bit_cast<Bits>(new_value(apply.operation, std::bit_cast<T>(before), source, operand));
    } while (!target.compare_exchange_weak(before, after, std::memory_order_acq_rel, std::memory_order_relaxed));
    if (apply.before != nullptr) std::memcpy(apply.before + at, &before, sizeof before);
  }
}

// Performs an atomic on elements in several pieces: gathers them, operates on them, scatters them.
nic::DmaId perform_pieces(const nic::ApplyAtomic& apply) {
  std::vector<uint8_t> gathered;
  for (const nic::IovecElement& piece : apply.pieces)
    gathered.insert(gathered.end(), piece.base, piece.base + piece.length);
  SPL_ASSERT(gathered.size() >= apply.source.length, gathered.size(), " of ", apply.source.length);
  nic::ApplyAtomic contiguous = apply;
  contiguous.pieces.clear();
  contiguous.host = gathered.data();
  perform(contiguous);
  const uint8_t* from = gathered.data();
  for (const nic::IovecElement& piece : apply.pieces) {
    std::memcpy(piece.base, from, piece.length);
    from += piece.length;
  }
  return apply.dma;
}

}  // namespace

nic::DmaId perform(const nic::ApplyAtomic& apply) {
  if (!apply.pieces.empty()) return perform_pieces(apply);
  switch (apply.datatype) {
    case Datatype::int8: perform_on<int8_t>(apply); break;
    case Datatype::uint8: perform_on<uint8_t>(apply); break;
    case Datatype::int16: perform_on<int16_t>(apply); break;
    case Datatype::uint16: perform_on<uint16_t>(apply); break;
    case Datatype::int32: perform_on<int32_t>(apply); break;
    case Datatype::uint32: perform_on<uint32_t>(apply); break;
    case Datatype::float32: perform_on<float>(apply); break;
    case Datatype::int64: perform_on<int64_t>(apply); break;
    case Datatype::uint64: perform_on<uint64_t>(apply); break;
    case Datatype::float64: perform_on<double>(apply); break;
    case Datatype::complex64: perform_on<Complex<float>>(apply); break;
    case Datatype::complex128: perform_on<Complex<double>>(apply); break;
    case Datatype::long_double: perform_on<long double>(apply); break;
    case Datatype::long_double_complex: perform_on<Complex<long double>>(apply); break;
  }
  return apply.dma;
}

bool is_indivisible(const nic::ApplyAtomic& apply) {
  const bool is_single = apply.datatype != Datatype::complex64 && nic::bytes_of(apply.datatype) <= sizeof(uint64_t);
  return is_single && apply.pieces.empty() &&
         reinterpret_cast<uintptr_t>(apply.host) % nic::bytes_of(apply.datatype) == 0 &&
         apply.source.length % nic::bytes_of(apply.datatype) == 0;
}

nic::DmaId perform_indivisibly(const nic::ApplyAtomic& apply) {
  SPL_ASSERT(is_indivisible(apply), "elements of ", nic::bytes_of(apply.datatype), " B");
  switch (apply.datatype) {
    case Datatype::int8: perform_shared<int8_t, uint8_t>(apply); break;
    case Datatype::uint8: perform_shared<uint8_t, uint8_t>(apply); break;
    case Datatype::int16: perform_shared<int16_t, uint16_t>(apply); break;
    case Datatype::uint16: perform_shared<uint16_t, uint16_t>(apply); break;
    case Datatype::int32: perform_shared<int32_t, uint32_t>(apply); break;
    case Datatype::uint32: perform_shared<uint32_t, uint32_t>(apply); break;
    case Datatype::float32: perform_shared<float, uint32_t>(apply); break;
    case Datatype::int64: perform_shared<int64_t, uint64_t>(apply); break;
    case Datatype::uint64: perform_shared<uint64_t, uint64_t>(apply); break;
    case Datatype::float64: perform_shared<double, uint64_t>(apply); break;
    default: break;
  }
  return apply.dma;
}

}  // namespace spinloom::portals
