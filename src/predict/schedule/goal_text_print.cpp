#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "predict/schedule/goal.hpp"

namespace spinloom::schedule {
namespace {

// A line "l<after> requires l<before>", and the operation behind which it stands.
struct RequiresLine {
  uint32_t behind;
  uint32_t number;  // the number of the edge among all of the program
  uint32_t before;
  Edge edge;
};

std::string_view keyword_of(const Edge& edge) {
  if (edge.join() == Join::first) return edge.awaits() == Awaits::end ? " anyof l" : " ianyof l";
  return edge.awaits() == Awaits::end ? " requires l" : " irequires l";
}

// The lines stand as near to their operations as the order of each operation's edges allows.
std::vector<RequiresLine> requires_lines(const Program& program) {
  std::vector<RequiresLine> lines;
  lines.reserve(program.edges.size());
  for (uint32_t before = 0; before < program.size(); ++before) {
    uint32_t behind[2] = {before, before};
    for (const Edge edge : program.edges_of(before)) {
      uint32_t& place = behind[static_cast<size_t>(edge.awaits())];
      place = std::max(place, edge.to());
      lines.push_back({place, static_cast<uint32_t>(lines.size()), before, edge});
    }
  }
  const auto place = [](const RequiresLine& line) { return std::pair(line.behind, line.number); };
  std::ranges::sort(lines, {}, place);
  return lines;
}

class TextWriter {
 public:
  explicit TextWriter(const Schedule& schedule) : schedule_(schedule) {}

  Result<std::string> print() {
    add("num_ranks ", uint64_t{schedule_.ranks()}, "\n");
    for (uint32_t rank = 0; rank < schedule_.ranks(); ++rank) {
      add("rank ", uint64_t{rank}, " {\n");
      SPL_TRY(print_operations(rank));
      add("}\n");
    }
    return std::move(out_);
  }

 private:
  Status print_operations(uint32_t rank) {
    const Program& program = schedule_.program(rank);
    const std::vector<RequiresLine> lines = requires_lines(program);
    std::vector<bool> has_label(program.size());
    for (const RequiresLine& line : lines) has_label[line.edge.to()] = has_label[line.before] = true;
    auto line = lines.begin();
    for (uint32_t number = 0; number < program.size(); ++number) {
      if (has_label[number]) add("l", uint64_t{number}, ": ");
      SPL_TRY(print_operation(rank, number));
      for (; line != lines.end() && line->behind == number; ++line) {
        add("l", uint64_t{line->edge.to()}, keyword_of(line->edge), uint64_t{line->before}, "\n");
      }
    }
    return {};
  }

  Status print_operation(uint32_t rank, uint32_t number) {
    const Operation& operation = schedule_.program(rank).operations[number];
    const Shape& shape = schedule_.shape(operation);
    const uint32_t peer = schedule_.peer(rank, operation);
    SPL_TRY(check_sayable_in_text(schedule_, rank, number));
    if (has_peer(shape.kind) && peer >= schedule_.ranks() && (peer != any || shape.kind != Kind::receive)) {
      return fail(Code::unsupported, "rank ", rank, ", operation ", number, ": GOAL text has no ",
                  schedule_.describe(rank, operation), ": num_ranks is ", schedule_.ranks());
    }
    add(std::string_view(name_of(shape.kind)), " ", shape.size);
    if (has_peer(shape.kind)) {
      const bool is_inbound = shape.kind == Kind::receive || shape.kind == Kind::get || shape.kind == Kind::fetch;
      add(is_inbound ? "b from " : "b to "), add_or_any(peer);
    }
    if (shape.tag != 0) add(" tag "), add_or_any(shape.tag);
    if (shape.cpu != 0) add(" cpu ", uint64_t{shape.cpu});
    if (shape.nic != 0) add(" nic ", uint64_t{shape.nic});
    add("\n");
    return {};
  }

  template <class... Parts>
  void add(const Parts&... parts) {
    (add_one(parts), ...);
  }
  void add_one(std::string_view part) { out_ += part; }
  void add_one(uint64_t number) {
    char digits[20];
    out_.append(digits, std::to_chars(digits, digits + sizeof(digits), number).ptr);
  }
  void add_or_any(uint32_t number) {
    if (number == any) {
      add("-1");
    } else {
      add(uint64_t{number});
    }
  }

  const Schedule& schedule_;
  std::string out_;
};

}  // namespace

Result<std::string> print_goal(const Schedule& schedule) {
  if (schedule.repeats()) return print_goal(schedule.unrolled());
  return TextWriter(schedule).print();
}

}  // namespace spinloom::schedule
