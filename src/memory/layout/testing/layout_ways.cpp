#include "memory/layout/testing/layout_ways.hpp"

#include <errno.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

#include "memory/layout/oracle.hpp"
#include "memory/layout/testing/random_layouts.hpp"
#include "memory/layout/testing/random_types.hpp"
#include "memory/layout/testing/shrink.hpp"
#include "memory/layout/text.hpp"

namespace spinloom::layout::test {
namespace {

constexpr int64_t guard = 128;

enum class Damage : uint8_t { none, skipped, stray, source };

uint64_t number_from(const char* name, uint64_t otherwise) {
  const char* const given = std::getenv(name);
  return given == nullptr ? otherwise : std::strtoull(given, nullptr, 10);
}

// Memory that begins at a multiple of 64, full of noise.
class Noise {
 public:
  Noise(Random& random, int64_t bytes) : bytes_(static_cast<size_t>(bytes)) {
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(64, (bytes_ + 127) / 64 * 64)));
    for (size_t at = 0; at < bytes_; at += sizeof(uint64_t)) {
      const uint64_t word = random.next();
      std::memcpy(data_.get() + at, &word, std::min(sizeof word, bytes_ - at));
    }
  }
  [[nodiscard]] std::span<std::byte> all() const { return {data_.get(), bytes_}; }

 private:
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  std::unique_ptr<std::byte[], Free> data_;
  size_t bytes_;
};

// A side in memory: where each packed byte lies, what lies there, and what must lie there.
class Place {
 public:
  Place(Random& random, const Side& side, int64_t bytes)
      : is_packed_(side.is_packed()),
        base_(guard + random.between(0, 15) - (is_packed_ ? 0 : oracle::reach(*side.type, side.count).first)),
        places_(is_packed_ ? std::vector<int64_t>() : byte_map(*side.type, side.count)),
        noise_(random, base_ + (is_packed_ ? bytes : oracle::reach(*side.type, side.count).last) + guard),
        expected_(noise_.all().begin(), noise_.all().end()) {
    if (is_packed_) {
      for (int64_t i = 0; i < bytes; ++i) places_.push_back(i);
    }
    std::vector<bool> written(expected_.size());
    for (int64_t& place : places_) {
      place += base_;
      overlaps_ |= written[static_cast<size_t>(place)];
      written[static_cast<size_t>(place)] = true;
    }
  }

  [[nodiscard]] int64_t bytes() const { return static_cast<int64_t>(expected_.size()); }
  [[nodiscard]] bool overlaps() const { return overlaps_; }
  [[nodiscard]] Buffer buffer(const Cut& cut) const {
    return {noise_.all(), noise_.all().data() + base_ + (is_packed_ ? cut.first : 0)};
  }
  [[nodiscard]] size_t place(int64_t byte) const { return static_cast<size_t>(places_[static_cast<size_t>(byte)]); }
  [[nodiscard]] std::byte& at(size_t place) const { return noise_.all()[place]; }
  [[nodiscard]] std::byte expected(size_t place) const { return expected_[place]; }
  void set_expected(size_t place, std::byte value) { expected_[place] = value; }

  // "", or the first byte that differs from what is expected, and to which packed byte it belongs.
  [[nodiscard]] std::string difference() const {
    const auto found = std::mismatch(expected_.begin(), expected_.end(), noise_.all().begin()).first;
    if (found == expected_.end()) return {};
    const int64_t where = found - expected_.begin();
    const auto byte = std::find(places_.begin(), places_.end(), where);
    const std::string whose =
        byte == places_.end() ? "of a gap or a guard" : text("of packed byte ", byte - places_.begin());
    return text("the byte at ", where - base_, ", ", whose);
  }

 private:
  bool is_packed_;
  int64_t base_;
  std::vector<int64_t> places_;
  Noise noise_;
  std::vector<std::byte> expected_;
  bool overlaps_ = false;
};

// If a type writes a byte twice, MPI defines no result: any of the bytes that belong there is accepted.
void accept_any_writer(const Place& from, Place& to, const Cut& cut) {
  for (int64_t i = cut.first; i < cut.last; ++i) {
    const std::byte here = to.at(to.place(i));
    if (here == from.expected(from.place(i))) to.set_expected(to.place(i), here);
  }
}

void put_in(Damage damage, const Place& from, const Place& to, const Cut& cut, Random& random) {
  const size_t hit = to.place(random.between(cut.first, cut.last - 1));
  switch (damage) {
    case Damage::none: break;
    case Damage::skipped: to.at(hit) = ~to.at(hit); break;
    case Damage::stray: to.at(guard - 1) ^= std::byte{1}; break;
    case Damage::source: from.at(from.place(cut.first)) ^= std::byte{1}; break;
  }
}

