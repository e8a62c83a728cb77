// spinloom_port_echo PORT ADDRESS [FRAMES] - a host with this IPv4 address behind a port: it answers ARP, ping and UDP.
//
// It prints the port's description when it is ready, and its counters at the end: after FRAMES frames, at the end of a
// file, or when its standard input closes, so that it never outlives who started it. Exit code 3: the
// system refused the port or its use; 2: another error.
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>

#include "ethernet/port/echo_station.hpp"
#include "ethernet/port/open.hpp"

namespace {

using namespace spinloom;

int report(const Error& error) {
  std::fprintf(stderr, "spinloom_port_echo: %s\n", error.message.c_str());
  return error.code == Code::environment ? 3 : 2;
}

// Waits until a frame or standard input has something. Returns false when standard input is at its end.
bool wait_for(const port::FramePort& port) {
  std::array<pollfd, 2> watched{{{STDIN_FILENO, POLLIN, 0}, {port.descriptor(), POLLIN, 0}}};
  if (poll(watched.data(), watched.size(), -1) < 0 || watched[0].revents == 0) return true;
  std::array<char, 256> ignored{};
  return read(STDIN_FILENO, ignored.data(), ignored.size()) > 0;
}

}  // namespace

int main(int count, char** words) {
  if (count < 3 || count > 4) {
    std::fputs("usage: spinloom_port_echo PORT ADDRESS [FRAMES], like packet:nic0 10.0.0.2\n", stderr);
    return 2;
  }
  const auto address = packet::parse_ipv4(words[2]);
  if (!address) return report(address.error());
  const uint64_t frames = count == 4 ? std::strtoull(words[3], nullptr, 10) : std::numeric_limits<uint64_t>::max();
  auto opened = port::open_port(words[1]);
  if (!opened) return report(opened.error());
  port::FramePort& port = **opened;
  std::printf("%s\n", port.description().c_str());
  std::fflush(stdout);

  port::EchoStation station(port.mac(), *address);
  for (uint64_t seen = 0; seen < frames;) {
    const auto came = station.answer_all(port);
    if (!came) return report(came.error());
    seen += *came;
    if (*came > 0) continue;
    if (port.ended()) break;
    if (port.descriptor() >= 0 && !wait_for(port)) break;
  }
  const port::Counters all = port.counters();
  std::printf("received %llu sent %llu dropped %llu truncated %llu\n", static_cast<unsigned long long>(all.received),
              static_cast<unsigned long long>(all.sent), static_cast<unsigned long long>(all.dropped),
              static_cast<unsigned long long>(all.truncated));
  return 0;
}
