// Process - the Portals library of one rank: its four network interfaces over one NIC. Knows which rank runs now.
//
// Contract: a driver makes a Process for each rank and calls enter() whenever that rank's program goes on. A C
//   function works for the Process that was entered last on its thread. Where threads never call enter(), it works for
//   the Process in the thread's seat: that of the thread's rank, or, if the thread has no rank, that of all threads.
// Invariants: (1) interface n owns the portal table entries n * 64 to n * 64 + 63 of the NIC; (2) while the program
//   is inside a call that waits, blocked() says for what.
// Threads: one at a time. Time: that of the host.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "portals/interface.hpp"
#include "ptl/host.hpp"
#include "ptl/objects.hpp"

namespace spinloom::ptl {

inline constexpr uint32_t portals_each = limits::portal_table_max / limits::portal_tables;
inline constexpr ptl_pid_t process_id = 1;  // each node has one process, whatever a program asks for
static_assert(interface_count == limits::portal_tables, "four interfaces share one portal table");
static_assert(portals_each == 64, "the least that Portals 4 asks for");

// The objects of a waiting call, for reports.
struct Blocked {
  const char* call = nullptr;
  nic::CounterId counter;  // the first counter, for calls that take several
  uint64_t test = 0;
  uint32_t count = 1;  // queues or counters that it waits for
};

class Process {
 public:
  explicit Process(Host& host) : host_(host), interface_(host.port()) {}

  [[nodiscard]] static Process* current();
  static void enter(Process* process);
  // For a driver whose threads never call enter(): PtlInit asks `make` for the Process that the thread's seat gets. A
  // forked child must call forget_all_threads().
  using Make = Process* (*)();
  static void serve_all_threads(Make make);
  static void forget_all_threads();
  // The place of a rank's Process, for all threads of the rank; null before PtlInit.
  using Seat = std::atomic<Process*>;
  // From now on this thread belongs to the rank of this seat; null: to no rank.
  static void sit(Seat* seat);
  [[nodiscard]] static Process* current_or_made();

  [[nodiscard]] Host& host() { return host_; }
  [[nodiscard]] portals::Interface& portals() { return interface_; }
  // That of another NIC of the rank; rail 0 is portals().
  [[nodiscard]] portals::Interface& portals_of(uint32_t rail);
  [[nodiscard]] uint32_t node() const { return interface_.rank().value; }

  // The interface that a handle of this kind belongs to, or null. An interface that is closing owns no handle.
  [[nodiscard]] NetworkInterface* owner_of(ptl_handle_any_t handle, Kind kind);
  [[nodiscard]] NetworkInterface* interface_of(ptl_handle_ni_t handle);
  [[nodiscard]] std::unique_ptr<NetworkInterface>& interface_at(uint32_t number) { return interfaces_.at(number); }

  [[nodiscard]] Queue* queue(ptl_handle_eq_t handle);
  [[nodiscard]] Counter* counter(ptl_handle_ct_t handle);
  [[nodiscard]] Descriptor* descriptor(ptl_handle_md_t handle);
  [[nodiscard]] Entry* entry(ptl_handle_me_t handle);
  // Gives an entry a handle. An older entry with the same id is forgotten: the NIC uses an id again only after the
  // older entry is gone.
  [[nodiscard]] ptl_handle_me_t remember_entry(NetworkInterface& interface, Entry&& entry);
  void forget_entry(ptl_handle_me_t handle);
  // Gives back the NIC objects of an entry's handlers; the NIC keeps those that a message still uses.
  void release(const Spin& spin);

  // Gives the NIC a command and waits for the answer, even where Interface would not wait. A counter's new value is
  // then readable.
  [[nodiscard]] Status ask(const nic::CommandBody& body);

  // The program's state for a report: "waits in PtlCTWait (test 2; ...)".
  [[nodiscard]] std::string blocked() const;
  // Sets what the call waits for; null when it has stopped waiting. `blocked` must live until then.
  void block(const Blocked* blocked) { blocked_ = blocked; }
  // The generation of a new interface, so that handles of an earlier one are stale.
  [[nodiscard]] uint32_t next_generation() { return generation_ = generation_ % generation_last + 1; }

  // PtlAbort: ends calls that wait now or later, until the last PtlFini.
  void abort() {
    host_.begin_call();
    aborted_ = initialised > 0;
    host_.end_call();
    wake_waiters();
  }
  [[nodiscard]] bool aborted() const { return aborted_; }
  void forget_abort() { aborted_ = false; }
  // Makes waiting calls look again. Must not be called inside a call.
  void wake_waiters() {
    if (waiters_ > 0) host_.interrupt();
  }

  uint32_t initialised = 0;  // calls of PtlInit, less those of PtlFini
  bool closed = false;       // closed for ever: PtlInit fails from now on
  bool ending = false;       // the last PtlFini is under way
  const char* call = "";  // the latest call
  uint64_t calls = 0;

 private:
  friend class Waiter;
  Host& host_;
  std::atomic<uint32_t> waiters_{0};
  bool aborted_ = false;
  portals::Interface interface_;
  std::vector<std::unique_ptr<portals::Interface>> more_rails_;  // made when they are asked for
  std::array<std::unique_ptr<NetworkInterface>, interface_count> interfaces_;
  std::unordered_map<uint32_t, ptl_handle_me_t> entry_handles_;  // by the NIC's id; also for entries that are gone
  const Blocked* blocked_ = nullptr;
  uint32_t generation_ = 0;
  uint64_t next_token_ = uint64_t{1} << 63;  // differ from the tokens of Interface
};

// Lives as long as a call waits.
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
