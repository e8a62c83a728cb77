#include "nic/hpu/elf.hpp"

#include <algorithm>
#include <ios>
#include <optional>

#include "spinloom/hpu_map.h"

namespace spinloom::hpu {
namespace {

// Numbers of the System V ABI, chapters 4 and 5, and of the RISC-V ELF psABI.
constexpr uint32_t file_header_bytes = 52;
constexpr uint32_t program_header_bytes = 32;
constexpr uint32_t section_header_bytes = 40;
constexpr uint32_t symbol_bytes = 16;
constexpr uint32_t type_executable = 2;
constexpr uint32_t machine_riscv = 243;
constexpr uint32_t segment_load = 1;
constexpr uint32_t segment_dynamic = 2;
constexpr uint32_t segment_interpreter = 3;
constexpr uint32_t segment_tls = 7;
constexpr uint32_t flag_execute = 1;
constexpr uint32_t flag_write = 2;
constexpr uint32_t section_symbols = 2;
constexpr uint32_t section_strings = 3;
constexpr uint32_t section_instructions = 4;  // a flag: SHF_EXECINSTR
constexpr uint32_t section_attributes = 0x70000003;
constexpr uint32_t attribute_file = 1;  // the subsection about the whole file
constexpr uint32_t attribute_architecture = 5;
constexpr uint32_t flags_float_abi = 0x6;  // hard-float calling conventions: single 2, double 4, quad 6
constexpr uint32_t flags_rve = 0x8;        // 16 registers: another calling convention
constexpr uint32_t symbol_function = 2;
constexpr uint32_t index_reserved = 0xff00;  // SHN_LORESERVE
constexpr uint32_t segments_max = 64;
constexpr uint32_t name_bytes_max = 4096;  // length of one symbol's name; bounds the work that a bad file can ask for

// Reads little-endian fields. holds() checks bounds; a read outside of the file fails an assertion.
class Reader {
 public:
  explicit Reader(std::span<const uint8_t> file) : file_(file) {}

  [[nodiscard]] bool holds(uint64_t offset, uint64_t bytes) const {
    return offset <= file_.size() && bytes <= file_.size() - offset;
  }
  // Callers ask holds() first; the assertion keeps invariant 1 of the header.
  [[nodiscard]] uint32_t u32(uint64_t offset) const { return u16(offset) | u16(offset + 2) << 16; }
  [[nodiscard]] uint32_t u16(uint64_t offset) const { return u8(offset) | u8(offset + 1) << 8; }
  [[nodiscard]] uint32_t u8(uint64_t offset) const {
    SPL_ASSERT(offset < file_.size(), "offset ", offset, " of a file of ", file_.size(), " B");
    return file_[offset];
  }
  [[nodiscard]] std::span<const uint8_t> bytes(uint64_t offset, uint64_t count) const {
    SPL_ASSERT(holds(offset, count), offset, " + ", count, " of a file of ", file_.size(), " B");
    return file_.subspan(offset, count);
  }
  [[nodiscard]] size_t size() const { return file_.size(); }

