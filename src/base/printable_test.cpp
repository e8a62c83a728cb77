// Text from outside, written so that a terminal obeys none of it.
#include "base/printable.hpp"

#include <gtest/gtest.h>

namespace spinloom {
namespace {

TEST(Printable, LettersBlanksAndLinesStay) {
  for (const char* const text : {"", "a b\tc\n", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x99\x82", "\xc2\xa0", "back\\slash"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, WhatATerminalObeysIsWrittenOut) {
  EXPECT_EQ(printable("\x1b]0;owned\x07"), "\\x1b]0;owned\\x07");
  EXPECT_EQ(printable("a\rb\x7f"), "a\\x0db\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"), "\\x9b");  // a control sequence as one character
  EXPECT_EQ(printable(std::string_view("\0x", 2)), "\\x00x");
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "txt"),
            "\\u202etxt");
  EXPECT_EQ(printable("\xf3\xa0\x81\x81"), "\\U000e0041");
}

TEST(Printable, BytesThatAreNoTextAreWrittenOut) {
  EXPECT_EQ(printable("\xff/x"), "\\xff/x");
  EXPECT_EQ(printable("\xc0\x80"), "\\xc0\\x80");  // a zero in two bytes
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // half a pair
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82");
  EXPECT_EQ(printable("\xe2\x28\xa1"), "\\xe2(\\xa1");
}

TEST(Printable, TwiceIsOnce) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  EXPECT_EQ(printable(printable(all)), printable(all));
}

}  // namespace
}  // namespace spinloom
