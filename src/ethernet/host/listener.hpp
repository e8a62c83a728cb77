// Listener - a Unix socket at which programs and tools ask a NIC, one record a message.
//
// Contract: serve() gives one record of each client that has sent one to RecordHandler::on_record(), calls
//   RecordHandler::on_disconnect() for each client that has gone, and returns at once. It looks at 16 sockets at most;
//   what it leaves keeps descriptor() readable, which is what to poll on.
// Invariants: (1) one process listens under a path: the lock beside it says whether it lives, and a socket that a
//   killed one has left is replaced, so the folder must be private (base/private_folder.hpp); (2) on_record()
//   gets at most record_bytes + 1 bytes: the rest of a longer record is lost, so that the handler can refuse it.
// Threads: one owner. Time: none; no call waits.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace spinloom::host {

// Receives the records of clients. A client's number is its socket.
class RecordHandler {
 public:
  virtual void on_record(int client, std::span<const uint8_t> record) = 0;
  virtual void on_disconnect(int client) = 0;

 protected:
  ~RecordHandler() = default;
};

class Listener {
 public:
  static Result<std::unique_ptr<Listener>> open(const std::string& path, size_t record_bytes);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  void serve(RecordHandler& handler);
  [[nodiscard]] int descriptor() const { return poll_; }
  [[nodiscard]] size_t clients() const { return clients_.size(); }

 private:
  Listener(std::string path, size_t record_bytes) : path_(std::move(path)), record_(record_bytes + 1) {}
  [[nodiscard]] Status lock();
  [[nodiscard]] bool receive_from(int client, RecordHandler& handler);

  std::string path_;
  std::vector<uint8_t> record_;
  int lock_ = -1;
  int listener_ = -1;
  int poll_ = -1;
  std::vector<int> clients_;
};

}  // namespace spinloom::host
