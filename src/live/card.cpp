#include "live/card.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string_view>

#include "live/hex_text.hpp"

namespace spinloom::live {
namespace {

constexpr char format[] = "spl2-%" PRIx64 "-%" PRIx64 "-%x-%" PRIx64 "-%" PRIx64 "-%x-%x-%x-%x-%" PRIx64 "-%x";

constexpr std::string_view trouble_mark = "spl1-trouble-";
constexpr size_t trouble_letters = 240;

}  // namespace

std::string write(const Card& card) {
  char text[256];
  const int length = std::snprintf(
      text, sizeof text, format, card.machine, static_cast<uint64_t>(card.pid), static_cast<unsigned>(card.file),
      card.nonce[0], card.nonce[1], static_cast<unsigned>(card.user), static_cast<unsigned>(card.address),
      static_cast<unsigned>(card.port), card.datagram_bytes, card.traits, static_cast<unsigned>(card.fabric));
  SPL_ASSERT(length > 0 && static_cast<size_t>(length) < sizeof text, length);
  return text;
}

std::string write(const Error& trouble) {
  return std::string(trouble_mark) + to_hex(std::string_view(trouble.message).substr(0, trouble_letters));
}

Result<Card> read_card(const std::string& text) {
  if (text.compare(0, trouble_mark.size(), trouble_mark) == 0) {
    return fail(Code::environment, from_hex(std::string_view(text).substr(trouble_mark.size())).value_or(text));
  }
  Card card;
  uint64_t pid = 0;
  unsigned file = 0, user = 0, address = 0, port = 0, datagram_bytes = 0, fabric = 0;
  const int fields = std::sscanf(
      text.c_str(), "spl2-%" SCNx64 "-%" SCNx64 "-%x-%" SCNx64 "-%" SCNx64 "-%x-%x-%x-%x-%" SCNx64 "-%x", &card.machine,
      &pid, &file, &card.nonce[0], &card.nonce[1], &user, &address, &port, &datagram_bytes, &card.traits, &fabric);
  card.pid = static_cast<int64_t>(pid);
  card.file = static_cast<int>(file);
  card.user = user;
  card.address = address;
  card.port = static_cast<uint16_t>(port);
  card.datagram_bytes = datagram_bytes;
  card.fabric = static_cast<FabricNeed>(std::min(fabric, static_cast<unsigned>(FabricNeed::asked)));
  if (fields == 11 && write(card) == text) return card;
  return fail(Code::environment, "a rank published '", text, "', which is not of this version of the library");
}

bool need_fabrics(const std::vector<Card>& cards) {
  bool machines = false, wanted = false;
  for (const Card& card : cards) {
    if (card.fabric == FabricNeed::asked) return true;
    machines = machines || card.machine != cards.front().machine;
    wanted = wanted || card.fabric == FabricNeed::between_machines;
  }
  return machines && wanted;
}

Result<uint64_t> machine_id() {
  const char* const path = "/proc/sys/kernel/random/boot_id";
  char id[64] = "";
  struct stat processes{};
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  const int error = errno;
  if (file < 0 && error != ENOENT) return fail(Code::environment, path, ": ", trouble_of(error));
  const bool known = file >= 0 && read(file, id, sizeof id - 1) > 0 && stat("/proc/self/ns/pid", &processes) == 0;
  if (file >= 0) close(file);
  if (!known) return fail(Code::unsupported, "there is no /proc");
  return std::hash<std::string>{}(text(id, " ", processes.st_ino));
}

Secret random_secret() {
  Secret secret{};
  size_t done = 0;
  while (done < sizeof secret) {
    const ssize_t got = getrandom(reinterpret_cast<uint8_t*>(secret.data()) + done, sizeof secret - done, 0);
    if (got > 0) done += static_cast<size_t>(got);
  }
  return secret;
}

}  // namespace spinloom::live
