#include "mpi/abi/abi.hpp"

#include "mpi/abi/int_counts.hpp"
#include "mpi/entry/library.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

Real real;

namespace {

template <class Function>
bool find(Function& function, const char* name, const char* ending = "") {
  function = reinterpret_cast<Function>(Library::of_process().function(std::string("PMPI_") + name + ending));
  return function != nullptr;
}

}  // namespace

std::string Real::load() {
  std::string missing;
#define SPINLOOM_FIND(name, parameters) \
  if (!find(this->name, #name)) missing = #name;
  SPINLOOM_REAL_CALLS(SPINLOOM_FIND)
  SPINLOOM_COMM_CALLS(SPINLOOM_FIND)
  SPINLOOM_EPOCH_CALLS(SPINLOOM_FIND)
#undef SPINLOOM_FIND
#define SPINLOOM_FIND(name, N, parameters) \
  if (!find(this->name, #name)) missing = #name;
  SPINLOOM_COUNTED_CALLS(SPINLOOM_FIND, int)
  SPINLOOM_WINDOW_CALLS(SPINLOOM_FIND, int)
  SPINLOOM_BUFFERED_CALLS(SPINLOOM_FIND, int)
  SPINLOOM_ACCUMULATE_CALLS(SPINLOOM_FIND, int)
#undef SPINLOOM_FIND
#define SPINLOOM_FIND(name, parameters) find(this->name, #name);
  SPINLOOM_NEWER_CALLS(SPINLOOM_FIND)
#undef SPINLOOM_FIND
#define SPINLOOM_FIND(name, N, parameters) find(this->name, #name);
  SPINLOOM_COUNTED_NEWER_CALLS(SPINLOOM_FIND, int)
#undef SPINLOOM_FIND
#define SPINLOOM_FIND(name, N, parameters) find(large.name, #name, "_c");
  SPINLOOM_COUNTED_CALLS(SPINLOOM_FIND, Count)
  SPINLOOM_COUNTED_NEWER_CALLS(SPINLOOM_FIND, Count)
  SPINLOOM_WINDOW_CALLS(SPINLOOM_FIND, Count)
  SPINLOOM_BUFFERED_CALLS(SPINLOOM_FIND, Count)
  SPINLOOM_ACCUMULATE_CALLS(SPINLOOM_FIND, Count)
#undef SPINLOOM_FIND
#define SPINLOOM_FIND(name, iname, N, ...)          \
  if (!find(this->name, #name)) missing = #name;    \
  if (!find(this->iname, #iname)) missing = #iname; \
  find(this->name##_init, #name "_init");           \
  find(large.name, #name "_c");                     \
  find(large.iname, #iname "_c");                   \
  find(large.name##_init, #name "_init_c");
  SPINLOOM_COLLECTIVE_CALLS(SPINLOOM_FIND, int)
  SPINLOOM_REDUCTION_CALLS(SPINLOOM_FIND, int)
#undef SPINLOOM_FIND
  wide = large;
#define SPINLOOM_INT_COUNT(name, N, parameters)                                    \
  if (large.name == nullptr && this->name != nullptr) {                            \
    wide.name = &IntCountForm<int parameters>::template call<&Counted<int>::name>; \
  }
  SPINLOOM_COUNTED_CALLS(SPINLOOM_INT_COUNT, Count)
  SPINLOOM_COUNTED_NEWER_CALLS(SPINLOOM_INT_COUNT, Count)
  SPINLOOM_BUFFERED_CALLS(SPINLOOM_INT_COUNT, Count)
#undef SPINLOOM_INT_COUNT
  int_count_collectives();
#define SPINLOOM_SHORTEN(name, N, parameters) \
  if (large.name == nullptr) wide.name = &Shortened<decltype(wide.name), &Counted<int>::name>::call;
  SPINLOOM_WINDOW_CALLS(SPINLOOM_SHORTEN, Count)
  SPINLOOM_ACCUMULATE_CALLS(SPINLOOM_SHORTEN, Count)
#undef SPINLOOM_SHORTEN
  return missing;
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
