// Accumulating operations as the NIC has them.
#include "portals/rma/elements.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>

namespace spinloom::rma {
namespace {

using spin::AtomicOperation;
using spin::Datatype;

TEST(Elements, EachOperationIsThatOfTheNic) {
  for (uint8_t type = 0; type < spin::datatypes; ++type) {
    const auto datatype = static_cast<Datatype>(type);
    for (uint32_t op = 0; op < static_cast<uint32_t>(AtomicOperation::swap); ++op) {
      const auto operation = static_cast<AtomicOperation>(op);
      const auto plan = plan_of(op, datatype, false);
      EXPECT_EQ(plan.ok(), spin::check(operation, datatype, spin::bytes_of(datatype), false, UINT32_MAX).ok());
      if (!plan) continue;
      EXPECT_EQ(plan->operation, operation);
    }
    const auto replace = plan_of(op_replace, datatype, false);
    ASSERT_TRUE(replace.ok());
    EXPECT_EQ(replace->operation, AtomicOperation::swap);
    EXPECT_TRUE(replace->fetches);
    const auto read = plan_of(op_nothing, datatype, true);
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(spin::bytes_of(read->type), spin::bytes_of(datatype)) << "elements would be torn";
    EXPECT_FALSE(plan_of(op_nothing, datatype, false).ok());
    EXPECT_FALSE(plan_of(static_cast<uint32_t>(AtomicOperation::compare_swap), datatype, true).ok());
    EXPECT_FALSE(plan_of(op_nothing + 1, datatype, true).ok());
  }
  EXPECT_FALSE(plan_of(0, static_cast<Datatype>(spin::datatypes), true).ok());
}

TEST(Elements, AddingTheNeutralElementKeepsTheSignOfZero) {
  const auto plan = plan_of(op_nothing, Datatype::complex128, true);
  ASSERT_TRUE(plan.ok());
  std::array<uint8_t, 64> bytes{};
  fill_neutral(*plan, bytes);
  std::array<double, 8> parts{};
  std::memcpy(parts.data(), bytes.data(), bytes.size());
  for (const double part : parts) EXPECT_TRUE(std::signbit(-0.0 + part)) << part;
}

}  // namespace
}  // namespace spinloom::rma
