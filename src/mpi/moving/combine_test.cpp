#include "mpi/moving/combine.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

namespace spinloom::mpi {
namespace {

constexpr int64_t guard = 3;

// Elements and operands at odd addresses, of as many elements as vectors, pairs of vectors and rests have.
template <class Number, class Operation>
void expect_elementwise(int op, ptl_datatype_t type, const std::vector<Number>& numbers, Operation operation) {
  for (int64_t count = 0; count < 40; ++count) {
    std::vector<char> operands(static_cast<size_t>(count) * sizeof(Number) + 1);
    std::vector<char> elements((static_cast<size_t>(count) + guard) * sizeof(Number) + 1, 'g');
    std::vector<char> expected = elements;
    for (int64_t i = 0; i < count; ++i) {
      const Number operand = numbers[static_cast<size_t>(i * 7) % numbers.size()];
      const Number element = numbers[static_cast<size_t>(i * 3 + 1) % numbers.size()];
      const Number result = operation(element, operand);
      const size_t at = 1 + static_cast<size_t>(i) * sizeof(Number);
      std::memcpy(&operands[at], &operand, sizeof operand);
      std::memcpy(&elements[at], &element, sizeof element);
      std::memcpy(&expected[at], &result, sizeof result);
    }
    ASSERT_TRUE(combine(op, type, operands.data() + 1, elements.data() + 1, count));
    ASSERT_EQ(elements, expected) << count << " elements";
  }
}

template <class Number>
void expect_integers(ptl_datatype_t type) {
  const std::vector<Number> numbers{0, 1, 2, std::numeric_limits<Number>::max(), 0x5a5a5a, Number(0) - 3};
  expect_elementwise<Number>(PTL_SUM, type, numbers, [](Number a, Number b) { return a + b; });
  expect_elementwise<Number>(PTL_BAND, type, numbers, [](Number a, Number b) { return a & b; });
  expect_elementwise<Number>(PTL_BOR, type, numbers, [](Number a, Number b) { return a | b; });
  expect_elementwise<Number>(PTL_BXOR, type, numbers, [](Number a, Number b) { return a ^ b; });
}

TEST(Combine, EachElementIsChangedByItsOperand) {
  expect_integers<uint32_t>(PTL_INT32_T);
  expect_integers<uint32_t>(PTL_UINT32_T);
  expect_integers<uint64_t>(PTL_INT64_T);
  expect_integers<uint64_t>(PTL_UINT64_T);
  const std::vector<float> floats{0.0F, -0.0F, 1.5F, std::numeric_limits<float>::infinity(), 1e-40F, 3e38F};
  expect_elementwise<float>(PTL_SUM, PTL_FLOAT, floats, [](float a, float b) { return a + b; });
  const std::vector<double> doubles{0.0, -0.0, 1.5, std::numeric_limits<double>::infinity(), 1e-310, 1e308};
  expect_elementwise<double>(PTL_SUM, PTL_DOUBLE, doubles, [](double a, double b) { return a + b; });
}

TEST(Combine, WhatItDoesNotKnowChangesNothing) {
  double element = 2;
  const double operand = 3;
  EXPECT_FALSE(combine(PTL_PROD, PTL_DOUBLE, &operand, &element, 1));
  EXPECT_FALSE(combine(PTL_BAND, PTL_DOUBLE, &operand, &element, 1));
  EXPECT_FALSE(combine(PTL_SUM, PTL_INT8_T, &operand, &element, 8));
  EXPECT_FALSE(combine(PTL_SUM, PTL_LONG_DOUBLE, &operand, &element, 0));
  EXPECT_EQ(element, 2);
}

}  // namespace
}  // namespace spinloom::mpi
