// Process - the Portals library of one rank: its four network interfaces over its first NIC. Also finds the Process of
// the rank that runs now.
//
// Contract: a driver makes a Process for each rank and calls enter() whenever that rank's program goes on. A C
//   function works for the Process that was entered last on its thread. Where threads never call enter(), it works for
//   the Process in the thread's seat: that of the thread's rank, or, if the thread has no rank, that of all threads.
// Invariants: (1) interface n owns the portal table entries n * 64 to n * 64 + 63 of the NIC; (2) while the program
//   is inside calls that wait, blocked() says for what.
// Threads: one at a time. Time: that of the host.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "portals/calls/host.hpp"
#include "portals/calls/objects.hpp"
#include "portals/interface/interface.hpp"

namespace spinloom::calls {

inline constexpr uint32_t portals_each = limits::portal_table_max / limits::portal_tables;
inline constexpr ptl_pid_t process_id = 1;  // each node has one process, whatever a program asks for
static_assert(interface_count == limits::portal_tables, "four interfaces share one portal table");
static_assert(portals_each == 64, "the least that Portals 4 asks for");

// The object of a waiting call, for reports: counters or queues of the program, a counter of the library, or only
// `words`; none if the call alone says enough.
struct Blocked {
  const char* call = nullptr;
  std::span<const ptl_handle_any_t> handles = {};
  const ptl_size_t* tests = nullptr;  // one for each counter; null where the handles are queues
  nic::CounterId counter = {};        // of the library: it has no handle
  uint64_t test = 0;                  // the value of `counter` that ends the wait
  const char* words = nullptr;
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
  // The Interface of a NIC of the rank, by its rail; rail 0 is portals().
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
  // Gives an entry a handle. An older entry whose id has the same index is forgotten: an index is used again only after
  // the NIC's older entry is gone.
  [[nodiscard]] ptl_handle_me_t remember_entry(NetworkInterface& interface, Entry&& entry);
  void forget_entry(ptl_handle_me_t handle);
  // Gives back the NIC objects of handlers, those of an entry or of process-puts. The NIC keeps those that a message
  // still uses.
  void release(const Spin& spin);

  // Gives the NIC a command and waits for the answer, even where Interface would not wait. A counter's new value is
  // then readable.
  [[nodiscard]] Status ask(const nic::CommandBody& body);

  // The program's state for a report: "waits in PtlCTWait (test 2; ...)", for each of its threads that waits.
  [[nodiscard]] std::string blocked();
  // Like blocked(), for a report that is made again and again: if no thread waits, and calls were made since the last
  // report, it says so instead.
  [[nodiscard]] std::string doing();
  // Notes the object of a call that looks without waiting.
  void note_look(ptl_handle_any_t handle) {
    looked_at_ = handle;
    looked_in_ = calls;
  }
  // Returns the generation of a new interface: handles of an earlier interface are then stale.
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
  uint64_t calls = 0;     // the number of calls so far

 private:
  friend class Waiter;
  friend class Blocking;
  [[nodiscard]] std::string state_of(ptl_handle_any_t handle);
  [[nodiscard]] std::string wait_of(const Blocked& blocked);
  [[nodiscard]] std::string count_of(nic::CounterId counter) const;
  [[nodiscard]] std::string last_call();
  Host& host_;
  std::atomic<uint32_t> waiters_{0};
  bool aborted_ = false;
  portals::Interface interface_;
  std::vector<std::unique_ptr<portals::Interface>> more_rails_;  // made at their first use
  std::array<std::unique_ptr<NetworkInterface>, interface_count> interfaces_;
  // The handles of entries, by the index of the NIC's id; also of entries that are gone.
  std::unordered_map<uint32_t, ptl_handle_me_t> entry_handles_;
  class Blocking* blocked_ = nullptr;  // the list of calls that wait, the latest first
  ptl_handle_any_t looked_at_ = PTL_INVALID_HANDLE;  // the object that note_look() noted last
  uint64_t looked_in_ = 0;  // the number of the call that noted looked_at_
  uint64_t told_calls_ = 0;  // `calls` when doing() last reported
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

// Lives while a call waits for something: reports show it. Made and ended inside the call; `blocked` outlives it.
class Blocking {
 public:
  Blocking(Process& process, const Blocked& blocked) : process_(process), blocked_(blocked), next_(process.blocked_) {
    process.blocked_ = this;
  }
  Blocking(Process& process, Blocked&& blocked) = delete;
  ~Blocking() {
    Blocking** at = &process_.blocked_;
    while (*at != this) at = &(*at)->next_;
    *at = next_;
  }
  Blocking(const Blocking&) = delete;
  Blocking& operator=(const Blocking&) = delete;

 private:
  friend class Process;
  Process& process_;
  const Blocked& blocked_;
  Blocking* next_;
};

}  // namespace spinloom::calls
