// Desk - where programs come to a NIC: installs, activates and removes contexts for them over a Unix socket.
//
// Contract: the NIC implements Office. serve() takes what has come and returns at once; descriptor() is what to poll on.
//   A context belongs to the program that installed it. When a program leaves, its contexts are closed; nobody else may
//   touch them before.
// Invariants: (1) whatever a program sends, the NIC goes on; (2) a program waits for one answer at a time.
// Threads: the NIC's. Time: none; no call waits.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "host/desk_record.hpp"

namespace spinloom::host {

// A context's memory.
struct Place {
  int nic_memory = -1;  // descriptors; they stay the NIC's
  int host_memory = -1;
  uint64_t nic_bytes = 0;
  uint64_t state_offset = 0;
  uint64_t constants_offset = 0;
  uint64_t host_bytes = 0;
};

// What the NIC does for programs.
class Office {
 public:
  virtual ~Office() = default;
  [[nodiscard]] virtual Result<Place> install(const Request& request) = 0;
  // Rules, initialisation handler, activation.
  [[nodiscard]] virtual Status activate(uint32_t context, const frame::RuleSet& rules) = 0;
  [[nodiscard]] virtual Status deactivate(uint32_t context) = 0;
  // Deactivates it first. An Error: frames are still under way; the desk asks again.
  [[nodiscard]] virtual Status remove(uint32_t context) = 0;
  [[nodiscard]] virtual Status invoke(uint32_t context, uint32_t message) = 0;
  virtual void frames_read(uint32_t context, uint32_t entries) = 0;
  [[nodiscard]] virtual const frame::Counts& counts() const = 0;
};

class Desk {
 public:
  // Listens for programs of the NIC of this name. An Error if another process does.
  static Result<std::unique_ptr<Desk>> open(const std::string& nic, Office& office);
  ~Desk();
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;

  void serve();
  [[nodiscard]] int descriptor() const { return poll_; }
  [[nodiscard]] size_t programs() const { return visitors_.size(); }

 private:
  struct Visitor {
    int socket = -1;
    std::vector<uint32_t> contexts;
  };
  Desk(Office& office, std::string path) : office_(office), path_(std::move(path)) {}
  void admit();
  [[nodiscard]] bool hear(Visitor& visitor);
  [[nodiscard]] Answer answer(Visitor& visitor, const Request& request, Place& place);
  [[nodiscard]] Status owned(const Visitor& visitor, uint32_t context) const;
  void farewell(Visitor& visitor);
  void tidy();

  Office& office_;
  std::string path_;
  int lock_ = -1;
  int listener_ = -1;
  int poll_ = -1;
  std::vector<Visitor> visitors_;
  std::vector<uint32_t> leaving_;  // contexts that could not be removed yet
};

}  // namespace spinloom::host
