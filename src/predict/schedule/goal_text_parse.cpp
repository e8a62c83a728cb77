#include <algorithm>
#include <cctype>
#include <utility>

#include "predict/schedule/goal.hpp"
#include "predict/schedule/labels.hpp"

namespace spinloom::schedule {
namespace {

constexpr size_t rank_bytes_min = 8;  // "rank 0{}"
constexpr size_t found_bytes_max = 32;  // the part of the text that an error shows
constexpr uint32_t index_max = UINT32_MAX;  // the largest index of a CPU or a NIC

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word_letter(char c) { return is_letter(c) || is_digit(c) || c == '_'; }

// One pass; only labels are looked up. Keywords behind the first word of a statement need no space around them.
class TextReader {
 public:
  TextReader(std::string_view source, const Watch& watch) : source_(source), progress_(watch, "reading the schedule") {}

  Result<Schedule> read() {
    SPL_TRY(skip_lines());
    if (peek_word() != "num_ranks") return unexpected("'num_ranks'");
    at_ += peek_word().size();
    SPL_ASSIGN(const uint64_t ranks, read_number("the number of ranks", UINT32_MAX));
    if (const size_t remaining = source_.size() - at_; ranks > remaining / rank_bytes_min) {
      return fail(Code::invalid, location_of(number_at_), ": num_ranks is ", ranks, ", but the ", remaining,
                  " bytes of text behind it have room for ", remaining / rank_bytes_min, " at most");
    }
    ranks_ = static_cast<uint32_t>(ranks);
    Schedule schedule(ranks_);
    for (rank_ = 0; rank_ < ranks_; ++rank_) {
      SPL_TRY(skip_lines());
      SPL_TRY(read_rank_head());
      bool has_statement = true;
      while (has_statement) {
        SPL_TRY(progress_.advance(1));
        SPL_ASSIGN(has_statement, read_statement(schedule));
      }
      schedule.intern(rank_, builder_.take());
      labels_.clear();
      requirements_ = 0;
    }
    SPL_TRY(skip_lines());
    if (at_ < source_.size()) return unexpected(text("the end of the text behind ", ranks_, " ranks (num_ranks)"));
    return schedule;
  }

 private:
  // "rank" INT "{"
  Status read_rank_head() {
    const size_t from = at_;
    if (peek_word() != "rank") return unexpected(text("'rank ", rank_, "' (num_ranks is ", ranks_, ")"));
    at_ += peek_word().size();
    SPL_ASSIGN(const uint64_t rank, read_number("the number of the rank", UINT32_MAX));
    if (rank != rank_) {
      return fail(Code::invalid, location_of(from), ": expected rank ", rank_, ", found rank ", rank,
                  ": ranks come in order, from 0");
    }
    return expect("{");
  }

  // Returns false at the end of the rank.
  Result<bool> read_statement(Schedule& schedule) {
    SPL_TRY(skip_lines());
    const std::string_view first = peek_word();
    if (first.empty()) {
      if (accept("}")) return false;
      return unexpected("a statement or '}'");
    }
    const size_t from = at_;
    at_ += first.size();
    if (const Kind kind = kind_of(first); is_keyword(kind) && (kind <= Kind::compute || begins_number())) {
      SPL_TRY(read_operation(schedule, kind));
      return true;
    }
    if (first == "rank" || first == "num_ranks") {
      at_ = from;
      return unexpected("a statement or '}'");
    }
    if (accept(":")) {
      SPL_TRY(read_labelled(schedule, first));
    } else if (accept("requires")) {
      SPL_TRY(read_requirement(from, first, Awaits::end, Join::all));
    } else if (accept("irequires")) {
      SPL_TRY(read_requirement(from, first, Awaits::start, Join::all));
    } else if (accept("anyof")) {
      SPL_TRY(read_requirement(from, first, Awaits::end, Join::first));
    } else if (accept("ianyof")) {
      SPL_TRY(read_requirement(from, first, Awaits::start, Join::first));
    } else {
      return unexpected(text("':', 'requires', 'irequires', 'anyof' or 'ianyof' behind ", quoted(first)));
    }
    return true;
  }

  Status read_labelled(Schedule& schedule, std::string_view name) {
    if (const Labels::Label* const known = labels_.find(name)) {
      return fail(Code::invalid, location_of(name), ": label ", quoted(name), " is already that of the operation in ",
                  location_of(known->name));
    }
    uint32_t kind = 1;
    while (kind < kinds && !accept(name_of(static_cast<Kind>(kind)))) ++kind;
    if (kind == kinds) return unexpected("'send', 'recv', 'calc', 'put', 'get', 'atomic', 'fetch' or 'arrived'");
    SPL_TRY(read_operation(schedule, static_cast<Kind>(kind)));
    labels_.define(name, builder_.size() - 1);
    return {};
  }

