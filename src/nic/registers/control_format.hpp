// Control format - what tools ask a running NIC, and its answers, as bytes.
//
// Contract: docs/formats/nic-control.md has the grammar. One request or answer is one datagram or packet. Numbers are
//   little endian. decode_request() and decode_answer() give an Error for anything that is not exactly one request or
//   answer; whatever the bytes are, they read nothing outside of them.
// Invariants: (1) decoding encode(x) gives x; (2) encoding what was decoded gives the same bytes.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace spinloom::registers {

inline constexpr uint32_t words_max = 4096;   // the most words of a request or an answer
inline constexpr uint32_t entries_max = 512;  // the most entries of an answer
inline constexpr uint32_t text_bytes_max = 1u << 16;
inline constexpr size_t request_bytes_max = 24 + 8 * words_max;  // room for one request

enum class RequestKind : uint16_t {
  read_registers = 1,  // address, count: count registers from the address on
  write_register = 2,  // address, one word
  read_memory = 3,     // NIC address, count of 64-bit words
  write_memory = 4,    // NIC address, the words
  pop_stdout = 5,      // count at most
  list_registers = 6,  // address: the number of the first; count at most
  status = 7,
};

struct Request {
  RequestKind kind = RequestKind::status;
  uint64_t address = 0;
  uint32_t count = 0;  // the number of registers, words or characters to return
  std::vector<uint64_t> words;
  bool operator==(const Request&) const = default;
};

// A register in the answer to list_registers.
struct Entry {
  uint32_t address = 0;
  uint32_t value = 0;
  uint32_t reset = 0;
  uint32_t guard_address = 0;  // no_guard: none
  uint8_t access = 0;
  uint8_t width = 0;
  std::string path;  // path_bytes_max is the longest
  bool operator==(const Entry&) const = default;
};

inline constexpr uint32_t no_guard = 0xffffffff;
inline constexpr size_t path_bytes_max = 46;

// Holds only what its kind of request gives; an error has a sentence in `text`.
struct Answer {
  RequestKind kind = RequestKind::status;
  bool succeeded = true;
  Code code = Code::invalid;  // the error's code, unless succeeded
  std::vector<uint64_t> words;
  std::vector<Entry> entries;
  std::string text;
  bool operator==(const Answer&) const = default;
};

[[nodiscard]] std::vector<uint8_t> encode(const Request& request);
[[nodiscard]] std::vector<uint8_t> encode(const Answer& answer);
[[nodiscard]] Result<Request> decode_request(std::span<const uint8_t> bytes);
[[nodiscard]] Result<Answer> decode_answer(std::span<const uint8_t> bytes);

}  // namespace spinloom::registers
