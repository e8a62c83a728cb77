// A key's text is the key, and other bytes are none.
#include "portals/rma/key.hpp"

#include <gtest/gtest.h>

#include "base/testing/seeds.hpp"

namespace spinloom::rma {
namespace {

TEST(Key, ComesBackFromItsText) {
  const Key key{7, 62, right_read | right_atomic, Notices::queued, 0x4123456789abcdef, 0x4fedcba987654321, 4096};
  const auto back = decode_key(encode_key(key));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(back->rank, key.rank);
  EXPECT_EQ(back->portal, key.portal);
  EXPECT_EQ(back->rights, key.rights);
  EXPECT_EQ(back->notices, key.notices);
  EXPECT_EQ(back->bits, key.bits);
  EXPECT_EQ(back->notice_bits, key.notice_bits);
  EXPECT_EQ(back->bytes, key.bytes);
}

TEST(Key, AChangedByteIsFound) {
  const KeyText text = encode_key({3, 62, right_write, Notices::none, 1, 2, 3});
  for (size_t at = 0; at < text.size(); ++at) {
    KeyText changed = text;
    changed.at(at) ^= 0x10;
    EXPECT_FALSE(decode_key(changed).ok()) << "byte " << at;
  }
  EXPECT_FALSE(decode_key(KeyText{}).ok());
}

}  // namespace
}  // namespace spinloom::rma
