// Configuration - what the registers tell the NIC, whole: rules that are in force, contexts that are in force.
//
// Contract: `rule_sets` is what group me said when me/valid last became 1, `contexts` what her, her_meta and our
//   initialisation handlers said when her/valid last became 1; while a valid is 0, its part is not in force. The other
//   fields are words that take effect one by one.
// Invariants: (1) there are as many rule sets and contexts as the NIC has; (2) the parts in force have passed the
//   checks of docs/registers.md, unless RegisterFile::set_reported() gave them.
// Threads: plain values. Time: none.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "nic/registers/map.hpp"
#include "nic/registers/rule.hpp"

namespace spinloom::registers {

struct RuleSet {
  bool any = false;         // one of the rules suffices
  std::vector<Rule> rules;  // values as the registers hold them
  Rule last_frame;          // the set's last rule, which says whether the frame is the last of its message
  bool operator==(const RuleSet&) const = default;
};

struct Context {
  bool enabled = false;
  Window handler_memory;
  Window host_memory;
  Window header;  // the handlers' code
  Window packet;
  Window tail;
  Window initialisation;
  std::array<Window, 4> scratchpads;
  bool operator==(const Context&) const = default;
};

struct Configuration {
  uint64_t matching_installs = 0;  // the number of times that me/valid became 1
  bool matching_valid = false;
  std::vector<RuleSet> rule_sets;

  uint64_t context_installs = 0;  // the number of times that her/valid became 1
  bool contexts_valid = false;
  std::vector<Context> contexts;

  std::vector<bool> active;          // one for each context: true if frames may reach it
  uint32_t fetch_mask = 0;           // clusters that fetch instructions
  bool reset = false;                // processors and data path are held in reset
  std::vector<uint32_t> core_masks;  // one for each cluster: the cores that take handlers
  bool operator==(const Configuration&) const = default;
};

// A call of a context by the host (D4.7, 4.4.7): its packet handler runs without a frame.
struct HostCall {
  uint32_t context = 0;
  uint32_t message = 0;
  bool operator==(const HostCall&) const = default;
};

}  // namespace spinloom::registers