  // Reads what follows the word of the operation's kind.
  Status read_operation(Schedule& schedule, Kind kind) {
    Shape shape;
    shape.kind = kind;
    SPL_ASSIGN(shape.size, read_number(kind == Kind::compute   ? "the time of a computation"
                                       : kind == Kind::arrived ? "how many must have come"
                                                               : "a number of bytes",
                                       UINT64_MAX));
    uint32_t peer = 0;
    if (has_peer(kind)) {
      const bool is_inbound = kind == Kind::receive || kind == Kind::get || kind == Kind::fetch;
      SPL_TRY(expect("b"));
      SPL_TRY(expect(is_inbound ? "from" : "to"));
      SPL_ASSIGN(peer, read_peer(kind));
    }
    if (kind != Kind::compute && accept("tag")) {
      SPL_ASSIGN(shape.tag, read_tag(kind));
    }
    if (kind != Kind::arrived && accept("cpu")) {
      SPL_ASSIGN(const uint64_t cpu, read_number("the index of a CPU", index_max));
      shape.cpu = static_cast<uint32_t>(cpu);
    }
    if (has_peer(kind) && accept("nic")) {
      SPL_ASSIGN(const uint64_t nic, read_number("the index of a NIC", index_max));
      shape.nic = static_cast<uint32_t>(nic);
    }
    if (!accept_end_of_line()) return unexpected_option(kind);
    if (builder_.size() == Edge::operations_max) {
      return fail(Code::overflow, location_of(at_ - 1), ": rank ", rank_, " has more than ", Edge::operations_max,
                  " operations");
    }
    builder_.add(schedule.intern_shape(shape), peer);
    return {};
  }

  Result<uint32_t> read_peer(Kind kind) {
    if (kind == Kind::receive && accept("-1")) return any;
    SPL_ASSIGN(const uint64_t peer, read_number(kind == Kind::receive ? "a rank or -1" : "a rank", any - 1));
    if (peer >= ranks_) {
      return fail(Code::invalid, location_of(number_at_), ": there is no rank ", peer, ": num_ranks is ", ranks_);
    }
    return static_cast<uint32_t>(peer);
  }

  Result<uint32_t> read_tag(Kind kind) {
    const bool is_counter = kind > Kind::compute;
    if (!is_counter && accept("-1")) return any;
    SPL_ASSIGN(const uint64_t tag, read_number(is_counter ? "a tag" : "a tag or -1", any - 1));
    return static_cast<uint32_t>(tag);
  }

  // Reads what follows "requires", "irequires", "anyof" or "ianyof".
  Status read_requirement(size_t from, std::string_view after_name, Awaits awaits, Join join) {
    skip_blanks();
    const size_t before_from = at_;
    const std::string_view before_name = peek_word();
    if (before_name.empty()) return unexpected("a label");
    at_ += before_name.size();
    SPL_ASSIGN(const uint32_t after, operation_of(from, after_name));
    SPL_ASSIGN(const uint32_t before, operation_of(before_from, before_name));
    if (!accept_end_of_line()) return unexpected("the end of the line");
    if (++requirements_ > UINT32_MAX) {
      return fail(Code::overflow, location_of(from), ": rank ", rank_, " has more than ", UINT32_MAX, " dependencies");
    }
    builder_.require(after, before, awaits, join);
    return {};
  }

  Result<uint32_t> operation_of(size_t from, std::string_view name) const {
    if (const Labels::Label* const label = labels_.find(name)) return label->operation;
    return fail(Code::invalid, location_of(from), ": label ", quoted(name), " is not defined above this line in rank ",
                rank_);
  }

  // Returns the kind of this name. If there is none, is_keyword() is false for the result: the name is a label.
  static Kind kind_of(std::string_view name) {
    uint32_t kind = 1;
    while (kind < kinds && name != name_of(static_cast<Kind>(kind))) ++kind;
    return static_cast<Kind>(kind);
  }

  static bool is_keyword(Kind kind) { return static_cast<uint32_t>(kind) < kinds; }

  // Words that GOAL does not have may be labels, which no number follows.
  [[nodiscard]] bool begins_number() {
    skip_blanks();
    return at_ < source_.size() && is_digit(source_[at_]);
  }

  // The parts of the text.

  void skip_blanks() {
    while (at_ < source_.size() && (source_[at_] == ' ' || source_[at_] == '\t')) ++at_;
  }

