// Messages that are too long, or reach too far, to lie in memory.
#include "memory/layout/testing/sparse.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/checked.hpp"
#include "memory/layout/copy.hpp"
#include "memory/layout/cursor.hpp"
#include "memory/layout/testing/place.hpp"
#include "memory/layout/testing/random_types.hpp"
#include "spinloom/segment.h"

namespace spinloom::layout::test {
namespace {

constexpr int64_t two_gibi = int64_t{1} << 31;
constexpr int64_t reach_max = int64_t{1} << 60;  // nothing overflows on the way
constexpr int64_t mapped_max = int64_t{1} << 45;

// Address space without memory: a page takes memory when its first byte is written.
class SparseMemory {
 public:
  explicit SparseMemory(int64_t bytes) : bytes_(static_cast<size_t>(bytes)) {
    void* const place =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place != MAP_FAILED) data_ = static_cast<std::byte*>(place);
  }
  SparseMemory(const SparseMemory&) = delete;
  SparseMemory& operator=(const SparseMemory&) = delete;
  ~SparseMemory() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  [[nodiscard]] std::byte* data() const { return data_; }  // null: the system has none to give

 private:
  size_t bytes_;
  std::byte* data_ = nullptr;
};

struct Pieces {
  std::vector<Piece> list;
};

void emit_narrow(void* context, int32_t offset, uint32_t, uint32_t bytes) {
  static_cast<Pieces*>(context)->list.push_back({offset, bytes});
}
void emit_wide(void* context, int64_t offset, uint64_t, uint64_t bytes) {
  static_cast<Pieces*>(context)->list.push_back({offset, static_cast<int64_t>(bytes)});
}

bool have_places(const Pieces& pieces, int64_t shift, const std::vector<int64_t>& places) {
  size_t at = 0;
  for (const Piece& piece : pieces.list) {
    for (int64_t i = 0; i < piece.bytes; ++i, ++at) {
      if (at >= places.size() || places[at] != piece.offset + shift + i) return false;
    }
  }
  return at == places.size();
}

Pieces walked(const Blob& blob, int64_t first, int64_t bytes) {
  Pieces pieces;
  if (blob.is_narrow()) {
    spl_walk_narrow(blob.data(), static_cast<uint32_t>(first), static_cast<uint32_t>(bytes), emit_narrow, &pieces);
  } else {
    spl_walk_wide(blob.data(), static_cast<uint64_t>(first), static_cast<uint64_t>(bytes), emit_wide, &pieces);
  }
  return pieces;
}

// Processes from byte 0 on, because a segment cannot seek.
Pieces processed(const Blob& blob, int64_t first, int64_t bytes) {
  Pieces pieces;
  if (blob.is_narrow()) {
    spl_segment_narrow segment{};
    spl_segment_init_narrow(&segment, blob.data());
    spl_segment_manipulate_narrow(&segment, blob.data(), static_cast<uint32_t>(first),
                                  static_cast<uint32_t>(first + bytes), emit_narrow, &pieces);
  } else {
    spl_segment_wide segment{};
    spl_segment_init_wide(&segment, blob.data());
    spl_segment_manipulate_wide(&segment, blob.data(), static_cast<uint64_t>(first),
                                static_cast<uint64_t>(first + bytes), emit_wide, &pieces);
  }
  return pieces;
}

Pieces stepped(Cursor& cursor, int64_t first, int64_t bytes, Random& random) {
  Pieces pieces;
  if (!cursor.seek(first)) return pieces;
  for (int64_t at = 0; at < bytes;) {
    const Piece piece = cursor.next(std::min(bytes - at, random.between(1, 64)));
    if (piece.bytes == 0) break;
    pieces.list.push_back(piece);
    at += piece.bytes;
  }
  return pieces;
}

// Packs and unpacks a cut. True as well where the system has no address space for the message.
bool check_copies(const Blob& blob, int64_t count, int64_t first, const std::vector<int64_t>& places, std::byte* base,
                  Random& random) {
  std::vector<std::byte> sent(places.size());
  for (std::byte& byte : sent) byte = static_cast<std::byte>(1 + random.below(255));
  const auto last = first + static_cast<int64_t>(places.size());
  if (!unpack(blob, count, base, first, last, sent)) return false;
  std::vector<std::byte> read_back(sent.size());
  for (size_t i = 0; i < places.size(); ++i) read_back[i] = base[places[i]];
  std::vector<std::byte> packed(sent.size());
  if (!pack(blob, count, base, first, last, packed) || packed != read_back) return false;
  auto sorted = places;
  std::sort(sorted.begin(), sorted.end());
  const bool are_disjoint = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  for (const int64_t place : places) base[place] = std::byte{0};
  for (const int64_t place : places) {  // the neighbours were never touched
    for (const int64_t next : {place - 1, place + 1}) {
      if (base[next] != std::byte{0} && !std::binary_search(sorted.begin(), sorted.end(), next)) return false;
    }
  }
  return !are_disjoint || read_back == sent;
}

// A position near a border: the ends, 2^31 and 2^32 packed bytes, the border between two elements; or any position.
int64_t position_of_interest(Random& random, int64_t element, int64_t total) {
  const std::array<int64_t, 6> interesting = {
      0, total, two_gibi, 2 * two_gibi, element * random.between(0, total / element), random.between(0, total)};
  return std::clamp<int64_t>(interesting[random.below(6)] + random.between(-200, 50), 0, total);
}

std::string try_blob(const Blob& blob, const Type& message, const Trial& trial, std::byte* base, Random& random) {
  auto cursor = Cursor::open(blob, trial.count);
  if (!cursor) return cursor.error().message;
  const int64_t total = message.size();
  const bool reaches = !blob.is_narrow() || blob.narrow_reaches(trial.count);
  for (int i = 0; i < trial.cuts; ++i) {
    const int64_t first = position_of_interest(random, blob.size(), total);
    const int64_t bytes = std::min(total - first, random.between(1, 200));
    if (bytes == 0) continue;
    std::vector<int64_t> places;
    for (int64_t at = 0; at < bytes; ++at) places.push_back(place_of(message, first + at));
    const auto differs = [&](std::string_view how) {
      return text(blob.is_narrow() ? "narrow" : "wide", " blob, packed bytes ", first, " to ", first + bytes, ": ",
                  how);
    };
    if (reaches && !have_places(walked(blob, first, bytes), blob.true_lb(), places)) return differs("the walker");
    if (!have_places(stepped(*cursor, first, bytes, random), 0, places)) return differs("the cursor");
    constexpr int64_t catch_up_max = 20'000;
    if (reaches && first < catch_up_max && !have_places(processed(blob, first, bytes), blob.true_lb(), places)) {
      return differs("the segment");
    }
    if (base != nullptr && !check_copies(blob, trial.count, first, places, base, random))
      return differs("pack or unpack");
  }
  return {};
}

int64_t large_count(Random& random) {
  static constexpr std::array<int64_t, 4> borders = {two_gibi, 2 * two_gibi, 3 * two_gibi, int64_t{1} << 20};
  return borders[random.below(4)] + random.between(-2, 2);
}

int64_t large_bytes(Random& random) { return (random.chance(1, 4) ? -1 : 1) * large_count(random); }

Result<Type> wrap(Random& random, const Type& child) {
  const int64_t few = random.between(1, 5);
  switch (random.below(9)) {
    case 0: return contiguous(large_count(random), child);
    case 1: return vector(large_count(random), few, few + random.between(-1, 3), child);
    case 2: return hvector(few, random.between(1, 3), large_bytes(random), child);
    case 3: return hvector(large_count(random), few, few * child.extent() + random.between(0, 9), child);
    case 4: return resized(random.between(-9, 9), large_bytes(random), child);
    case 5: {
      std::vector<int64_t> at;
      for (int64_t i = 0; i < few; ++i) at.push_back(random.between(-3, 3) * two_gibi + random.between(0, 999));
      return hindexed_block(random.between(1, 3), std::move(at), child);
    }
    case 6: {
      std::vector<int64_t> at;
      std::vector<int64_t> lengths;
      for (int64_t i = 0; i < few; ++i) {
        at.push_back(random.between(-3, 3) * two_gibi);
        lengths.push_back(random.chance(1, 3) ? large_count(random) : random.between(0, 3));
      }
      return structure(std::move(at), std::move(lengths), std::vector<Type>(static_cast<size_t>(few), child));
    }
    case 7: {
      const int64_t rows = random.between(1, 70'000);
      const int64_t columns = random.between(40'000, 80'000);
      return subarray(std::vector<int64_t>{80'000, 80'000}, std::vector<int64_t>{rows, columns},
                      std::vector<int64_t>{80'000 - rows, random.between(0, 80'000 - columns)},
                      random.chance(1, 2) ? Order::c : Order::fortran, child);
    }
    default: {
      DarrayArguments arguments;
      arguments.processes = 6;
      arguments.rank = random.between(0, 5);
      arguments.sizes = std::vector<int64_t>{random.between(30'000, 90'000), random.between(30'000, 90'000)};
      arguments.grid = std::vector<int64_t>{2, 3};
      arguments.distributions = {Distribution::cyclic,
                                 random.chance(1, 2) ? Distribution::block : Distribution::cyclic};
      arguments.distribution_arguments = {random.between(1, 50'000), darray_default};
      arguments.order = random.chance(1, 2) ? Order::c : Order::fortran;
      return darray(arguments, child);
    }
  }
}

}  // namespace

std::string check_sparse(const Type& built, const Type& reference, const Trial& trial) {
  Random random(trial.seed, "sparse");
  const auto message = contiguous(trial.count, reference);
  if (!message) return message.error().message;
  if (message->size() == 0) return {};
  const auto blob = Blob::build(built, {random.chance(1, 2) ? Width::automatic : Width::wide, 1});
  if (!blob) return blob.error().message;
  if (blob->size() != reference.size() || blob->extent() != reference.extent() ||
      blob->true_lb() != reference.true_lb() || blob->true_extent() != reference.true_extent()) {
    return "size or bounds in the blob's header";
  }
  constexpr int64_t guard = 4096;
  const int64_t span = message->true_extent() + 2 * guard;
  std::optional<SparseMemory> memory;
  if (span < mapped_max) memory.emplace(span);
  std::byte* const base = memory && memory->data() != nullptr ? memory->data() + guard - message->true_lb() : nullptr;
  return try_blob(*blob, *message, trial, base, random);
}

Type random_sparse_type(Random& random) {
  for (;;) {
    Type type = random_type(random, random.between(0, 2), 40);
    const int64_t levels = random.between(1, 3);
    bool is_made = type.size() > 0;
    for (int64_t level = 0; is_made && level < levels; ++level) {
      auto next = wrap(random, type);
      is_made = next && next->size() > 0 && next->size() < reach_max && next->true_extent() < reach_max &&
                std::abs(next->extent()) < reach_max && std::abs(next->true_lb()) < reach_max;
      if (is_made) type = *next;
    }
    if (is_made && (type.true_extent() >= two_gibi || type.extent() >= two_gibi)) return type;
  }
}

}  // namespace spinloom::layout::test
