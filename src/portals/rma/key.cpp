#include "portals/rma/key.hpp"

#include <cstring>

namespace spinloom::rma {
namespace {

constexpr uint32_t key_mark = 0x4b52'4c53;  // "SLRK"
constexpr uint32_t key_version = 1;

// The fields in the order in which they lie in the text; each has the machine's byte order.
struct KeyFields {
  uint32_t mark = key_mark;
  uint32_t version = key_version;
  uint32_t rank = 0;
  uint32_t portal = 0;
  uint32_t rights = 0;
  uint32_t notices = 0;
  uint64_t bits = 0;
  uint64_t notice_bits = 0;
  uint64_t bytes = 0;
  uint64_t unused = 0;
  uint64_t sum = 0;
};
static_assert(sizeof(KeyFields) == 64, "a key's text has 64 bytes, without gaps");
static_assert(sizeof(KeyText) == sizeof(KeyFields), "a key's text is its fields");

// FNV-1a over all but the sum itself.
uint64_t sum_of(const KeyFields& fields) {
  KeyText bytes{};
  std::memcpy(bytes.data(), &fields, sizeof(fields));
  uint64_t sum = 0xcbf2'9ce4'8422'2325;
  for (size_t i = 0; i < offsetof(KeyFields, sum); ++i) sum = (sum ^ bytes.at(i)) * 0x100'0000'01b3;
  return sum;
}

}  // namespace

KeyText encode_key(const Key& key) {
  KeyFields fields;
  fields.rank = key.rank;
  fields.portal = key.portal;
  fields.rights = key.rights;
  fields.notices = static_cast<uint32_t>(key.notices);
  fields.bits = key.bits;
  fields.notice_bits = key.notice_bits;
  fields.bytes = key.bytes;
  fields.sum = sum_of(fields);
  KeyText text{};
  std::memcpy(text.data(), &fields, sizeof(fields));
  return text;
}

Result<Key> decode_key(const KeyText& text) {
  KeyFields fields;
  std::memcpy(&fields, text.data(), sizeof(fields));
  if (fields.mark != key_mark || fields.sum != sum_of(fields)) {
    return fail(Code::invalid, "these bytes are no key, or were changed on their way");
  }
  if (fields.version != key_version) {
    return fail(Code::invalid, "the key has version ", fields.version, ", this library knows ", key_version);
  }
  if (fields.rights > rights_all || fields.notices > static_cast<uint32_t>(Notices::queued)) {
    return fail(Code::invalid, "the key has rights ", fields.rights, " and notices ", fields.notices);
  }
  return Key{fields.rank, fields.portal,      fields.rights, static_cast<Notices>(fields.notices),
             fields.bits, fields.notice_bits, fields.bytes};
}

}  // namespace spinloom::rma
