// Process - one rank's Portals library: its four network interfaces over one NIC, and which rank runs now.
//
// Contract: a driver makes a Process for each rank and calls enter() whenever that rank's program goes on; the C calls
//   work for the process that was entered last on this thread.
// Invariants: (1) interface n owns the portal table entries n * 64 to n * 64 + 63 of the NIC; (2) what blocked() says
//   is true while the program is inside a call that waits.
// Threads: one at a time. Time: that of the host.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>

#include "portals/interface.hpp"
#include "ptl/host.hpp"
#include "ptl/objects.hpp"

namespace spinloom::ptl {

inline constexpr uint32_t portals_each = limits::portal_table_max / limits::portal_tables;
inline constexpr ptl_pid_t process_id = 1;  // one process a node: what a program asks for changes nothing
static_assert(interface_count == limits::portal_tables, "four interfaces share one portal table");
static_assert(portals_each == 64, "the least that Portals 4 asks for");

// What a call waits for; for reports only.
struct Blocked {
  const char* call = nullptr;
  nic::CounterId counter;  // of the first one, for calls that take several
  uint64_t test = 0;
  uint32_t count = 1;  // queues or counters
};

class Process {
 public:
  explicit Process(Host& host) : host_(host), interface_(host.port()) {}

  [[nodiscard]] static Process* current();
  static void enter(Process* process);
  // For threads that have entered none: `make` is asked for one by PtlInit, which a process of its own has no other
  // way to get. A forked child has none.
  using Make = Process* (*)();
  static void serve_all_threads(Make make);
  static void forget_all_threads();
  [[nodiscard]] static Process* current_or_made();

  [[nodiscard]] Host& host() { return host_; }
  [[nodiscard]] portals::Interface& portals() { return interface_; }
  [[nodiscard]] uint32_t node() const { return interface_.rank().value; }

  // The interface that owns a handle of this kind, or null; one that is closing owns none.
  [[nodiscard]] NetworkInterface* owner_of(ptl_handle_any_t handle, Kind kind);
  [[nodiscard]] NetworkInterface* interface_of(ptl_handle_ni_t handle);
  [[nodiscard]] std::unique_ptr<NetworkInterface>& interface_at(uint32_t number) { return interfaces_.at(number); }

  [[nodiscard]] Queue* queue(ptl_handle_eq_t handle);
  [[nodiscard]] Counter* counter(ptl_handle_ct_t handle);
  [[nodiscard]] Descriptor* descriptor(ptl_handle_md_t handle);
  [[nodiscard]] Entry* entry(ptl_handle_me_t handle);
  // Names an entry. The NIC's id says that an older one of that id is gone.
  [[nodiscard]] ptl_handle_me_t remember_entry(NetworkInterface& interface, Entry&& entry);
  void forget_entry(ptl_handle_me_t handle);
  // Gives back what an entry's handlers hold; what a message still uses stays with the NIC.
  void release(const Spin& spin);

  // Gives the NIC a command that Interface would not wait for, and waits: a counter's new value is readable then.
  [[nodiscard]] Status ask(const nic::CommandBody& body);

  // What the program does, for a report: "waits in PtlCTWait (test 2; ...)".
  [[nodiscard]] std::string blocked() const;
  // Null: nothing. It stays where it is until then.
  void block(const Blocked* blocked) { blocked_ = blocked; }
  // Of an interface that begins: handles of one before it are stale.
  [[nodiscard]] uint32_t next_generation() { return generation_ = generation_ % generation_last + 1; }

  // PtlAbort: calls that wait end, and so do all that would wait, until the last PtlFini.
  void abort() {
    host_.begin_call();
    aborted_ = initialised > 0;
    host_.end_call();
    wake_waiters();
  }
  [[nodiscard]] bool aborted() const { return aborted_; }
  void forget_abort() { aborted_ = false; }
  // Outside of a call: those that wait look again.
  void wake_waiters() {
    if (waiters_ > 0) host_.interrupt();
  }

  uint32_t initialised = 0;  // PtlInit less PtlFini
  bool closed = false;       // and will never be again
  bool ending = false;       // the last PtlFini is at work
  const char* call = "";  // the newest one
  uint64_t calls = 0;

 private:
  friend class Waiter;
  Host& host_;
  std::atomic<uint32_t> waiters_{0};
  bool aborted_ = false;
  portals::Interface interface_;
  std::array<std::unique_ptr<NetworkInterface>, interface_count> interfaces_;
  std::unordered_map<uint32_t, ptl_handle_me_t> entry_handles_;  // by the NIC's id, also of entries that are gone
  const Blocked* blocked_ = nullptr;
  uint32_t generation_ = 0;
  uint64_t next_token_ = uint64_t{1} << 63;  // apart from those of Interface
};

// A call that waits, from its beginning to its end.
class Waiter {
 public:
  explicit Waiter(Process& process) : process_(process) { ++process_.waiters_; }
  ~Waiter() { --process_.waiters_; }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

 private:
  Process& process_;
};

}  // namespace spinloom::ptl
