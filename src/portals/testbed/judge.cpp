#include "portals/testbed/judge.hpp"

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
  return left_ * 20 <= judged_ + 20 ? "" : text("of ", judged_ + left_, " outcomes, ", left_, " were not judged");
}

}  // namespace spinloom::testbed
