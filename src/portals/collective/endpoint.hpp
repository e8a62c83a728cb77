// Endpoint - the state of a process that executes schedules: its portal table entry, memory for early messages, and the
// resources of the NIC that its schedules take.
//
// Contract: all ranks open theirs with the same options. make() gives a rank's Graph the name (team, number, whether it
//   is cached) that it has at all ranks; Offloaded (offloaded.hpp) is the Graph on this NIC. progress() does the CPU's
//   work: it copies messages that came before their receive was posted (Di Girolamo et al., "Exploiting Offload
//   Enabled Network Interfaces", section III.A.1), and starts schedules that had to wait for a peer that is far behind.
// Invariants: (1) a message that may come early leaves only if at most `early_messages` in a team from its rank to the
//   other have not been taken yet (a credit, an empty message, tells of half as many); ranks start a team's schedules
//   in the same order, and one schedule has at most half as many to a peer, so that some start can always go;
//   (2) when the NIC, or `limits`, have no room, cached schedules that are not under way leave the NIC, the one that
//   has not been started for the longest time first; (3) a rank whose schedule fails tells all with which it exchanges
//   messages in it, and they fail and tell theirs; (4) what belongs to an Endpoint never meets a later one on the same
//   portal table entry: close() waits until all that this rank has sent has come, open() lets early messages in only
//   when all ranks have closed their earlier ones; (5) a NIC that has no place for an early message takes none any more
//   (flow control), so nothing takes the place of a message that is lost. The rank is *overrun*: all ranks hear of it,
//   and schedules of its teams fail.
// Threads: the owner of the Interface. Time: that of its port.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "portals/collective/graph.hpp"
#include "portals/interface/interface.hpp"

namespace spinloom::collective {

class Offloaded;

struct EndpointOptions {
  nic::PortalIndex portal = {63};
  uint64_t eager_bytes = 4096;
  uint32_t early_messages = 16;  // even
  Initiator initiator = Initiator::receiver;
  bool by_cpu = false;  // the CPU, not the NIC, begins the operations that wait; for comparison
  struct Limits {
    uint32_t counters = UINT32_MAX;
    uint32_t triggered = UINT32_MAX;
    uint32_t entries = UINT32_MAX;
  } limits;
  uint32_t ranks = 1;  // the number of ranks of the job
  uint32_t atomic_bytes = 2048;  // the most bytes of one atomic
  uint32_t unexpected_headers = 1 << 16;  // the number that the portal table entry keeps; only for texts of errors
  std::function<void()> spend_call_time;  // spends the time of a call to the NIC
  // Waits until something may have changed, or until the deadline. False: the caller must stop waiting. Without this
  // function waiting has no limit.
  std::function<bool(Time deadline)> pause;
};

// A counter of the NIC and what it has counted.
struct Counter {
  nic::CounterId id;
  uint64_t base = 0;
};

// The resources of the NIC, and the bytes of memory, that are in use.
struct NicResources {
  uint32_t descriptors = 0;
  uint32_t entries = 0;
  uint32_t triggered = 0;
  uint32_t counters = 0;
  uint64_t memory_bytes = 0;

  NicResources& operator+=(const NicResources& other) {
    descriptors += other.descriptors;
    entries += other.entries;
    triggered += other.triggered;
    counters += other.counters;
    memory_bytes += other.memory_bytes;
    return *this;
  }
  NicResources& operator-=(const NicResources& other) {
    descriptors -= other.descriptors;
    entries -= other.entries;
    triggered -= other.triggered;
    counters -= other.counters;
    memory_bytes -= other.memory_bytes;
    return *this;
  }
};

class Endpoint {
 public:
  // Calls meet(endpoint, number), if it is given, with the numbers 0 and 1, at the places that all ranks must reach
  // before any rank may go on (Meeting). `meet` may be left out if no rank has had an Endpoint here, and all ranks open
  // theirs before any rank starts a schedule.
  using Meet = std::function<Status(Endpoint&, uint32_t number)>;
  [[nodiscard]] static Result<std::unique_ptr<Endpoint>> open(portals::Interface& interface,
                                                              const EndpointOptions& options, const Meet& meet = {});
  ~Endpoint();

