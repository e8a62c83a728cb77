#include "mpi/nic/nic.hpp"

#include <dlfcn.h>

#include <utility>

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

std::string Nic::open(uint32_t rank, bool with_engine) {
  if (const int code = PtlInit(); code != PTL_OK) return text("PtlInit failed with ", code);
  int code = PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, nullptr, nullptr, &interface_);
  if (code != PTL_OK) {
    PtlFini();
    return text("PtlNIInit failed with ", code);
  }
  has_interface_ = true;
  std::string wrong = open_engine(rank, with_engine);
  if (!wrong.empty()) close();
  return wrong;
}

std::string Nic::open_engine(uint32_t rank, bool with_engine) {
  ptl_process_t own{};
  if (PtlGetId(interface_, &own) != PTL_OK || own.rank != rank) {
    return text("the launcher has made this rank ", own.rank, " of the Portals job, not ", rank);
  }
  spl_oe_options options{};
  options.meeting = SPL_MEET_OTHERWISE;
  if (with_engine && spl_oe_open(interface_, &options, &engine_) != PTL_OK) {
    engine_ = nullptr;
    return text("no offload engine: ", spl_oe_error(nullptr));
  }
  return "";
}

std::string Nic::open_memory() {
  if (spl_rma_open(interface_, nullptr, &memory_) == PTL_OK) return "";
  memory_ = nullptr;
  return text("no one-sided memory: ", spl_rma_error(nullptr));
}

void Nic::close() {
  if (memory_ != nullptr) spl_rma_close(memory_);
  if (engine_ != nullptr) spl_oe_close(engine_);
  memory_ = nullptr;
  engine_ = nullptr;
  if (!std::exchange(has_interface_, false)) return;
  PtlNIFini(interface_);
  PtlFini();
}

uint32_t Nic::free_id(const Ids& taken_somewhere) {
  for (uint32_t id = 1; id < teams_max; ++id) {
    if ((taken_somewhere[id / 8] & bit(id)) == 0) return id;
  }
  return 0;
}

}  // namespace spinloom::mpi
