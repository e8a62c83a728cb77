#include "live/card.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string_view>

namespace spinloom::live {
namespace {

constexpr char format[] = "spl1-%" PRIx64 "-%" PRIx64 "-%x-%" PRIx64 "-%" PRIx64 "-%x-%x-%x-%" PRIx64;

constexpr std::string_view trouble_mark = "spl1-trouble-";
constexpr size_t trouble_letters = 240;
constexpr char digits[] = "0123456789abcdef";

}  // namespace

std::string write(const Card& card) {
  char text[256];
  const int length =
      std::snprintf(text, sizeof text, format, card.machine, static_cast<uint64_t>(card.pid),
                    static_cast<unsigned>(card.file), card.nonce[0], card.nonce[1], static_cast<unsigned>(card.user),
                    static_cast<unsigned>(card.address), static_cast<unsigned>(card.port), card.traits);
  SPL_ASSERT(length > 0 && static_cast<size_t>(length) < sizeof text, length);
  return text;
}

// Two hexadecimal digits a letter, because launchers accept no blanks.
std::string write(const Error& trouble) {
  std::string text(trouble_mark);
  for (const char letter : trouble.message.substr(0, trouble_letters)) {
    text += digits[static_cast<uint8_t>(letter) >> 4];
    text += digits[static_cast<uint8_t>(letter) & 15];
  }
  return text;
}

Result<Card> read_card(const std::string& text) {
  if (text.compare(0, trouble_mark.size(), trouble_mark) == 0) {
    std::string message;
    for (size_t at = trouble_mark.size(); at + 1 < text.size(); at += 2) {
      message += static_cast<char>(std::strtoul(text.substr(at, 2).c_str(), nullptr, 16));
    }
    return fail(Code::environment, message);
  }
  Card card;
  uint64_t pid = 0;
  unsigned file = 0, user = 0, address = 0, port = 0;
  const int fields =
      std::sscanf(text.c_str(), "spl1-%" SCNx64 "-%" SCNx64 "-%x-%" SCNx64 "-%" SCNx64 "-%x-%x-%x-%" SCNx64,
                  &card.machine, &pid, &file, &card.nonce[0], &card.nonce[1], &user, &address, &port, &card.traits);
  card.pid = static_cast<int64_t>(pid);
  card.file = static_cast<int>(file);
  card.user = user;
  card.address = address;
  card.port = static_cast<uint16_t>(port);
  if (fields == 9 && write(card) == text) return card;
  return fail(Code::environment, "a rank published '", text, "', which is not of this version of the library");
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
