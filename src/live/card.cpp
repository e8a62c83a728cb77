#include "live/card.hpp"

#include <sys/random.h>
#include <sys/stat.h>

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <functional>

namespace spinloom::live {
namespace {

constexpr char format[] = "spl1-%" PRIx64 "-%" PRIx64 "-%x-%" PRIx64 "-%" PRIx64 "-%x-%x-%x";

}  // namespace

std::string write(const Card& card) {
  char text[256];
  const int length =
      std::snprintf(text, sizeof text, format, card.machine, static_cast<uint64_t>(card.pid),
                    static_cast<unsigned>(card.file), card.nonce[0], card.nonce[1], static_cast<unsigned>(card.user),
                    static_cast<unsigned>(card.address), static_cast<unsigned>(card.port));
  SPL_ASSERT(length > 0 && static_cast<size_t>(length) < sizeof text, length);
  return text;
}

Result<Card> read_card(const std::string& text) {
  Card card;
  uint64_t pid = 0;
  unsigned file = 0, user = 0, address = 0, port = 0;
  const int fields = std::sscanf(text.c_str(), "spl1-%" SCNx64 "-%" SCNx64 "-%x-%" SCNx64 "-%" SCNx64 "-%x-%x-%x",
                                 &card.machine, &pid, &file, &card.nonce[0], &card.nonce[1], &user, &address, &port);
  card.pid = static_cast<int64_t>(pid);
  card.file = static_cast<int>(file);
  card.user = user;
  card.address = address;
  card.port = static_cast<uint16_t>(port);
  if (fields == 8 && write(card) == text) return card;
  return fail(Code::environment, "a rank published '", text, "', which is not of this version of the library");
}

uint64_t machine_id() {
  std::ifstream boot("/proc/sys/kernel/random/boot_id");
  std::string id;
  boot >> id;
  struct stat processes{};
  if (stat("/proc/self/ns/pid", &processes) == 0) id += text(" ", processes.st_ino);
  return std::hash<std::string>{}(id);
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
