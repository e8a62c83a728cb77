// Fuzz target: requests and answers from outside. Decoding either refuses the bytes with an Error, or gives a value
// that encodes to the same bytes. A NIC answers any bytes with an answer that decodes.
#include <algorithm>

#include "base/testing/fuzz.hpp"
#include "nic/registers/control.hpp"
#include "nic/registers/plain_board.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spinloom;
  using namespace spinloom::registers;
  const std::span<const uint8_t> bytes(data, size);
  const auto as_request = decode_request(bytes);
  const auto as_answer = decode_answer(bytes);
  if (as_request) SPL_ASSERT(std::ranges::equal(encode(*as_request), bytes), "a request of other bytes");
  if (as_answer) SPL_ASSERT(std::ranges::equal(encode(*as_answer), bytes), "an answer of other bytes");
  if (!as_request) SPL_ASSERT(!as_request.error().message.empty(), "an Error without a sentence");

  test::PlainBoard board;
  RegisterFile registers(*Map::make(Shape{}), board);
  const auto nic_answer = decode_answer(answer(registers, board, bytes));
  SPL_ASSERT(nic_answer.ok(), "an answer that does not decode");
  SPL_ASSERT(as_request.ok() || !nic_answer->succeeded, "an answer to no request");
  SPL_ASSERT(nic_answer->succeeded || !nic_answer->text.empty(), "a refusal without a sentence");
  return as_request.ok() || as_answer.ok() ? 0 : -1;
}

namespace spinloom::fuzz {

std::vector<Input> seeds(Random& random) {
  using namespace spinloom::registers;
  test::PlainBoard board;
  board.print(1, 2, "text");
  RegisterFile registers(*Map::make(Shape{}), board);
  std::vector<Input> inputs;
  for (int i = 0; i < 200; ++i) {
    Request request;
    request.kind = static_cast<RequestKind>(1 + random.below(7));
    const bool is_memory = request.kind == RequestKind::read_memory || request.kind == RequestKind::write_memory;
    const auto register_number = static_cast<uint32_t>(random.below(registers.map().register_count()));
    // Handler memory begins at 0x1c000000.
    request.address = is_memory ? 0x1c000000 + 4 * random.below(1 << 18)
                                : registers.map().address(registers.map().place_of_number(register_number));
    const bool is_write = request.kind == RequestKind::write_register || request.kind == RequestKind::write_memory;
    if (is_write) request.words.push_back(random.below(3));
    if (!is_write && request.kind != RequestKind::status) request.count = static_cast<uint32_t>(1 + random.below(8));
    inputs.push_back(encode(request));
    inputs.push_back(answer(registers, board, inputs.back()));
  }
  return inputs;
}

// Puts a small number into a low byte of the first half, where version, kind and code lie (nic-control.md).
void mutate(Random& random, Input& input) {
  if (input.size() < 16) return;
  const size_t at = random.below(input.size() / 2) * 2;
  input[at] = static_cast<uint8_t>(random.below(9));
}

}  // namespace spinloom::fuzz
