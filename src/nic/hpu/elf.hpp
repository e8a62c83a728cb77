// Image - one handler program: its bytes, its symbols and its decoded instructions. load_elf() makes an Image from an
// ELF file.
//
// Contract: load_elf takes a static little-endian RV32 executable (ELF32, EM_RISCV) linked at
//   SPL_HPU_IMAGE_BASE. A file that breaks the format, or asks for what a handler cannot have, is an Error
//   that says at which offset, what was found and what was expected. Handlers keep their state in NIC
//   memory: a writable segment with contents (.data, .bss) is refused.
// Invariants:
//   1. no byte outside the given span is read, whatever the file says;
//   2. bytes() covers every PT_LOAD segment from base() on, gaps are zero; it never exceeds image_bytes_max;
//   3. the instructions are decoded once, here, one slot for each halfword; an Image never changes
//      afterwards, so any number of cores share it.
// Threads: immutable after load; share freely. Time: none.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace spinloom::hpu {

// The most text and read-only data of one handler program. The decoded form is eight times as large.
inline constexpr uint32_t image_bytes_max = 1u << 20;

struct Op;  // decode.hpp

// A part of an image, for images that are made without an ELF file (tests, generated code).
struct Segment {
  uint32_t address = 0;
  std::vector<uint8_t> bytes;
  bool executable = false;
};

class Image {
 public:
  // Segments may be in any order; they must not overlap and must not be empty.
  static Result<Image> from_segments(std::span<const Segment> segments, std::map<std::string, uint32_t> symbols,
                                     bool needs_float = false);

  Image(Image&&) noexcept;
  Image& operator=(Image&&) noexcept;
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;
  ~Image();

  [[nodiscard]] uint32_t base() const { return base_; }
  [[nodiscard]] std::span<const uint8_t> bytes() const { return bytes_; }
  [[nodiscard]] const std::map<std::string, uint32_t>& symbols() const { return symbols_; }
  // The address of a function or object by name; otherwise an Error that lists the known symbols.
  [[nodiscard]] Result<uint32_t> address_of(std::string_view symbol) const;

  // True if the file was built for cores with floating point (F or D), as its ABI or its architecture says.
  [[nodiscard]] bool needs_float() const { return needs_float_; }
  // True if any slot decodes as a floating-point instruction, executed or not.
  [[nodiscard]] bool has_float_code() const { return has_float_code_; }

  // Decoded instructions: slot i is the instruction at base() + 2 i. Two slots past the end fault.
  [[nodiscard]] const Op* ops() const { return ops_.data(); }
  [[nodiscard]] uint32_t slot_count() const { return static_cast<uint32_t>(bytes_.size() / 2); }

 private:
  Image();

  uint32_t base_ = 0;
  std::vector<uint8_t> bytes_;
  std::map<std::string, uint32_t> symbols_;
  std::vector<Op> ops_;
  bool needs_float_ = false;
  bool has_float_code_ = false;
};

// Addresses of an image, without the end.
struct AddressRange {
  uint32_t begin = 0;
  uint32_t end = 0;
};

// Returns the sections of an ELF file that hold instructions; none of a stripped file, which has no sections. Constants
// may lie in the same segment as the code.
[[nodiscard]] Result<std::vector<AddressRange>> code_sections(std::span<const uint8_t> file);

// Loads the image from the bytes of an ELF file. Its symbols are the functions, objects and untyped symbols of the
// symbol table with a name and a value inside the image or at the end of a segment; of two with the same name the
// global one wins.
[[nodiscard]] Result<Image> load_elf(std::span<const uint8_t> file);

}  // namespace spinloom::hpu
