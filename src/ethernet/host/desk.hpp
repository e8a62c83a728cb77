// Desk - where programs come to a NIC: it installs, activates and removes contexts for them over a Unix socket.
//
// Contract: the NIC implements NicServices. serve() answers requests that have come (listener.hpp) and returns at once;
//   descriptor() is what to poll on. A context belongs to the program that installed it. When a program leaves, its
//   contexts are removed; until then no other program may touch them.
// Invariants: (1) whatever a program sends, the NIC goes on; (2) a program waits for one answer at a time.
// Threads: the NIC's. Time: none; no call waits.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ethernet/host/desk_record.hpp"
#include "ethernet/host/listener.hpp"

namespace spinloom::host {

// A context and its memory.
struct InstalledContext {
  uint32_t context = 0;
  int nic_memory = -1;  // descriptors; they stay the NIC's
  int host_memory = -1;
  uint64_t nic_bytes = 0;
  uint64_t state_offset = 0;
  uint64_t constants_offset = 0;
  uint64_t host_bytes = 0;
};

// The NIC's services for programs.
class NicServices {
 public:
  virtual ~NicServices() = default;
  // Uses the first free context if the request names SPL_ETH_ANY_CONTEXT.
  [[nodiscard]] virtual Result<InstalledContext> install(const Request& request) = 0;
  // Runs the initialisation handler if there is one, sets the rules and activates the context.
  [[nodiscard]] virtual Status activate(uint32_t context, const frames::RuleSet& rules) = 0;
  [[nodiscard]] virtual Status deactivate(uint32_t context) = 0;
  // Removes the context, after deactivating it. An Error means that frames are still under way; the desk tries again.
  [[nodiscard]] virtual Status remove(uint32_t context) = 0;
  [[nodiscard]] virtual Status invoke(uint32_t context, uint32_t message) = 0;
  virtual void frames_read(uint32_t context, uint32_t entries) = 0;
  [[nodiscard]] virtual const frames::Counts& counts() const = 0;
};

class Desk final : RecordHandler {
 public:
  // Listens for programs of the NIC of this name. Returns an Error if another process does.
  static Result<std::unique_ptr<Desk>> open(const std::string& nic, NicServices& nic_services);

  void serve();
  [[nodiscard]] int descriptor() const { return listener_->descriptor(); }
  [[nodiscard]] size_t programs() const { return listener_->clients(); }

 private:
  explicit Desk(NicServices& nic_services) : nic_(nic_services) {}
  void on_record(int program, std::span<const uint8_t> record) override;
  void on_disconnect(int program) override;
  [[nodiscard]] Answer answer(int program, const Request& request, InstalledContext& installed);
  void close(uint32_t context);

  NicServices& nic_;
  std::unique_ptr<Listener> listener_;
  std::map<uint32_t, int> owners_;  // the key is the context
  std::vector<uint32_t> contexts_to_remove_;  // contexts that could not be removed yet
};

}  // namespace spinloom::host
