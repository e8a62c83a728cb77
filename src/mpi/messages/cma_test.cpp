// Copies by system calls, of layouts in a forked child's memory.
#include "mpi/messages/cma.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstddef>
#include <vector>

#include "memory/layout/type.hpp"
#include "memory/peer/testing/two_processes.hpp"

namespace spinloom::mpi {
namespace {

using peer::Child;
using peer::known_value;
using peer::page;
using peer::Pages;

constexpr int numbers = 3'000;  // more than one call takes
constexpr int step = 3;

struct Far {
  // The child's word, and its process.
  uint64_t word = known_value;
  Pages pages{10 * page};
  FormPointer column = make_form(*layout::vector(numbers, 1, step, *layout::primitive("int32_t")));
  FormPointer run = basic_form(sizeof(int32_t), sizeof(int32_t));

  [[nodiscard]] peer::Process open(const Child& child) const {
    peer::Process process;
    EXPECT_EQ(process.open(child.id()), 0);
    return process;
  }
  [[nodiscard]] peer::KnownWord known() const { return {peer::address_of(&word), known_value}; }
  [[nodiscard]] RemotePlace columns() const { return {&column->layout->blob(), 1, pages.address()}; }
  [[nodiscard]] RemotePlace bytes() const { return {nullptr, 0, pages.address()}; }
  [[nodiscard]] int64_t size() const { return column->size; }
};

void fill(const Pages& pages, int32_t value) {
  auto* const all = reinterpret_cast<int32_t*>(pages.start);
  for (size_t i = 0; i < pages.bytes / sizeof *all; ++i) all[i] = value;
}

// The bytes that are written lie in the column, every third number, and nowhere else.
TEST(Cma, WritesALayoutAndReadsItBack) {
  const Far far;
  const Child child([&] { fill(far.pages, -1); });
  ASSERT_TRUE(child.came_up());
  const peer::Process process = far.open(child);
  std::vector<int32_t> own(numbers);
  for (int i = 0; i < numbers; ++i) own[static_cast<size_t>(i)] = i;
  ASSERT_TRUE(write_by_cma(process, far.known(), far.columns(), {*far.run, numbers, own.data()}, far.size()).ok());
  std::vector<int32_t> back(numbers, -2);
  ASSERT_TRUE(read_by_cma(process, far.columns(), {*far.run, numbers, back.data()}, far.size()).ok());
  EXPECT_EQ(back, own);
  constexpr size_t all = size_t{numbers} * step;
  std::vector<int32_t> whole(all, -2);
  const auto bytes = static_cast<int64_t>(all * sizeof(int32_t));
  ASSERT_TRUE(read_by_cma(process, far.bytes(), {*far.run, static_cast<int64_t>(all), whole.data()}, bytes).ok());
  for (size_t i = 0; i < all; ++i) {
    ASSERT_EQ(whole[i], i % step == 0 ? static_cast<int32_t>(i / step) : -1) << i;
  }
}

TEST(Cma, GathersAndScattersAtThisSide) {
  const Far far;
  const Child child([&] { fill(far.pages, -1); });
  ASSERT_TRUE(child.came_up());
  const peer::Process process = far.open(child);
  std::vector<int32_t> own(size_t{numbers} * step, 7);
  for (size_t i = 0; i < own.size(); ++i) own[i] = static_cast<int32_t>(i);
  ASSERT_TRUE(write_by_cma(process, far.known(), far.bytes(), {*far.column, 1, own.data()}, far.size()).ok());
  std::vector<int32_t> back(own.size(), -2);
  ASSERT_TRUE(read_by_cma(process, far.bytes(), {*far.column, 1, back.data()}, far.size()).ok());
  for (size_t i = 0; i < back.size(); ++i) ASSERT_EQ(back[i], i % step == 0 ? static_cast<int32_t>(i) : -2) << i;
}

// The fifth page is not for writing: an error, and nobody is harmed.
TEST(Cma, SaysWhereSomeBytesCannotBeWritten) {
  const Far far;
  const Child child([&] {
    fill(far.pages, -1);
    SPL_ASSERT(mprotect(far.pages.start + 4 * page, page, PROT_READ) == 0, errno);
  });
  ASSERT_TRUE(child.came_up());
  const peer::Process process = far.open(child);
  std::vector<int32_t> own(numbers, 5);
  EXPECT_FALSE(write_by_cma(process, far.known(), far.columns(), {*far.run, numbers, own.data()}, far.size()).ok());
  int32_t last = 0;  // the last number of the column, which lies behind the page
  const RemotePlace place{nullptr, 0, far.pages.address(size_t{numbers - 1} * step * sizeof last)};
  ASSERT_TRUE(read_by_cma(process, place, {*far.run, 1, &last}, sizeof last).ok());
  EXPECT_EQ(last, -1);
}

TEST(Cma, WritesNothingToAProcessThatHasEnded) {
  const Far far;
  Child child([&] { fill(far.pages, -1); });
  ASSERT_TRUE(child.came_up());
  const peer::Process process = far.open(child);
  child.end();
  std::vector<int32_t> own(numbers, 5);
  EXPECT_FALSE(write_by_cma(process, far.known(), far.columns(), {*far.run, numbers, own.data()}, far.size()).ok());
  EXPECT_FALSE(read_by_cma(process, far.columns(), {*far.run, numbers, own.data()}, far.size()).ok());
}

}  // namespace
}  // namespace spinloom::mpi
