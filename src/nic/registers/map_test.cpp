// Addresses of the board, and of other shapes.
#include "nic/registers/map.hpp"

#include <gtest/gtest.h>

#include <set>

namespace spinloom::registers {
namespace {

Map board_map() { return *Map::make(Shape{}); }

// Rules: FPS-2, FPS-3, FPS-4, FPS-5, FPS-6, FPS-7.
TEST(RegisterMap, TheBoardsAddresses) {
  const Map map = board_map();
  for (const Description& one : descriptions) {
    EXPECT_EQ(map.address({one.id, 0}), one.board_address) << one.group << '/' << one.name;
  }
  // FPsPIN: 3 + 5 + 69 + 5 + 76 registers in its five groups.
  uint32_t of_the_board = 0;
  for (const Description& one : descriptions) of_the_board += one.group_base < 0x5000 ? map.count(one.id) : 0;
  EXPECT_EQ(of_the_board, 158u);
  EXPECT_EQ(map.address({Register::me_end, 15}), 0x20d4u + 60);
  EXPECT_EQ(map.address({Register::her_meta_scratchpad_3_size, 3}), 0x4120u + 12);
}

// Rules: FPS-10.
TEST(RegisterMap, EveryRegisterIsFoundByAddressPathAndNumber) {
  for (const Shape& shape : {Shape{}, Shape{.rule_sets = 16, .rules = 5, .contexts = 16, .clusters = 4},
                             Shape{.rule_sets = 1, .rules = 2, .contexts = 1, .clusters = 1}}) {
    const auto made = Map::make(shape);
    ASSERT_TRUE(made.ok()) << made.error().message;
    std::set<uint32_t> addresses;
    for (uint32_t number = 0; number < made->register_count(); ++number) {
      const RegisterInstance place = made->place_of_number(number);
      EXPECT_EQ(made->number(place), number);
      EXPECT_TRUE(addresses.insert(made->address(place)).second) << made->path(place) << " shares its address";
      EXPECT_EQ(*made->at(made->address(place)), place);
      EXPECT_EQ(*made->named(made->path(place)), place);
    }
  }
}

TEST(RegisterMap, AnotherShapeMovesRegistersWithinTheirGroup) {
  // me: valid, mode[s], idx[s r], mask[s r], ...: with s = 8, r = 5 idx begins at 0x2000 + 4 (1 + 8).
  const auto map = Map::make(Shape{.rule_sets = 8, .rules = 5});
  EXPECT_EQ(map->address({Register::me_idx, 0}), 0x2024u);
  EXPECT_EQ(map->address({Register::me_mask, 0}), 0x2024u + 4 * 40);
  EXPECT_EQ(map->address({Register::her_valid, 0}), 0x3000u);
}

TEST(RegisterMap, AShapeThatDoesNotFitIsRefused) {
  const auto many = Map::make(Shape{.contexts = 64});  // 19 words of her_meta for each: 1216 of 1024
  ASSERT_FALSE(many.ok());
  EXPECT_NE(many.error().message.find("her_meta"), std::string::npos) << many.error().message;
  const auto clusters = Map::make(Shape{.clusters = 5});
  ASSERT_FALSE(clusters.ok());
  EXPECT_NE(clusters.error().message.find("clusters = 5"), std::string::npos) << clusters.error().message;
  EXPECT_FALSE(Map::make(Shape{.rules = 1}).ok());
}

TEST(RegisterMap, WhatNamesNoRegisterIsSaid) {
  const Map map = board_map();
  const auto said = [&map](std::string_view path) {
    const auto found = map.named(path);
    return found.ok() ? std::string("found") : found.error().message;
  };
  EXPECT_NE(said("me/vaild").find("did you mean 'me/valid'"), std::string::npos) << said("me/vaild");
  EXPECT_NE(said("me/idx").find("me/idx/0 to me/idx/15"), std::string::npos) << said("me/idx");
  EXPECT_NE(said("me/idx/16").find("indices 0 to 15"), std::string::npos) << said("me/idx/16");
  for (const char* path : {"", "/", "me", "me/", "me/idx/", "me/idx/-1", "me/idx/3x", "me/idx/99999999999"}) {
    EXPECT_NE(said(path), "found") << path;
  }
  EXPECT_EQ(said("me/valid"), "found");
  for (const uint32_t address : {0x0cu, 0x1003u, 0x2001u, 0x7000u, 0xffffffffu}) {
    EXPECT_FALSE(map.at(address).ok()) << address;
  }
}

// Rules: FPS-20.
TEST(RegisterMap, MemoryEndsWhereItEnds) {
  const Map map = board_map();
  EXPECT_TRUE(map.in_memory(0x1c000000, 1u << 20));
  EXPECT_FALSE(map.in_memory(0x1c000000, (1u << 20) + 1));
  EXPECT_FALSE(map.in_memory(0x1bfffffc, 8));
  EXPECT_TRUE(map.in_memory(0x1d007ff8, 8));
  EXPECT_FALSE(map.in_memory(0x1d007ffc, 8));
  EXPECT_FALSE(map.in_memory(0x1d008000, 1));
  EXPECT_FALSE(map.in_memory(0x1c000000, UINT64_MAX));
  EXPECT_FALSE(map.in_memory(UINT64_MAX, 8));
}

}  // namespace
}  // namespace spinloom::registers
