#include "nic/registers/register_file.hpp"

#include <algorithm>

namespace spinloom::registers {
namespace {

bool can_hold(const RuleSet& set) {
  const auto rule_can = [](const Rule& rule) { return rule.start <= rule.end; };
  return set.any ? std::ranges::any_of(set.rules, rule_can) : std::ranges::all_of(set.rules, rule_can);
}

}  // namespace

RegisterFile::RegisterFile(const Map& map, Device& device) : map_(map), device_(device) {
  values_.reserve(map.register_count());
  for (uint32_t i = 0; i < map.register_count(); ++i) {
    values_.push_back(describe(map.place_of_number(i).id).reset);
  }
  configuration_.rule_sets = rule_sets();
  configuration_.contexts.resize(map.shape().contexts);
  apply_words();
}

uint32_t RegisterFile::peek(RegisterInstance place) const {
  switch (describe(place.id).access) {
    case Access::kept: return values_[map_.number(place)];
    case Access::queue: return 0;
    case Access::told:
    case Access::command: break;
  }
  return device_.value_of(place);
}

uint32_t RegisterFile::read(RegisterInstance place) {
  return describe(place.id).access == Access::queue ? device_.pop_stdout() : peek(place);
}

Result<uint32_t> RegisterFile::read(uint32_t address) {
  SPL_ASSIGN(const RegisterInstance place, map_.at(address));
  return read(place);
}

Result<uint32_t> RegisterFile::read(std::string_view path) {
  SPL_ASSIGN(const RegisterInstance place, map_.named(path));
  return read(place);
}

Status RegisterFile::write(uint32_t address, uint32_t value) {
  SPL_ASSIGN(const RegisterInstance place, map_.at(address));
  return write(place, value);
}

Status RegisterFile::write(std::string_view path, uint32_t value) {
  SPL_ASSIGN(const RegisterInstance place, map_.named(path));
  return write(place, value);
}

Status RegisterFile::may_write(RegisterInstance place, uint32_t value) const {
  const Description& description = describe(place.id);
  if (description.access == Access::told || description.access == Access::queue) {
    return fail(Code::invalid, map_.path(place), " is read only; the NIC says its value");
  }
  const bool closed = description.guard != no_register && kept_value(description.guard) != 0;
  if (description.access == Access::kept && (closed || value != kept_value(place.id, place.index))) {
    if (const Status may = device_.may_change(place, value); !may) {
      return fail(may.error().code, map_.path(place), " cannot be changed: ", may.error().message);
    }
  }
  if (closed) {
    const std::string guard = map_.path({description.guard, 0});
    return fail(Code::invalid, map_.path(place), " cannot be written while ", guard, " is 1; write 0 there first");
  }
  uint32_t width = description.width;
  if (place == RegisterInstance{Register::cl_ctrl, 0}) width = map_.shape().clusters;
  if (place == RegisterInstance{Register::cl_ctrl, 1}) width = 1;
  if (place.id == Register::spinloom_core_mask) width = map_.shape().cores;
  if (width < 32 && value >> width != 0) {
    return fail(Code::invalid, "value ", value, " is too wide for ", map_.path(place), ", which has ", width,
                width == 1 ? " bit" : " bits");
  }
  return {};
}

Status RegisterFile::write(RegisterInstance place, uint32_t value) {
  SPL_TRY(may_write(place, value));
  if (describe(place.id).access == Access::command) return value == 0 ? Status{} : call(place.index);
  if (value == kept_value(place.id, place.index)) return {};
  const Configuration old = configuration_;
  if (value == 1 && place.id == Register::me_valid) SPL_TRY(install_matching());
  if (value == 1 && place.id == Register::her_valid) SPL_TRY(install_contexts());
  values_[map_.number(place)] = value;
  apply_words();
  if (configuration_ != old) device_.configuration_changed(configuration_);
  return {};
}

void RegisterFile::set_reported(std::span<const std::pair<RegisterInstance, uint32_t>> values) {
  for (const auto& [place, value] : values) values_[map_.number(place)] = value;
  apply_words();
  if (configuration_.matching_valid) configuration_.rule_sets = rule_sets();
  if (configuration_.contexts_valid) configuration_.contexts = contexts();
}

void RegisterFile::apply_words() {
  configuration_.matching_valid = kept_value(Register::me_valid) != 0;
  configuration_.contexts_valid = kept_value(Register::her_valid) != 0;
  configuration_.fetch_mask = kept_value(Register::cl_ctrl, 0);
  configuration_.reset = kept_value(Register::cl_ctrl, 1) != 0;
  configuration_.active.clear();
  for (uint32_t i = 0; i < map_.shape().contexts; ++i) {
    configuration_.active.push_back(kept_value(Register::spinloom_active, i) != 0);
  }
  configuration_.core_masks.clear();
  for (uint32_t i = 0; i < map_.shape().clusters; ++i) {
    configuration_.core_masks.push_back(kept_value(Register::spinloom_core_mask, i));
  }
}

Status RegisterFile::call(uint32_t index) {
  if (!configuration_.contexts_valid || !configuration_.contexts[index].enabled) {
    return fail(Code::invalid, "context ", index,
                " cannot be called: it is not installed; enable it in her/ctx_enabled/", index,
                " and write 1 to her/valid");
  }
  const bool has_rules =
      configuration_.matching_valid && configuration_.active[index] && index < configuration_.rule_sets.size();
  if (has_rules && can_hold(configuration_.rule_sets[index])) {
    return fail(Code::invalid, "context ", index, " cannot be called: frames reach it; give its rule set a rule that ",
                "never holds (mask 0, start 1, end 0), or write 0 to spinloom/active/", index);
  }
  return device_.call({index, kept_value(Register::spinloom_call_msg_id, index)});
}

}  // namespace spinloom::registers
