// ELF loading: a well-formed file made here field by field, each field broken in turn, and random mutations.
#include "nic/hpu/elf.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "base/random.hpp"
#include "nic/hpu/decode.hpp"
#include "nic/hpu/testing/machine.hpp"

namespace spinloom::hpu {
namespace {

namespace as = assembler;

constexpr uint32_t text_offset = 0x100;
constexpr uint32_t symbols_offset = 0x200;
constexpr uint32_t strings_offset = 0x280;
constexpr uint32_t sections_offset = 0x2c0;
constexpr uint32_t program_header = 52;

void put(std::vector<uint8_t>& file, size_t offset, uint32_t value, size_t bytes = 4) {
  for (size_t i = 0; i < bytes; ++i) file.at(offset + i) = static_cast<uint8_t>(value >> (8 * i));
}

// Two program headers (text; an empty writable segment, as linkers emit), three sections, three symbols.
std::vector<uint8_t> good_file() {
  std::vector<uint8_t> file(sections_offset + 3 * 40);
  const uint8_t identification[] = {0x7f, 'E', 'L', 'F', 1, 1, 1, 0};
  std::copy(std::begin(identification), std::end(identification), file.begin());
  put(file, 16, 2, 2);
  put(file, 18, 243, 2);
  put(file, 20, 1);
  put(file, 24, SPL_HPU_IMAGE_BASE);
  put(file, 28, program_header);
  put(file, 32, sections_offset);
  put(file, 36, 1);  // EF_RISCV_RVC
  put(file, 40, 52, 2);
  put(file, 42, 32, 2);
  put(file, 44, 2, 2);
  put(file, 46, 40, 2);
  put(file, 48, 3, 2);
  const uint32_t text[8] = {1, text_offset, SPL_HPU_IMAGE_BASE, SPL_HPU_IMAGE_BASE, 8, 8, 5, 4};
  const uint32_t empty[8] = {1, 0, SPL_HPU_IMAGE_BASE + 0x1000, SPL_HPU_IMAGE_BASE + 0x1000, 0, 0, 6, 4};
  for (uint32_t i = 0; i < 8; ++i) {
    put(file, program_header + 4 * i, text[i]);
    put(file, program_header + 32 + 4 * i, empty[i]);
  }
  put(file, text_offset, as::addi(as::a0, as::zero, 42));
  put(file, text_offset + 4, as::ret());
  // symbols: null; "$x" local; "answer" global function at base
  put(file, symbols_offset + 16, 8);
  put(file, symbols_offset + 16 + 4, SPL_HPU_IMAGE_BASE);
  put(file, symbols_offset + 16 + 14, 1, 2);
  put(file, symbols_offset + 32, 1);
  put(file, symbols_offset + 32 + 4, SPL_HPU_IMAGE_BASE);
  put(file, symbols_offset + 32 + 12, 0x12, 1);
  put(file, symbols_offset + 32 + 14, 1, 2);
  const char strings[] = "\0answer\0$x";
  std::memcpy(file.data() + strings_offset, strings, sizeof strings);
  put(file, sections_offset + 40 + 4, 2);
  put(file, sections_offset + 40 + 16, symbols_offset);
  put(file, sections_offset + 40 + 20, 48);
  put(file, sections_offset + 40 + 24, 2);
  put(file, sections_offset + 40 + 36, 16);
  put(file, sections_offset + 80 + 4, 3);
  put(file, sections_offset + 80 + 16, strings_offset);
  put(file, sections_offset + 80 + 20, sizeof strings);
  return file;
}

TEST(Elf, LoadsAndRuns) {
  const auto image = load_elf(good_file());
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_EQ(image->symbols().size(), 1u);  // mapping symbols are left out
  EXPECT_EQ(*image->address_of("answer"), SPL_HPU_IMAGE_BASE);
  const auto missing = image->address_of("question");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("answer"), std::string::npos);
  TestMachine machine(take(load_elf(good_file())));
  EXPECT_EQ(machine.run().value, 42u);
}

struct Break {
  const char* what;
  uint32_t offset;
  uint32_t value;
  uint32_t bytes;
  const char* sentence;  // a part of the message
};

TEST(Elf, EveryWrongFieldIsNamedWithItsValue) {
  const Break breaks[] = {
      {"magic", 0, 0x464c4500, 4, "magic number at offset 0"},
      {"class", 4, 2, 1, "class at offset 4 is 2"},
      {"byte order", 5, 2, 1, "data encoding at offset 5 is 2"},
      {"type", 16, 3, 2, "file type at offset 16 is 3"},
      {"machine", 18, 62, 2, "machine at offset 18 is 62"},
      {"version", 20, 7, 4, "version at offset 20 is 7"},
      {"quadruple precision", 36, 7, 4, "ilp32"},
      {"16 registers", 36, 9, 4, "ilp32"},
      {"header size", 40, 64, 2, "ELF header size at offset 40 is 64"},
      {"program header table outside", 28, 0xffffff00, 4, "program header table at offset 4294967040"},
      {"program header size", 42, 56, 2, "program header size at offset 42 is 56"},
      {"no program headers", 44, 0, 2, "number of program headers at offset 44 is 0"},
      {"many program headers", 44, 65535, 2, "number of program headers at offset 44 is 65535"},
      {"contents outside", program_header + 4, 0xfffffff0, 4, "segment's contents at offset 4294967280"},
      {"address below", program_header + 8, 0x1000, 4, "link at SPL_HPU_IMAGE_BASE"},
      {"address above", program_header + 8, 0xfffffffc, 4, "link at SPL_HPU_IMAGE_BASE"},
      {"bss", program_header + 20, 4096, 4, ".bss"},
      {"writable", program_header + 24, 7, 4, "handlers keep their state in NIC memory"},
      {"data", program_header + 32 + 20, 4, 4, "handlers keep their state in NIC memory"},
      {"dynamic", program_header + 32, 2, 4, "no dynamic linking"},
      {"section header size", 46, 64, 2, "section header size at offset 46 is 64"},
      {"section headers outside", 32, 0xffffffff, 4, "section header table at offset 4294967295"},
      {"symbols outside", sections_offset + 40 + 16, 0xffffff00, 4, "symbol table at offset"},
      {"symbol size", sections_offset + 40 + 36, 24, 4, "symbol size"},
      {"link", sections_offset + 40 + 24, 9, 4, "link"},
      {"strings outside", sections_offset + 80 + 20, 0xffffffff, 4, "string table at offset"},
      {"name outside", symbols_offset + 32, 4000, 4, "symbol's name"},
      {"second symbol table", sections_offset + 80 + 4, 2, 4, "index of a string table"},
  };
  for (const Break& test : breaks) {
    std::vector<uint8_t> file = good_file();
    put(file, test.offset, test.value, test.bytes);
    const auto image = load_elf(file);
    ASSERT_FALSE(image) << test.what;
    EXPECT_EQ(image.error().code, Code::invalid) << test.what;
    EXPECT_NE(image.error().message.find(test.sentence), std::string::npos)
        << test.what << ": " << image.error().message;
  }
}

// A fourth section: the attributes of the RISC-V ABI.
std::vector<uint8_t> file_with_attributes(const std::string& architecture) {
  std::vector<uint8_t> file = good_file();
  const auto offset = static_cast<uint32_t>(file.size());
  std::vector<uint8_t> attributes = {'A', 0, 0, 0, 0, 'r', 'i', 's', 'c', 'v', 0, 1, 0, 0, 0, 0, 4, 0x90, 1, 5};
  attributes.insert(attributes.end(), architecture.begin(), architecture.end());
  attributes.push_back(0);
  put(attributes, 1, static_cast<uint32_t>(attributes.size() - 1));
  put(attributes, 12, static_cast<uint32_t>(attributes.size() - 11));
  file.insert(file.begin() + offset, 40, 0);
  put(file, sections_offset + 120 + 4, 0x70000003);
  put(file, sections_offset + 120 + 16, offset + 40);
  put(file, sections_offset + 120 + 20, static_cast<uint32_t>(attributes.size()));
  put(file, 48, 4, 2);
  file.insert(file.end(), attributes.begin(), attributes.end());
  return file;
}

TEST(Elf, AbiAndArchitectureSayWhetherItNeedsFloatingPoint) {
  EXPECT_FALSE(take(load_elf(good_file())).needs_float());
  for (const uint32_t flags : {3u, 5u}) {  // ilp32f, ilp32d
    std::vector<uint8_t> file = good_file();
    put(file, 36, flags);
    EXPECT_TRUE(take(load_elf(file)).needs_float()) << flags;
  }
  for (const char* architecture : {"rv32i2p1_m2p0_a2p1_c2p0", "rv32imac_zicsr2p0_zifencei", "rv32imac_xfancy", ""}) {
    EXPECT_FALSE(take(load_elf(file_with_attributes(architecture))).needs_float()) << architecture;
  }
  for (const char* architecture : {"rv32i2p1_m2p0_a2p1_f2p2_d2p2_c2p0_zicsr2p0", "rv32imafc", "rv32gc"}) {
    EXPECT_TRUE(take(load_elf(file_with_attributes(architecture))).needs_float()) << architecture;
  }
  std::vector<uint8_t> cut = file_with_attributes("rv32imafdc");
  cut.pop_back();
  EXPECT_NE(load_elf(cut).error().message.find("the attributes at offset"), std::string::npos);
}

TEST(Elf, EveryTruncationIsAnErrorOrALegalFile) {
  const std::vector<uint8_t> file = good_file();
  unsigned errors = 0;
  for (size_t bytes = 0; bytes < file.size(); ++bytes) {
    const std::vector<uint8_t> cut(
        file.begin(), file.begin() + static_cast<ptrdiff_t>(bytes));  // its own allocation: a sanitizer sees overreads
    errors += !load_elf(cut).ok();
  }
  EXPECT_EQ(errors, file.size());  // the section headers are last, so every cut is seen
}

TEST(Elf, RandomMutationsNeverCrash) {
  const uint64_t seed = test_seed(3);
  SCOPED_TRACE(replay("Elf.RandomMutationsNeverCrash", seed));
  Random random(seed, "elf");
  const std::vector<uint8_t> file = good_file();
  const uint32_t edges[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, SPL_HPU_IMAGE_BASE, 0x2c0, 52};
  unsigned loaded = 0;
  unsigned refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::vector<uint8_t> mutant = file;
    for (uint64_t change = 0; change <= random.below(3); ++change) {
      const size_t offset = random.below(mutant.size() - 4);
      if (random.chance(1, 2)) {
        mutant[offset] = static_cast<uint8_t>(random.next());
      } else {
        put(mutant, offset & ~size_t{3}, edges[random.below(std::size(edges))]);
      }
    }
    const auto image = load_elf(mutant);
    EXPECT_TRUE(code_sections(mutant).ok() || !image.ok());
    if (!image) {
      ++refused;
      ASSERT_FALSE(image.error().message.empty());
      continue;
    }
    ++loaded;
    // A file that loads can be run: it ends or faults, and never harms the host.
    if (loaded % 16 != 0) continue;
    TestMachine machine(take(load_elf(mutant)));
    machine.budget = 1000;
    machine.run(100);
  }
  EXPECT_GT(loaded, 1000u);
  EXPECT_GT(refused, 1000u);
}

