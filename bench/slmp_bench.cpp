// Goodput of SLMP over loopback by window and threads, as ratios to a UDP copy without acknowledgements (counted: the
// bytes that arrived) and to a TCP copy of the same bytes in the same round. Host time: medians of rounds, in which all
// ways take turns. Bytes are compared where all of them must arrive. Usage: spinloom_slmp_bench [ROUNDS [BYTES]]
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "base/random.hpp"
#include "ethernet/slmp/receive_message.hpp"
#include "ethernet/slmp/send_message.hpp"

namespace spinloom::slmp {
namespace {

using Clock = std::chrono::steady_clock;
using Bytes = std::vector<uint8_t>;

constexpr uint32_t payload_bytes = 1408;
constexpr uint32_t windows[] = {1, 4, 16, 64, 256, 1024};
constexpr uint32_t thread_counts[] = {1, 2, 4};
constexpr Time second{1'000'000'000'000};
constexpr Time quiet_time{100'000'000'000};

void must(bool good, const std::string& what) {
  if (good) return;
  std::fprintf(stderr, "slmp_bench: %s\n", what.c_str());
  std::exit(1);
}

template <class T>
T value_of(Result<T> result) {
  must(result.ok(), result.ok() ? "" : result.error().message);
  return std::move(*result);
}

sockaddr_in loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// From the first byte sent until the receiver has all.
double tcp_seconds(const Bytes& message) {
  sockaddr_in address = loopback(0);
  socklen_t length = sizeof(address);
  auto* const named = reinterpret_cast<sockaddr*>(&address);
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  must(bind(listener, named, length) == 0 && listen(listener, 1) == 0, "no TCP port");
  must(getsockname(listener, named, &length) == 0, "no name of the TCP port");
  const int sender = socket(AF_INET, SOCK_STREAM, 0);
  must(connect(sender, named, length) == 0, "no TCP connection");
  const int receiver = accept(listener, nullptr, nullptr);
  Bytes copy(message.size());
  const auto start = Clock::now();
  std::thread receiving([&] {
    for (size_t at = 0; at < copy.size();) {
      const ssize_t count = recv(receiver, copy.data() + at, copy.size() - at, 0);
      must(count > 0, "TCP ended early");
      at += static_cast<size_t>(count);
    }
  });
  for (size_t at = 0; at < message.size();) {
    const ssize_t count = send(sender, message.data() + at, message.size() - at, 0);
    must(count > 0, "TCP takes nothing");
    at += static_cast<size_t>(count);
  }
  receiving.join();
  const double seconds = seconds_since(start);
  must(copy == message, "TCP brought other bytes");
  for (const int file : {listener, sender, receiver}) close(file);
  return seconds;
}

struct UdpCopy {
  double seconds = 0;
  double arrived = 0;  // the share of the message's bytes that arrived
};

// Packets of SLMP's size without headers, acknowledgements or flow control, from the first sent to the last that
// arrived.
UdpCopy measure_udp(const Bytes& message) {
  UdpPort receiver;
  must(receiver.bind(loopback(0)).ok(), "no UDP port");
  UdpPort sender;
  must(sender.connect(loopback(receiver.own_port())).ok(), "no UDP port");
  const auto start = Clock::now();
  UdpCopy out;
  size_t bytes = 0;
  std::thread receiving([&] {
    const auto received = std::make_unique<UdpPort::Received>();
    for (auto last = Clock::now(); seconds_since(last) < 0.1;) {
      const size_t count = value_of(receiver.receive(*received));
      for (size_t i = 0; i < count; ++i) bytes += received->lengths[i];
      if (count == 0) {
        receiver.wait(Time{1'000'000'000}, -1, false);
        continue;
      }
      last = Clock::now();
      out.seconds = seconds_since(start);
    }
  });
  std::vector<Datagram> datagrams;
  for (size_t at = 0; at < message.size(); at += payload_bytes) {
    datagrams.push_back({{}, {message.data() + at, std::min<size_t>(payload_bytes, message.size() - at)}});
  }
  for (size_t at = 0; at < datagrams.size();) {
    const size_t sent = value_of(sender.send({datagrams.data() + at, std::min<size_t>(32, datagrams.size() - at)}));
    if (sent == 0) sender.wait(Time{1'000'000'000}, -1, true);
    at += sent;
  }
  receiving.join();
  out.arrived = static_cast<double>(bytes) / static_cast<double>(message.size());
  return out;
}

double slmp_seconds(const Bytes& message, uint32_t window, uint32_t threads, bool as_original) {
  ReceiveMessage receiver({});
  must(receiver.listen(loopback(0)).ok(), "no UDP port");
  SendOptions options;
  options.payload_bytes = payload_bytes;
  options.threads = threads;
  options.sender.window = window;
  options.sender.retransmit = !as_original;
  options.polling = as_original ? Polling::original : Polling::wait;
  const auto start = Clock::now();
  double seconds = 0;
  std::thread receiving([&] {
    const auto received = value_of(receiver.receive(second * 60));
    seconds = seconds_since(start);
    must(received && received->bytes == message, "SLMP brought other bytes, or none within a minute");
    must(receiver.answer_until_quiet(quiet_time).ok(), "repeats are not answered");
  });
  SenderCounts counts;
  const Status status = send_message(options, loopback(receiver.own_port()), 1, message, counts);
  must(status.ok(), status.ok() ? "" : status.error().message);
  receiving.join();
  return seconds;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

void run(int rounds, size_t size) {
  Bytes message(size);
  Random random(1, "slmp_bench");
  for (uint8_t& byte : message) byte = static_cast<uint8_t>(random.next());
  std::vector<double> tcp;
  std::vector<double> udp_seconds;  // seconds that all bytes would take
  std::vector<double> arrived;
  std::map<std::tuple<bool, uint32_t, uint32_t>, std::pair<std::vector<double>, std::vector<double>>> ratios;
  for (int round = 0; round < rounds; ++round) {
    tcp.push_back(tcp_seconds(message));
    const UdpCopy copied = measure_udp(message);
    udp_seconds.push_back(copied.seconds / copied.arrived);
    arrived.push_back(copied.arrived);
    for (const bool as_original : {false, true}) {
      for (const uint32_t window : windows) {
        for (const uint32_t threads : thread_counts) {
          if (threads > window) continue;
          const double seconds = slmp_seconds(message, window, threads, as_original);
          auto& [of_udp, of_tcp] = ratios[{as_original, window, threads}];
          of_udp.push_back(udp_seconds.back() / seconds);
          of_tcp.push_back(tcp.back() / seconds);
        }
      }
    }
  }
  const double gigabits = static_cast<double>(size) * 8 / 1e9;
  std::printf("%zu B over loopback, %d rounds, host time: UDP %.2f Gbit/s, %.0f %% arriving; TCP %.2f Gbit/s.\n", size,
              rounds, gigabits / median(udp_seconds), 100 * median(arrived), gigabits / median(tcp));
  std::printf("Ratios of goodput: SLMP over UDP / over TCP.\n");
  for (const bool as_original : {false, true}) {
    std::printf("\n| window%s |", as_original ? ", as the original" : "");
    for (const uint32_t threads : thread_counts) std::printf(" %u thread%s |", threads, threads == 1 ? "" : "s");
    std::printf("\n|---|---|---|---|\n");
    for (const uint32_t window : windows) {
      std::printf("| %u |", window);
      for (const uint32_t threads : thread_counts) {
        const auto found = ratios.find({as_original, window, threads});
        if (found == ratios.end()) {
          std::printf(" - |");
        } else {
          std::printf(" %.2f / %.3f |", median(found->second.first), median(found->second.second));
        }
      }
      std::printf("\n");
    }
  }
}

}  // namespace
}  // namespace spinloom::slmp

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
  const long long size = argc > 2 ? std::atoll(argv[2]) : 13'000'000;
  if (rounds < 1 || size < 1 || size > (1 << 29)) {
    std::fputs("usage: spinloom_slmp_bench [ROUNDS [BYTES]], with 512 MiB at most\n", stderr);
    return 2;
  }
  spinloom::slmp::run(rounds, static_cast<size_t>(size));
  return 0;
}