  // `id` < 2^16, the same at all of its ranks.
  struct Team {
    uint32_t id = 0;
    std::vector<uint32_t> ranks;
    uint32_t next_uncached = 0;  // the number of the next schedule that is not cached
    uint32_t next_cached = 0;  // the number of the next cached schedule
  };
  // From now on the team's early messages have memory of their own; until then they use that of a team of all ranks.
  [[nodiscard]] Status join(const Team& team);
  // From now on no memory is kept for the team's early messages.
  void leave(const Team& team);
  // Takes the number of the team's next schedule, for make(). All ranks of the team must take them in the same order.
  [[nodiscard]] static uint32_t take_number(Team& team, bool cached);
  // `memory`: the Graph's own memory, which lives as long as the result. Without `chosen_number` the next one is taken.
  [[nodiscard]] Result<std::unique_ptr<Offloaded>> make(Team& team, Graph graph, bool cached,
                                                        std::unique_ptr<uint8_t[]> memory = nullptr,
                                                        std::optional<uint32_t> chosen_number = {});

  Status progress();
  // Frees the portal table entry and the counters. An error while schedules exist. Waits for the NICs of ranks to which
  // this one has sent, at most `patience`; and for messages that are on their way into its memory.
  static constexpr Time patience{10'000'000'000'000};  // 10 s
  [[nodiscard]] Status close();

  [[nodiscard]] portals::Interface& interface() { return interface_; }
  [[nodiscard]] nic::PortalIndex portal() const { return portal_; }
  [[nodiscard]] const EndpointOptions& options() const { return options_; }
  [[nodiscard]] const NicResources& resources_in_use() const { return in_use_; }
  [[nodiscard]] uint64_t copied_messages() const { return copied_messages_; }  // early messages that the CPU has copied
  [[nodiscard]] uint64_t replaced_schedules() const {
    return replaced_schedules_;
  }  // schedules that have left the NIC for others

 private:
  friend class Offloaded;
  // Each team starts schedules in its own order, and so teams count messages apart: a start never waits for another
  // start that waits for it.
  struct Member {
    uint32_t team = 0;
    uint32_t rank = 0;
    auto operator<=>(const Member&) const = default;
  };
  struct Peer {
    uint64_t sent_messages = 0;  // messages to it that may have come early
    uint64_t taken_messages = 0;  // its early messages whose receives have been posted here
    uint64_t reported_messages = 0;  // taken messages that have been reported to it
    nic::CounterId credit_counter;
    uint64_t credit_base = 0;
    nic::EntryId credit_entry;
  };
  // A rank's report that its part of a schedule has failed.
  struct Notice {
    uint64_t start = 0;  // the start that failed
    uint32_t rank = 0;
  };
  struct Block {
    std::unique_ptr<uint8_t[]> memory;
    uint64_t bytes = 0;
  };

  static constexpr uint32_t events_max = 4096;  // the number of events that may wait for progress()

