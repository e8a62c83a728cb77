// CollectiveRun - the programs of the members' hosts and of the switches in one multicast, reduction or all-reduce.
//
// Contract: run() prepares everything, then measures; see collective.hpp. Members are counted as they are listed:
//   member 0 is the root. Results come down by messages with the match bits down_bits. Sums go up from switch to switch
//   by up_bits, and from host to host by landing_bits + the number of the member that sends.
// Invariants: (1) a host's processor does one thing at a time; (2) a member's contribution never changes.
// Threads: one owner. Time: modelled, in ps.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/studies/study.hpp"
#include "app/studies/study_side.hpp"
#include "app/studies/switch_tree.hpp"

namespace spinloom::app {

class CollectiveRun final : simulated::EventTarget {
 public:
  CollectiveRun(const StudyConfig& config, const std::vector<uint32_t>& members, const LoadedImages& loaded,
                simulated::World& world);
  Result<StudyResult> run();

 private:
  static constexpr uint64_t down_bits = 1;
  static constexpr uint64_t up_bits = 2;
  static constexpr uint64_t landing_bits = 16;  // plus a member's number: its sum, at its parent's host

  struct ChildSum {
    nic::CounterId landed;
    int added_round = 0;
  };
  struct Member {
    uint32_t rank = 0;
    Side side;
    std::vector<uint8_t> contribution;  // the contribution; the root's message
    std::vector<uint8_t> sum;
    std::vector<uint8_t> result;
    std::vector<std::vector<uint8_t>> landing_buffers;  // one for each child: its sum lands there
    std::vector<uint32_t> child_members;  // members below it in the tree of hosts
    std::vector<ChildSum> child_sums;
    uint32_t added_sums = 0;
    uint32_t posted_puts = 0;
    int result_round = 0;  // the round whose result it has
    simulated::Resource processor;
  };
  enum Step : uint32_t { sum_added, post_put };

  [[nodiscard]] bool is_reduction() const { return config_.experiment != Experiment::multicast; }
  [[nodiscard]] bool tells_all_members() const { return config_.experiment != Experiment::reduce; }
  [[nodiscard]] bool uses_switches() const { return config_.way == StudyWay::switches; }
  [[nodiscard]] std::vector<uint32_t> children_of(uint32_t member) const;
  [[nodiscard]] uint32_t parent_of(uint32_t member) const;

  Status prepare(uint32_t member);
  Status start();
  Result<StudyResult> measure();
  Status compare() const;
  void on_counters(uint32_t member);
  void note_result(uint32_t member);
  void pass_sum_on(uint32_t member);
  void on_event(uint32_t code, uint64_t argument) override;
  void put(uint32_t from, uint32_t to, const std::vector<uint8_t>& bytes, uint64_t match_bits, uint64_t offset = 0);
  [[nodiscard]] Error stall_error();
  [[nodiscard]] simulated::HandlerStatistics handlers() const;
  [[nodiscard]] uint64_t link_bytes() const;
  // collective_switches.cpp
  Status install_switch_handlers();
  Status install_switch_handlers(const TreeSwitch& here);
  Status install_sum_entry(const TreeSwitch& here, const Side& side);
  Status install_result_entry(const TreeSwitch& here, const Side& side);
  [[nodiscard]] std::vector<uint32_t> ranks_below(const TreeSwitch& here) const;
  [[nodiscard]] uint32_t shift() const;  // bits by which a sender's number is shifted in the offset of its sums

  const StudyConfig& config_;
  const LoadedImages& loaded_;
  simulated::World& world_;
  std::vector<Member> members_;
  std::vector<uint32_t> member_of_rank_;
  SwitchTree tree_;
  std::vector<uint32_t> number_at_switch_;  // each member's number among the senders of its switch
  std::vector<simulated::Node*> switches_;
  std::vector<Side> switch_sides_;
  std::vector<uint8_t> expected_;
  int round_ = 0;
  uint32_t members_missing_ = 0;
  Time last_result_{};
  Time add_time_{};  // the time that a host takes to add the elements of one message
  Status trouble_;
};

// collective_bound.cpp
[[nodiscard]] Result<Time> collective_bound(const StudyConfig& config, const SwitchTree& tree);

}  // namespace spinloom::app
