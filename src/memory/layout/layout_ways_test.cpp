// The suite over all layouts finds back ends that are wrong, and shrinks what they fail at.
#include "memory/layout/testing/layout_ways.hpp"

#include <algorithm>

#include "memory/layout/copy.hpp"
#include "memory/layout/testing/random_types.hpp"
#include "memory/layout/testing/shrink.hpp"

namespace spinloom::layout {
namespace {

using namespace test;

// Moves the bytes of another type.
class Wrong final : public Mover {
 public:
  Wrong(Blob blob, int64_t count, bool packs) : blob_(std::move(blob)), count_(count), packs_(packs) {}
  Status move(const Buffer& from, const Buffer& to, const Cut& cut) override {
    const auto bytes = static_cast<size_t>(cut.bytes());
    if (packs_) return pack(blob_, count_, from.base, cut.first, cut.last, {to.base, bytes});
    return unpack(blob_, count_, to.base, cut.first, cut.last, {from.base, bytes});
  }

 private:
  Blob blob_;
  int64_t count_;
  bool packs_;
};

LayoutWay wrong_way(const Type& moved) {
  return packing_way(
      "wrong",
      [moved](const Type&, int64_t count, bool packs, Random&) -> Result<MoverPointer> {
        SPL_ASSIGN(Blob blob, Blob::build(moved, {Width::automatic, count}));
        return MoverPointer(std::make_unique<Wrong>(std::move(blob), count, packs));
      },
      1);
}

// A type of the same size that differs slightly, and does not reach further.
TEST(LayoutWays, FindWrongBlobs) {
  int64_t tried = 0;
  for_seeds(400, [&](Random& random) {
    const Type type = random_type(random, random.between(1, 4), 200);
    const std::vector<int64_t> map = byte_map(type, 2);
    const oracle::Reach reach = oracle::reach(type, 2);
    for (const Type& other : smaller(type)) {
      const oracle::Reach moved = oracle::reach(other, 2);
      if (other.size() != type.size() || moved.first < reach.first || moved.last > reach.last) continue;
      if (byte_map(other, 2) == map || *oracle::overlaps(type, 2)) continue;
      ++tried;
      EXPECT_NE(hold_move(wrong_way(other), {type, 2}, {}), "") << print(other) << " for " << print(type);
      EXPECT_NE(hold_move(wrong_way(other), {}, {type, 2}), "") << print(other) << " for " << print(type);
    }
  });
  EXPECT_GT(tried, 50);
}

TEST(LayoutWays, HaveRowsOfDifferentNames) {
  std::vector<std::string> names;
  for (const Row& row : listed_layouts()) names.push_back(row.name);
  EXPECT_GT(names.size(), 80U);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

TEST(LayoutWays, ARefusalIsSaid) {
  LayoutWay none = wrong_way(*primitive("byte"));
  none.open = [](const Side&, const Side&, Random&) -> Result<MoverPointer> { return fail(Code::unsupported, "no"); };
  EXPECT_NE(hold_listed(none, "").find("refuses"), std::string::npos);
  EXPECT_NE(hold_random(none, "").find("no random message"), std::string::npos);
  EXPECT_NE(hold_damage(none), "");
}

TEST(Shrink, GoesToTheCause) {
  const Type large = must_parse(
      "struct([(8B, 2, contig(5, int)), (100B, 3, hvector(4, 2, 77B, resized(-3B, 50B, vector(7, 1, -3, double))))])");
  const auto steps_back = [](const Type& type) {
    const std::vector<int64_t> map = byte_map(type, 1);
    return !std::is_sorted(map.begin(), map.end());
  };
  EXPECT_EQ(print(shrink(large, steps_back)), "vector(2, 1, 0, short)");
}

}  // namespace
}  // namespace spinloom::layout
