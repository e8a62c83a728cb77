#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/limits.hpp"
#include "base/nearest.hpp"
#include "memory/layout/text.hpp"

namespace spinloom::layout {
namespace {

constexpr auto constructors =
    std::to_array<std::string_view>({"contig", "vector", "hvector", "indexed", "hindexed", "idxblock", "hidxblock",
                                     "struct", "resized", "subarray", "darray", "dup"});
constexpr size_t name_bytes_compared = 32;  // the part of an unknown word that is compared with known names

// Recursive descent; the depth is bounded by type_depth_max.
class Parser {
 public:
  explicit Parser(std::string_view source) : source_(source) {}

  Result<Type> parse_all() {
    SPL_ASSIGN(const Type type, parse_type(0));
    skip_space();
    if (position_ < source_.size()) return unexpected("the end of the text");
    return type;
  }

 private:
  struct Pairs {
    std::vector<int64_t> displacements;
    std::vector<int64_t> block_lengths;
  };

  // Skips white space and comments.
  void skip_space() {
    while (position_ < source_.size()) {
      const auto c = static_cast<unsigned char>(source_[position_]);
      if (c == '#') {
        while (position_ < source_.size() && source_[position_] != '\n') ++position_;
      } else if (std::isspace(c) != 0) {
        ++position_;
      } else {
        return;
      }
    }
  }

  static bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

  [[nodiscard]] std::string line_and_column(size_t at) const {
    int64_t line = 1;
    int64_t column = 1;
    for (size_t i = 0; i < at; ++i) {
      if (source_[i] == '\n') {
        ++line;
        column = 1;
      } else {
        ++column;
      }
    }
    return text("line ", line, ", column ", column);
  }

  [[nodiscard]] std::string token_at(size_t at) const {
    if (at >= source_.size()) return "the end of the text";
    size_t end = at;
    while (end < source_.size() && is_word(source_[end]) && end - at < 32) ++end;
    if (end > at) return text("'", source_.substr(at, end - at), "'");
    const auto c = static_cast<unsigned char>(source_[at]);
    if (std::isprint(c) != 0) return text("'", source_.substr(at, 1), "'");
    return text("byte ", int{c});
  }

  [[nodiscard]] Error unexpected(std::string_view expected) const {
    return fail(Code::invalid, line_and_column(position_), ": expected ", expected, ", found ", token_at(position_));
  }

  template <class T>
  Result<T> with_position(size_t at, std::string_view what, Result<T> result) const {
    if (result) return result;
    return fail(result.error().code, line_and_column(at), ": in ", what, ": ", result.error().message);
  }

  bool accept(char c) {
    skip_space();
    if (position_ >= source_.size() || source_[position_] != c) return false;
    ++position_;
    return true;
  }

  Status expect(char c) {
    if (accept(c)) return {};
    return unexpected(text("'", c, "'"));
  }

  std::string_view read_word() {
    skip_space();
    const size_t start = position_;
    while (position_ < source_.size() && is_word(source_[position_])) ++position_;
    return source_.substr(start, position_ - start);
  }

  bool number_follows() {
    skip_space();
    return position_ < source_.size() &&
           (source_[position_] == '-' || std::isdigit(static_cast<unsigned char>(source_[position_])) != 0);
  }

  Result<int64_t> read_number(std::string_view expected) {
    skip_space();
    const size_t start = position_;
    const bool negative = position_ < source_.size() && source_[position_] == '-';
    if (negative) ++position_;
    const size_t digits = position_;
    int64_t value = 0;
    bool fits = true;
    while (position_ < source_.size() && std::isdigit(static_cast<unsigned char>(source_[position_])) != 0) {
      const int digit = source_[position_] - '0';
      fits = fits && !__builtin_mul_overflow(value, 10, &value) &&
             !__builtin_add_overflow(value, negative ? -digit : digit, &value);
      ++position_;
    }
    if (position_ == digits) {
      position_ = start;
      return unexpected(expected);
    }
    if (!fits) {
      return fail(Code::overflow, line_and_column(start), ": ",
                  source_.substr(start, std::min<size_t>(position_ - start, 40)), " does not fit in 64 bits");
    }
    return value;
  }

