// Listener - a Unix socket at which programs and tools ask a NIC, one record a message.
//
// Contract: serve() gives one record of each guest that has sent one to Clerk::hear(), calls Clerk::left() for each
//   guest that has gone, and returns at once. It looks at 16 sockets at most; what it leaves keeps descriptor()
//   readable, which is what to poll on.
// Invariants: (1) one process listens under a path: the lock beside it says whether it lives, and a socket that a
//   killed one has left is replaced, so the folder must be private (base/private_folder.hpp); (2) hear()
//   gets at most record_bytes + 1 bytes: the rest of a longer record is lost, so that the clerk can refuse it.
// Threads: one owner. Time: none; no call waits.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace spinloom::host {

// Receives the records of guests. A guest's number is its socket.
class Clerk {
 public:
  virtual void hear(int guest, std::span<const uint8_t> record) = 0;
  virtual void left(int guest) = 0;

 protected:
  ~Clerk() = default;
};

class Listener {
 public:
  static Result<std::unique_ptr<Listener>> open(const std::string& path, size_t record_bytes);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  void serve(Clerk& clerk);
  [[nodiscard]] int descriptor() const { return poll_; }
  [[nodiscard]] size_t guests() const { return guests_.size(); }

 private:
  Listener(std::string path, size_t record_bytes) : path_(std::move(path)), record_(record_bytes + 1) {}
  [[nodiscard]] Status lock();
  [[nodiscard]] bool hear(int guest, Clerk& clerk);

  std::string path_;
  std::vector<uint8_t> record_;
  int lock_ = -1;
  int listener_ = -1;
  int poll_ = -1;
  std::vector<int> guests_;
};

}  // namespace spinloom::host
