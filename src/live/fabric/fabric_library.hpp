// FabricLibrary - libfabric, found when the process runs. The rest of libfabric is reached through the tables of its
// objects, so that these functions are all that is looked up by name.
//
// Contract: load_fabric() looks once in a process; later calls return the same result, whatever path they give. The
//   functions work on the layouts of FABRIC_1.3 (libfabric 1.9 and later), whatever layouts a newer library also knows.
// Threads: any. Time: loading takes milliseconds.
#pragma once

#include <string>

#include "base/result.hpp"
#include "live/fabric/fabric_interface.hpp"

namespace spinloom::live {

struct FabricLibrary {
  int (*getinfo)(uint32_t version, const char* node, const char* service, uint64_t flags, const fabric::fi_info* hints,
                 fabric::fi_info** info) = nullptr;
  void (*freeinfo)(fabric::fi_info* info) = nullptr;
  fabric::fi_info* (*dupinfo)(const fabric::fi_info* info) = nullptr;
  int (*fabric)(fabric::fi_fabric_attr* attributes, fabric::fid_fabric** fabric, void* context) = nullptr;
  const char* (*error_text)(int error) = nullptr;
  uint32_t (*version)() = nullptr;

  [[nodiscard]] std::string name() const;  // "libfabric 1.17"
  [[nodiscard]] Error trouble(const char* call, int64_t code) const;
};

// `path`: the library's file; empty: where the system finds it.
[[nodiscard]] Result<const FabricLibrary*> load_fabric(const std::string& path);

}  // namespace spinloom::live
