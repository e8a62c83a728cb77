// Requests and answers as bytes, and what a NIC answers.
#include "nic/registers/control.hpp"

#include <gtest/gtest.h>

#include "nic/registers/plain_board.hpp"

namespace spinloom::registers {
namespace {

struct Served {
  test::PlainBoard board;
  RegisterFile registers{*Map::make(Shape{}), board};

  Answer ask(const Request& request) {
    const auto decoded = decode_answer(answer(registers, board, encode(request)));
    EXPECT_TRUE(decoded.ok()) << decoded.error().message;
    return *decoded;
  }
};

TEST(ControlFormat, BytesOfARequest) {
  // magic "SPL?", version 1, kind 2, address, count 0, one word.
  const std::vector<uint8_t> expected = {'S', 'P', 'L', '?', 1, 0, 2, 0, 0x04, 0x20, 0, 0, 0, 0, 0, 0,
                                         0,   0,   0,   0,   1, 0, 0, 0, 7,    0,    0, 0, 0, 0, 0, 0};
  const Request request = {RequestKind::write_register, 0x2004, 0, {7}};
  EXPECT_EQ(encode(request), expected);
  EXPECT_EQ(*decode_request(expected), request);
}

TEST(ControlFormat, AnswersComeBack) {
  const Entry entry = {0x2014, 3, 0, 0x2000, 0, 32, "me/idx/0"};
  for (const Answer& one : {Answer{RequestKind::read_memory, true, Code::invalid, {1, ~uint64_t{0}}, {}, {}},
                            Answer{.kind = RequestKind::write_register, .words = {}, .entries = {}, .text = {}},
                            Answer{.kind = RequestKind::pop_stdout, .words = {}, .entries = {}, .text = {}},
                            Answer{RequestKind::list_registers, true, Code::invalid, {}, {entry, entry}, {}},
                            Answer{RequestKind::status, true, Code::invalid, {}, {}, "two\nlines\n"},
                            Answer{RequestKind::read_registers, false, Code::exhausted, {}, {}, "full"}}) {
    const auto back = decode_answer(encode(one));
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(*back, one);
  }
}

TEST(ControlFormat, EveryCutOfARequestIsRefused) {
  const std::vector<uint8_t> whole = encode(Request{RequestKind::write_memory, 0x1c000000, 0, {1, 2, 3}});
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_FALSE(decode_request(std::span(whole).first(bytes)).ok()) << bytes;
  }
  std::vector<uint8_t> longer = whole;
  longer.push_back(0);
  EXPECT_FALSE(decode_request(longer).ok());
}

TEST(Control, RegistersAreReadAndWritten) {
  Served nic;
  EXPECT_TRUE(nic.ask({RequestKind::write_register, 0x2014, 0, {9}}).succeeded);
  EXPECT_EQ(nic.ask({RequestKind::read_registers, 0x2014, 2, {}}).words, (std::vector<uint64_t>{9, 0}));
  EXPECT_EQ(nic.ask({RequestKind::read_registers, 0x2090, 2, {}}).words, (std::vector<uint64_t>{0, 1}))
      << "mask/15, start/0";
  const Answer refused = nic.ask({RequestKind::write_register, 0x1000, 0, {1}});
  EXPECT_FALSE(refused.succeeded);
  EXPECT_EQ(refused.code, Code::invalid);
  EXPECT_NE(refused.text.find("stats/cluster/0 is read only"), std::string::npos) << refused.text;
  EXPECT_FALSE(nic.ask({RequestKind::read_registers, 0x0c, 1, {}}).succeeded);
  EXPECT_FALSE(nic.ask({RequestKind::read_registers, 0x605c, 2, {}}).succeeded) << "behind the last register";
  EXPECT_FALSE(nic.ask({RequestKind::read_registers, uint64_t{1} << 32, 1, {}}).succeeded);
  EXPECT_FALSE(nic.ask({RequestKind::write_register, 0x2014, 0, {uint64_t{1} << 32}}).succeeded);
}

// Rules: FPS-20, FPS-21.
TEST(Control, MemoryIsReadAndWritten) {
  Served nic;
  EXPECT_TRUE(nic.ask({RequestKind::write_memory, 0x1c000010, 0, {0x1122334455667788, 5}}).succeeded);
  EXPECT_EQ(nic.ask({RequestKind::read_memory, 0x1c000014, 2, {}}).words,
            (std::vector<uint64_t>{0x0000000511223344, 0}));
  const Answer outside = nic.ask({RequestKind::read_memory, 0x1c0ffffc, 1, {}});
  EXPECT_FALSE(outside.succeeded);
  EXPECT_NE(outside.text.find("8 bytes at 0x1c0ffffc are not in NIC memory"), std::string::npos) << outside.text;
  EXPECT_FALSE(nic.ask({RequestKind::write_memory, 0x1c000001, 0, {1}}).succeeded);
  EXPECT_TRUE(nic.registers.write("cl/ctrl/1", 1).ok());
  EXPECT_NE(nic.ask({RequestKind::read_memory, 0x1c000010, 1, {}}).text.find("held in reset"), std::string::npos);
}

// Rules: FPS-64.
TEST(Control, StdoutIsTakenInPieces) {
  Served nic;
  nic.board.print(0, 1, "abc");
  EXPECT_EQ(nic.ask({RequestKind::pop_stdout, 0, 2, {}}).words, (std::vector<uint64_t>{0x161, 0x162}));
  EXPECT_EQ(nic.ask({RequestKind::pop_stdout, 0, 2, {}}).words, (std::vector<uint64_t>{0x163}));
  EXPECT_TRUE(nic.ask({RequestKind::pop_stdout, 0, 2, {}}).words.empty());
}

TEST(Control, RegistersAreListedInPages) {
  Served nic;
  nic.board.print(0, 0, "a");
  std::vector<Entry> all;
  for (;;) {
    const Answer page = nic.ask({RequestKind::list_registers, all.size(), 100, {}});
    all.insert(all.end(), page.entries.begin(), page.entries.end());
    if (page.entries.size() < 100) break;
  }
  ASSERT_EQ(all.size(), nic.registers.map().register_count());
  EXPECT_EQ(all[8 + 1], (Entry{0x2004, 0, 0, 0x2000, 0, 1, "me/mode/0"}));
  EXPECT_EQ(all[0].guard_address, no_guard);
  EXPECT_EQ(nic.board.stdout_words.size(), 1u) << "a list takes nothing out of the queue";
}

TEST(Control, StatusSaysWhatIsInForce) {
  Served nic;
  EXPECT_NE(nic.ask({RequestKind::status, 0, 0, {}}).text.find("matching: off"), std::string::npos);
  EXPECT_TRUE(nic.registers.write("me/valid", 1).ok());
  const std::string said = nic.ask({RequestKind::status, 0, 0, {}}).text;
  EXPECT_NE(said.find("set 3: all of"), std::string::npos) << said;
  EXPECT_NE(said.find("board: nothing behind it"), std::string::npos) << said;
}

TEST(Control, WhatIsNoRequestGetsAnAnswerThatSaysSo) {
  Served nic;
  const std::vector<uint8_t> bytes(24, 7);
  const auto said = decode_answer(answer(nic.registers, nic.board, bytes));
  ASSERT_TRUE(said.ok());
  EXPECT_FALSE(said->succeeded);
  EXPECT_NE(said->text.find("do not begin as a request"), std::string::npos) << said->text;
  EXPECT_FALSE(nic.ask({RequestKind::read_memory, 0x1c000000, words_max + 1, {}}).succeeded);
}

}  // namespace
}  // namespace spinloom::registers
