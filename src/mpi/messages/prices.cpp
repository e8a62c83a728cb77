#include "mpi/messages/prices.hpp"

#include <charconv>

namespace spinloom::mpi {
namespace {

double* find(Prices& prices, std::string_view name) {
#define SPINLOOM_MPI_PRICE(known, ns) \
  if (name == #known) return &prices.known##_ns;
  SPINLOOM_MPI_PRICES(SPINLOOM_MPI_PRICE)
#undef SPINLOOM_MPI_PRICE
  return nullptr;
}

}  // namespace

std::optional<Prices> read_prices(std::string_view list) {
  constexpr double ns_max = 1e9;
  Prices prices;
  while (!list.empty()) {
    const std::string_view item = list.substr(0, list.find(','));
    list.remove_prefix(item.size() == list.size() ? item.size() : item.size() + 1);
    const size_t equals = item.find('=');
    double* const price = equals == std::string_view::npos ? nullptr : find(prices, item.substr(0, equals));
    if (price == nullptr) return std::nullopt;
    const std::string_view number = item.substr(equals + 1);
    const auto read = std::from_chars(number.data(), number.data() + number.size(), *price);
    if (read.ec != std::errc{} || read.ptr != number.data() + number.size()) return std::nullopt;
    if (!(*price >= 0 && *price <= ns_max)) return std::nullopt;
  }
  return prices;
}

}  // namespace spinloom::mpi