// The whole message first, then all of it in pieces, in order, then any cuts: fewer where there is more to compare.
std::vector<Cut> cuts_of(const LayoutWay& way, Random& random, int64_t bytes, int64_t compared_bytes) {
  constexpr int64_t compared_max = 4 << 20;
  const auto most = static_cast<size_t>(std::clamp<int64_t>(compared_max / compared_bytes, 4, 40));
  std::vector<Cut> cuts{{0, bytes}};
  if (!way.cuts) return cuts;
  const int64_t piece_max = std::max<int64_t>(bytes / 6, std::min<int64_t>(bytes, random.chance(1, 2) ? 70 : 9));
  for (int64_t at = 0; at < bytes && cuts.size() < most;) {
    cuts.push_back({at, std::min(bytes, at + random.between(1, piece_max))});
    at = cuts.back().last;
  }
  for (int i = 0; i < (most < 40 ? 2 : 6); ++i) {
    const int64_t a = random.between(0, bytes);
    const int64_t b = random.chance(1, 3) ? random.between(0, bytes) : std::min(bytes, a + random.between(0, 70));
    cuts.push_back({std::min(a, b), std::max(a, b)});
  }
  return cuts;
}

struct Moves {
  int64_t made = 0;
  int64_t refused = 0;
};

std::string try_move(const LayoutWay& way, const Side& from_side, const Side& to_side, int64_t bytes, uint64_t seed,
                     Moves& moves, Damage damage) {
  Random random(seed, "layout ways");
  auto mover = way.open(from_side, to_side, random);
  if (!mover.ok() && mover.error().code == Code::unsupported) {
    ++moves.refused;
    return {};
  }
  if (!mover.ok()) return mover.error().message;
  const Place from(random, from_side, bytes);
  Place to(random, to_side, bytes);
  for (const Cut& cut : cuts_of(way, random, bytes, from.bytes() + to.bytes())) {
    for (int64_t i = cut.first; i < cut.last; ++i) {  // each of them is wrong
      to.at(to.place(i)) = ~from.expected(from.place(i));
    }
    const Status moved = (*mover)->move(from.buffer(cut), to.buffer(cut), cut);
    const std::string where = text("packed bytes ", cut.first, " to ", cut.last, " of ", bytes, ": ");
    if (!moved.ok()) return where + moved.error().message;
    if (damage != Damage::none && cut.bytes() > 0) put_in(damage, from, to, cut, random);
    for (int64_t i = cut.first; i < cut.last; ++i) to.set_expected(to.place(i), from.expected(from.place(i)));
    if (to.overlaps()) accept_any_writer(from, to, cut);
    if (std::string found = to.difference(); !found.empty()) return where + found;
    if (std::string found = from.difference(); !found.empty()) return where + "in what is only read, " + found;
    moves.made += cut.bytes() > 0 ? 1 : 0;
  }
  return {};
}

// Packs, unpacks, and copies to a partner: "", or what differs.
std::string try_message(const LayoutWay& way, const Row& row, uint64_t seed, Moves& moves,
                        Damage damage = Damage::none) {
  const int64_t bytes = row.count * row.type.size();
  const oracle::Reach reach = oracle::reach(row.type, row.count);
  if (bytes > way.bytes_max || reach.last - reach.first > 4 * way.bytes_max) {
    moves.refused += 2 + (way.copies ? 1 : 0);
    return {};
  }
  const Side here{row.type, row.count};
  const Side packed;
  if (auto found = try_move(way, here, packed, bytes, seed, moves, damage); !found.empty()) return "pack, " + found;
  if (auto found = try_move(way, packed, here, bytes, seed, moves, damage); !found.empty()) return "unpack, " + found;
  if (!way.copies) return {};
  Random random(seed, "partner");
  const Side there = partner(random, row.type, row.count);
  auto found = try_move(way, here, there, bytes, seed, moves, damage);
  return found.empty() ? found : text("copy to ", there.count, " x ", print(*there.type), ", ", found);
}

