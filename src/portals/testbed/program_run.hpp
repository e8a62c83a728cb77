// ProgramRun - runs a program of the model over the interfaces of a testbed, and says what it has seen.
//
// Contract: create() makes what the program needs on each rank: queues, counters, portal table entry 0. call() makes
//   one rank's next call; a call that waits for the program's sake is made only when may_call() says that it can
//   return. finish() is called when nothing is under way: it takes the events that are left, gives all back, and
//   returns the outcome. So a testbed runs any number of programs, one after another.
// Invariants: (1) the outcome's undefined fields are 0 (model/outcome.hpp); (2) a call that fails otherwise than
//   Portals 4 says is an Error.
// Threads: one for each rank may call its own may_call() and call(); the rest has one owner. Time: that of the driver.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "portals/interface/interface.hpp"
#include "portals/model/outcome.hpp"
#include "portals/model/program.hpp"

namespace spinloom::testbed {

class ProgramRun {
 public:
  // One interface for each rank. They and the program outlive the run.
  static Result<std::unique_ptr<ProgramRun>> create(const model::Program& program,
                                                    std::vector<portals::Interface*> interfaces);

  [[nodiscard]] bool has_calls(uint16_t rank) const {
    return !ranks_[rank].is_dead && next_of(rank) < program_.ranks[rank].operations.size();
  }
  [[nodiscard]] bool may_call(uint16_t rank);
  [[nodiscard]] Status call(uint16_t rank);
  // The rank has come to a settle(): it goes on when all others have, and nothing is under way.
  [[nodiscard]] bool is_settling(uint16_t rank) const;
  void pass_settle();
  // The rank has died: it calls nothing any more, and its outcome is empty.
  void kill(uint16_t rank) { ranks_[rank].is_dead = true; }
  [[nodiscard]] Result<model::Outcome> finish();

 private:
  struct Rank {
    portals::Interface* interface = nullptr;
    bool matching = true;
    nic::QueueId queues[2];  // arrivals, departures
    nic::PortalIndex portal;
    std::vector<nic::CounterId> counters;
    std::vector<uint8_t> memory;
    std::deque<std::vector<nic::IovecElement>> lists;  // the scatter lists of entries
    bool has_lists = false;
    bool has_gap = false;  // a queue has overwritten events
    uint32_t bundles = 0;  // number of bundles that have begun and not ended
    std::vector<nic::EntryId> entries;  // indexed by the operation that appended; none: there is no such entry
    std::optional<model::Event> ahead[2];  // an event that may_call() has taken
    model::RankOutcome seen;
    bool is_dead = false;
  };

  explicit ProgramRun(const model::Program& program) : program_(program) {}
  [[nodiscard]] Status set_up(uint16_t number, portals::Interface& interface);
  [[nodiscard]] size_t next_of(uint16_t rank) const { return ranks_[rank].seen.returned.size(); }
  [[nodiscard]] Result<model::Returned> perform(uint16_t number, const model::Operation& operation, uint16_t place);
  [[nodiscard]] Status change(Rank& rank, const nic::CommandBody& body);
  [[nodiscard]] std::vector<nic::IovecElement> list_of(Rank& rank, model::Region memory,
                                                       const std::vector<model::Region>& pieces) const;
  [[nodiscard]] nic::Entry entry_of(Rank& rank, const model::Entry& entry, uint16_t name) const;
  [[nodiscard]] nic::Put put_of(Rank& rank, const model::Movement& movement, uint16_t name) const;
  [[nodiscard]] nic::ReplyTo reply_of(Rank& rank, const model::Movement& movement, uint16_t offset,
                                      uint16_t name) const;
  [[nodiscard]] Status move(Rank& rank, const model::Operation& operation, uint16_t name);
  [[nodiscard]] std::optional<model::Event> take(Rank& rank, bool departures);
  [[nodiscard]] model::Event event_of(const Rank& rank, const nic::Event& event) const;
  [[nodiscard]] Status give_back(Rank& rank);

  const model::Program& program_;
  std::vector<Rank> ranks_;
};

}  // namespace spinloom::testbed
