// Atomics on memory: every operation of every datatype, elementwise, with the values before, compared with a table
// made by hand.
#include "portals/interface/host_atomic.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

namespace spinloom::portals {
namespace {

using nic::AtomicOperation;
using nic::Datatype;

// One request over `targets`; checks the new values, the old ones, and that nothing around them changed.
template <class T>
void expect_applied(AtomicOperation operation, Datatype type, const std::vector<T>& targets,
                    const std::vector<T>& sources, const std::vector<T>& expected, T operand = {}) {
  SCOPED_TRACE(text("operation ", static_cast<int>(operation), ", datatype ", static_cast<int>(type)));
  ASSERT_TRUE(nic::check(operation, type, sources.size() * sizeof(T), nic::is_swap(operation), 1 << 12).ok());
  ASSERT_EQ(nic::bytes_of(type), sizeof(T));
  constexpr uint8_t guard = 0xa5;
  const auto* const bytes = reinterpret_cast<const uint8_t*>(targets.data());
  std::vector<uint8_t> memory = {guard};  // elements are misaligned then
  memory.insert(memory.end(), bytes, bytes + sizeof(T) * targets.size());
  memory.push_back(guard);
  std::vector<T> before(targets.size());
  nic::ApplyAtomic apply;
  apply.dma = nic::DmaId{9};
  apply.operation = operation;
  apply.datatype = type;
  apply.operand = nic::operand_of(type, &operand);
  apply.host = memory.data() + 1;
  apply.source = {nic::PayloadRef::Space::local, reinterpret_cast<const uint8_t*>(sources.data()),
                  sources.size() * sizeof(T)};
  apply.before = reinterpret_cast<uint8_t*>(before.data());
  EXPECT_EQ(perform(apply), nic::DmaId{9});
  std::vector<T> after(targets.size());
  std::memcpy(after.data(), memory.data() + 1, sizeof(T) * targets.size());
  EXPECT_EQ(after, expected);
  EXPECT_EQ(before, targets);
  EXPECT_EQ(memory.front(), guard);
  EXPECT_EQ(memory.back(), guard);
}

template <class T>
void expect_integers(Datatype type) {
  const T top = std::numeric_limits<T>::max();
  const T bottom = std::numeric_limits<T>::min();
  const auto of = [](auto... values) { return std::vector<T>{static_cast<T>(values)...}; };
  using enum AtomicOperation;
  expect_applied<T>(min, type, of(3, top, bottom), of(5, 1, 1), of(3, 1, std::min<T>(bottom, 1)));
  expect_applied<T>(max, type, of(3, bottom), of(5, 1), of(5, std::max<T>(bottom, 1)));
  expect_applied<T>(sum, type, of(3, top), of(5, 1), of(8, bottom));
  expect_applied<T>(product, type, of(3, top), of(5, 2), of(15, static_cast<uint64_t>(top) * 2));
  expect_applied<T>(logical_or, type, of(0, 0, 6), of(0, 4, 0), of(0, 1, 1));
  expect_applied<T>(logical_and, type, of(2, 0, 6), of(4, 4, 0), of(1, 0, 0));
  expect_applied<T>(logical_xor, type, of(2, 0, 0), of(4, 4, 0), of(0, 1, 0));
  expect_applied<T>(bit_or, type, of(5), of(3), of(7));
  expect_applied<T>(bit_and, type, of(5), of(3), of(1));
  expect_applied<T>(bit_xor, type, of(5), of(3), of(6));
  expect_applied<T>(swap, type, of(5, 6), of(3, 4), of(3, 4));
  expect_applied<T>(masked_swap, type, of(0x35), of(0x5a), of(0x3a), static_cast<T>(0x0f));
}

// The source replaces the target where `operand RELATION target` holds: operands below, at and above the target.
template <class T>
void expect_compared(Datatype type) {
  struct Row {
    AtomicOperation operation;
    bool below, at, above;
  };
  using enum AtomicOperation;
  for (const Row& row :
       {Row{compare_swap, false, true, false}, Row{compare_swap_not_equal, true, false, true},
        Row{compare_swap_less_equal, true, true, false}, Row{compare_swap_less, true, false, false},
        Row{compare_swap_greater_equal, false, true, true}, Row{compare_swap_greater, false, false, true}}) {
    const T target = 20, source = 50;
    for (const auto& [operand, swaps] : {std::pair<T, bool>{T{19}, row.below}, {T{20}, row.at}, {T{21}, row.above}}) {
      expect_applied<T>(row.operation, type, {target}, {source}, {swaps ? source : target}, operand);
    }
  }
}

// Rules: P4F-12.1, P4F-12.2, P4F-12.3, P4F-12.4, P4F-12.5, P4F-12.8, P4F-12.9, P4F-12.25.
TEST(HostAtomic, Integers) {
  expect_integers<int8_t>(Datatype::int8);
  expect_integers<uint8_t>(Datatype::uint8);
  expect_integers<int16_t>(Datatype::int16);
  expect_integers<uint16_t>(Datatype::uint16);
  expect_integers<int32_t>(Datatype::int32);
  expect_integers<uint32_t>(Datatype::uint32);
  expect_integers<int64_t>(Datatype::int64);
  expect_integers<uint64_t>(Datatype::uint64);
}

// Rules: P4F-12.6, P4F-12.7, P4F-12.10.
TEST(HostAtomic, ComparedSwaps) {
  expect_compared<int8_t>(Datatype::int8);
  expect_compared<uint16_t>(Datatype::uint16);
  expect_compared<int32_t>(Datatype::int32);
  expect_compared<uint64_t>(Datatype::uint64);
  expect_compared<float>(Datatype::float32);
  expect_compared<double>(Datatype::float64);
  expect_compared<long double>(Datatype::long_double);
}

template <class T>
void expect_reals(Datatype type) {
  using enum AtomicOperation;
  const T half = T{1} / 2, quarter = T{1} / 4;
  expect_applied<T>(min, type, {half, -3}, {quarter, 2}, {quarter, -3});
  expect_applied<T>(max, type, {half, -3}, {quarter, 2}, {half, 2});
  expect_applied<T>(sum, type, {half, 1}, {quarter, 2}, {half + quarter, 3});
  expect_applied<T>(product, type, {half, -3}, {quarter, 2}, {quarter / 2, -6});
  expect_applied<T>(swap, type, {half, 1}, {quarter, 2}, {quarter, 2});
}

template <class T>
struct Complex {
  T re, im;
  bool operator==(const Complex&) const = default;
};

template <class T>
void expect_complex(Datatype type) {
  using enum AtomicOperation;
  using C = Complex<T>;
  expect_applied<C>(sum, type, {{1, 2}, {0, 1}}, {{3, 5}, {0, 1}}, {{4, 7}, {0, 2}});
  expect_applied<C>(product, type, {{1, 2}, {0, 1}}, {{3, 5}, {0, 1}}, {{-7, 11}, {-1, 0}});
  expect_applied<C>(swap, type, {{1, 2}, {3, 4}}, {{3, 5}, {6, 7}}, {{3, 5}, {6, 7}});
  expect_applied<C>(compare_swap, type, {{1, 2}}, {{3, 5}}, {{3, 5}}, {1, 2});
  expect_applied<C>(compare_swap, type, {{1, 2}}, {{3, 5}}, {{1, 2}}, {1, 3});
  expect_applied<C>(compare_swap_not_equal, type, {{1, 2}}, {{3, 5}}, {{3, 5}}, {1, 3});
  expect_applied<C>(compare_swap_not_equal, type, {{1, 2}}, {{3, 5}}, {{1, 2}}, {1, 2});
}

// Rules: P4F-12.1, P4F-12.2, P4F-12.5.
TEST(HostAtomic, FloatingPoint) {
  expect_reals<float>(Datatype::float32);
  expect_reals<double>(Datatype::float64);
  expect_reals<long double>(Datatype::long_double);
}

// Rules: P4F-12.2, P4F-12.5, P4F-12.6.
TEST(HostAtomic, Complex) {
  expect_complex<float>(Datatype::complex64);
  expect_complex<double>(Datatype::complex128);
  expect_complex<long double>(Datatype::long_double_complex);
}

}  // namespace
}  // namespace spinloom::portals
