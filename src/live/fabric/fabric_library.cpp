#include "live/fabric/fabric_library.hpp"

#include <dlfcn.h>

#include <mutex>

namespace spinloom::live {
namespace {

Result<FabricLibrary> look_up(const std::string& path) {
  const char* const file = path.empty() ? "libfabric.so.1" : path.c_str();
  void* const library = dlopen(file, RTLD_NOW | RTLD_LOCAL);  // never closed: providers keep threads and state
  if (library == nullptr) {
    const char* const why = dlerror();
    return fail(Code::unsupported, "libfabric is not here: ", why != nullptr ? why : file);
  }
  FabricLibrary found;
  const char* missing = nullptr;
  const auto find = [&](const char* name, const char* version, auto& function) {
    void* const address = dlvsym(library, name, version);
    if (address == nullptr) missing = name;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
  };
  find("fi_getinfo", "FABRIC_1.3", found.getinfo);
  find("fi_freeinfo", "FABRIC_1.3", found.freeinfo);
  find("fi_dupinfo", "FABRIC_1.3", found.dupinfo);
  find("fi_fabric", "FABRIC_1.1", found.fabric);
  find("fi_strerror", "FABRIC_1.0", found.error_text);
  find("fi_version", "FABRIC_1.0", found.version);
  if (missing != nullptr) return fail(Code::unsupported, file, " has no ", missing, " of libfabric 1.9 or later");
  return found;
}

}  // namespace

std::string FabricLibrary::name() const {
  return text("libfabric ", fabric::major_of(version()), ".", fabric::minor_of(version()));
}

Error FabricLibrary::trouble(const char* call, int64_t code) const {
  return fail(Code::environment, call, ": ", error_text(static_cast<int>(code < 0 ? -code : code)));
}

Result<const FabricLibrary*> load_fabric(const std::string& path) {
  static std::mutex one;
  const std::lock_guard inside(one);
  static const Result<FabricLibrary> found = look_up(path);
  if (!found) return found.error();
  return &*found;
}

}  // namespace spinloom::live