std::string report(const LayoutWay& way, Row row, uint64_t seed, const std::string& test) {
  const auto fails = [&](const Type& type, int64_t count) {
    Moves moves;
    return try_message(way, {"", type, count}, seed, moves);
  };
  row.type = shrink(row.type, [&](const Type& type) { return !fails(type, row.count).empty(); });
  while (row.count > 1 && !fails(row.type, row.count - 1).empty()) --row.count;
  const std::string message = text(row.count, " x ", print(row.type));
  return text(way.name, ", ", message, ": ", fails(row.type, row.count), "\nreplay: SPINLOOM_TEST_LAYOUT='", message,
              "' SPINLOOM_TEST_SEED=", seed, " ", program_invocation_short_name, " --gtest_filter='", test, "/",
              way.name, "'");
}

Result<Row> row_of(const std::string& line) {
  const size_t bar = line.find('|');
  const std::string message = bar == std::string::npos ? line : line.substr(bar + 1);
  const size_t times = message.find(" x ");
  if (times == std::string::npos) return fail(Code::invalid, "write \"NAME | COUNT x TYPE\": ", line);
  SPL_ASSIGN(Type type, parse(message.substr(times + 3)));
  std::string name = bar == std::string::npos ? "" : line.substr(0, bar);
  while (name.ends_with(' ')) name.pop_back();
  return Row{std::move(name), std::move(type), std::strtoll(message.c_str(), nullptr, 10)};
}

std::optional<Row> chosen_row() {
  const char* const given = std::getenv("SPINLOOM_TEST_LAYOUT");
  return given == nullptr ? std::nullopt : std::optional(row_of(given).value());
}

}  // namespace

LayoutWay packing_way(std::string name, OpenPacking open, uint64_t messages) {
  const Open opened = [open = std::move(open)](const Side& from, const Side& to, Random& random) {
    return from.is_packed() ? open(*to.type, to.count, false, random) : open(*from.type, from.count, true, random);
  };
  return {.name = std::move(name), .open = opened, .messages = messages, .copies = false};
}

const std::vector<Row>& listed_layouts() {
  static const std::vector<Row> rows = [] {
    std::vector<Row> made;
    std::ifstream file(SPINLOOM_LAYOUTS);
    for (std::string line; std::getline(file, line);) {
      if (!line.empty() && line.front() != '#') made.push_back(row_of(line).value());
    }
    return made;
  }();
  return rows;
}

std::string hold_listed(const LayoutWay& way, const std::string& test) {
  const auto chosen = chosen_row();
  const uint64_t seed = number_from("SPINLOOM_TEST_SEED", 1);
  Moves moves;
  for (const Row& row : chosen ? std::vector{*chosen} : listed_layouts()) {
    if (!try_message(way, row, seed, moves).empty()) return row.name + ": " + report(way, row, seed, test);
  }
  if (listed_layouts().empty()) return text("no layout is listed in ", SPINLOOM_LAYOUTS);
  if (chosen || moves.refused <= way.refuses) return {};
  return text(way.name, " refuses ", moves.refused, " moves of the listed layouts; it may refuse ", way.refuses);
}

std::string hold_random(const LayoutWay& way, const std::string& test) {
  const auto chosen = chosen_row();
  const uint64_t first = number_from("SPINLOOM_TEST_SEED", 1);
  const uint64_t messages = chosen ? 1 : way.messages * number_from("SPINLOOM_TEST_CASES", 1);
  Moves all;
  for (const Family& family : families()) {
    for (uint64_t seed = first; seed < first + messages; ++seed) {
      Random random(seed, family.name);
      const Row row = chosen ? *chosen : family.make(random, seed);
      if (!try_message(way, row, seed, all).empty()) return text(family.name, ": ", report(way, row, seed, test));
    }
  }
  return all.made > 0 || chosen ? std::string() : way.name + " has moved no random message";
}

std::string hold_move(const LayoutWay& way, const Side& from, const Side& to) {
  const Side& layout = from.is_packed() ? to : from;
  Moves moves;
  const auto found = try_move(way, from, to, layout.count * layout.type->size(), 1, moves, Damage::none);
  return found.empty() && moves.made == 0 ? way.name + " refuses it" : found;
}

std::string hold_damage(const LayoutWay& way) {
  for (const Damage damage : {Damage::skipped, Damage::stray, Damage::source}) {
    int64_t tried = 0;
    for (size_t i = 0; i < listed_layouts().size() && tried < 5; ++i) {
      const Row& row = listed_layouts()[i];
      Moves moves;
      const std::string found = try_message(way, row, i + 1, moves, damage);
      if (found.empty() && moves.made > 0) return text(way.name, ", ", row.name, ": a damage was not found");
      tried += found.empty() ? 0 : 1;
    }
    if (tried == 0) return way.name + " has moved no listed layout";
  }
  return {};
}

}  // namespace spinloom::layout::test
