// Messages between two processes on one GPU, by each way of a pair, against a plain copy within the device.
//
//   spinloom_gpu_pair_bench [--quick]      CSV on stdout: host time of a message at the receiver, median of the rounds.
//                                          The second process is this program again.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "memory/gpu/device.hpp"
#include "memory/gpu/pair.hpp"
#include "memory/gpu/plan.hpp"
#include "memory/layout/text.hpp"

namespace {

using namespace spinloom;
using namespace spinloom::gpu;

struct Row {
  const char* name;
  int64_t bytes;
  const char* from;
  const char* to;
  int rounds;
};

// Half of the memory at both ends, in blocks; and whole, for comparison.
constexpr Row rows[] = {
    {"4 KiB, 8 B blocks", 4 << 10, "hvector(512, 8, 16B, byte)", "hvector(512, 8, 16B, byte)", 400},
    {"64 KiB, 8 B to 64 B blocks", 64 << 10, "hvector(8192, 8, 16B, byte)", "hvector(1024, 64, 128B, byte)", 400},
    {"1 MiB, 64 B blocks", 1 << 20, "hvector(16384, 64, 128B, byte)", "hvector(16384, 64, 128B, byte)", 200},
    {"16 MiB, 64 B blocks", 16 << 20, "hvector(262144, 64, 128B, byte)", "hvector(262144, 64, 128B, byte)", 30},
    {"64 MiB, 64 B blocks", 64 << 20, "hvector(1048576, 64, 128B, byte)", "hvector(1048576, 64, 128B, byte)", 15},
    {"64 MiB, contiguous", 64 << 20, "contig(67108864, byte)", "contig(67108864, byte)", 15},
};
constexpr const char* ways[] = {"ipc", "staged", "packed"};

template <class T>
T must(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "%s\n", result.error().message.c_str());
    std::exit(1);
  }
  return std::move(result.value());
}

void must(const Status& status) {
  if (status) return;
  std::fprintf(stderr, "%s\n", status.error().message.c_str());
  std::exit(1);
}

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median_of(std::vector<double> times) {
  std::ranges::sort(times);
  return times[times.size() / 2];
}

std::byte byte_at(size_t place) { return static_cast<std::byte>((place * 2654435761U) >> 13); }

// One side of a message: memory, and the layout in it.
struct End {
  End(const Device& device, const char* text)
      : side(Side::of(must(layout::Blob::build(must(layout::parse(text)))))),
        memory(must(Memory::device(device, static_cast<size_t>(side.blob->true_extent())))) {}
  Side side;
  Memory memory;
};

Pair connect(int socket, const char* way) {
  PairOptions options;
  options.way = way;
  return must(Pair::connect(must(Device::at(0)), must(SocketChannel::make(socket)), options));
}

int rounds_of(const Row& row, bool quick) { return quick ? std::min(row.rounds, 5) : row.rounds; }

int send_all(int socket, const char* way, bool quick) {
  Pair pair = connect(socket, way);
  for (const Row& row : rows) {
    const End end(pair.device(), row.from);
    std::vector<std::byte> data(end.memory.bytes());
    for (size_t i = 0; i < data.size(); ++i) data[i] = byte_at(i);
    must(copy_bytes(pair.device(), end.memory.data(), data.data(), data.size(), nullptr));
    must(pair.device().synchronise());
    for (int round = 0; round < rounds_of(row, quick) + 2; ++round) must(pair.send(end.side, end.memory.data()));
  }
  return 0;
}

// The first message, by the layouts' own blocks.
bool is_right(const Device& device, const Row& row, const End& end) {
  const auto pack = [&](const Side& side, const std::byte* memory, std::vector<std::byte>& out) {
    const Message message{side, Side::packed()};
    const Plan plan = must(Plan::make(device, {&message, 1}));
    const Memory packed = must(Memory::device(device, out.size()));
    must(plan.launch(memory, packed.data()));
    must(copy_bytes(device, out.data(), packed.data(), out.size(), nullptr));
    must(device.synchronise());
  };
  std::vector<std::byte> received(static_cast<size_t>(row.bytes));
  std::vector<std::byte> sent(received.size());
  pack(end.side, end.memory.data(), received);
  const End source(device, row.from);
  std::vector<std::byte> data(source.memory.bytes());
  for (size_t i = 0; i < data.size(); ++i) data[i] = byte_at(i);
  must(copy_bytes(device, source.memory.data(), data.data(), data.size(), nullptr));
  pack(source.side, source.memory.data(), sent);
  return received == sent;
}

double memcpy_us(const Device& device, const Row& row, int rounds) {
  const Memory from = must(Memory::device(device, static_cast<size_t>(row.bytes)));
  const Memory to = must(Memory::device(device, static_cast<size_t>(row.bytes)));
  std::vector<double> times;
  for (int round = 0; round < rounds + 2; ++round) {
    const double start = now_us();
    must(copy_bytes(device, to.data(), from.data(), from.bytes(), nullptr));
    must(device.synchronise());
    if (round >= 2) times.push_back(now_us() - start);
  }
  return median_of(std::move(times));
}

int receive_all(int socket, const char* way, bool quick) {
  Pair pair = connect(socket, way);
  std::printf("# %s: %s\n", name_of(pair.way()), pair.reason().c_str());
  for (const Row& row : rows) {
    const End end(pair.device(), row.to);
    std::vector<double> times;
    for (int round = 0; round < rounds_of(row, quick) + 2; ++round) {
      const double start = now_us();
      must(pair.receive(end.side, end.memory.data()));
      if (round >= 2) times.push_back(now_us() - start);
      if (round == 0 && !is_right(pair.device(), row, end)) {
        std::fprintf(stderr, "%s by %s: other bytes than were sent\n", row.name, way);
        return 1;
      }
    }
    const double us = median_of(std::move(times));
    const double copy_us = memcpy_us(pair.device(), row, rounds_of(row, quick));
    std::printf("%s,\"%s\",%ld,%.2f,%.2f,%.2f,%.3f\n", way, row.name, static_cast<long>(row.bytes), us,
                static_cast<double>(row.bytes) / us / 1e3, copy_us, copy_us / us);
    (void)std::fflush(stdout);
  }
  return 0;
}

int run(const char* program, bool quick) {
  std::printf("way,message,bytes,us,GB/s,memcpy_us,of_memcpy\n");
  (void)std::fflush(stdout);
  for (const char* const way : ways) {
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) return 1;
    const std::string sender_socket = std::to_string(sockets[1]);
    const pid_t sender = fork();  // no process of the pair is on the device yet
    if (sender == 0) {
      close(sockets[0]);
      execl("/proc/self/exe", program, "--send", sender_socket.c_str(), way, quick ? "--quick" : nullptr, nullptr);
      _exit(127);
    }
    close(sockets[1]);
    const pid_t receiver = fork();
    if (receiver == 0) _exit(receive_all(sockets[0], way, quick));
    close(sockets[0]);
    bool failed = false;
    for (const pid_t process : {sender, receiver}) {
      int status = 0;
      failed = waitpid(process, &status, 0) != process || status != 0 || failed;
    }
    if (failed) return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bool quick = argc > 1 && std::string_view(argv[argc - 1]) == "--quick";
  if (argc >= 4 && std::string_view(argv[1]) == "--send") {
    return send_all(std::atoi(argv[2]), argv[3], quick);
  }
  return run(argv[0], quick);
}
