// Reads, refused writes, and configurations that are never half new.
#include "nic/registers/register_file.hpp"

#include <gtest/gtest.h>

#include <array>

#include "base/testing/seeds.hpp"
#include "nic/registers/plain_board.hpp"

namespace spinloom::registers {
namespace {

struct Board {
  explicit Board(const Shape& shape = {}) : registers(*Map::make(shape), board) {}
  test::PlainBoard board;
  RegisterFile registers;

  void set(std::string_view path, uint32_t value) {
    const Status done = registers.write(path, value);
    ASSERT_TRUE(done.ok()) << done.error().message;
  }
  std::string refused(std::string_view path, uint32_t value) {
    const Status done = registers.write(path, value);
    return done.ok() ? "taken" : done.error().message;
  }
  uint32_t get(std::string_view path) { return *registers.read(path); }

  void rule(uint32_t set_index, uint32_t number, const Rule& one) {
    const std::string at = text('/', set_index * 4 + number);
    set("me/idx" + at, one.index);
    set("me/mask" + at, one.mask);
    set("me/start" + at, one.start);
    set("me/end" + at, one.end);
  }
  // Sets a context up as the board's library does (D4.7, 4.3.2.1): handlers of 4096 bytes, memory, and an area that the
  // process has mapped.
  void context(uint32_t index) {
    const std::string at = text('/', index);
    board.mapped_windows[index] = {0x7f00000000, 0x10000};
    set("her_meta/handler_mem_addr" + at, 0x1c0c0000);
    set("her_meta/handler_mem_size" + at, 0x1000);
    set("her_meta/host_mem_addr_0" + at, 0);
    set("her_meta/host_mem_addr_1" + at, 0x7f);
    set("her_meta/host_mem_size" + at, 0x10000);
    set("her_meta/ph_addr" + at, 0x1d000400);
    set("her_meta/ph_size" + at, 4096);
    set("her/ctx_enabled" + at, 1);
  }
};

bool contains(const std::string& whole, std::string_view part) { return whole.find(part) != std::string::npos; }

// Rules: FPS-8, FPS-35.
TEST(RegisterFile, AfterReset) {
  Board board;
  EXPECT_EQ(board.get("me/start/7"), 1u);
  EXPECT_EQ(board.get("me/end/7"), 0u);
  EXPECT_EQ(board.get("me/valid"), 0u);
  EXPECT_EQ(board.get("spinloom/active/3"), 1u);
  EXPECT_EQ(board.get("spinloom/core_mask/1"), 0xffu);
  const Configuration& now = board.registers.configuration();
  EXPECT_FALSE(now.matching_valid);
  EXPECT_FALSE(now.contexts_valid);
  ASSERT_EQ(now.rule_sets.size(), 4u);
  EXPECT_EQ(now.rule_sets[3], (RuleSet{false, {never(), never(), never()}, never()}));
}

TEST(RegisterFile, AddressAndPathAreOneRegister) {
  Board board;
  ASSERT_TRUE(board.registers.write(0x2014 + 12, 9).ok());
  EXPECT_EQ(board.get("me/idx/3"), 9u);
  EXPECT_EQ(*board.registers.read(0x2020u), 9u);
  EXPECT_FALSE(board.registers.read(0x2015u).ok());
}

// Rules: FPS-9.
TEST(RegisterFile, ReadOnlyRegistersSayWhatTheNicSays) {
  Board board;
  board.board.told[{Register::stats_datapath, 0}] = 12;
  EXPECT_EQ(board.get("stats/datapath/0"), 12u);
  EXPECT_TRUE(contains(board.refused("stats/datapath/0", 1), "stats/datapath/0 is read only"));
  EXPECT_TRUE(contains(board.refused("cl/fifo", 1), "read only"));
}

// Rules: FPS-17, FPS-18.
TEST(RegisterFile, ReadingTheFifoTakesACharacter) {
  Board board;
  board.board.print(1, 3, "ab");
  EXPECT_EQ(board.registers.peek({Register::cl_fifo, 0}), 0u) << "looking takes nothing";
  EXPECT_EQ(board.get("cl/fifo"), 0x010361u);
  EXPECT_EQ(board.get("cl/fifo"), 0x010362u);
  EXPECT_EQ(board.get("cl/fifo"), stdout_empty);
}

// Rules: FPS-22.
TEST(RegisterFile, ValuesThatAreTooWideAreRefused) {
  Board board;
  EXPECT_TRUE(contains(board.refused("me/mode/0", 2), "1 bit"));
  EXPECT_TRUE(contains(board.refused("me/valid", 2), "1 bit"));
  EXPECT_TRUE(contains(board.refused("cl/ctrl/0", 4), "2 bits")) << "there are two clusters";
  EXPECT_TRUE(contains(board.refused("cl/ctrl/1", 2), "1 bit"));
  board.set("cl/ctrl/0", 3);
  EXPECT_EQ(board.registers.configuration().fetch_mask, 3u);
}

// A device that others configure, too, says what stands in it: no check, and it is not told.
TEST(RegisterFile, WhatTheDeviceShowsIsInForce) {
  Board board;
  const std::array<std::pair<RegisterInstance, uint32_t>, 3> shown{
      {{{Register::her_ctx_enabled, 2}, 1}, {{Register::her_meta_ph_size, 2}, 4096}, {{Register::her_valid, 0}, 1}}};
  board.registers.set_reported(shown);
  EXPECT_EQ(board.get("her/valid"), 1u);
  EXPECT_TRUE(board.registers.configuration().contexts[2].enabled);
  EXPECT_TRUE(contains(board.registers.status_text(), "context 2: active"));
  EXPECT_TRUE(board.board.configurations.empty());
  board.registers.set_reported(std::array<std::pair<RegisterInstance, uint32_t>, 1>{{{{Register::her_valid, 0}, 0}}});
  EXPECT_TRUE(contains(board.registers.status_text(), "contexts: off"));
}

// Rules: FPS-12, FPS-13.
TEST(RegisterFile, AGroupIsClosedWhileItIsValid) {
  Board board;
  board.set("me/valid", 1);
  EXPECT_TRUE(contains(board.refused("me/idx/3", 1), "while me/valid/0 is 1"));
  board.context(0);  // her is another group
  board.set("her/valid", 1);
  EXPECT_TRUE(contains(board.refused("her_meta/ph_addr/1", 1), "while her/valid/0 is 1"));
  EXPECT_TRUE(contains(board.refused("her/ctx_enabled/0", 0), "while her/valid/0 is 1"));
  EXPECT_TRUE(contains(board.refused("spinloom/init_addr/0", 8), "while her/valid/0 is 1"));
  board.set("me/valid", 0);
  board.set("me/idx/3", 1);
}

// Rules: FPS-11, FPS-14.
TEST(RegisterFile, RulesComeIntoForceTogether) {
  Board board;
  board.rule(1, 0, swapped(ip()));
  board.rule(1, 1, swapped(udp_destination(9330)));
  board.rule(1, 2, always());
  board.rule(1, 3, swapped(slmp_end_of_message()));
  board.set("me/mode/1", 1);
  EXPECT_EQ(board.registers.configuration().rule_sets[1].rules[0], never()) << "not before valid is 1";
  board.set("me/valid", 1);
  const RuleSet expected = {
      true, {swapped(ip()), swapped(udp_destination(9330)), always()}, swapped(slmp_end_of_message())};
  EXPECT_EQ(board.registers.configuration().rule_sets[1], expected);
  EXPECT_EQ(board.registers.configuration().matching_installs, 1u);
  EXPECT_EQ(board.board.configurations.back(), board.registers.configuration());
  board.set("me/valid", 1);
  EXPECT_EQ(board.registers.configuration().matching_installs, 1u) << "1 again is no change";
}

// Rules: FPS-26.
TEST(RegisterFile, RulesThatCannotBeMeantAreRefused) {
  Board board;
  // Ports 1000 to 2000 in network order: 0x03e8, 0x07d0 become 0xe803, 0xd007, a range that runs backwards.
  board.rule(0, 0, swapped(Rule{9, 0xffff0000, 1000u << 16, 2000u << 16}));
  EXPECT_TRUE(contains(board.refused("me/valid", 1), "rule 0 of set 0 can never hold"));
  EXPECT_EQ(board.get("me/valid"), 0u);
  EXPECT_EQ(board.registers.configuration().matching_installs, 0u);
  board.rule(0, 0, swapped(never()));  // the board's library writes its bypass so
  board.set("me/idx/1", 32);
  EXPECT_TRUE(contains(board.refused("me/valid", 1), "word 32"));
  board.set("me/idx/1", 31);
  board.set("me/valid", 1);
}

// Rules: FPS-14, FPS-16.
TEST(RegisterFile, ContextsComeIntoForceTogether) {
  Board board;
  board.context(2);
  board.set("her_meta/scratchpad_1_size/2", 4096);
  board.set("spinloom/init_addr/2", 0x1d000100);
  board.set("spinloom/init_size/2", 64);
  EXPECT_FALSE(board.registers.configuration().contexts[2].enabled);
  EXPECT_TRUE(board.board.configurations.empty()) << "nothing is in force yet, so the NIC is told nothing";
  board.set("her/valid", 1);
  EXPECT_EQ(board.board.configurations.size(), 1u);
  const Context& now = board.registers.configuration().contexts[2];
  EXPECT_TRUE(now.enabled);
  EXPECT_EQ(now.handler_memory, (Window{0x1c0c0000, 0x1000}));
  EXPECT_EQ(now.host_memory, (Window{0x7f00000000, 0x10000}));
  EXPECT_EQ(now.header.bytes, 0u);
  EXPECT_EQ(now.packet, (Window{0x1d000400, 4096}));
  EXPECT_EQ(now.initialisation, (Window{0x1d000100, 64}));
  EXPECT_EQ(now.scratchpads[1].bytes, 4096u);
  EXPECT_EQ(board.registers.configuration().context_installs, 1u);
}

struct Wrong {
  const char* path;
  uint32_t value;
  const char* said;
};

// Rules: FPS-15, FPS-16.
TEST(RegisterFile, ContextsThatCannotRunAreRefused) {
  for (const Wrong& wrong : {Wrong{"her_meta/ph_size/1", 0, "no handler is installed"},
                             Wrong{"her_meta/ph_addr/1", 0x1d008000, "ph_addr 0x1d008000"},
                             Wrong{"her_meta/handler_mem_addr/1", 0x1c100000, "handler memory"},
                             Wrong{"her_meta/host_mem_addr_0/1", 1, "what is mapped for it"},
                             Wrong{"her_meta/host_mem_size/1", 0x10001, "what is mapped for it"},
                             Wrong{"her_meta/host_mem_addr_1/1", 0x7e, "what is mapped for it"}}) {
    Board board;
    board.context(1);
    board.set(wrong.path, wrong.value);
    EXPECT_TRUE(contains(board.refused("her/valid", 1), wrong.said)) << wrong.path;
    EXPECT_FALSE(board.registers.configuration().contexts_valid);
    board.set("her/ctx_enabled/1", 0);
    EXPECT_EQ(board.refused("her/valid", 1), "taken") << "a context that is not enabled is not looked at";
  }
}

TEST(RegisterFile, AnInitialisationHandlerIsNotEnough) {
  Board board;
  board.context(0);
  board.set("her_meta/ph_size/0", 0);
  board.set("spinloom/init_addr/0", 0x1d000100);
  board.set("spinloom/init_size/0", 64);
  EXPECT_TRUE(contains(board.refused("her/valid", 1), "no handler is installed"));
  board.set("her_meta/th_size/0", 4096);
  EXPECT_TRUE(contains(board.refused("her/valid", 1), "th_addr 0x0"));
}

// The board's library gives a context all of handler memory as its size, and lets it begin behind .l2_handler_data:
// with d bytes of data, the last d bytes of what it asks for do not exist.
TEST(RegisterFile, MemoryOfAContextEndsWithHandlerMemory) {
  Board board;
  board.context(0);
  board.set("her_meta/handler_mem_addr/0", 0x1c0c0000 + 0x120);
  board.set("her_meta/handler_mem_size/0", 0x40000);
  board.set("her/valid", 1);
  EXPECT_EQ(board.registers.configuration().contexts[0].handler_memory, (Window{0x1c0c0120, 0x40000 - 0x120}));
  EXPECT_EQ(board.get("her_meta/handler_mem_size/0"), 0x40000u) << "the register keeps what was written";
}

TEST(RegisterFile, OtherShapes) {
  Board board({.rule_sets = 3, .rules = 5, .contexts = 6, .clusters = 1, .cores = 4});
  board.set("me/idx/9", 7);  // set 1, rule 4
  board.set("me/valid", 1);
  EXPECT_EQ(board.registers.configuration().rule_sets[1].last_frame.index, 7u);
  EXPECT_EQ(board.registers.configuration().rule_sets.size(), 3u);
  EXPECT_TRUE(contains(board.refused("cl/ctrl/0", 2), "1 bit"));
  EXPECT_TRUE(contains(board.refused("spinloom/core_mask", 16), "4 bits"));
  board.context(5);  // no rule set reaches it
  board.set("her/valid", 1);
  board.set("spinloom/call/5", 1);
  EXPECT_EQ(board.board.calls.size(), 1u);
}

// Rules: FPS-68.
TEST(RegisterFile, ActivationIsApartFromInstallation) {
  Board board;
  board.context(0);
  board.set("spinloom/active/0", 0);
  board.set("her/valid", 1);
  EXPECT_FALSE(board.registers.configuration().active[0]);
  board.set("spinloom/active/0", 1);  // no valid in the way
  EXPECT_TRUE(board.board.configurations.back().active[0]);
  EXPECT_EQ(board.registers.configuration().context_installs, 1u);
}

// Rules: FPS-69.
TEST(RegisterFile, CallsByTheHost) {
  Board board;
  board.set("spinloom/call_msg_id/0", 7);
  EXPECT_TRUE(contains(board.refused("spinloom/call/0", 1), "not installed"));
  board.context(0);
  board.set("her/valid", 1);
  board.set("spinloom/call/0", 1);
  EXPECT_EQ(board.board.calls, (std::vector<HostCall>{{0, 7}}));
  EXPECT_EQ(board.get("spinloom/call/0"), 1u);
  board.set("spinloom/call/0", 0);
  EXPECT_EQ(board.board.calls.size(), 1u) << "writing 0 calls nothing";

  for (uint32_t i = 0; i < 3; ++i) board.rule(0, i, always());
  board.set("me/valid", 1);
  EXPECT_TRUE(contains(board.refused("spinloom/call/0", 1), "frames reach it"));
  board.set("spinloom/active/0", 0);
  board.set("spinloom/call/0", 1);
  board.set("spinloom/active/0", 1);
  EXPECT_TRUE(contains(board.refused("spinloom/call/1", 1), "not installed")) << "her/valid is 1, it is not enabled";
  board.set("me/valid", 0);
  board.set("spinloom/call/0", 1);
  board.rule(0, 1, never());  // one rule of all that never holds: the set never does
  board.set("me/valid", 1);
  board.set("spinloom/call/0", 1);
  board.set("me/valid", 0);
  board.rule(0, 0, never());
  board.rule(0, 2, never());
  board.rule(0, 3, always());  // the last rule says nothing of whether a frame matches
  board.set("me/mode/0", 1);
  board.set("me/valid", 1);
  board.set("spinloom/call/0", 1);
  EXPECT_EQ(board.board.calls.size(), 5u);
}

// Random writes: a refused one changes nothing that can be read, and what is in force changes only as a whole, when its
// valid becomes 1.
// Rules: FPS-14.
TEST(RegisterFile, RandomWrites) {
  uint64_t matching_installs = 0;
  for_seeds(8, [&](Random& random) {
    Board board;
    board.context(0);
    const Map& map = board.registers.map();
    const auto all = [&] {
      std::vector<uint32_t> values;
      for (uint32_t i = 0; i < map.register_count(); ++i)
        values.push_back(board.registers.peek(map.place_of_number(i)));
      return values;
    };
    uint32_t refused = 0;
    for (int step = 0; step < 1000; ++step) {
      RegisterInstance place = map.place_of_number(static_cast<uint32_t>(random.below(map.register_count())));
      if (random.chance(1, 4)) place = {random.chance(1, 2) ? Register::me_valid : Register::her_valid, 0};
      auto value = static_cast<uint32_t>(random.chance(2, 3) ? random.below(3) : random.below(uint64_t{1} << 32));
      if (place.id == Register::me_start && random.chance(7, 8)) value = 0;  // some rules can be meant then
      if (place.id == Register::me_idx && random.chance(7, 8)) value %= 32;
      const auto before = all();
      const Configuration old = board.registers.configuration();
      const Status done = board.registers.write(place, value);
      const Configuration& now = board.registers.configuration();
      if (!done.ok()) {
        ++refused;
        ASSERT_EQ(all(), before) << map.path(place);
        ASSERT_EQ(now, old) << map.path(place);
      }
      const bool matching = now.matching_valid && !old.matching_valid;
      const bool contexts = now.contexts_valid && !old.contexts_valid;
      ASSERT_EQ(now.matching_installs, old.matching_installs + (matching ? 1 : 0)) << map.path(place);
      ASSERT_EQ(now.context_installs, old.context_installs + (contexts ? 1 : 0)) << map.path(place);
      ASSERT_TRUE(matching || now.rule_sets == old.rule_sets) << map.path(place);
      ASSERT_TRUE(contexts || now.contexts == old.contexts) << map.path(place);
    }
    EXPECT_GT(refused, 100u);
    EXPECT_LT(refused, 900u);
    matching_installs += board.registers.configuration().matching_installs;
  });
  EXPECT_GT(matching_installs, 0u);
}

}  // namespace
}  // namespace spinloom::registers
