// UserPointers - the object of a rail's event: a kind in the highest byte of its user pointer, and a number.
//
// Threads: pure functions. Time: none.
#pragma once

#include <cstdint>

namespace spinloom::rails::user {

enum class Kind : uint8_t {
  receive = 1,  // a posted receive
  send,  // a message of the tags portal on its way out
  fragment,  // a fragment of a long message
  finish,  // the word that a part has ended
  credit,  // the word that says how many messages have been taken, on its way out
  tag_block,  // a block for early messages of the tags portal
  word,  // an active message on its way out
  word_block,  // a block for active messages that come
  entry,  // a standing entry of the keys portal
  landing,  // memory of a receive into which its sender puts
  clear,  // the word that a message is cleared to be sent, on its way out
  cleared,  // the entry for that word at the message's sender
  key_block  // unused
};

[[nodiscard]] constexpr uint64_t pointer(Kind kind, uint64_t number) {
  return uint64_t{static_cast<uint8_t>(kind)} << 56 | number;
}
[[nodiscard]] constexpr Kind kind_of(uint64_t pointer) { return static_cast<Kind>(pointer >> 56); }
[[nodiscard]] constexpr uint64_t number_of(uint64_t pointer) { return pointer & ((uint64_t{1} << 56) - 1); }

}  // namespace spinloom::rails::user
