#include "memory/layout/testing/differential.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "memory/layout/copy.hpp"
#include "memory/layout/cursor.hpp"
#include "memory/layout/segment.hpp"
#include "memory/layout/testing/place.hpp"
#include "memory/layout/testing/random_types.hpp"

namespace spinloom::layout::test {
namespace {

using Bytes = std::vector<std::byte>;

void fill(Random& random, Bytes& bytes) {
  for (size_t at = 0; at < bytes.size(); at += 8) {
    const uint64_t word = random.next();
    std::memcpy(&bytes[at], &word, std::min<size_t>(8, bytes.size() - at));
  }
}

struct Cut {
  int64_t first = 0;
  int64_t last = 0;
  [[nodiscard]] int64_t bytes() const { return last - first; }
};

// The places of the packed bytes of a cut, and how many have come so far.
struct Expected {
  const int64_t* places;  // places of the cut's bytes, relative to the first touched byte
  int64_t bytes;
  int64_t seen_bytes = 0;
  bool is_wrong = false;

  void add_piece(int64_t offset, int64_t at, int64_t length) {
    is_wrong = is_wrong || at != seen_bytes || length <= 0 || length > bytes - at;
    for (int64_t i = 0; !is_wrong && i < length; ++i) is_wrong = places[at + i] != offset + i;
    seen_bytes += length;
  }
  [[nodiscard]] bool is_complete() const { return !is_wrong && seen_bytes == bytes; }
};

void emit_narrow(void* context, int32_t offset, uint32_t packed, uint32_t bytes) {
  static_cast<Expected*>(context)->add_piece(offset, packed, bytes);
}
void emit_wide(void* context, int64_t offset, uint64_t packed, uint64_t bytes) {
  static_cast<Expected*>(context)->add_piece(offset, static_cast<int64_t>(packed), static_cast<int64_t>(bytes));
}

// A segment of either width that is kept from cut to cut.
class AnySegment {
 public:
  explicit AnySegment(const Blob& blob) : blob_(blob) {
    if (blob.is_narrow()) {
      spl_segment_init_narrow(&narrow_, blob.data());
    } else {
      spl_segment_init_wide(&wide_, blob.data());
    }
  }
  void manipulate(const Cut& cut, Expected& expected) {
    if (blob_.is_narrow()) {
      spl_segment_manipulate_narrow(&narrow_, blob_.data(), static_cast<uint32_t>(cut.first),
                                    static_cast<uint32_t>(cut.last), emit_narrow, &expected);
    } else {
      spl_segment_manipulate_wide(&wide_, blob_.data(), static_cast<uint64_t>(cut.first),
                                  static_cast<uint64_t>(cut.last), emit_wide, &expected);
    }
  }

 private:
  const Blob& blob_;
  spl_segment_narrow narrow_{};
  spl_segment_wide wide_{};
};

void walk(const Blob& blob, const Cut& cut, Expected& expected) {
  if (blob.is_narrow()) {
    spl_walk_narrow(blob.data(), static_cast<uint32_t>(cut.first), static_cast<uint32_t>(cut.bytes()), emit_narrow,
                    &expected);
  } else {
    spl_walk_wide(blob.data(), static_cast<uint64_t>(cut.first), static_cast<uint64_t>(cut.bytes()), emit_wide,
                  &expected);
  }
}

// The cursor's offsets count from the buffer address.
bool cursor_agrees(Cursor& cursor, const Cut& cut, int64_t true_lb, Random& random, Expected& expected) {
  if (!cursor.seek(cut.first)) return false;
  while (expected.seen_bytes < cut.bytes()) {
    const Piece piece = cursor.next(std::min(cut.bytes() - expected.seen_bytes, random.between(1, 64)));
    if (piece.bytes == 0) return false;
    expected.add_piece(piece.offset - true_lb, expected.seen_bytes, piece.bytes);
  }
  return expected.is_complete() && cursor.position() == cut.last;
}

std::string differs(const Blob& blob, const Cut& cut, std::string_view how) {
  return text(blob.is_narrow() ? "narrow" : "wide", " blob, packed bytes ", cut.first, " to ", cut.last, ": ", how);
}

std::string compare_header(const Blob& blob, const Type& reference) {
  if (blob.size() == reference.size() && blob.extent() == reference.extent() && blob.true_lb() == reference.true_lb() &&
      blob.true_extent() == reference.true_extent()) {
    return {};
  }
  return "size or bounds in the blob's header";
}

// A message in memory between guards, and the bytes that it must hold.
class Arena {
 public:
  Arena(const Type& reference, int64_t count, Random& random) : map_(byte_map(reference, count)) {
    constexpr int64_t guard = 64;
    const oracle::Reach reach = oracle::reach(reference, count);
    base_ = guard + random.between(0, 15) - reach.first;
    before_.resize(static_cast<size_t>(base_ + reach.last + guard));
    fill(random, before_);
    memory_ = before_;
    message_.resize(map_.size());
    writers_.resize(before_.size());
    for (const int64_t offset : map_) overlaps_ |= ++writers_[index(offset)] > 1;
  }

