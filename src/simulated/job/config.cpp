#include "simulated/job/config.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "base/limits.hpp"

namespace spinloom::job {
namespace {

// Takes the text up to the first `separator`, which is removed, too.
std::string_view take_until(std::string_view& text, char separator) {
  const size_t end = text.find(separator);
  const std::string_view head = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return head;
}

template <class T>
Result<T> read_number(std::string_view line, std::string_view text) {
  T value{};
  const auto [end, trouble] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (trouble == std::errc() && end == text.data() + text.size() && !text.empty()) return value;
  return fail(Code::invalid, "settings: \"", line, "\" has no number where one is needed");
}

Result<simulated::ProfileValue> profile_value(std::string_view line, std::string_view text) {
  if (text.size() >= 2 && text.front() == '"')
    return simulated::ProfileValue{std::string(text.substr(1, text.size() - 2))};
  if (text.find('/') == std::string_view::npos) {
    SPL_ASSIGN(const int64_t value, read_number<int64_t>(line, text));
    return simulated::ProfileValue{value};
  }
  simulated::Rational value;
  SPL_ASSIGN(value.numerator, read_number<int64_t>(line, take_until(text, '/')));
  SPL_ASSIGN(value.denominator, read_number<int64_t>(line, text));
  return simulated::ProfileValue{value};
}

struct FabricSplit {
  uint32_t first_ranks = 0;  // ranks in the first fabric
  simulated::BridgeConfig bridge;
};

Result<FabricSplit> read_split(std::string_view line, std::string_view value) {
  FabricSplit split;
  SPL_ASSIGN(split.first_ranks, read_number<uint32_t>(line, take_until(value, ' ')));
  split.bridge.stores = take_until(value, ' ') == "1";
  SPL_ASSIGN(split.bridge.forward.ps, read_number<int64_t>(line, value));
  return split;
}

Status apply(const FabricSplit& split, simulated::WorldOptions& world) {
  if (split.first_ranks == 0 || split.first_ranks >= world.ranks) {
    return fail(Code::invalid, "a bridge of ", split.first_ranks, " ranks and the others: with ", world.ranks,
                " ranks there must be 1 to ", world.ranks - 1);
  }
  world.bridge = split.bridge;
  world.bridge->fabric.assign(world.ranks, 1);
  std::fill_n(world.bridge->fabric.begin(), split.first_ranks, 0);
  return {};
}

}  // namespace

Result<JobConfig> read_config(std::string_view text) {
  JobConfig config;
  std::optional<FabricSplit> split;
  simulated::ProfileFields fields;
  std::map<uint32_t, simulated::ProfileFields> rails;  // the profiles of further NICs, by number
  while (!text.empty()) {
    const std::string_view line = take_until(text, '\n');
    std::string_view value = line;
    const std::string_view key = take_until(value, ' ');
    if (key == "profile") {
      const std::string name(take_until(value, ' '));
      SPL_ASSIGN(fields[name], profile_value(line, value));
    } else if (key == "rail") {
      SPL_ASSIGN(const uint32_t rail, read_number<uint32_t>(line, take_until(value, ' ')));
      const std::string name(take_until(value, ' '));
      SPL_ASSIGN(rails[rail][name], profile_value(line, value));
    } else if (key == "image") {
      const std::string name(take_until(value, ' '));
      config.images[name] = std::string(value);
    } else if (key == "ranks") {
      SPL_ASSIGN(config.world.ranks, read_number<uint32_t>(line, value));
      if (config.world.ranks == 0 || config.world.ranks > limits::rank_count_max) {
        return fail(Code::invalid, "'", line, "': a job has 1 to ", limits::rank_count_max, " ranks");
      }
    } else if (key == "hpus") {
      SPL_ASSIGN(config.world.node.hpus, read_number<uint32_t>(line, value));
    } else if (key == "mtu") {
      SPL_ASSIGN(config.world.node.payload_bytes, read_number<uint32_t>(line, value));
    } else if (key == "stack") {
      SPL_ASSIGN(config.stack_bytes, read_number<size_t>(line, value));
    } else if (key == "compute") {
      SPL_ASSIGN(config.compute_limit_s, read_number<uint32_t>(line, value));
    } else if (key == "seed") {
      SPL_ASSIGN(config.world.ordering.seed, read_number<uint64_t>(line, value));
    } else if (key == "bridge") {
      SPL_ASSIGN(split, read_split(line, value));
    } else if (key == "prefix") {
      config.prefix = value == "1";
    } else {
      return fail(Code::invalid, "settings: \"", line, "\" is not known");
    }
  }
  if (split) SPL_TRY(apply(*split, config.world));
  SPL_ASSIGN(config.profile, simulated::build_profile(fields));
  for (const auto& [rail, values] : rails) {
    SPL_ASSIGN(const simulated::Profile profile, simulated::build_profile(values));
    config.world.more_rails.push_back(profile);
  }
  return config;
}

}  // namespace spinloom::job
