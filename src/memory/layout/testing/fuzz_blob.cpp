// Fuzz target: blobs from outside. Any bytes are refused with an Error, or walked, processed, stepped through and
// copied without a byte outside of what the blob's header says.
#include <cstring>
#include <string>

#include "base/testing/fuzz.hpp"
#include "memory/layout/blob.hpp"
#include "memory/layout/reciprocal.hpp"
#include "memory/layout/testing/bounds.hpp"
#include "memory/layout/testing/random_types.hpp"
#include "memory/layout/width.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spinloom;
  const auto blob = layout::Blob::validate({reinterpret_cast<const std::byte*>(data), size});
  if (!blob) {
    SPL_ASSERT(!blob.error().message.empty(), "an Error without a sentence");
    return -1;
  }
  const std::string trouble = layout::test::stays_in_bounds(*blob);
  SPL_ASSERT(trouble.empty(), trouble);
  return 0;
}

namespace spinloom::fuzz {
namespace {

using namespace layout;

template <class T>
T get(const Input& input, size_t at) {
  T value;
  std::memcpy(&value, input.data() + at, sizeof(value));
  return value;
}
template <class T>
void put(Input& input, size_t at, const T& value) {
  std::memcpy(input.data() + at, &value, sizeof(value));
}

uint64_t reciprocal_of(uint64_t divisor, uint32_t bits, uint32_t& shift) {
  if (divisor >= uint64_t{1} << (bits - 1)) return 0;
  const Reciprocal reciprocal = Reciprocal::of(divisor, bits);
  shift = reciprocal.shift;
  return reciprocal.multiplier;
}

// Sets the reciprocals of the header and of the first nodes, and the sizes that follow from counts and blocks, to
// valid values, because random bytes hardly ever hit them.
template <class W>
void repair(Input& input) {
  using Node = typename W::Node;
  auto header = get<spl_layout_header>(input, 0);
  size_t at = sizeof(header);
  for (bool root = true; at + sizeof(Node) <= input.size(); root = false) {
    auto node = get<Node>(input, at);
    if (node.kind != SPL_LEAF_RUNS && node.kind != SPL_NODE_MEMBERS) node.size = node.count * node.block;
    node.reciprocal = static_cast<typename W::Unsigned>(reciprocal_of(node.block, W::bits, node.shift));
    put(input, at, node);
    if (root) header.size = node.size;
    const size_t entry = node.kind == SPL_LEAF_RUNS      ? sizeof(typename W::Run)
                         : node.kind == SPL_NODE_MEMBERS ? sizeof(typename W::Member)
                                                         : sizeof(typename W::Signed);
    if (node.table > input.size()) break;
    at += (sizeof(Node) + node.table * entry + 7) / 8 * 8;
  }
  header.bytes = static_cast<uint32_t>(input.size());
  header.size_reciprocal = reciprocal_of(header.size, W::bits, header.size_shift);
  put(input, 0, header);
}

}  // namespace

std::vector<Input> seeds(Random& random) {
  std::vector<Input> out;
  for (int i = 0; i < 300; ++i) {
    const Type type = test::random_type(random, random.between(0, 5), 300);
    const auto blob = Blob::build(type, {random.chance(1, 2) ? Width::automatic : Width::wide, 1});
    if (!blob) continue;
    const auto bytes = blob->bytes();
    const auto* const first = reinterpret_cast<const uint8_t*>(bytes.data());
    out.emplace_back(first, first + bytes.size());
  }
  return out;
}

void mutate(Random& random, Input& input) {
  constexpr int64_t edges[] = {0, 1, -1, 2, 7, 8, 127, 1 << 16, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
  if (input.size() < sizeof(spl_layout_header)) return;
  const size_t words = input.size() / 4;
  for (uint64_t step = random.below(3); step > 0; --step) {
    const size_t at = random.below(words) * 4;
    const auto word = get<uint32_t>(input, at);
    switch (random.below(4)) {
      case 0: put(input, at, static_cast<uint32_t>(edges[random.below(std::size(edges))])); break;
      case 1: put(input, at, static_cast<uint32_t>(word + random.below(9) - 4)); break;
      case 2: put(input, at, get<uint32_t>(input, random.below(words) * 4)); break;
      default:
        if (at + 8 <= input.size()) put(input, at, edges[random.below(std::size(edges))]);
    }
  }
  if (random.chance(2, 3)) {
    if (get<spl_layout_header>(input, 0).width == 32) {
      repair<Narrow>(input);
    } else {
      repair<Wide>(input);
    }
  }
}

}  // namespace spinloom::fuzz
