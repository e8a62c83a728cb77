#include "portals/strategies/strategy.hpp"

#include <array>
#include <string>
#include <utility>

namespace spinloom::strategies {
namespace {

// The order is that of the tables that the tools print.
constexpr std::array<std::pair<const char*, Strategy>, 10> strategy_names{{
    {"host-mpitypes", Strategy::host_mpitypes},
    {"host-best", Strategy::host_best},
    {"host-warm", Strategy::host_warm},
    {"rdma-direct", Strategy::rdma_direct},
    {"iovec", Strategy::iovec},
    {"specialised", Strategy::specialised},
    {"hpu-local", Strategy::hpu_local},
    {"ro-cp", Strategy::ro_cp},
    {"rw-cp", Strategy::rw_cp},
    {"seek", Strategy::seek},
}};

}  // namespace

const char* name_of(Strategy strategy) {
  for (const auto& [name, value] : strategy_names) {
    if (value == strategy) return name;
  }
  return "unknown";
}

Result<Strategy> strategy_named(std::string_view name) {
  std::string names;
  for (const auto& [candidate, value] : strategy_names) {
    if (candidate == name) return value;
    names += names.empty() ? "" : ", ";
    names += candidate;
  }
  return fail(Code::invalid, "unknown strategy \"", name, "\"; there are ", names);
}

}  // namespace spinloom::strategies
