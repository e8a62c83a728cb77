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
constexpr size_t name_bytes_compared = 32;  // how much of an unknown word is compared with known names

// Recursive descent; the depth is bounded by type_depth_max.
class Parser {
 public:
  explicit Parser(std::string_view source) : source_(source) {}

  Result<Type> whole() {
    SPL_ASSIGN(const Type type, parse_type(0));
    skip();
    if (at_ < source_.size()) return unexpected("the end of the text");
    return type;
  }

 private:
  struct Pairs {
    std::vector<int64_t> displacements;
    std::vector<int64_t> block_lengths;
  };

  // Skips white space and comments.
  void skip() {
    while (at_ < source_.size()) {
      const auto c = static_cast<unsigned char>(source_[at_]);
      if (c == '#') {
        while (at_ < source_.size() && source_[at_] != '\n') ++at_;
      } else if (std::isspace(c) != 0) {
        ++at_;
      } else {
        return;
      }
    }
  }

  static bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

  [[nodiscard]] std::string place_of(size_t at) const {
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
    return fail(Code::invalid, place_of(at_), ": expected ", expected, ", found ", token_at(at_));
  }

  template <class T>
  Result<T> placed(size_t at, std::string_view what, Result<T> result) const {
    if (result) return result;
    return fail(result.error().code, place_of(at), ": in ", what, ": ", result.error().message);
  }

  bool accept(char c) {
    skip();
    if (at_ >= source_.size() || source_[at_] != c) return false;
    ++at_;
    return true;
  }

  Status expect(char c) {
    if (accept(c)) return {};
    return unexpected(text("'", c, "'"));
  }

  std::string_view word() {
    skip();
    const size_t from = at_;
    while (at_ < source_.size() && is_word(source_[at_])) ++at_;
    return source_.substr(from, at_ - from);
  }

  bool number_follows() {
    skip();
    return at_ < source_.size() && (source_[at_] == '-' || std::isdigit(static_cast<unsigned char>(source_[at_])) != 0);
  }

  Result<int64_t> number(std::string_view expected) {
    skip();
    const size_t from = at_;
    const bool negative = at_ < source_.size() && source_[at_] == '-';
    if (negative) ++at_;
    const size_t digits = at_;
    int64_t value = 0;
    bool fits = true;
    while (at_ < source_.size() && std::isdigit(static_cast<unsigned char>(source_[at_])) != 0) {
      const int digit = source_[at_] - '0';
      fits = fits && !__builtin_mul_overflow(value, 10, &value) &&
             !__builtin_add_overflow(value, negative ? -digit : digit, &value);
      ++at_;
    }
    if (at_ == digits) {
      at_ = from;
      return unexpected(expected);
    }
    if (!fits) {
      return fail(Code::overflow, place_of(from), ": ", source_.substr(from, std::min<size_t>(at_ - from, 40)),
                  " does not fit in 64 bits");
    }
    return value;
  }

  Result<int64_t> elements(std::string_view expected) { return number(expected); }

  // A number of bytes must carry its unit, so that bytes and elements are never mixed up. Only zero needs none.
  Result<int64_t> bytes(std::string_view expected) {
    SPL_ASSIGN(const int64_t value, number(expected));
    if (!accept('B') && value != 0) return unexpected("'B' behind a number of bytes");
    return value;
  }

  Result<int64_t> displacement(bool in_bytes) {
    return in_bytes ? bytes("a displacement in bytes") : elements("a number");
  }

  Status add_entry(std::vector<int64_t>& list, int64_t value) {
    if (static_cast<int64_t>(list.size()) >= limits::type_list_max) {
      return fail(Code::overflow, place_of(at_), ": a list longer than type_list_max = ", limits::type_list_max);
    }
    list.push_back(value);
    return {};
  }

