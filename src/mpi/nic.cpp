#include "mpi/nic.hpp"

#include <dlfcn.h>

#include "base/result.hpp"

namespace spinloom::mpi {

std::string Nic::load() {
  Dl_info own{};
  static const char here = 0;
  if (dladdr(&here, &own) == 0 || own.dli_fname == nullptr) return "the loader does not say where the layer lies";
  std::string path = own.dli_fname;
  path = path.substr(0, path.rfind('/') + 1) + "libportals.so.4";
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return text("the live NIC cannot be loaded: ", dlerror());
#define SPINLOOM_FIND(name)                                       \
  name = reinterpret_cast<decltype(name)>(dlsym(library, #name)); \
  if ((name) == nullptr) return text(path, " has no " #name ": install it and the layer from one build");
  SPINLOOM_NIC_FUNCTIONS(SPINLOOM_FIND)
#undef SPINLOOM_FIND
  return "";
}

std::string Nic::open(uint32_t rank) {
  if (const int code = PtlInit(); code != PTL_OK) return text("PtlInit failed with ", code);
  int code = PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, nullptr, nullptr, &interface_);
  if (code != PTL_OK) {
    PtlFini();
    return text("PtlNIInit failed with ", code);
  }
  ptl_process_t own{};
  std::string wrong;
  spl_oe_options options{};
  options.meeting = SPL_MEET_OTHERWISE;
  if (PtlGetId(interface_, &own) != PTL_OK || own.rank != rank) {
    wrong = text("the launcher has made this rank ", own.rank, " of the Portals job, not ", rank);
  } else if (spl_oe_open(interface_, &options, &engine_) != PTL_OK) {
    wrong = text("no offload engine: ", spl_oe_error(nullptr));
    engine_ = nullptr;
  }
  if (!wrong.empty()) {
    PtlNIFini(interface_);
    PtlFini();
  }
  return wrong;
}

void Nic::close() {
  if (engine_ == nullptr) return;
  spl_oe_close(engine_);
  engine_ = nullptr;
  PtlNIFini(interface_);
  PtlFini();
}

uint32_t Nic::free_id(const Ids& taken_somewhere) {
  for (uint32_t id = 1; id < teams_most; ++id) {
    if ((taken_somewhere[id / 8] & bit(id)) == 0) return id;
  }
  return 0;
}

}  // namespace spinloom::mpi
