#include "live/launch/mpi_beside.hpp"

#include <dlfcn.h>
#include <link.h>

#include <string>
#include <vector>

namespace spinloom::live {
namespace {

// The MPI libraries that are loaded, found by file name: a library that a language's module loaded (mpi4py) is not
// found by its symbols.
std::vector<std::string> loaded_mpi_libraries() {
  std::vector<std::string> paths;
  dl_iterate_phdr(
      [](dl_phdr_info* one, size_t, void* out) {
        const std::string path = one->dlpi_name == nullptr ? "" : one->dlpi_name;
        const size_t slash = path.rfind('/');
        if (path.compare(slash == std::string::npos ? 0 : slash + 1, 6, "libmpi") == 0) {
          static_cast<std::vector<std::string>*>(out)->push_back(path);
        }
        return 0;
      },
      &paths);
  return paths;
}

MpiBeside query(void* scope) {
  using Question = int (*)(int*);
  const auto initialized = reinterpret_cast<Question>(dlsym(scope, "MPI_Initialized"));
  const auto finalized = reinterpret_cast<Question>(dlsym(scope, "MPI_Finalized"));
  if (initialized == nullptr || finalized == nullptr) return {};
  MpiBeside state{MpiStage::not_initialized, dlsym(scope, "ompi_mpi_comm_world") != nullptr};
  int answer = 0;
  if (initialized(&answer) == 0 && answer != 0) state.stage = MpiStage::initialized;
  if (finalized(&answer) == 0 && answer != 0) state.stage = MpiStage::finalized;
  return state;
}

}  // namespace

MpiBeside mpi_beside() {
  if (const MpiBeside linked = query(RTLD_DEFAULT); linked.stage != MpiStage::absent) return linked;
  for (const std::string& path : loaded_mpi_libraries()) {
    void* const library = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    const MpiBeside state = query(library);
    dlclose(library);
    if (state.stage != MpiStage::absent) return state;
  }
  return {};
}

}  // namespace spinloom::live
