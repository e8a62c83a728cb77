#include "memory/layout/blob_pool.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <iterator>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace spinloom::layout {

struct BlobPool::Table {
  explicit Table(Hash hash_function) : hash(hash_function) {}

  Hash hash;
  std::mutex lock;  // guards the fields below
  std::unordered_multimap<uint64_t, std::weak_ptr<const uint64_t[]>> entries;
};

// Holds a blob's words for the pool's users, and takes them out of the table when the last of them has gone.
struct BlobPool::Release {
  std::weak_ptr<Table> table;
  uint64_t key;
  std::shared_ptr<const uint64_t[]> words;

  void operator()(const uint64_t* /*words*/) const {
    const auto pool = table.lock();
    if (!pool) return;
    const std::lock_guard<std::mutex> guard(pool->lock);
    auto [from, to] = pool->entries.equal_range(key);
    // The words of this release have expired. Words of another release that is under way may be taken out, too.
    while (from != to) from = from->second.expired() ? pool->entries.erase(from) : std::next(from);
  }
};

// Four lanes, so that the multiplications overlap; a blob is a multiple of 8 bytes.
uint64_t BlobPool::hash_of(std::span<const std::byte> bytes) {
  constexpr uint64_t multiplier = 0x9e3779b97f4a7c15U;
  constexpr size_t stripe = 4 * sizeof(uint64_t);
  std::array<uint64_t, 4> lanes = {1, 2, 3, 4};
  const auto mix = [](uint64_t& lane, uint64_t word) { lane = std::rotl((lane ^ word) * multiplier, 29); };
  size_t at = 0;
  for (; at + stripe <= bytes.size(); at += stripe) {
    std::array<uint64_t, 4> words;
    std::memcpy(words.data(), bytes.data() + at, stripe);
    for (size_t i = 0; i < lanes.size(); ++i) mix(lanes[i], words[i]);
  }
  for (; at + sizeof(uint64_t) <= bytes.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof(word));
    mix(lanes[0], word);
  }
  uint64_t hash = bytes.size();
  for (const uint64_t lane : lanes) mix(hash, lane);
  return hash;
}

BlobPool::BlobPool(Hash hash) : table_(std::make_shared<Table>(hash)) {}

Blob BlobPool::intern(const Blob& blob) {
  const uint64_t key = table_->hash(blob.bytes());
  // Destroyed after the lock is released: this may be the last user of a candidate, whose release takes the lock
  // itself.
  std::vector<std::shared_ptr<const uint64_t[]>> candidates;
  const std::lock_guard<std::mutex> guard(table_->lock);
  const auto [from, to] = table_->entries.equal_range(key);
  for (auto entry = from; entry != to; ++entry) {
    candidates.push_back(entry->second.lock());
    if (candidates.back() == nullptr) continue;
    Blob candidate(candidates.back());
    if (candidate.header().bytes == blob.header().bytes &&
        std::memcmp(candidate.data(), blob.data(), blob.header().bytes) == 0) {
      return candidate;
    }
    candidates.back() = std::move(candidate.words_);
  }
  const std::shared_ptr<const uint64_t[]> shared(blob.words_.get(), Release{table_, key, blob.words_});
  table_->entries.emplace(key, shared);
  return Blob(shared);
}

size_t BlobPool::alive_count() const {
  const std::lock_guard<std::mutex> guard(table_->lock);
  return table_->entries.size();
}

BlobPool& BlobPool::process() {
  static BlobPool pool;
  return pool;
}

}  // namespace spinloom::layout
