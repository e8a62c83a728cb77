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

MpiBeside ask(void* scope) {
  using Question = int (*)(int*);
  const auto initialized = reinterpret_cast<Question>(dlsym(scope, "MPI_Initialized"));
  const auto finalized = reinterpret_cast<Question>(dlsym(scope, "MPI_Finalized"));
  if (initialized == nullptr || finalized == nullptr) return {};
  MpiBeside found{MpiStage::ahead, dlsym(scope, "ompi_mpi_comm_world") != nullptr};
  int yes = 0;
  if (initialized(&yes) == 0 && yes != 0) found.stage = MpiStage::running;
  if (finalized(&yes) == 0 && yes != 0) found.stage = MpiStage::over;
  return found;
}

}  // namespace

MpiBeside mpi_beside() {
  if (const MpiBeside linked = ask(RTLD_DEFAULT); linked.stage != MpiStage::absent) return linked;
  for (const std::string& path : loaded_mpi_libraries()) {
    void* const library = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    const MpiBeside found = ask(library);
    dlclose(library);
    if (found.stage != MpiStage::absent) return found;
  }
  return {};
}

}  // namespace spinloom::live
