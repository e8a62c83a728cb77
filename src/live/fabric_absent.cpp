// In place of fabric_endpoint.cpp where libfabric's headers were not there when this library was built.
#include "live/fabric_choice.hpp"

namespace spinloom::live {
namespace {

Error absent() {
  return fail(Code::unsupported, "this library was built without libfabric's headers (Debian: libfabric-dev)");
}

}  // namespace

Result<std::unique_ptr<FabricPort>> open_fabric(const FabricWish&, const FabricPlaceWanted&) { return absent(); }
Result<FabricOffered> offered_fabrics(const std::string&) { return absent(); }

}  // namespace spinloom::live
