// Shared memory of files is found by its place, by the system's query and in its text; private memory has none.
#include "mpi/meeting/mappings.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>

namespace spinloom::mpi {
namespace {

constexpr size_t bytes = 64 << 10;

uint64_t address_of(const std::byte* memory) { return reinterpret_cast<uint64_t>(memory); }

class Mappings : public testing::TestWithParam<MapsBy> {
 protected:
  void SetUp() override {
    if (GetParam() == MapsBy::query && maps_by() != MapsBy::query) GTEST_SKIP() << "this system has no such query";
  }
  [[nodiscard]] static SharedPlace place_of(const std::byte* memory, uint64_t length) {
    return shared_place_of(address_of(memory), length, GetParam());
  }
  [[nodiscard]] static std::byte* mapped_now(const SharedPlace& place, uint64_t length) {
    return SharedMappings(0, GetParam()).find(place, length);
  }
};

TEST_P(Mappings, MemoryOfOneFileIsFoundByItsPlace) {
  const int file = memfd_create("mappings", 0);
  ASSERT_EQ(ftruncate(file, bytes), 0);
  auto* const first = static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  ASSERT_NE(static_cast<void*>(first), MAP_FAILED);
  constexpr size_t skipped = 10'000;
  const SharedPlace place = place_of(first + skipped, 100);
  ASSERT_NE(place.inode, 0U);
  EXPECT_EQ(place.offset, skipped);
  EXPECT_EQ(mapped_now(place, bytes - skipped), first + skipped);
  EXPECT_EQ(mapped_now(place, bytes - skipped + 1), nullptr);
  EXPECT_EQ(place_of(first + skipped, bytes - skipped + 1).inode, 0U);

  auto* const second = static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  ASSERT_NE(static_cast<void*>(second), MAP_FAILED);
  munmap(first, bytes);
  EXPECT_EQ(mapped_now(place, 100), second + skipped);
  munmap(second, bytes);
  EXPECT_EQ(mapped_now(place, 100), nullptr);
  close(file);
}

TEST_P(Mappings, OneObjectFindsManyPlacesFromAnyAddressOn) {
  constexpr int count = 5;
  std::array<std::byte*, count> here{};
  std::array<SharedPlace, count> places;
  for (size_t i = 0; i < count; ++i) {
    const int file = memfd_create("mappings", 0);
    ASSERT_EQ(ftruncate(file, bytes), 0);
    here[i] = static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    ASSERT_NE(static_cast<void*>(here[i]), MAP_FAILED);
    places[i] = place_of(here[i], bytes);
    close(file);
  }
  for (const uint64_t near : {uint64_t{0}, address_of(here[2]), uint64_t{1} << 47}) {
    SharedMappings mappings(near, GetParam());
    for (const size_t i : {size_t{2}, size_t{4}, size_t{0}, size_t{2}, size_t{1}, size_t{3}})
      EXPECT_EQ(mappings.find(places[i], bytes), here[i]) << i << " near " << near;
    EXPECT_EQ(mappings.find({places[0].device, places[0].inode, bytes}, 1), nullptr);
  }
  for (std::byte* const each : here) munmap(each, bytes);
}

TEST_P(Mappings, PrivateMemoryHasNoPlace) {
  auto* const memory =
      static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(static_cast<void*>(memory), MAP_FAILED);
  EXPECT_EQ(place_of(memory, bytes).inode, 0U);
  EXPECT_EQ(mapped_now(SharedPlace{}, bytes), nullptr);
  munmap(memory, bytes);
}

TEST_P(Mappings, MemoryThatIsOnlyReadHasNoPlace) {
  const int file = memfd_create("mappings", 0);
  ASSERT_EQ(ftruncate(file, bytes), 0);
  auto* const memory = static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0));
  ASSERT_NE(static_cast<void*>(memory), MAP_FAILED);
  EXPECT_EQ(place_of(memory, bytes).inode, 0U);
  munmap(memory, bytes);
  close(file);
}

TEST(MappingsBy, BothWaysFindTheSamePlace) {
  const int file = memfd_create("mappings", 0);
  ASSERT_EQ(ftruncate(file, bytes), 0);
  auto* const memory = static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  ASSERT_NE(static_cast<void*>(memory), MAP_FAILED);
  const SharedPlace by_text = shared_place_of(address_of(memory), bytes, MapsBy::text);
  const SharedPlace by_best = shared_place_of(address_of(memory), bytes);
  EXPECT_EQ(by_text.inode, by_best.inode);
  EXPECT_EQ(by_text.device, by_best.device);
  EXPECT_EQ(by_text.offset, by_best.offset);
  munmap(memory, bytes);
  close(file);
}

INSTANTIATE_TEST_SUITE_P(BothWays, Mappings, testing::Values(MapsBy::query, MapsBy::text));

}  // namespace
}  // namespace spinloom::mpi
