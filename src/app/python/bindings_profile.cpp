#include "app/python/bindings_profile.hpp"

#include <string>

namespace spinloom::app {
namespace {

simulated::ProfileFields fields_of(const nb::dict& profile) {
  simulated::ProfileFields fields;
  for (const auto& [key, value] : profile) {
    const std::string name = nb::cast<std::string>(key);
    int64_t number = 0;
    std::string text_value;
    if (nb::try_cast<int64_t>(value, number)) {
      fields[name] = number;
    } else if (nb::try_cast<std::string>(value, text_value)) {
      fields[name] = text_value;
    } else if (nb::isinstance<nb::sequence>(value) && nb::len(value) == 2) {
      fields[name] = simulated::Rational{nb::cast<int64_t>(value[0]), nb::cast<int64_t>(value[1])};
    } else {
      throw Raised{fail(Code::invalid, "NIC profile: field ", name, " is neither a number, a ratio nor a name")};
    }
  }
  return fields;
}

}  // namespace

simulated::Profile profile_of(const nb::dict& profile) { return unwrap(simulated::build_profile(fields_of(profile))); }

}  // namespace spinloom::app