  Result<int64_t> read_elements(std::string_view expected) { return read_number(expected); }

  // A number of bytes must carry its unit, so that bytes and elements are never mixed up. Only zero needs none.
  Result<int64_t> read_bytes(std::string_view expected) {
    SPL_ASSIGN(const int64_t value, read_number(expected));
    if (!accept('B') && value != 0) return unexpected("'B' behind a number of bytes");
    return value;
  }

  Result<int64_t> read_displacement(bool in_bytes) {
    return in_bytes ? read_bytes("a displacement in bytes") : read_elements("a number");
  }

  Status add_entry(std::vector<int64_t>& list, int64_t value) {
    if (static_cast<int64_t>(list.size()) >= limits::type_list_max) {
      return fail(Code::overflow, line_and_column(position_),
                  ": a list longer than type_list_max = ", limits::type_list_max);
    }
    list.push_back(value);
    return {};
  }

  Result<IndexList> read_list(bool in_bytes) {
    skip_space();
    const size_t start = position_;
    if (accept('[')) {
      std::vector<int64_t> values;
      if (accept(']')) return IndexList(std::move(values));
      do {
        SPL_ASSIGN(const int64_t value, read_displacement(in_bytes));
        SPL_TRY(add_entry(values, value));
      } while (accept(','));
      SPL_TRY(expect(']'));
      return IndexList(std::move(values));
    }
    const std::string_view name = read_word();
    if (name != "range" && name != "rand") {
      position_ = start;
      return unexpected("a list: '[', range or rand");
    }
    SPL_TRY(expect('('));
    if (name == "range") {
      SPL_ASSIGN(const int64_t first, read_displacement(in_bytes));
      SPL_TRY(expect(','));
      SPL_ASSIGN(const int64_t step, read_displacement(in_bytes));
      SPL_TRY(expect(','));
      SPL_ASSIGN(const int64_t count, read_number("the number of entries"));
      SPL_TRY(expect(')'));
      return with_position(start, name, IndexList::range(first, step, count));
    }
    SPL_ASSIGN(const int64_t seed, read_number("a seed"));
    SPL_TRY(expect(','));
    SPL_ASSIGN(const int64_t bound, read_number("the number of indices"));
    SPL_TRY(expect(','));
    SPL_ASSIGN(const int64_t count, read_number("the number of entries"));
    SPL_TRY(expect(')'));
    if (seed < 0) return fail(Code::invalid, line_and_column(start), ": in rand: seed ", seed, " must not be negative");
    return with_position(start, name, IndexList::random(static_cast<uint64_t>(seed), bound, count));
  }

  Result<Pairs> read_pairs(bool in_bytes) {
    Pairs out;
    SPL_TRY(expect('['));
    if (accept(']')) return out;
    do {
      SPL_ASSIGN(const int64_t value, read_displacement(in_bytes));
      SPL_TRY(add_entry(out.displacements, value));
      SPL_TRY(expect('x'));
      SPL_ASSIGN(const int64_t length, read_number("a block length"));
      out.block_lengths.push_back(length);
    } while (accept(','));
    SPL_TRY(expect(']'));
    return out;
  }