  Endpoint(portals::Interface& interface, const EndpointOptions& options) : interface_(interface), options_(options) {}
  Status set_up(const Meet& meet);
  void flush();
  // Waits until is_met() is true. Returns an Error that says `what` if that takes longer than `patience`, or if
  // options_.pause says to stop. Without options_.pause it waits without a limit.
  template <class Condition>
  [[nodiscard]] Status wait_for(const char* what, Condition is_met) {
    const Time deadline = interface_.port().now() + patience;
    while (!is_met()) {
      if (!options_.pause) {
        SPL_TRY(interface_.port().wait());
      } else if (interface_.port().now() >= deadline || !options_.pause(deadline)) {
        return fail(Code::stalled, what, " for ", patience.ps / 1'000'000'000'000, " s");
      }
    }
    return {};
  }
  // Adds the memory for early messages from `peers` more ranks.
  void reserve_early_bytes(uint64_t peers);
  [[nodiscard]] uint64_t early_bytes_of(uint64_t peers) const {
    return peers * options_.early_messages * options_.eager_bytes;
  }
  Status link_blocks();
  Status on_event(const nic::Event& event);
  void spend_call_time() const {
    if (options_.spend_call_time) options_.spend_call_time();
  }
  // Counters that are given back are used again.
  [[nodiscard]] Result<Counter> take_counter();
  void give_back(Counter counter) { idle_counters_.push_back(counter); }
  // True if `messages` more messages may go to a peer now.
  [[nodiscard]] Result<bool> may_send(Member to, uint64_t messages);
  [[nodiscard]] Status count_taken(Member from);
  [[nodiscard]] Status append_notice_entry();
  // Tells a rank that a schedule of the team has failed, or that a rank of the team is overrun.
  void send_notice(uint32_t rank, const std::vector<uint32_t>& team, uint64_t schedule, uint64_t start);
  void on_notice(const nic::Event& event);
  // Returns the Error that keeps a schedule from ending: a rank is overrun, or this start or an earlier one has failed.
  [[nodiscard]] std::optional<Error> error_of(const std::vector<uint32_t>& team, uint64_t schedule,
                                              uint64_t start) const;
  // Notes that this NIC refuses messages, and tells all ranks.
  void on_overrun();
  [[nodiscard]] std::optional<uint32_t> overrun_rank_of(const std::vector<uint32_t>& team) const;
  [[nodiscard]] std::optional<Error> overrun_error_of(const std::vector<uint32_t>& team) const;
  // Appends an entry that takes, and drops, messages that no posted entry takes.
  [[nodiscard]] Result<nic::EntryId> append_drop_entry(uint64_t match_bits, uint64_t ignore_bits);
  void forget_notices_of(uint64_t schedule) { notices_.erase(schedule); }
  // Lets cached schedules leave the NIC until `more` finds room in the limits; at least one if `at_least_one`.
  [[nodiscard]] Status make_room(const Offloaded& newcomer, const NicResources& more, bool at_least_one);

  portals::Interface& interface_;
  EndpointOptions options_;
  nic::PortalIndex portal_;
  nic::QueueId queue_;
  nic::EntryId self_entry_;
  nic::EntryId notice_entry_;
  nic::EntryId drop_all_entry_;  // drops all early messages while this Endpoint opens
  nic::EntryId drop_entry_;  // drops early messages that may not wait (message_bits.hpp)
  std::map<uint64_t, Notice> notices_;  // the key has the bits of their schedules
  std::set<uint32_t> failed_teams_;  // teams in which messages may wait that no receive takes
  std::set<uint32_t> overrun_;  // ranks that are overrun, maybe this one
  std::unordered_map<uint64_t, Block> blocks_;  // the key is the number
  std::vector<uint64_t> free_blocks_;
  std::unordered_map<uint64_t, nic::EntryId> linked_blocks_;  // entries of blocks
  uint64_t next_block_ = 0;
  uint64_t early_bytes_ = 0;  // bytes of early messages that may wait at a time
  uint64_t block_bytes_ = 0;
  std::map<Member, Peer> peers_;
  std::set<uint32_t> sent_to_;  // ranks to which messages may be under way
  std::vector<Counter> idle_counters_;
  std::list<Offloaded*> resident_schedules_;  // posted, the latest started last
  std::vector<Offloaded*> waiting_schedules_;  // schedules whose start waits for a peer that is far behind
  std::unordered_map<uint64_t, Offloaded*> schedules_by_number_;  // user pointers of events
  uint64_t next_number_ = 0;
  NicResources in_use_;
  uint64_t copied_messages_ = 0;
  uint64_t replaced_schedules_ = 0;
};

}  // namespace spinloom::collective
