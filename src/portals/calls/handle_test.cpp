// Numbers that were never given out as handles, and handles of removed objects, name nothing.
#include "portals/calls/handle.hpp"

#include <gtest/gtest.h>

#include <set>

namespace spinloom::calls {
namespace {

TEST(Handle, NamesItsObjectUntilItIsRemoved) {
  HandleTable<int> table(Kind::counter, 2, 7);
  const ptl_handle_any_t first = table.add(10);
  const ptl_handle_any_t second = table.add(20);
  ASSERT_NE(table.find(first), nullptr);
  EXPECT_EQ(*table.find(first), 10);
  EXPECT_EQ(*table.find(second), 20);
  table.remove(first);
  EXPECT_EQ(table.find(first), nullptr);
  EXPECT_EQ(*table.find(second), 20);
  table.remove(first);
  EXPECT_EQ(table.size(), 1u);
}

TEST(Handle, OfAnotherKindOrInterfaceNamesNothing) {
  HandleTable<int> table(Kind::counter, 2, 7);
  const HandleParts parts = decode(table.add(1));
  EXPECT_NE(table.find(encode(parts)), nullptr);
  EXPECT_EQ(table.find(encode({Kind::queue, parts.interface, parts.generation, parts.place})), nullptr);
  EXPECT_EQ(table.find(encode({parts.kind, 1, parts.generation, parts.place})), nullptr);
  EXPECT_EQ(table.find(encode({parts.kind, parts.interface, parts.generation + 1, parts.place})), nullptr);
  EXPECT_EQ(table.find(encode({parts.kind, parts.interface, parts.generation, parts.place + 1})), nullptr);
  for (const ptl_handle_any_t nothing : {ptl_handle_any_t{0}, PTL_EQ_NONE, PTL_CT_NONE, PTL_INVALID_HANDLE}) {
    EXPECT_EQ(table.find(nothing), nullptr);
  }
}

TEST(Handle, AStaleOneNamesNothingWhateverCameAfter) {
  HandleTable<int> table(Kind::entry, 0, 0);
  std::set<ptl_handle_any_t> gone;
  for (int i = 0; i < 1000; ++i) {
    const ptl_handle_any_t handle = table.add(i);
    EXPECT_FALSE(gone.contains(handle));
    table.remove(handle);
    gone.insert(handle);
  }
  for (const ptl_handle_any_t handle : gone) EXPECT_EQ(table.find(handle), nullptr);
}

TEST(Handle, AFullTableSaysSoAndKeepsReservedNumbersBack) {
  HandleTable<uint8_t> table(Kind::memory, 3, generation_last);
  ptl_handle_any_t last = 0;
  for (uint32_t i = 0; i < place_count; ++i) {
    last = table.add(0);
    EXPECT_NE(last, PTL_INVALID_HANDLE);
    EXPECT_NE(last, 0u);
  }
  EXPECT_EQ(table.add(0), PTL_INVALID_HANDLE);
  table.remove(last);
  const ptl_handle_any_t again = table.add(0);
  EXPECT_NE(again, PTL_INVALID_HANDLE);
  EXPECT_NE(again, last);
}

// Tables whose handles come nearest to the reserved numbers.
// Rules: P4F-22.1.
TEST(Handle, NoneIsAReservedNumber) {
  for (const Kind kind : {Kind::descriptor, Kind::entry, Kind::context}) {
    HandleTable<uint8_t> table(kind, interface_count - 1, generation_last - 1);
    for (uint32_t i = 0; i < place_count; ++i) {
      const ptl_handle_any_t handle = table.add(0);
      ASSERT_EQ(decode(handle).generation, generation_last);
      ASSERT_TRUE(handle != PTL_INVALID_HANDLE && handle != PTL_EQ_NONE && handle != PTL_CT_NONE) << handle;
    }
    EXPECT_EQ(table.add(0), PTL_INVALID_HANDLE);
  }
}

}  // namespace
}  // namespace spinloom::calls