TEST(Image, RefusesSegmentsThatOverlapOrAreEmpty) {
  const Segment a{SPL_HPU_IMAGE_BASE, {1, 2, 3, 4}, true};
  const Segment b{SPL_HPU_IMAGE_BASE + 3, {1, 2}, false};
  const Segment overlapping[] = {a, b};
  EXPECT_FALSE(Image::from_segments(overlapping, {}));
  const Segment empty[] = {Segment{SPL_HPU_IMAGE_BASE, {}, true}};
  EXPECT_FALSE(Image::from_segments(empty, {}));
  EXPECT_FALSE(Image::from_segments({}, {}));
  const Segment huge[] = {Segment{SPL_HPU_IMAGE_BASE, std::vector<uint8_t>(image_bytes_max + 1), true}};
  EXPECT_FALSE(Image::from_segments(huge, {}));
}

TEST(Image, InstructionsCutByTheEndCannotBeExecuted) {
  // A 32-bit instruction whose upper half is missing, after a compressed nop.
  const Segment segments[] = {Segment{SPL_HPU_IMAGE_BASE, {0x01, 0x00, 0x13, 0x05}, true}};
  const Image image = take(Image::from_segments(segments, {}));
  EXPECT_EQ(image.slot_count(), 2u);
  EXPECT_EQ(image.ops()[0].code, OpCode::addi);
  EXPECT_EQ(image.ops()[1].code, OpCode::no_execute);
}

}  // namespace
}  // namespace spinloom::hpu
