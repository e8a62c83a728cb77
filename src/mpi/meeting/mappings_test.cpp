// Shared memory of files is found by its place; private memory has none.
#include "mpi/meeting/mappings.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace spinloom::mpi {
namespace {

constexpr size_t bytes = 64 << 10;

uint64_t address_of(const std::byte* memory) { return reinterpret_cast<uint64_t>(memory); }

TEST(Mappings, MemoryOfOneFileIsFoundByItsPlace) {
  const int file = memfd_create("mappings", 0);
  ASSERT_EQ(ftruncate(file, bytes), 0);
  auto* const first = static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  ASSERT_NE(static_cast<void*>(first), MAP_FAILED);
  constexpr size_t skipped = 10'000;
  const SharedPlace place = shared_place_of(address_of(first + skipped), 100);
  ASSERT_NE(place.inode, 0U);
  EXPECT_EQ(place.offset, skipped);
  EXPECT_EQ(mapped_here(place, bytes - skipped), first + skipped);
  EXPECT_EQ(mapped_here(place, bytes - skipped + 1), nullptr);
  EXPECT_EQ(shared_place_of(address_of(first + skipped), bytes - skipped + 1).inode, 0U);

  auto* const second = static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  ASSERT_NE(static_cast<void*>(second), MAP_FAILED);
  munmap(first, bytes);
  EXPECT_EQ(mapped_here(place, 100), second + skipped);
  munmap(second, bytes);
  EXPECT_EQ(mapped_here(place, 100), nullptr);
  close(file);
}

TEST(Mappings, PrivateMemoryHasNoPlace) {
  auto* const memory =
      static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(static_cast<void*>(memory), MAP_FAILED);
  EXPECT_EQ(shared_place_of(address_of(memory), bytes).inode, 0U);
  EXPECT_EQ(mapped_here(SharedPlace{}, bytes), nullptr);
  munmap(memory, bytes);
}

}  // namespace
}  // namespace spinloom::mpi