  Result<Type> parse_type(int64_t depth) {
    skip_space();
    const size_t start = position_;
    const std::string_view name = read_word();
    if (name.empty()) return unexpected("a type");
    if (depth > limits::type_depth_max) {
      return fail(Code::overflow, line_and_column(start),
                  ": nested deeper than type_depth_max = ", limits::type_depth_max);
    }
    if (std::ranges::find(constructors, name) == constructors.end()) {
      auto type = primitive(name);
      if (type) return type;
      const std::string found_token = token_at(start);
      if (accept('(')) {  // no primitive takes arguments
        const auto suggestion = nearest(name.substr(0, name_bytes_compared), constructors);
        return fail(
            Code::invalid, line_and_column(start), ": expected a type, found ", found_token,
            suggestion ? text("; did you mean '", *suggestion, "'?") : text("; there are: ", listed_constructors()));
      }
      return fail(type.error().code, line_and_column(start), ": expected a type, found ", found_token, ": ",
                  type.error().message);
    }
    SPL_TRY(expect('('));
    SPL_ASSIGN(const Type type, read_arguments(name, start, depth + 1));
    SPL_TRY(expect(')'));
    return type;
  }

  static std::string listed_constructors() {
    std::string list;
    for (const std::string_view name : constructors) list += text(list.empty() ? "" : ", ", name);
    return list;
  }

  Result<Type> read_last_type(int64_t depth) {
    SPL_TRY(expect(','));
    return parse_type(depth);
  }

  Result<Type> read_arguments(std::string_view name, size_t start, int64_t depth) {
    if (name == "contig") {
      SPL_ASSIGN(const int64_t count, read_number("a count"));
      SPL_ASSIGN(const Type child, read_last_type(depth));
      return with_position(start, name, contiguous(count, child));
    }
    if (name == "vector" || name == "hvector") {
      SPL_ASSIGN(const int64_t count, read_number("a count"));
      SPL_TRY(expect(','));
      SPL_ASSIGN(const int64_t block_length, read_number("a block length"));
      SPL_TRY(expect(','));
      SPL_ASSIGN(const int64_t stride,
                 name == "vector" ? read_number("a stride in elements") : read_bytes("a stride in bytes"));
      SPL_ASSIGN(const Type child, read_last_type(depth));
      return with_position(
          start, name,
          name == "vector" ? vector(count, block_length, stride, child) : hvector(count, block_length, stride, child));
    }
    if (name == "indexed" || name == "hindexed") {
      SPL_ASSIGN(Pairs pair_lists, read_pairs(name == "hindexed"));
      SPL_ASSIGN(const Type child, read_last_type(depth));
      return with_position(
          start, name,
          name == "indexed"
              ? indexed(std::move(pair_lists.displacements), std::move(pair_lists.block_lengths), child)
              : hindexed(std::move(pair_lists.displacements), std::move(pair_lists.block_lengths), child));
    }
    if (name == "idxblock" || name == "hidxblock") {
      SPL_ASSIGN(const int64_t block_length, read_number("a block length"));
      SPL_TRY(expect(','));
      SPL_ASSIGN(IndexList displacements, read_list(name == "hidxblock"));
      SPL_ASSIGN(const Type child, read_last_type(depth));
      return with_position(start, name,
                           name == "idxblock" ? indexed_block(block_length, std::move(displacements), child)
                                              : hindexed_block(block_length, std::move(displacements), child));
    }
    if (name == "resized") {
      SPL_ASSIGN(const int64_t lb, read_bytes("a lower bound in bytes"));
      SPL_TRY(expect(','));
      SPL_ASSIGN(const int64_t extent, read_bytes("an extent in bytes"));
      SPL_ASSIGN(const Type child, read_last_type(depth));
      return with_position(start, name, resized(lb, extent, child));
    }
    if (name == "subarray") return read_subarray(start, depth);
    if (name == "darray") return read_darray(start, depth);
    if (name == "dup") {
      SPL_ASSIGN(const Type child, parse_type(depth));
      return with_position(start, name, dup(child));
    }
    return read_struct(start, depth);
  }

