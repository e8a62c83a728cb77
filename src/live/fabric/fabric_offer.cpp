#include "live/fabric/fabric_offer.hpp"

#include <array>
#include <string_view>
#include <utility>

#include "live/launch/hex_text.hpp"

namespace spinloom::live {
namespace {

constexpr std::string_view offer_mark = "spl1-fabric";
// The text of an offer must fit into the launcher's exchange.
constexpr size_t provider_letters_max = 40;
constexpr size_t address_letters_max = 128;
constexpr size_t trouble_letters_max = 190;  // an offer that tells of trouble has no address

}  // namespace

std::string write(const FabricOffer& offer) {
  std::string text(offer_mark);
  text += '-' + to_hex(offer.provider.substr(0, provider_letters_max));
  text += '-' + to_hex(offer.address.substr(0, address_letters_max));
  text += '-' + (offer.address.empty() ? to_hex(offer.trouble.substr(0, trouble_letters_max)) : std::string());
  return text;
}

Result<FabricOffer> read_offer(const std::string& text) {
  const Error wrong = fail(Code::environment, "a rank published '", text, "' instead of its fabric");
  if (text.compare(0, offer_mark.size(), offer_mark) != 0) return wrong;
  FabricOffer offer;
  std::string_view left = std::string_view(text).substr(offer_mark.size());
  for (std::string* field : {&offer.provider, &offer.address, &offer.trouble}) {
    if (left.empty() || left.front() != '-') return wrong;
    left.remove_prefix(1);
    const size_t end = std::min(left.find('-'), left.size());
    auto bytes = from_hex(left.substr(0, end));
    if (!bytes) return wrong;
    *field = std::move(*bytes);
    left.remove_prefix(end);
  }
  if (!left.empty()) return wrong;
  return offer;
}

std::string why_no_fabric(const FabricOffer& mine, const FabricOffer& other) {
  if (mine.provider.empty()) return mine.trouble;
  if (other.provider.empty()) return "it has none: " + other.trouble;
  if (mine.provider != other.provider) return text("its fabric is ", other.provider, ", ours ", mine.provider);
  return {};
}

}  // namespace spinloom::live
