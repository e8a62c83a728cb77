// Symbols of loaded libraries, by both kinds of hash tables, and the count of loads.
#include "mpi/entry/loaded.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace spinloom::mpi {
namespace {

LoadedObject holder_of(const void* address) {
  LoadedObject found;
  for_each_loaded([&](const LoadedObject& object) {
    if (!object.holds(address)) return false;
    found = object;
    return true;
  });
  return found;
}

TEST(LoadedObject, finds_what_the_loader_finds) {
  void* const expected = dlsym(RTLD_DEFAULT, "getenv");
  const LoadedObject library = holder_of(expected);
  const auto* const symbol = library.find("getenv");
  ASSERT_NE(symbol, nullptr);
  EXPECT_EQ(library.address_of(*symbol), expected);
  EXPECT_EQ(library.find("getenv_of_nobody"), nullptr);
  EXPECT_EQ(library.find(""), nullptr);
}

TEST(LoadedObject, every_defined_symbol_is_found_by_its_name) {
  const LoadedObject library = holder_of(dlsym(RTLD_DEFAULT, "getenv"));
  int defined = 0;
  for (uint32_t i = 1; i < library.count(); ++i) {
    const auto& symbol = library.symbols[i];
    if (!LoadedObject::is_defined(symbol)) continue;
    const auto* const found = library.find(library.name(symbol));
    ASSERT_NE(found, nullptr) << library.name(symbol);
    EXPECT_EQ(library.name(*found), library.name(symbol));
    ++defined;
  }
  EXPECT_GT(defined, 1'000);
}

TEST(LoadedObject, an_object_that_only_asks_for_a_name_does_not_define_it) {
  const LoadedObject program = holder_of(reinterpret_cast<const void*>(&holder_of));
  EXPECT_EQ(program.find("dlsym"), nullptr);
}

// Two symbols in System V's table: one that is defined, and one that is only referenced.
TEST(LoadedObject, the_older_hash_table_is_read_too) {
  const std::string texts("\0first\0second\0", 14);
  std::vector<ElfW(Sym)> symbols(3);
  symbols[1].st_name = 1;
  symbols[1].st_shndx = 1;
  symbols[1].st_value = 16;
  symbols[2].st_name = 7;
  const std::vector<uint32_t> hash = {1, 3, 1, 0, 2, 0};  // one bucket: symbol 1, then 2
  LoadedObject object;
  object.strings = texts.data();
  object.symbols = symbols.data();
  object.hash = hash.data();
  object.is_old_hash = true;
  EXPECT_EQ(object.find("first"), &symbols[1]);
  EXPECT_EQ(object.find("second"), nullptr);
  EXPECT_EQ(object.find("third"), nullptr);
  EXPECT_EQ(object.count(), 3);
}

TEST(LoadedObject, the_count_of_loads_goes_up_with_a_new_library) {
  constexpr const char* library = "libresolv.so.2";
  if (dlopen(library, RTLD_LAZY | RTLD_NOLOAD) != nullptr) GTEST_SKIP() << library << " is loaded already";
  const uint64_t before = load_count();
  EXPECT_EQ(load_count(), before);
  if (dlopen(library, RTLD_LAZY | RTLD_LOCAL) == nullptr) GTEST_SKIP() << "there is no " << library << " here";
  EXPECT_GT(load_count(), before);
}

}  // namespace
}  // namespace spinloom::mpi