  Result<IndexList> list(bool in_bytes) {
    skip();
    const size_t from = at_;
    if (accept('[')) {
      std::vector<int64_t> values;
      if (accept(']')) return IndexList(std::move(values));
      do {
        SPL_ASSIGN(const int64_t value, displacement(in_bytes));
        SPL_TRY(add_entry(values, value));
      } while (accept(','));
      SPL_TRY(expect(']'));
      return IndexList(std::move(values));
    }
    const std::string_view name = word();
    if (name != "range" && name != "rand") {
      at_ = from;
      return unexpected("a list: '[', range or rand");
    }
    SPL_TRY(expect('('));
    if (name == "range") {
      SPL_ASSIGN(const int64_t first, displacement(in_bytes));
      SPL_TRY(expect(','));
      SPL_ASSIGN(const int64_t step, displacement(in_bytes));
      SPL_TRY(expect(','));
      SPL_ASSIGN(const int64_t count, number("the number of entries"));
      SPL_TRY(expect(')'));
      return placed(from, name, IndexList::range(first, step, count));
    }
    SPL_ASSIGN(const int64_t seed, number("a seed"));
    SPL_TRY(expect(','));
    SPL_ASSIGN(const int64_t bound, number("the number of indices"));
    SPL_TRY(expect(','));
    SPL_ASSIGN(const int64_t count, number("the number of entries"));
    SPL_TRY(expect(')'));
    if (seed < 0) return fail(Code::invalid, place_of(from), ": in rand: seed ", seed, " must not be negative");
    return placed(from, name, IndexList::random(static_cast<uint64_t>(seed), bound, count));
  }

  Result<Pairs> pairs(bool in_bytes) {
    Pairs out;
    SPL_TRY(expect('['));
    if (accept(']')) return out;
    do {
      SPL_ASSIGN(const int64_t value, displacement(in_bytes));
      SPL_TRY(add_entry(out.displacements, value));
      SPL_TRY(expect('x'));
      SPL_ASSIGN(const int64_t length, number("a block length"));
      out.block_lengths.push_back(length);
    } while (accept(','));
    SPL_TRY(expect(']'));
    return out;
  }

  Result<Type> parse_type(int64_t depth) {
    skip();
    const size_t from = at_;
    const std::string_view name = word();
    if (name.empty()) return unexpected("a type");
    if (depth > limits::type_depth_max) {
      return fail(Code::overflow, place_of(from), ": nested deeper than type_depth_max = ", limits::type_depth_max);
    }
    if (std::ranges::find(constructors, name) == constructors.end()) {
      auto type = primitive(name);
      if (type) return type;
      const std::string found = token_at(from);
      if (accept('(')) {  // no primitive takes arguments
        const auto meant = nearest(name.substr(0, name_bytes_compared), constructors);
        return fail(Code::invalid, place_of(from), ": expected a type, found ", found,
                    meant ? text("; did you mean '", *meant, "'?") : text("; there are: ", listed_constructors()));
      }
      return fail(type.error().code, place_of(from), ": expected a type, found ", found, ": ", type.error().message);
    }
    SPL_TRY(expect('('));
    SPL_ASSIGN(const Type type, arguments(name, from, depth + 1));
    SPL_TRY(expect(')'));
    return type;
  }

  static std::string listed_constructors() {
    std::string list;
    for (const std::string_view name : constructors) list += text(list.empty() ? "" : ", ", name);
    return list;
  }

  Result<Type> last_type(int64_t depth) {
    SPL_TRY(expect(','));
    return parse_type(depth);
  }

  Result<Type> arguments(std::string_view name, size_t from, int64_t depth) {
    if (name == "contig") {
      SPL_ASSIGN(const int64_t count, number("a count"));
      SPL_ASSIGN(const Type child, last_type(depth));
      return placed(from, name, contiguous(count, child));
    }
    if (name == "vector" || name == "hvector") {
      SPL_ASSIGN(const int64_t count, number("a count"));
      SPL_TRY(expect(','));
      SPL_ASSIGN(const int64_t block_length, number("a block length"));
      SPL_TRY(expect(','));
      SPL_ASSIGN(const int64_t stride, name == "vector" ? number("a stride in elements") : bytes("a stride in bytes"));
      SPL_ASSIGN(const Type child, last_type(depth));
      return placed(
          from, name,
          name == "vector" ? vector(count, block_length, stride, child) : hvector(count, block_length, stride, child));
    }
    if (name == "indexed" || name == "hindexed") {
      SPL_ASSIGN(Pairs read, pairs(name == "hindexed"));
      SPL_ASSIGN(const Type child, last_type(depth));
      return placed(from, name,
                    name == "indexed" ? indexed(std::move(read.displacements), std::move(read.block_lengths), child)
                                      : hindexed(std::move(read.displacements), std::move(read.block_lengths), child));
    }
    if (name == "idxblock" || name == "hidxblock") {
      SPL_ASSIGN(const int64_t block_length, number("a block length"));
      SPL_TRY(expect(','));
      SPL_ASSIGN(IndexList displacements, list(name == "hidxblock"));
      SPL_ASSIGN(const Type child, last_type(depth));
      return placed(from, name,
                    name == "idxblock" ? indexed_block(block_length, std::move(displacements), child)
                                       : hindexed_block(block_length, std::move(displacements), child));
    }
    if (name == "resized") {
      SPL_ASSIGN(const int64_t lb, bytes("a lower bound in bytes"));
      SPL_TRY(expect(','));
      SPL_ASSIGN(const int64_t extent, bytes("an extent in bytes"));
      SPL_ASSIGN(const Type child, last_type(depth));
      return placed(from, name, resized(lb, extent, child));
    }
    if (name == "subarray") return subarray_arguments(from, depth);
    if (name == "darray") return darray_arguments(from, depth);
    if (name == "dup") {
      SPL_ASSIGN(const Type child, parse_type(depth));
      return placed(from, name, dup(child));
    }
    return struct_arguments(from, depth);
  }

