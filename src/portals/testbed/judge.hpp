// Judge - says of outcomes of a test's programs whether the model of Portals 4 allows them, and of how many it cannot.
//
// Contract: complaint() is empty for an outcome that is allowed, or that needs a longer search than the judge makes;
//   else it shows the program and the outcome. report() prints how many were judged; it complains if more than one
//   of twenty was not, or none was: a test whose outcomes are not judged shows nothing. One of fewer than twenty may
//   be left.
// Threads: one owner. Time: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "portals/model/outcome.hpp"
#include "portals/model/program.hpp"

namespace spinloom::testbed {

class Judge {
 public:
  [[nodiscard]] std::string complaint(const model::Program& program, const model::Outcome& outcome);
  [[nodiscard]] std::string report() const;

 private:
  uint64_t judged_ = 0;
  uint64_t left_ = 0;  // outcomes that were not judged
};

}  // namespace spinloom::testbed
