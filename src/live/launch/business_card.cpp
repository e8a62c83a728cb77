#include "live/launch/business_card.hpp"

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

#include "live/launch/hex_text.hpp"
#include "live/launch/thread_launchers.hpp"

namespace spinloom::live {
namespace {

constexpr char format[] = "spl3-%" PRIx64 "-%" PRIx64 "-%x-%" PRIx64 "-%" PRIx64 "-%x-%x-%x-%x-%" PRIx64 "-%x-%x";

constexpr char network_format[] = "-%x.%x.%x";  // the card's last fields, one for each network

constexpr std::string_view trouble_mark = "spl1-trouble-";
constexpr size_t trouble_letters = 240;

}  // namespace

std::string write(const BusinessCard& card) {
  char text[256];
  const int length =
      std::snprintf(text, sizeof text, format, card.machine, static_cast<uint64_t>(card.pid),
                    static_cast<unsigned>(card.file), card.nonce[0], card.nonce[1], static_cast<unsigned>(card.user),
                    static_cast<unsigned>(card.address), static_cast<unsigned>(card.port), card.datagram_bytes,
                    card.traits, static_cast<unsigned>(card.fabric), static_cast<unsigned>(card.gateway));
  SPL_ASSERT(length > 0 && static_cast<size_t>(length) < sizeof text, length);
  std::string all = text;
  for (const BusinessCardNetwork& one : card.networks) {
    std::snprintf(text, sizeof text, network_format, one.network.address, one.network.bits, unsigned{one.port});
    all += text;
  }
  return all;
}

std::string write(const Error& trouble) {
  return std::string(trouble_mark) + to_hex(std::string_view(trouble.message).substr(0, trouble_letters));
}

Result<BusinessCard> read_card(const std::string& text) {
  if (text.compare(0, trouble_mark.size(), trouble_mark) == 0) {
    return fail(Code::environment, from_hex(std::string_view(text).substr(trouble_mark.size())).value_or(text));
  }
  BusinessCard card;
  uint64_t pid = 0;
  unsigned file = 0, user = 0, address = 0, port = 0, datagram_bytes = 0, fabric = 0, gateway = 0;
  int length = 0;
  const int fields = std::sscanf(
      text.c_str(), "spl3-%" SCNx64 "-%" SCNx64 "-%x-%" SCNx64 "-%" SCNx64 "-%x-%x-%x-%x-%" SCNx64 "-%x-%x%n",
      &card.machine, &pid, &file, &card.nonce[0], &card.nonce[1], &user, &address, &port, &datagram_bytes, &card.traits,
      &fabric, &gateway, &length);
  card.pid = static_cast<int64_t>(pid);
  card.file = static_cast<int>(file);
  card.user = user;
  card.address = address;
  card.port = static_cast<uint16_t>(port);
  card.datagram_bytes = datagram_bytes;
  card.fabric = static_cast<FabricNeed>(std::min(fabric, static_cast<unsigned>(FabricNeed::asked)));
  card.gateway = static_cast<Gateway>(std::min(gateway, static_cast<unsigned>(Gateway::alone)));
  const char* rest = text.c_str() + length;
  for (size_t i = 0; fields == 12 && i < BusinessCard::networks_max && *rest != 0; ++i) {
    BusinessCardNetwork one;
    unsigned network_port = 0;
    if (std::sscanf(rest, "-%x.%x.%x%n", &one.network.address, &one.network.bits, &network_port, &length) != 3) break;
    one.port = static_cast<uint16_t>(network_port);
    card.networks.push_back(one);
    rest += length;
  }
  const bool sound = std::all_of(card.networks.begin(), card.networks.end(),
                                 [](const BusinessCardNetwork& one) { return one.network.bits <= 32; });
  if (fields == 12 && sound && write(card) == text) return card;
  if (is_packed(text)) {
    return fail(Code::environment,
                "a process of this job has its ranks on threads (spinloom-threads), and this one not");
  }
  return fail(Code::environment, "a rank published '", text, "', which is not of this version of the library");
}

bool need_fabrics(const std::vector<BusinessCard>& cards) {
  bool machines = false, wanted = false;
  for (const BusinessCard& card : cards) {
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
  if (file < 0 && error != ENOENT) return fail(Code::environment, path, ": ", error_text(error));
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