 private:
  std::span<const uint8_t> file_;
};

Error unexpected(const char* what, uint64_t offset, uint64_t value, const char* expected) {
  return fail(Code::invalid, "handler image: ", what, " at offset ", offset, " is ", value, " (0x", std::hex, value,
              "), expected ", expected);
}

Error truncated(const char* what, uint64_t offset, uint64_t bytes, size_t size) {
  return fail(Code::invalid, "handler image: ", what, " at offset ", offset, " needs ", bytes, " B, the file has ",
              size, " B");
}

// A field that may have only one value.
struct Expectation {
  const char* what;
  uint32_t offset;
  uint32_t bytes;
  uint32_t value;
  const char* meaning;
};

Status check_file_header(const Reader& reader) {
  if (!reader.holds(0, file_header_bytes)) return truncated("the ELF header", 0, file_header_bytes, reader.size());
  static constexpr Expectation expectations[] = {
      {"the magic number", 0, 4, 0x464c457f, "0x7f 'E' 'L' 'F'"},
      {"the class", 4, 1, 1, "1 (32-bit)"},
      {"the data encoding", 5, 1, 1, "1 (little-endian)"},
      {"the identification version", 6, 1, 1, "1"},
      {"the file type", 16, 2, type_executable, "2 (static executable; link with -static, not -shared or -pie)"},
      {"the machine", 18, 2, machine_riscv, "243 (RISC-V)"},
      {"the version", 20, 4, 1, "1"},
      {"the ELF header size", 40, 2, file_header_bytes, "52"},
  };
  for (const Expectation& expected : expectations) {
    const uint32_t value = expected.bytes == 1   ? reader.u8(expected.offset)
                           : expected.bytes == 2 ? reader.u16(expected.offset)
                                                 : reader.u32(expected.offset);
    if (value != expected.value) return unexpected(expected.what, expected.offset, value, expected.meaning);
  }
  const uint32_t flags = reader.u32(36);
  if ((flags & flags_float_abi) == flags_float_abi || (flags & flags_rve) != 0) {
    return unexpected("the flags word", 36, flags, "the ilp32, ilp32f or ilp32d ABI (build with -mabi=ilp32)");
  }
  return {};
}

Status refuse_writable(uint64_t offset, uint32_t address, uint32_t bytes) {
  return fail(Code::invalid, "handler image: the segment at offset ", offset, " (address 0x", std::hex, address,
              std::dec, ", ", bytes,
              " B) is writable: handlers keep their state in NIC memory, so .data and .bss must be empty; "
              "make global variables const or move them into the handler's memory");
}

// Reads one program header. Returns a segment to load, nothing, or an Error.
Result<std::optional<Segment>> read_segment(const Reader& reader, uint64_t header) {
  const uint32_t type = reader.u32(header);
  const uint32_t offset = reader.u32(header + 4);
  const uint32_t address = reader.u32(header + 8);
  const uint32_t file_bytes = reader.u32(header + 16);
  const uint32_t memory_bytes = reader.u32(header + 20);
  const uint32_t flags = reader.u32(header + 24);
  if (type == segment_dynamic || type == segment_interpreter) {
    return unexpected("the program header type", header, type, "no dynamic linking (link with -static)");
  }
  if (type == segment_tls && memory_bytes > 0) {
    return unexpected("the program header type", header, type, "no thread-local variables");
  }
  if (type != segment_load || memory_bytes == 0) return std::optional<Segment>();
  if ((flags & flag_write) != 0) return refuse_writable(header, address, memory_bytes).error();
  if (file_bytes != memory_bytes) {
    return unexpected("the segment's memory size", header + 20, memory_bytes,
                      "its file size (zero-filled data is .bss, which handlers cannot have)");
  }
  if (!reader.holds(offset, file_bytes)) return truncated("a segment's contents", offset, file_bytes, reader.size());
  const std::span<const uint8_t> bytes = reader.bytes(offset, file_bytes);
  Segment segment;
  segment.address = address;
  segment.bytes.assign(bytes.begin(), bytes.end());
  segment.executable = (flags & flag_execute) != 0;
  return std::optional<Segment>(std::move(segment));
}

Result<std::vector<Segment>> read_segments(const Reader& reader) {
  const uint32_t table = reader.u32(28);
  const uint32_t entry_bytes = reader.u16(42);
  const uint32_t count = reader.u16(44);
  if (count == 0) return unexpected("the number of program headers", 44, count, "at least 1 (the image is empty)");
  if (count > segments_max) return unexpected("the number of program headers", 44, count, "at most 64");
  if (entry_bytes != program_header_bytes) return unexpected("the program header size", 42, entry_bytes, "32");
  if (!reader.holds(table, uint64_t{count} * program_header_bytes)) {
    return truncated("the program header table", table, uint64_t{count} * program_header_bytes, reader.size());
  }
  std::vector<Segment> segments;
  for (uint32_t i = 0; i < count; ++i) {
    SPL_ASSIGN(std::optional<Segment> segment,
               read_segment(reader, uint64_t{table} + uint64_t{i} * program_header_bytes));
    if (segment.has_value()) segments.push_back(std::move(*segment));
  }
  return segments;
}

// The place of a section's contents in the file.
struct Table {
  uint32_t offset = 0;
  uint32_t bytes = 0;
};

Result<std::string> read_name(const Reader& reader, const Table& names, uint32_t name, uint64_t symbol) {
  if (name >= names.bytes) return unexpected("a symbol's name", symbol, name, "an offset inside the string table");
  std::string out;
  for (uint32_t i = name; i < names.bytes && i - name <= name_bytes_max; ++i) {
    const uint32_t c = reader.u8(uint64_t{names.offset} + i);
    if (c == 0) return out;
    out.push_back(static_cast<char>(c));
  }
  return unexpected("a symbol's name", symbol, name, "a string of at most 4096 B that ends inside the string table");
}

Status read_symbols(const Reader& reader, const Table& table, const Table& names,
                    std::map<std::string, uint32_t>& out) {
  std::map<std::string, bool> is_global;
  for (uint32_t at = 0; at + symbol_bytes <= table.bytes; at += symbol_bytes) {
    const uint64_t symbol = uint64_t{table.offset} + at;
    const uint32_t value = reader.u32(symbol + 4);
    const uint32_t kind = reader.u8(symbol + 12) & 0xf;
    const bool global = (reader.u8(symbol + 12) >> 4) != 0;
    const uint32_t section = reader.u16(symbol + 14);
    const bool defined = section != 0 && section < index_reserved;
    if (!defined || kind > symbol_function) continue;
    SPL_ASSIGN(const std::string name, read_name(reader, names, reader.u32(symbol), symbol));
    const bool keep = !name.empty() && (!out.contains(name) || (global && !is_global[name]));
    if (!keep || name.starts_with('$')) continue;  // $x, $d: mapping symbols of the assembler
    out[name] = value;
    is_global[name] = global;
  }
  return {};
}

// Checks the section headers. A stripped file has none, which is legal.
Status check_section_headers(const Reader& reader) {
  const uint32_t headers = reader.u32(32);
  const uint32_t entry_bytes = reader.u16(46);
  const uint32_t count = reader.u16(48);
  if (headers == 0 || count == 0) return {};
  if (entry_bytes != section_header_bytes) return unexpected("the section header size", 46, entry_bytes, "40");
  if (!reader.holds(headers, uint64_t{count} * section_header_bytes)) {
    return truncated("the section header table", headers, uint64_t{count} * section_header_bytes, reader.size());
  }
  return {};
}

uint32_t section_count(const Reader& reader) { return reader.u32(32) == 0 ? 0 : reader.u16(48); }

// True if an architecture such as "rv32i2p1_m2p0_f2p2_zicsr2p0" names F, D, or G, which contains both. Names that begin
// with z, s or x have several letters, which do not count.
bool names_float(std::string_view architecture) {
  bool in_name = false;
  for (size_t i = std::min<size_t>(4, architecture.size()); i < architecture.size(); ++i) {
    const char c = architecture[i];
    if (c == '_') in_name = false;
    if (in_name) continue;
    if (c == 'f' || c == 'd' || c == 'g') return true;
    in_name = c == 'z' || c == 's' || c == 'x';
  }
  return false;
}

// A cursor over the attributes of the RISC-V psABI; bytes beyond the end read as zeros.
class Attributes {
 public:
  explicit Attributes(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  [[nodiscard]] bool ended() const { return at_ >= bytes_.size(); }
  void skip(size_t count) { at_ += count; }
  uint32_t byte() { return ended() ? 0 : bytes_[at_++]; }
  uint32_t number() {
    uint32_t value = 0;
    for (unsigned shift = 0; shift < 32 && !ended(); shift += 7) {
      const uint32_t next = byte();
      value |= (next & 0x7f) << shift;
      if (next < 0x80) break;
    }
    return value;
  }
  std::string string() {
    std::string out;
    while (const uint32_t c = byte()) out.push_back(static_cast<char>(c));
    return out;
  }

 private:
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
};

// The architecture in the attributes section: 'A', length, "riscv", then the file's attributes. An even tag is
// followed by a number, an odd tag by a string.
std::string architecture_of(std::span<const uint8_t> bytes) {
  Attributes attributes(bytes);
  attributes.skip(1 + 4);
  if (attributes.string() != "riscv" || attributes.number() != attribute_file) return {};
  attributes.skip(4);
  while (!attributes.ended()) {
    const uint32_t tag = attributes.number();
    if (tag % 2 == 0) {
      attributes.number();
      continue;
    }
    const std::string text = attributes.string();
    if (tag == attribute_architecture) return text;
  }
  return {};
}

// True if the file asks for floating point, by a hard-float ABI or an architecture with F or D.
Result<bool> asks_for_float(const Reader& reader) {
  if ((reader.u32(36) & flags_float_abi) != 0) return true;
  for (uint32_t i = 0; i < section_count(reader); ++i) {
    const uint64_t header = uint64_t{reader.u32(32)} + uint64_t{i} * section_header_bytes;
    if (reader.u32(header + 4) != section_attributes) continue;
    const uint32_t offset = reader.u32(header + 16);
    const uint32_t bytes = reader.u32(header + 20);
    if (!reader.holds(offset, bytes)) return truncated("the attributes", offset, bytes, reader.size());
    if (names_float(architecture_of(reader.bytes(offset, bytes)))) return true;
  }
  return false;
}

// Reads the symbols of the sections that are symbol tables.
Status read_symbol_tables(const Reader& reader, std::map<std::string, uint32_t>& out) {
  const uint32_t headers = reader.u32(32);
  const uint32_t count = section_count(reader);
  const auto header_of = [&](uint32_t index) { return uint64_t{headers} + uint64_t{index} * section_header_bytes; };
  const auto table_of = [&](uint64_t header) { return Table{reader.u32(header + 16), reader.u32(header + 20)}; };
  bool seen = false;
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t header = header_of(i);
    if (reader.u32(header + 4) != section_symbols) continue;
    if (seen) return unexpected("a section's type", header + 4, section_symbols, "one symbol table only");
    seen = true;
    const Table symbols = table_of(header);
    const uint32_t link = reader.u32(header + 24);
    if (reader.u32(header + 36) != symbol_bytes) {
      return unexpected("the symbol size", header + 36, reader.u32(header + 36), "16");
    }
    if (!reader.holds(symbols.offset, symbols.bytes)) {
      return truncated("the symbol table", symbols.offset, symbols.bytes, reader.size());
    }
    if (link >= count || reader.u32(header_of(link) + 4) != section_strings) {
      return unexpected("the symbol table's link", header + 24, link, "the index of a string table");
    }
    const Table names = table_of(header_of(link));
    if (!reader.holds(names.offset, names.bytes)) {
      return truncated("the string table", names.offset, names.bytes, reader.size());
    }
    SPL_TRY(read_symbols(reader, symbols, names, out));
  }
  return {};
}

}  // namespace

Result<std::vector<AddressRange>> code_sections(std::span<const uint8_t> file) {
  const Reader reader(file);
  SPL_TRY(check_file_header(reader));
  SPL_TRY(check_section_headers(reader));
  std::vector<AddressRange> code;
  for (uint32_t i = 0; i < section_count(reader); ++i) {
    const uint64_t header = uint64_t{reader.u32(32)} + uint64_t{i} * section_header_bytes;
    if ((reader.u32(header + 8) & section_instructions) == 0) continue;
    const uint32_t address = reader.u32(header + 12);
    code.push_back({address, address + reader.u32(header + 20)});
  }
  return code;
}

Result<Image> load_elf(std::span<const uint8_t> file) {
  const Reader reader(file);
  SPL_TRY(check_file_header(reader));
  SPL_ASSIGN(const std::vector<Segment> segments, read_segments(reader));
  SPL_TRY(check_section_headers(reader));
  SPL_ASSIGN(const bool needs_float, asks_for_float(reader));
  std::map<std::string, uint32_t> symbols;
  SPL_TRY(read_symbol_tables(reader, symbols));
  const auto outside = [&](uint32_t address) {
    return std::none_of(segments.begin(), segments.end(), [&](const Segment& segment) {
      return address >= segment.address && address - segment.address <= segment.bytes.size();
    });
  };
  std::erase_if(symbols, [&](const auto& symbol) { return outside(symbol.second); });
  return Image::from_segments(segments, std::move(symbols), needs_float);
}

}  // namespace spinloom::hpu