  [[nodiscard]] int64_t total() const { return static_cast<int64_t>(map_.size()); }
  // Places relative to the first touched byte.
  [[nodiscard]] std::vector<int64_t> places(int64_t true_lb) const {
    std::vector<int64_t> out = map_;
    for (int64_t& place : out) place -= true_lb;
    return out;
  }

  bool check_pack(const Blob& blob, int64_t count, const Cut& cut) {
    const std::span<std::byte> packed(message_.data(), static_cast<size_t>(cut.bytes()));
    if (!pack(blob, count, memory_.data() + base_, cut.first, cut.last, packed)) return false;
    for (int64_t i = 0; i < cut.bytes(); ++i) {
      if (packed[static_cast<size_t>(i)] != before_[index(at(cut.first + i))]) return false;
    }
    return memory_ == before_;
  }

  // If a type writes a byte twice, MPI defines no result: any of the bytes written there is accepted.
  bool check_unpack(const Blob& blob, int64_t count, const Cut& cut, Random& random) {
    const size_t bytes = static_cast<size_t>(cut.bytes());
    for (size_t i = 0; i < bytes; i += 8) {
      const uint64_t word = random.next();
      std::memcpy(&message_[i], &word, std::min<size_t>(8, bytes - i));
    }
    const std::span<const std::byte> packed(message_.data(), bytes);
    if (!unpack(blob, count, memory_.data() + base_, cut.first, cut.last, packed)) return false;
    int64_t landed = 0;
    for (size_t i = 0; i < bytes; ++i) {
      landed += memory_[index(at(cut.first + static_cast<int64_t>(i)))] == packed[i] ? 1 : 0;
    }
    const bool right = overlaps_ ? has_each_byte(cut, packed) : landed == cut.bytes();
    for (int64_t i = cut.first; i < cut.last; ++i) memory_[index(at(i))] = before_[index(at(i))];
    return right && memory_ == before_;
  }

 private:
  [[nodiscard]] int64_t at(int64_t position) const { return map_[static_cast<size_t>(position)]; }
  [[nodiscard]] size_t index(int64_t offset) const { return static_cast<size_t>(base_ + offset); }

  bool has_each_byte(const Cut& cut, std::span<const std::byte> packed) const {
    std::vector<int64_t> missing;
    std::vector<int64_t> arrived;
    for (int64_t i = cut.first; i < cut.last; ++i) {
      const bool here = memory_[index(at(i))] == packed[static_cast<size_t>(i - cut.first)];
      (here ? arrived : missing).push_back(at(i));
    }
    std::sort(arrived.begin(), arrived.end());
    return std::all_of(missing.begin(), missing.end(),
                       [&](int64_t offset) { return std::binary_search(arrived.begin(), arrived.end(), offset); });
  }

  std::vector<int64_t> map_;
  Bytes before_;
  Bytes memory_;
  Bytes message_;
  std::vector<uint16_t> writers_;
  int64_t base_ = 0;
  bool overlaps_ = false;
};

Cut random_cut(Random& random, int64_t total) {
  const int64_t a = random.between(0, total);
  const int64_t b = random.chance(1, 4) ? random.between(0, total) : std::min(total, a + random.between(0, 70));
  return {std::min(a, b), std::max(a, b)};
}

std::string try_blob(const Blob& blob, const Trial& trial, Arena& arena, Random& random) {
  const std::vector<int64_t> places = arena.places(blob.true_lb());
  auto cursor = Cursor::open(blob, trial.count);
  if (!cursor) return cursor.error().message;
  AnySegment segment(blob);
  for (int i = 0; i < trial.cuts; ++i) {
    const Cut cut = i == 0 ? Cut{0, arena.total()} : random_cut(random, arena.total());
    const Expected expected{places.data() + cut.first, cut.bytes()};
    Expected walked = expected;
    Expected stepped = expected;
    Expected processed = expected;
    walk(blob, cut, walked);
    if (!walked.is_complete()) return differs(blob, cut, "the walker");
    if (!cursor_agrees(*cursor, cut, blob.true_lb(), random, stepped)) return differs(blob, cut, "the cursor");
    segment.manipulate(cut, processed);
    if (!processed.is_complete()) return differs(blob, cut, "the segment");
    if (!arena.check_pack(blob, trial.count, cut)) return differs(blob, cut, "pack");
    if (!arena.check_unpack(blob, trial.count, cut, random)) return differs(blob, cut, "unpack");
  }
  return {};
}

}  // namespace

std::string check_dense(const Type& built, const Type& reference, const Trial& trial) {
  Random random(trial.seed, "dense");
  Arena arena(reference, trial.count, random);
  for (const Width width : {Width::narrow, Width::wide}) {
    constexpr int64_t narrow_max = (int64_t{1} << 31) / 8;  // an empty message may have any extent
    if (width == Width::narrow && std::abs(reference.extent()) > narrow_max) continue;
    const auto blob = Blob::build(built, {width, trial.count});
    if (!blob) return blob.error().message;
    if (std::string found = compare_header(*blob, reference); !found.empty()) return found;
    if (std::string found = try_blob(*blob, trial, arena, random); !found.empty()) return found;
  }
  return {};
}

}  // namespace spinloom::layout::test
