// Process - the Portals library of one rank: its four network interfaces over its first NIC. Also finds the Process of
// the rank that runs now.
//
// Contract: a driver makes a Process for each rank and calls enter() whenever that rank's program goes on. A C
//   function works for the Process that was entered last on its thread. Where threads never call enter(), it works for
//   the Process in the thread's seat: that of the thread's rank, or, if the thread has no rank, that of all threads.
// Invariants: (1) interface n owns the portal table entries n * 64 to n * 64 + 63 of the NIC; (2) while the program
//   is inside calls that wait, describe_blocked() says for what.
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
// a `purpose`; none if the call alone says enough.
struct BlockedCall {
  const char* call = nullptr;
  std::span<const ptl_handle_any_t> handles = {};
  const ptl_size_t* tests = nullptr;  // the value awaited of each counter; null where the handles are queues
  nic::CounterId counter = {};        // a counter of the library, which has no handle
  uint64_t test = 0;                  // the value of `counter` that ends the wait
  const char* purpose = nullptr;
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
  [[nodiscard]] static Process* current_or_create();

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
  [[nodiscard]] Status submit_and_wait(const nic::CommandBody& body);

  // The program's state for a report: "waits in PtlCTWait (test 2; ...)", for each of its threads that waits.
  [[nodiscard]] std::string describe_blocked();
  // Like describe_blocked(), for a report that is made again and again: if no thread waits, and calls were made since
  // the last report, it says so instead.
  [[nodiscard]] std::string describe_activity();
  // Notes the object of a call that looks without waiting.
  void note_look(ptl_handle_any_t handle) {
    looked_handle_ = handle;
    look_call_ = call_count;
  }
  // Returns the generation of a new interface: handles of an earlier interface are then stale.
  [[nodiscard]] uint32_t next_generation() { return generation_ = generation_ % generation_last + 1; }

  // PtlAbort: ends calls that wait now or later, until the last PtlFini.
  void abort() {
    host_.begin_call();
    is_aborted_ = init_count > 0;
    host_.end_call();
    wake_waiters();
  }
  [[nodiscard]] bool is_aborted() const { return is_aborted_; }
  void forget_abort() { is_aborted_ = false; }
  // Makes waiting calls look again. Must not be called inside a call.
  void wake_waiters() {
    if (waiters_ > 0) host_.interrupt();
  }

  uint32_t init_count = 0;  // calls of PtlInit, less those of PtlFini
  bool is_closed = false;   // closed for ever: PtlInit fails from now on
  bool is_ending = false;   // the last PtlFini is under way
  const char* latest_call = "";  // the name of the program's latest call
  uint64_t call_count = 0;  // the number of calls so far

 private:
  friend class WaiterScope;
  friend class BlockedScope;
  [[nodiscard]] std::string describe_handle(ptl_handle_any_t handle);
  [[nodiscard]] std::string describe_wait(const BlockedCall& blocked);
  [[nodiscard]] std::string describe_count(nic::CounterId counter) const;
  [[nodiscard]] std::string describe_last_call();
  Host& host_;
  std::atomic<uint32_t> waiters_{0};
  bool is_aborted_ = false;
  portals::Interface interface_;
  std::vector<std::unique_ptr<portals::Interface>> other_rails_;  // made at their first use
  std::array<std::unique_ptr<NetworkInterface>, interface_count> interfaces_;
  // The handles of entries, by the index of the NIC's id; also of entries that are gone.
  std::unordered_map<uint32_t, ptl_handle_me_t> entry_handles_;
  class BlockedScope* blocked_ = nullptr;  // the list of calls that wait, the latest first
  ptl_handle_any_t looked_handle_ = PTL_INVALID_HANDLE;  // the object that note_look() noted last
  uint64_t look_call_ = 0;  // the number of the call that noted looked_handle_
  uint64_t reported_calls_ = 0;  // call_count when describe_activity() last reported
  uint32_t generation_ = 0;
  uint64_t next_token_ = uint64_t{1} << 63;  // differ from the tokens of Interface
};

// Lives as long as a call waits, and counts the calls that do.
class WaiterScope {
 public:
  explicit WaiterScope(Process& process) : process_(process) { ++process_.waiters_; }
  ~WaiterScope() { --process_.waiters_; }
  WaiterScope(const WaiterScope&) = delete;
  WaiterScope& operator=(const WaiterScope&) = delete;

 private:
  Process& process_;
};

// Lives while a call waits for something: reports show it. Made and ended inside the call; `blocked` outlives it.
class BlockedScope {
 public:
  BlockedScope(Process& process, const BlockedCall& blocked)
      : process_(process), blocked_(blocked), next_(process.blocked_) {
    process.blocked_ = this;
  }
  BlockedScope(Process& process, BlockedCall&& blocked) = delete;
  ~BlockedScope() {
    BlockedScope** at = &process_.blocked_;
    while (*at != this) at = &(*at)->next_;
    *at = next_;
  }
  BlockedScope(const BlockedScope&) = delete;
  BlockedScope& operator=(const BlockedScope&) = delete;

 private:
  friend class Process;
  Process& process_;
  const BlockedCall& blocked_;
  BlockedScope* next_;
};

}  // namespace spinloom::calls
