// Sharing of identical blobs: by bytes, among threads, and gone when nobody needs them.
#include "memory/layout/blob_pool.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "memory/layout/testing/random_types.hpp"

namespace spinloom::layout {
namespace {

Blob blob_of(const char* source) { return *Blob::build(test::must_parse(source)); }

TEST(BlobPool, IdenticalTypesShareOneBlob) {
  BlobPool pool;
  const Blob written = pool.intern(blob_of("contig(3, vector(2, 1, 3, int))"));
  const Blob again = pool.intern(blob_of("contig(3, vector(2, 1, 3, int))"));
  const Blob otherwise = pool.intern(blob_of("contig(3, hvector(2, 4, 12B, byte))"));
  const Blob other = pool.intern(blob_of("contig(4, vector(2, 1, 3, int))"));
  EXPECT_EQ(again.data(), written.data());
  EXPECT_EQ(otherwise.data(), written.data());
  EXPECT_NE(other.data(), written.data());
  EXPECT_EQ(pool.alive_count(), 2u);
  EXPECT_EQ(pool.intern(written).data(), written.data());
}

TEST(BlobPool, HoldsNothingAlive) {
  BlobPool pool;
  {
    const Blob kept = pool.intern(blob_of("vector(2, 1, 3, int)"));
    const Blob copy = kept;
    EXPECT_EQ(pool.alive_count(), 1u);
  }
  EXPECT_EQ(pool.alive_count(), 0u);
}

TEST(BlobPool, BlobsMayOutliveIt) {
  std::vector<Blob> kept;
  {
    BlobPool pool;
    kept.push_back(pool.intern(blob_of("vector(2, 1, 3, int)")));
  }
  EXPECT_EQ(kept[0].size(), 8);
}

TEST(BlobPool, BytesDecideWhereHashesAgree) {
  BlobPool pool([](std::span<const std::byte>) -> uint64_t { return 7; });
  std::vector<Blob> kept;
  for (int64_t count = 2; count < 50; ++count) {
    kept.push_back(pool.intern(*Blob::build(*vector(count, 1, 3, *primitive("int")))));
  }
  EXPECT_EQ(pool.alive_count(), kept.size());
  for (int64_t count = 2; count < 50; ++count) {
    const Blob again = pool.intern(*Blob::build(*vector(count, 1, 3, *primitive("int"))));
    EXPECT_EQ(again.data(), kept[static_cast<size_t>(count - 2)].data());
  }
  kept.clear();
  EXPECT_EQ(pool.alive_count(), 0u);
}

TEST(BlobPool, HashesDependOnEveryWord) {
  const Blob blob = blob_of("idxblock(1, rand(1, 1000, 37), double)");
  std::vector<std::byte> bytes(blob.bytes().begin(), blob.bytes().end());
  const uint64_t hash = BlobPool::hash_of(bytes);
  for (std::byte& byte : bytes) {
    byte ^= std::byte{1};
    EXPECT_NE(BlobPool::hash_of(bytes), hash);
    byte ^= std::byte{1};
  }
  EXPECT_EQ(BlobPool::hash_of(bytes), hash);
}

TEST(BlobPool, ThreadsShareToo) {
  BlobPool pool;
  constexpr int64_t kinds = 20;
  std::vector<Blob> first;
  for (int64_t kind = 0; kind < kinds / 2; ++kind) {  // half of them stay alive, half come and go
    first.push_back(pool.intern(*Blob::build(*vector(kind + 2, 1, 3, *primitive("int")))));
  }
  std::vector<std::thread> threads;
  std::vector<int64_t> wrong(4);
  for (size_t thread = 0; thread < wrong.size(); ++thread) {
    threads.emplace_back([&, thread] {
      Random random(thread, "blob_pool");
      for (int round = 0; round < 3000; ++round) {
        const int64_t kind = random.between(0, kinds - 1);
        const Blob built = *Blob::build(*vector(kind + 2, 1, 3, *primitive("int")));
        const Blob shared = pool.intern(built);
        const bool known = kind < kinds / 2;
        wrong[thread] += shared.size() != built.size() ? 1 : 0;
        wrong[thread] += known && shared.data() != first[static_cast<size_t>(kind)].data() ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int64_t>(4));
  EXPECT_EQ(pool.alive_count(), first.size());
}

}  // namespace
}  // namespace spinloom::layout
