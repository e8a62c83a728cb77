// Fuzz target: the text form. Any bytes give an Error or a type; the type's print parses to the same type and prints
// the same; what we build from it passes our own validation.
#include <string>
#include <string_view>

#include "base/testing/fuzz.hpp"
#include "memory/layout/blob.hpp"
#include "memory/layout/testing/random_types.hpp"

namespace {

using namespace spinloom;
using namespace spinloom::layout;

// Lists of many entries are legal but slow to try. The longest number tells whether the text asks for one.
bool asks_for_much(std::string_view source) {
  size_t digits = 0;
  size_t most = 0;
  for (const char c : source) {
    digits = c >= '0' && c <= '9' ? digits + 1 : 0;
    most = std::max(most, digits);
  }
  const bool listed = source.find("rand") != std::string_view::npos || source.find("range") != std::string_view::npos ||
                      source.find("darray") != std::string_view::npos;
  return listed && most > 5;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  if (asks_for_much(source)) return -1;
  const auto type = parse(source);
  if (!type) {
    SPL_ASSERT(!type.error().message.empty(), "an Error without a sentence");
    return -1;
  }
  const std::string printed = print(*type);
  const auto again = parse(printed);
  SPL_ASSERT(again.ok(), printed, ": ", again.ok() ? "" : again.error().message);
  SPL_ASSERT(again->same(*type) && print(*again) == printed, "another type: ", printed);
  const auto blob = Blob::build(*type);
  if (!blob) return 0;  // the type is too deep, or its lists are too long
  const auto valid = Blob::validate(blob->bytes());
  SPL_ASSERT(valid.ok(), printed, ": ", valid.ok() ? "" : valid.error().message);
  return 0;
}

namespace spinloom::fuzz {

using namespace layout;

std::vector<Input> seeds(Random& random) {
  std::vector<Input> out;
  for (int i = 0; i < 200; ++i) {
    const std::string source = print(test::random_type(random, random.between(0, 4), 200));
    out.emplace_back(source.begin(), source.end());
  }
  return out;
}

void mutate(Random& random, Input& input) {
  static constexpr const char* tokens[] = {"contig(",
                                           "vector(",
                                           "hvector(",
                                           "indexed(",
                                           "hindexed(",
                                           "idxblock(",
                                           "hidxblock(",
                                           "struct([",
                                           "resized(",
                                           "subarray(",
                                           "darray(",
                                           "dup(",
                                           "range(",
                                           "rand(",
                                           "int",
                                           "byte)",
                                           "double",
                                           "], ",
                                           "[",
                                           "]",
                                           "(",
                                           ")",
                                           "B",
                                           " x ",
                                           ", C, ",
                                           ", F, ",
                                           "block",
                                           "cyclic",
                                           "none",
                                           "default",
                                           "0",
                                           "-1",
                                           "2147483647",
                                           "4294967296",
                                           "9223372036854775807",
                                           "-9223372036854775808",
                                           "#",
                                           "\n",
                                           ", "};
  const std::string token = tokens[random.below(std::size(tokens))];
  const auto at = static_cast<int64_t>(random.below(input.size() + 1));
  input.insert(input.begin() + at, token.begin(), token.end());
}

}  // namespace spinloom::fuzz
