#include "nic/registers/map.hpp"

#include <algorithm>
#include <charconv>

#include "base/nearest.hpp"

namespace spinloom::registers {
namespace {

constexpr uint32_t group_bytes = 0x1000;
constexpr uint32_t scratchpads = 4;  // her_meta has places for as many, whatever the number of clusters
constexpr const MemoryWindow& handler_memory = memory_windows[0];
constexpr const MemoryWindow& program_memory = memory_windows[1];

static_assert(handler_memory.name == "handler_memory" && program_memory.name == "program_memory");
static_assert(board_counts ==
              std::array<uint32_t, 4>{Shape{}.rule_sets, Shape{}.rules, Shape{}.contexts, Shape{}.clusters});
static_assert(handler_memory.size_bytes == Shape{}.handler_memory_bytes);
static_assert(program_memory.size_bytes == Shape{}.program_memory_bytes);

uint32_t size_of(Dimension dimension, const Shape& shape) {
  switch (dimension) {
    case Dimension::none: return 1;
    case Dimension::rule_sets: return shape.rule_sets;
    case Dimension::rules: return shape.rules;
    case Dimension::contexts: return shape.contexts;
    case Dimension::clusters: return shape.clusters;
  }
  return 1;
}

struct AllowedRange {
  const char* name;
  uint32_t value;
  uint32_t min_value;
  uint32_t max_value;
};

Status check_shape(const Shape& shape) {
  const std::array<AllowedRange, 8> ranges = {{
      {"rule_sets", shape.rule_sets, 1, 256},
      {"rules", shape.rules, 2, 256},
      {"contexts", shape.contexts, 1, 256},
      {"clusters", shape.clusters, 1, scratchpads},
      {"cores", shape.cores, 1, 8},
      {"match_words", shape.match_words, 1, 4096},
      {"handler_memory_bytes", shape.handler_memory_bytes, 8, program_memory.host_offset},
      {"program_memory_bytes", shape.program_memory_bytes, 8, registers_host_offset - program_memory.host_offset},
  }};
  for (const AllowedRange& range : ranges) {
    if (range.value < range.min_value || range.value > range.max_value) {
      return fail(Code::invalid, "a NIC with ", range.name, " = ", range.value, " has no register map; from ",
                  range.min_value, " to ", range.max_value);
    }
  }
  return {};
}

bool within(const MemoryWindow& window, uint32_t size_bytes, uint64_t address, uint64_t bytes) {
  return address >= window.nic_address && address - window.nic_address <= size_bytes &&
         bytes <= size_bytes - (address - window.nic_address);
}

}  // namespace

Result<Map> Map::make(const Shape& shape) {
  SPL_TRY(check_shape(shape));
  Map map(shape);
  uint32_t next = 0;
  for (const Description& description : descriptions) {
    Span& span = map.spans_[static_cast<size_t>(description.id)];
    next = std::max(next, description.group_base);
    span.address = next;
    span.count =
        description.fixed_count * size_of(description.dimensions[0], shape) * size_of(description.dimensions[1], shape);
    span.number = map.register_count_;
    map.register_count_ += span.count;
    next += 4 * span.count;
    if (next - description.group_base > group_bytes) {
      return fail(Code::overflow, "registers of group ", description.group, " of this NIC need more than the ",
                  group_bytes, " bytes that a group has; take fewer rule sets, rules or contexts");
    }
  }
  return map;
}

RegisterInstance Map::place_of_number(uint32_t number) const {
  SPL_ASSERT(number < register_count_, number, " of ", register_count_, " registers");
  const auto after = std::upper_bound(spans_.begin(), spans_.end(), number,
                                      [](uint32_t sought, const Span& span) { return sought < span.number; });
  const auto found = after - 1;
  return {static_cast<Register>(found - spans_.begin()), number - found->number};
}

Result<RegisterInstance> Map::at(uint32_t address) const {
  const auto after = std::upper_bound(spans_.begin(), spans_.end(), address,
                                      [](uint32_t sought, const Span& span) { return sought < span.address; });
  if (address % 4 == 0 && after != spans_.begin()) {
    const auto found = after - 1;
    const uint32_t index = (address - found->address) / 4;
    if (index < found->count) return RegisterInstance{static_cast<Register>(found - spans_.begin()), index};
  }
  return fail(Code::invalid, "no register at address ", address, "; addresses are multiples of 4, docs/registers.md ",
              "lists them");
}

Result<RegisterInstance> Map::named(std::string_view path) const {
  const size_t group_end = path.find('/');
  const size_t name_end = group_end == std::string_view::npos ? group_end : path.find('/', group_end + 1);
  const std::string_view full = path.substr(0, name_end);
  const auto is_named = [full](const Description& description) {
    return full.size() == description.group.size() + 1 + description.name.size() &&
           full.starts_with(description.group) && full[description.group.size()] == '/' &&
           full.ends_with(description.name);
  };
  const auto found = std::find_if(descriptions.begin(), descriptions.end(), is_named);
  if (found == descriptions.end()) {
    std::vector<std::string> names;
    for (const Description& description : descriptions) names.push_back(text(description.group, '/', description.name));
    const std::vector<std::string_view> all_names(names.begin(), names.end());
    const auto near = nearest(full, all_names);
    return fail(Code::invalid, "no register '", path, "'",
                near ? text("; did you mean '", *near, "'?") : text("; a path is GROUP/NAME/INDEX, as me/idx/3"));
  }
  const uint32_t registers = count(found->id);
  uint32_t index = 0;
  if (name_end == std::string_view::npos) {
    if (registers == 1) return RegisterInstance{found->id, 0};
    return fail(Code::invalid, "'", path, "' is ", registers, " registers; name one, from ", path, "/0 to ", path, "/",
                registers - 1);
  }
  const std::string_view digits = path.substr(name_end + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size() || index >= registers) {
    return fail(Code::invalid, "no register '", path, "'; ", full, " has indices 0 to ", registers - 1);
  }
  return RegisterInstance{found->id, index};
}

std::string Map::path(RegisterInstance place) const {
  const Description& description = describe(place.id);
  return text(description.group, '/', description.name, '/', place.index);
}

bool Map::in_handler_memory(uint64_t nic_address, uint64_t bytes) const {
  return within(handler_memory, shape_.handler_memory_bytes, nic_address, bytes);
}

Window Map::up_to_end_of_handler_memory(const Window& window) const {
  if (!in_handler_memory(window.address, 1)) return window;
  const uint64_t end = uint64_t{handler_memory.nic_address} + shape_.handler_memory_bytes;
  return {window.address, std::min(window.bytes, end - window.address)};
}

bool Map::in_program_memory(uint64_t nic_address, uint64_t bytes) const {
  return within(program_memory, shape_.program_memory_bytes, nic_address, bytes);
}

bool Map::in_memory(uint64_t nic_address, uint64_t bytes) const {
  return in_handler_memory(nic_address, bytes) || in_program_memory(nic_address, bytes);
}

}  // namespace spinloom::registers