  Result<Type> read_subarray(size_t start, int64_t depth) {
    SPL_ASSIGN(IndexList sizes, read_list(false));
    SPL_TRY(expect(','));
    SPL_ASSIGN(IndexList subsizes, read_list(false));
    SPL_TRY(expect(','));
    SPL_ASSIGN(IndexList starts, read_list(false));
    SPL_TRY(expect(','));
    SPL_ASSIGN(const Order order, read_order());
    SPL_ASSIGN(const Type child, read_last_type(depth));
    return with_position(start, "subarray",
                         subarray(std::move(sizes), std::move(subsizes), std::move(starts), order, child));
  }

  Result<Order> read_order() {
    skip_space();
    const size_t start = position_;
    const std::string_view order = read_word();
    if (order == "C") return Order::c;
    if (order == "F") return Order::fortran;
    position_ = start;
    return unexpected("the order: C or F");
  }

  Result<Type> read_darray(size_t start, int64_t depth) {
    DarrayArguments arguments;
    SPL_ASSIGN(arguments.processes, read_number("the number of processes"));
    SPL_TRY(expect(','));
    SPL_ASSIGN(arguments.rank, read_number("a rank"));
    SPL_TRY(expect(','));
    SPL_ASSIGN(arguments.sizes, read_list(false));
    SPL_TRY(expect(','));
    SPL_TRY(expect('['));
    do {
      SPL_ASSIGN(const Distribution distribution, read_distribution());
      arguments.distributions.push_back(distribution);
    } while (accept(','));
    SPL_TRY(expect(']'));
    SPL_TRY(expect(','));
    SPL_TRY(expect('['));
    do {
      if (number_follows()) {
        SPL_ASSIGN(const int64_t argument, read_number("an argument"));
        if (argument < 1)
          return fail(Code::invalid, line_and_column(position_), ": a darray's argument is at least 1 or default");
        SPL_TRY(add_entry(arguments.distribution_arguments, argument));
      } else if (const size_t at = position_; read_word() == "default") {
        SPL_TRY(add_entry(arguments.distribution_arguments, darray_default));
      } else {
        position_ = at;
        return unexpected("a number or default");
      }
    } while (accept(','));
    SPL_TRY(expect(']'));
    SPL_TRY(expect(','));
    SPL_ASSIGN(arguments.grid, read_list(false));
    SPL_TRY(expect(','));
    SPL_ASSIGN(arguments.order, read_order());
    SPL_ASSIGN(const Type child, read_last_type(depth));
    return with_position(start, "darray", darray(arguments, child));
  }

  Result<Distribution> read_distribution() {
    skip_space();
    const size_t start = position_;
    const std::string_view name = read_word();
    if (name == "none") return Distribution::none;
    if (name == "block") return Distribution::block;
    if (name == "cyclic") return Distribution::cyclic;
    position_ = start;
    return unexpected("a distribution: block, cyclic or none");
  }

  Result<Type> read_struct(size_t start, int64_t depth) {
    std::vector<int64_t> displacements;
    std::vector<int64_t> block_lengths;
    std::vector<Type> children;
    SPL_TRY(expect('['));
    if (!accept(']')) {
      do {
        SPL_TRY(expect('('));
        SPL_ASSIGN(const int64_t at, read_bytes("a displacement in bytes"));
        SPL_TRY(add_entry(displacements, at));
        SPL_TRY(expect(','));
        int64_t length = 1;
        if (number_follows()) {
          SPL_ASSIGN(length, read_number("a block length"));
          SPL_TRY(expect(','));
        }
        block_lengths.push_back(length);
        SPL_ASSIGN(Type child, parse_type(depth));
        children.push_back(std::move(child));
        SPL_TRY(expect(')'));
      } while (accept(','));
      SPL_TRY(expect(']'));
    }
    return with_position(start, "struct",
                         structure(std::move(displacements), std::move(block_lengths), std::move(children)));
  }

  std::string_view source_;
  size_t position_ = 0;
};

}  // namespace

Result<Type> parse(std::string_view source) { return Parser(source).parse_all(); }

}  // namespace spinloom::layout
