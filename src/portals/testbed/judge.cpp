#include "portals/testbed/judge.hpp"

#include <algorithm>
#include <cstdio>

#include "base/result.hpp"
#include "portals/model/outcomes.hpp"
#include "portals/model/text.hpp"

namespace spinloom::testbed {
namespace {

constexpr size_t states_most = 500'000;  // some seconds of search

}  // namespace

std::string Judge::complaint(const model::Program& program, const model::Outcome& outcome) {
  const auto allowed = model::is_allowed(program, outcome, {}, states_most);
  ++(allowed ? judged_ : left_);
  return allowed.value_or(true) ? "" : model::text_of(program) + model::text_of(program, outcome);
}

std::string Judge::report() const {
  std::printf("%llu outcomes were judged, and %llu need a longer search\n", static_cast<unsigned long long>(judged_),
              static_cast<unsigned long long>(left_));
  const uint64_t all = judged_ + left_;
  const bool shows_enough = judged_ > 0 && left_ * 20 <= std::max<uint64_t>(all, 20);
  return shows_enough ? "" : text("of ", all, " outcomes, ", left_, " were not judged");
}

}  // namespace spinloom::testbed
