#include "ethernet/host/desk_record.hpp"

#include <algorithm>
#include <cstring>

#include "base/private_folder.hpp"

namespace spinloom::host {
namespace {

// Turns a rule on bytes in the order of the wire into one for a unit that reads words the other way round. Rules for
// one value keep their meaning. A range does only if the mask has one byte of the word; otherwise it is an Error.
Result<frames::Rule> rule_of(const spl_eth_rule& rule) {
  if (rule.start > rule.end) return frames::Rule::never();
  const auto swap = [](uint32_t word) { return __builtin_bswap32(word); };
  if (rule.start == rule.end) return frames::Rule{rule.index, swap(rule.mask), swap(rule.start), swap(rule.end)};
  for (uint32_t shift = 0; shift < 32; shift += 8) {
    if ((rule.mask & ~(0xffu << shift)) != 0) continue;
    const uint64_t first = (uint64_t{rule.start} + (1u << shift) - 1) >> shift;
    const uint32_t last = std::min(rule.end >> shift, 0xffu);
    if (first > last) return frames::Rule::never();
    return frames::Rule{rule.index, swap(rule.mask), static_cast<uint32_t>(first) << (24 - shift),
                        last << (24 - shift)};
  }
  return fail(Code::unsupported, "the rule on word ", rule.index,
              " has a range over more than one byte: the matching unit compares words in little-endian order, so use a "
              "rule for each value, or a range in one byte");
}

}  // namespace

Result<Request> read_request(std::span<const uint8_t> bytes) {
  Request request;
  if (bytes.size() != sizeof request) {
    return fail(Code::invalid, "a record of ", bytes.size(), " B; a request has ", sizeof request);
  }
  std::memcpy(&request, bytes.data(), sizeof request);
  if (request.version != desk_version) {
    return fail(Code::invalid, "the program was built for version ", request.version, " of the NIC's records, this is ",
                desk_version, ": build it with this Spinloom's header");
  }
  if (request.kind > RequestKind::counts)
    return fail(Code::invalid, "request ", static_cast<uint32_t>(request.kind), " is unknown");
  if (request.rules.count > SPL_ETH_RULES_MAX) {
    return fail(Code::invalid, request.rules.count, " rules; a set has at most ", SPL_ETH_RULES_MAX);
  }
  if (std::ranges::find(request.handlers, '\0') == request.handlers.end()) {
    return fail(Code::invalid, "the path of the handlers has no end");
  }
  return request;
}

Answer refusal(const Error& error) {
  Answer answer;
  answer.status = error.code == Code::exhausted ? SPL_ETH_EXHAUSTED : SPL_ETH_INVALID;
  const size_t length = std::min(error.message.size(), answer.sentence.size() - 1);
  std::copy_n(error.message.begin(), length, answer.sentence.begin());
  return answer;
}

Result<frames::RuleSet> rule_set_of(const spl_eth_rules& rules) {
  frames::RuleSet set;
  set.mode = rules.any != 0 ? frames::RuleMode::any : frames::RuleMode::all;
  for (uint32_t rule = 0; rule < std::min<uint32_t>(rules.count, SPL_ETH_RULES_MAX); ++rule) {
    SPL_ASSIGN(frames::Rule converted, rule_of(rules.rule[rule]));
    set.rules.push_back(converted);
  }
  SPL_ASSIGN(set.last_frame, rule_of(rules.last_frame));
  return set;
}

Result<std::string> desk_path(const std::string& nic, bool create) {
  SPL_ASSIGN(const std::string folder, runtime_folder(create));
  return text(folder, "/spinloom-", nic, ".host");
}

}  // namespace spinloom::host
