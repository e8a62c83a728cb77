// board_server NAME: a board with no NIC behind it, at the socket of a NIC of this name. Each line of standard input,
// "CLUSTER CORE TEXT", is a line that a handler prints; "MAP CONTEXT ADDRESS BYTES" is host memory that a process has
// mapped. It ends with its input. Says "ready" when it listens, and a word for each line of input.
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>

#include "nic/registers/control.hpp"
#include "nic/registers/plain_board.hpp"

using namespace spinloom;

namespace {

int listen_at(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || listen(fd, 4) != 0) return -1;
  return fd;
}

// One request; whether the tool is still there.
bool serve(int client, registers::RegisterFile& file, registers::NicMemory& memory) {
  std::vector<uint8_t> bytes(registers::request_bytes_max);
  const ssize_t got = recv(client, bytes.data(), bytes.size(), 0);
  if (got <= 0) return false;
  const auto answer = registers::answer(file, memory, std::span(bytes).first(static_cast<size_t>(got)));
  return send(client, answer.data(), answer.size(), MSG_NOSIGNAL) >= 0;
}

void take(const std::string& line, registers::test::PlainBoard& board) {
  std::istringstream words(line);
  std::string first;
  if (line.rfind("MAP", 0) == 0) {
    size_t context = 0;
    registers::Window window;
    words >> first >> context >> window.address >> window.bytes;
    board.mapped_windows.at(context) = window;
    return;
  }
  uint32_t cluster = 0, core = 0;
  words >> cluster >> core;
  board.print(cluster, core, line.substr(static_cast<size_t>(words.tellg()) + 1) + "\n");
}

}  // namespace

int main(int count, char** arguments) {
  const char* const folder = std::getenv("XDG_RUNTIME_DIR");
  if (count != 2) return 2;
  const int listening = listen_at(registers::control_socket_path(arguments[1], folder == nullptr ? "" : folder));
  if (listening < 0) return 2;
  registers::test::PlainBoard board;
  registers::RegisterFile file(*registers::Map::make({}), board);
  std::puts("ready");
  std::fflush(stdout);
  pollfd ready[] = {{STDIN_FILENO, POLLIN, 0}, {listening, POLLIN, 0}, {-1, POLLIN, 0}};  // the last: the tool
  int& client = ready[2].fd;
  std::string input;
  while (poll(ready, 3, -1) > 0) {
    if (ready[2].revents != 0 && !serve(client, file, board)) {
      close(client);
      client = -1;
    } else if (ready[1].revents != 0 && client < 0) {
      client = accept(listening, nullptr, nullptr);
    }
    if (ready[0].revents == 0) continue;
    char piece[4096];
    const ssize_t got = read(STDIN_FILENO, piece, sizeof piece);
    if (got <= 0) return 0;
    input.append(piece, static_cast<size_t>(got));
    for (size_t end; (end = input.find('\n')) != std::string::npos; input.erase(0, end + 1)) {
      take(input.substr(0, end), board);
      std::puts("taken");
      std::fflush(stdout);
    }
  }
  return 1;
}
