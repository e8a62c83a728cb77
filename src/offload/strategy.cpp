#include "offload/strategy.hpp"

#include <array>
#include <utility>

namespace spinloom::offload {
namespace {

constexpr std::array<std::pair<std::string_view, Strategy>, 4> strategies{{
    {"host-mpitypes", Strategy::host_mpitypes},
    {"specialised", Strategy::specialised},
    {"rw-cp", Strategy::rw_cp},
    {"seek", Strategy::seek},
}};
constexpr std::array<std::string_view, 4> not_yet{"host-best", "iovec", "hpu-local", "ro-cp"};

}  // namespace

const char* name_of(Strategy strategy) {
  for (const auto& [name, value] : strategies) {
    if (value == strategy) return name.data();
  }
  return "unknown";
}

Result<Strategy> strategy_named(std::string_view name) {
  for (const auto& [known, value] : strategies) {
    if (known == name) return value;
  }
  for (const std::string_view planned : not_yet) {
    if (planned == name) {
      return fail(
          Code::unsupported, "strategy ", name,
          " is not there yet (docs/architecture.md, Not yet); there are host-mpitypes, specialised, rw-cp, seek");
    }
  }
  return fail(Code::invalid, "unknown strategy \"", name, "\"; there are host-mpitypes, specialised, rw-cp, seek");
}

}  // namespace spinloom::offload