  Result<Type> subarray_arguments(size_t from, int64_t depth) {
    SPL_ASSIGN(IndexList sizes, list(false));
    SPL_TRY(expect(','));
    SPL_ASSIGN(IndexList subsizes, list(false));
    SPL_TRY(expect(','));
    SPL_ASSIGN(IndexList starts, list(false));
    SPL_TRY(expect(','));
    SPL_ASSIGN(const Order order, array_order());
    SPL_ASSIGN(const Type child, last_type(depth));
    return placed(from, "subarray", subarray(std::move(sizes), std::move(subsizes), std::move(starts), order, child));
  }

  Result<Order> array_order() {
    skip();
    const size_t from = at_;
    const std::string_view order = word();
    if (order == "C") return Order::c;
    if (order == "F") return Order::fortran;
    at_ = from;
    return unexpected("the order: C or F");
  }

  Result<Type> darray_arguments(size_t from, int64_t depth) {
    DarrayArguments given;
    SPL_ASSIGN(given.processes, number("the number of processes"));
    SPL_TRY(expect(','));
    SPL_ASSIGN(given.rank, number("a rank"));
    SPL_TRY(expect(','));
    SPL_ASSIGN(given.sizes, list(false));
    SPL_TRY(expect(','));
    SPL_TRY(expect('['));
    do {
      SPL_ASSIGN(const Distribution distribution, distribution_word());
      given.distributions.push_back(distribution);
    } while (accept(','));
    SPL_TRY(expect(']'));
    SPL_TRY(expect(','));
    SPL_TRY(expect('['));
    do {
      if (number_follows()) {
        SPL_ASSIGN(const int64_t argument, number("an argument"));
        if (argument < 1) return fail(Code::invalid, place_of(at_), ": a darray's argument is at least 1 or default");
        SPL_TRY(add_entry(given.arguments, argument));
      } else if (const size_t at = at_; word() == "default") {
        SPL_TRY(add_entry(given.arguments, darray_default));
      } else {
        at_ = at;
        return unexpected("a number or default");
      }
    } while (accept(','));
    SPL_TRY(expect(']'));
    SPL_TRY(expect(','));
    SPL_ASSIGN(given.grid, list(false));
    SPL_TRY(expect(','));
    SPL_ASSIGN(given.order, array_order());
    SPL_ASSIGN(const Type child, last_type(depth));
    return placed(from, "darray", darray(given, child));
  }

  Result<Distribution> distribution_word() {
    skip();
    const size_t from = at_;
    const std::string_view name = word();
    if (name == "none") return Distribution::none;
    if (name == "block") return Distribution::block;
    if (name == "cyclic") return Distribution::cyclic;
    at_ = from;
    return unexpected("a distribution: block, cyclic or none");
  }

  Result<Type> struct_arguments(size_t from, int64_t depth) {
    std::vector<int64_t> displacements;
    std::vector<int64_t> block_lengths;
    std::vector<Type> children;
    SPL_TRY(expect('['));
    if (!accept(']')) {
      do {
        SPL_TRY(expect('('));
        SPL_ASSIGN(const int64_t at, bytes("a displacement in bytes"));
        SPL_TRY(add_entry(displacements, at));
        SPL_TRY(expect(','));
        int64_t length = 1;
        if (number_follows()) {
          SPL_ASSIGN(length, number("a block length"));
          SPL_TRY(expect(','));
        }
        block_lengths.push_back(length);
        SPL_ASSIGN(Type child, parse_type(depth));
        children.push_back(std::move(child));
        SPL_TRY(expect(')'));
      } while (accept(','));
      SPL_TRY(expect(']'));
    }
    return placed(from, "struct", structure(std::move(displacements), std::move(block_lengths), std::move(children)));
  }

  std::string_view source_;
  size_t at_ = 0;
};

}  // namespace

Result<Type> parse(std::string_view source) { return Parser(source).whole(); }

}  // namespace spinloom::layout
