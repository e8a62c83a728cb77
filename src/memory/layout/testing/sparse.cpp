// Messages that are too long, or reach too far, to lie in memory.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/checked.hpp"
#include "memory/layout/copy.hpp"
#include "memory/layout/cursor.hpp"
#include "memory/layout/testing/differential.hpp"
#include "memory/layout/testing/place.hpp"
#include "memory/layout/testing/random_types.hpp"
#include "spinloom/segment.h"

namespace spinloom::layout::test {
namespace {

constexpr int64_t gibi2 = int64_t{1} << 31;
constexpr int64_t reach_max = int64_t{1} << 60;  // nothing overflows on the way
constexpr int64_t mapped_max = int64_t{1} << 45;

// Address space without memory: a page takes memory when its first byte is written.
class Sheet {
 public:
  explicit Sheet(int64_t bytes) : bytes_(static_cast<size_t>(bytes)) {
    void* const place =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place != MAP_FAILED) data_ = static_cast<std::byte*>(place);
  }
  Sheet(const Sheet&) = delete;
  Sheet& operator=(const Sheet&) = delete;
  ~Sheet() {
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

bool lie(const Pieces& pieces, int64_t shift, const std::vector<int64_t>& places) {
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
  if (blob.narrow()) {
    spl_walk_narrow(blob.data(), static_cast<uint32_t>(first), static_cast<uint32_t>(bytes), emit_narrow, &pieces);
  } else {
    spl_walk_wide(blob.data(), static_cast<uint64_t>(first), static_cast<uint64_t>(bytes), emit_wide, &pieces);
  }
  return pieces;
}

// Processes from byte 0 on, because a segment cannot seek.
Pieces processed(const Blob& blob, int64_t first, int64_t bytes) {
  Pieces pieces;
  if (blob.narrow()) {
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
bool moves(const Blob& blob, int64_t count, int64_t first, const std::vector<int64_t>& places, std::byte* base,
           Random& random) {
  std::vector<std::byte> sent(places.size());
  for (std::byte& byte : sent) byte = static_cast<std::byte>(1 + random.below(255));
  const auto last = first + static_cast<int64_t>(places.size());
  if (!unpack(blob, count, base, first, last, sent)) return false;
  std::vector<std::byte> again(sent.size());
  for (size_t i = 0; i < places.size(); ++i) again[i] = base[places[i]];
  std::vector<std::byte> packed(sent.size());
  if (!pack(blob, count, base, first, last, packed) || packed != again) return false;
  auto sorted = places;
  std::sort(sorted.begin(), sorted.end());
  const bool apart = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  for (const int64_t place : places) base[place] = std::byte{0};
  for (const int64_t place : places) {  // the neighbours were never touched
    for (const int64_t next : {place - 1, place + 1}) {
      if (base[next] != std::byte{0} && !std::binary_search(sorted.begin(), sorted.end(), next)) return false;
    }
  }
  return !apart || again == sent;
}

// A position near a border: the ends, 2^31 and 2^32 packed bytes, the border between two elements; or any position.
int64_t position_of_interest(Random& random, int64_t element, int64_t total) {
  const std::array<int64_t, 6> interesting = {
      0, total, gibi2, 2 * gibi2, element * random.between(0, total / element), random.between(0, total)};
  return std::clamp<int64_t>(interesting[random.below(6)] + random.between(-200, 50), 0, total);
}

std::string try_blob(const Blob& blob, const Type& message, const Trial& trial, std::byte* base, Random& random) {
  auto cursor = Cursor::open(blob, trial.count);
  if (!cursor) return cursor.error().message;
  const int64_t total = message.size();
  const bool walks = !blob.narrow() || blob.narrow_reaches(trial.count);
  for (int i = 0; i < trial.cuts; ++i) {
    const int64_t first = position_of_interest(random, blob.size(), total);
    const int64_t bytes = std::min(total - first, random.between(1, 200));
    if (bytes == 0) continue;
    std::vector<int64_t> places;
    for (int64_t at = 0; at < bytes; ++at) places.push_back(place_of(message, first + at));
    const auto differs = [&](std::string_view how) {
      return text(blob.narrow() ? "narrow" : "wide", " blob, packed bytes ", first, " to ", first + bytes, ": ", how);
    };
    if (walks && !lie(walked(blob, first, bytes), blob.true_lb(), places)) return differs("the walker");
    if (!lie(stepped(*cursor, first, bytes, random), 0, places)) return differs("the cursor");
    constexpr int64_t catch_up_max = 20'000;
    if (walks && first < catch_up_max && !lie(processed(blob, first, bytes), blob.true_lb(), places)) {
      return differs("the segment");
    }
    if (base != nullptr && !moves(blob, trial.count, first, places, base, random)) return differs("pack or unpack");
  }
  return {};
}

int64_t large_count(Random& random) {
  static constexpr std::array<int64_t, 4> around = {gibi2, 2 * gibi2, 3 * gibi2, int64_t{1} << 20};
  return around[random.below(4)] + random.between(-2, 2);
}

int64_t large_bytes(Random& random) { return (random.chance(1, 4) ? -1 : 1) * large_count(random); }

Result<Type> around(Random& random, const Type& child) {
  const int64_t few = random.between(1, 5);
  switch (random.below(9)) {
    case 0: return contiguous(large_count(random), child);
    case 1: return vector(large_count(random), few, few + random.between(-1, 3), child);
    case 2: return hvector(few, random.between(1, 3), large_bytes(random), child);
    case 3: return hvector(large_count(random), few, few * child.extent() + random.between(0, 9), child);
    case 4: return resized(random.between(-9, 9), large_bytes(random), child);
    case 5: {
      std::vector<int64_t> at;
      for (int64_t i = 0; i < few; ++i) at.push_back(random.between(-3, 3) * gibi2 + random.between(0, 999));
      return hindexed_block(random.between(1, 3), std::move(at), child);
    }
    case 6: {
      std::vector<int64_t> at;
      std::vector<int64_t> lengths;
      for (int64_t i = 0; i < few; ++i) {
        at.push_back(random.between(-3, 3) * gibi2);
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
      DarrayArguments given;
      given.processes = 6;
      given.rank = random.between(0, 5);
      given.sizes = std::vector<int64_t>{random.between(30'000, 90'000), random.between(30'000, 90'000)};
      given.grid = std::vector<int64_t>{2, 3};
      given.distributions = {Distribution::cyclic, random.chance(1, 2) ? Distribution::block : Distribution::cyclic};
      given.arguments = {random.between(1, 50'000), darray_default};
      given.order = random.chance(1, 2) ? Order::c : Order::fortran;
      return darray(given, child);
    }
  }
}

}  // namespace

std::string sparse(const Type& built, const Type& told, const Trial& trial) {
  Random random(trial.seed, "sparse");
  const auto message = contiguous(trial.count, told);
  if (!message) return message.error().message;
  if (message->size() == 0) return {};
  const auto blob = Blob::build(built, {random.chance(1, 2) ? Width::automatic : Width::wide, 1});
  if (!blob) return blob.error().message;
  if (blob->size() != told.size() || blob->extent() != told.extent() || blob->true_lb() != told.true_lb() ||
      blob->true_extent() != told.true_extent()) {
    return "size or bounds in the blob's header";
  }
  constexpr int64_t guard = 4096;
  const int64_t span = message->true_extent() + 2 * guard;
  std::optional<Sheet> sheet;
  if (span < mapped_max) sheet.emplace(span);
  std::byte* const base = sheet && sheet->data() != nullptr ? sheet->data() + guard - message->true_lb() : nullptr;
  return try_blob(*blob, *message, trial, base, random);
}

Type random_sparse_type(Random& random) {
  for (;;) {
    Type type = random_type(random, random.between(0, 2), 40);
    const int64_t levels = random.between(1, 3);
    bool made = type.size() > 0;
    for (int64_t level = 0; made && level < levels; ++level) {
      auto next = around(random, type);
      made = next && next->size() > 0 && next->size() < reach_max && next->true_extent() < reach_max &&
             std::abs(next->extent()) < reach_max && std::abs(next->true_lb()) < reach_max;
      if (made) type = *next;
    }
    if (made && (type.true_extent() >= gibi2 || type.extent() >= gibi2)) return type;
  }
}

}  // namespace spinloom::layout::test
