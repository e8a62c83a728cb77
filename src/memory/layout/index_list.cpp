#include "memory/layout/index_list.hpp"

#include <numeric>
#include <unordered_map>

#include "base/checked.hpp"
#include "base/limits.hpp"
#include "base/random.hpp"

namespace spinloom::layout {
namespace {

Status check_count(int64_t count) {
  if (count < 0) return fail(Code::invalid, "a list of ", count, " entries: the count must not be negative");
  if (count > limits::type_list_max) {
    return fail(Code::overflow, "a list of ", count, " entries exceeds type_list_max = ", limits::type_list_max);
  }
  return {};
}

// Above this bound the shuffle keeps only the entries that it touched, unless they are a large share of all. Both
// forms give the same numbers.
constexpr int64_t dense_bound_max = int64_t{1} << 22;
constexpr int64_t dense_share = 8;

std::vector<int64_t> shuffle_dense(Random& random, int64_t bound, int64_t count) {
  std::vector<int64_t> entries(static_cast<size_t>(bound));
  std::iota(entries.begin(), entries.end(), 0);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t other = i + static_cast<int64_t>(random.below(static_cast<uint64_t>(bound - i)));
    std::swap(entries[static_cast<size_t>(i)], entries[static_cast<size_t>(other)]);
  }
  entries.resize(static_cast<size_t>(count));
  entries.shrink_to_fit();
  return entries;
}

std::vector<int64_t> shuffle_sparse(Random& random, int64_t bound, int64_t count) {
  std::vector<int64_t> out;
  out.reserve(static_cast<size_t>(count));
  std::unordered_map<int64_t, int64_t> moved;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t other = i + static_cast<int64_t>(random.below(static_cast<uint64_t>(bound - i)));
    const auto own_entry = moved.find(i);
    const int64_t own_value = own_entry == moved.end() ? i : own_entry->second;
    const auto other_entry = moved.find(other);
    out.push_back(other_entry == moved.end() ? other : other_entry->second);
    moved[other] = own_value;
  }
  return out;
}

}  // namespace

IndexList::IndexList(std::vector<int64_t> values)
    : count_(static_cast<int64_t>(values.size())),
      values_(std::make_shared<const std::vector<int64_t>>(std::move(values))) {}

Result<IndexList> IndexList::range(int64_t first, int64_t step, int64_t count) {
  SPL_TRY(check_count(count));
  if (count > 0) {
    SPL_ASSIGN(const int64_t span, checked::mul(step, count - 1));
    SPL_ASSIGN([[maybe_unused]] const int64_t last, checked::add(first, span));
  }
  IndexList list;
  list.form_ = Form::range;
  list.count_ = count;
  list.first_ = first;
  list.step_ = step;
  return list;
}

Result<IndexList> IndexList::random(uint64_t seed, int64_t bound, int64_t count) {
  SPL_TRY(check_count(count));
  if (bound < count) {
    return fail(Code::invalid, "rand(", seed, ", ", bound, ", ", count, "): a shuffle of ", bound,
                " indices has no first ", count);
  }
  Random random(seed, "layout.rand");
  IndexList list;
  list.form_ = Form::random;
  list.count_ = count;
  list.seed_ = seed;
  list.bound_ = bound;
  list.values_ = std::make_shared<const std::vector<int64_t>>(bound <= dense_bound_max || bound / dense_share <= count
                                                                  ? shuffle_dense(random, bound, count)
                                                                  : shuffle_sparse(random, bound, count));
  return list;
}

bool IndexList::equal(const IndexList& other) const {
  if (form_ != other.form_ || count_ != other.count_) return false;
  switch (form_) {
    case Form::values: return count_ == 0 || *values_ == *other.values_;
    case Form::range: return first_ == other.first_ && step_ == other.step_;
    case Form::random: return seed_ == other.seed_ && bound_ == other.bound_;
  }
  return false;
}

}  // namespace spinloom::layout
