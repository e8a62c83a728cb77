// Fuzz target: requests and answers from outside. Any bytes are refused with an Error, or decode to what encodes to the
// same bytes; a NIC answers any bytes with an answer that decodes.
#include <algorithm>

#include "base/testing/fuzz.hpp"
#include "nic/registers/control.hpp"
#include "nic/registers/plain_board.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spinloom;
  using namespace spinloom::registers;
  const std::span<const uint8_t> bytes(data, size);
  const auto request = decode_request(bytes);
  const auto said = decode_answer(bytes);
  if (request) SPL_ASSERT(std::ranges::equal(encode(*request), bytes), "a request of other bytes");
  if (said) SPL_ASSERT(std::ranges::equal(encode(*said), bytes), "an answer of other bytes");
  if (!request) SPL_ASSERT(!request.error().message.empty(), "an Error without a sentence");

  test::PlainBoard board;
  RegisterFile registers(*Map::make(Shape{}), board);
  const auto answered = decode_answer(answer(registers, board, bytes));
  SPL_ASSERT(answered.ok(), "an answer that does not decode");
  SPL_ASSERT(request.ok() || !answered->succeeded, "an answer to no request");
  SPL_ASSERT(answered->succeeded || !answered->text.empty(), "a refusal without a sentence");
  return request.ok() || said.ok() ? 0 : -1;
}

namespace spinloom::fuzz {

std::vector<Input> seeds(Random& random) {
  using namespace spinloom::registers;
  test::PlainBoard board;
  board.print(1, 2, "text");
  RegisterFile registers(*Map::make(Shape{}), board);
  std::vector<Input> out;
  for (int i = 0; i < 200; ++i) {
    Request request;
    request.kind = static_cast<RequestKind>(1 + random.below(7));
    const bool memory = request.kind == RequestKind::read_memory || request.kind == RequestKind::write_memory;
    const auto number = static_cast<uint32_t>(random.below(registers.map().register_count()));
    request.address = memory ? 0x1c000000 + 4 * random.below(1 << 18)
                             : registers.map().address(registers.map().place_of_number(number));
    const bool writes = request.kind == RequestKind::write_register || request.kind == RequestKind::write_memory;
    if (writes) request.words.push_back(random.below(3));
    if (!writes && request.kind != RequestKind::status) request.count = static_cast<uint32_t>(1 + random.below(8));
    out.push_back(encode(request));
    out.push_back(answer(registers, board, out.back()));
  }
  return out;
}

void mutate(Random& random, Input& input) {
  if (input.size() < 16) return;
  const size_t at = random.below(input.size() / 2) * 2;
  input[at] = static_cast<uint8_t>(random.below(9));
}

}  // namespace spinloom::fuzz