  // Skips empty lines and comments, where a statement may begin.
  Status skip_lines() {
    while (true) {
      skip_blanks();
      const std::string_view rest = source_.substr(at_);
      if (rest.starts_with('\n')) {
        ++at_;
      } else if (rest.starts_with("\r\n")) {
        at_ += 2;
      } else if (rest.starts_with("//")) {
        at_ = std::min(source_.find('\n', at_), source_.size());
      } else if (rest.starts_with("/*")) {
        const size_t end = source_.find("*/", at_ + 2);
        if (end == std::string_view::npos) {
          return fail(Code::invalid, location_of(at_), ": a comment begins that no '*/' ends");
        }
        at_ = end + 2;
      } else {
        return {};
      }
    }
  }

  // A label or the first word of a statement, which begins here; it is not passed.
  [[nodiscard]] std::string_view peek_word() const {
    size_t end = at_;
    if (end < source_.size() && is_letter(source_[end])) {
      while (end < source_.size() && is_word_letter(source_[end])) ++end;
    }
    return source_.substr(at_, end - at_);
  }

  bool accept(std::string_view token) {
    skip_blanks();
    if (!source_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  Status expect(std::string_view token) {
    if (accept(token)) return {};
    return unexpected(text("'", token, "'"));
  }

  bool accept_end_of_line() { return accept("\n") || accept("\r\n"); }

  Result<uint64_t> read_number(const char* expected, uint64_t largest) {
    skip_blanks();
    number_at_ = at_;
    uint64_t value = 0;
    bool fits = true;
    while (at_ < source_.size() && is_digit(source_[at_])) {
      const auto digit = static_cast<uint64_t>(source_[at_] - '0');
      fits = fits && !__builtin_mul_overflow(value, 10, &value) && !__builtin_add_overflow(value, digit, &value);
      ++at_;
    }
    if (at_ == number_at_) return unexpected(expected);
    if (!fits || value > largest) {
      return fail(Code::overflow, location_of(number_at_), ": expected ", expected, ", found ",
                  quoted(source_.substr(number_at_, at_ - number_at_)), ": it is ", largest, " at most");
    }
    return value;
  }

  // Errors.

  [[nodiscard]] std::string location_of(size_t at) const {
    const std::string_view before = source_.substr(0, at);
    const size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is 0
    return text("line ", std::ranges::count(before, '\n') + 1, ", column ", at - line_begin + 1);
  }
  [[nodiscard]] std::string location_of(std::string_view part) const {
    return location_of(part.data() - source_.data());
  }

  static std::string quoted(std::string_view part) {
    return text("'", part.substr(0, found_bytes_max), part.size() > found_bytes_max ? "..." : "", "'");
  }

  [[nodiscard]] std::string next_text() const {
    const std::string_view rest = source_.substr(at_);
    if (rest.empty()) return "the end of the text";
    if (rest[0] == '\n' || rest.starts_with("\r\n")) return "the end of the line";
    size_t length = 0;
    while (length < rest.size() && is_word_letter(rest[length])) ++length;
    if (length > 0) return quoted(rest.substr(0, length));
    const auto c = static_cast<unsigned char>(rest[0]);
    if (std::isprint(c) != 0) return quoted(rest.substr(0, 1));
    return text("byte ", int{c});
  }

  [[nodiscard]] Error unexpected(std::string_view expected) {
    skip_blanks();
    return fail(Code::invalid, location_of(at_), ": expected ", expected, ", found ", next_text());
  }

  [[nodiscard]] Error unexpected_option(Kind kind) {
    const std::string_view rest = source_.substr(at_);
    const bool is_option = rest.starts_with("tag") || rest.starts_with("cpu") || rest.starts_with("nic");
    Error error = unexpected("the end of the line");
    if (rest.starts_with("/")) error.message += ": a comment has a line of its own";
    if (is_option) {
      error.message += kind == Kind::compute   ? ": calc has cpu only"
                       : kind == Kind::arrived ? ": arrived has tag only"
                                               : ": the order is tag, cpu, nic";
    }
    return error;
  }

  std::string_view source_;
  Progress progress_;
  size_t at_ = 0;
  size_t number_at_ = 0;  // the place where the last number began
  uint32_t ranks_ = 0;
  uint32_t rank_ = 0;
  uint64_t requirements_ = 0;  // the number of this rank's requirements
  Builder builder_;
  Labels labels_;
};

}  // namespace

Result<Schedule> read_goal_text(std::string_view source, const Watch& watch) {
  return TextReader(source, watch).read();
}

}  // namespace spinloom::schedule
