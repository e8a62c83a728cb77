#include <dlfcn.h>

#include "base/shared_heap.hpp"

#define SPL_TEXT_OF(name) #name
#define SPL_NAME_OF(name) SPL_TEXT_OF(name)

namespace spinloom {
namespace {

constinit SharedHeap own;

SharedHeap* find() {
  using Find = SharedHeap* (*)();
  const auto preloaded = reinterpret_cast<Find>(dlsym(RTLD_DEFAULT, SPL_NAME_OF(SPINLOOM_PROCESS_HEAP)));
  return preloaded != nullptr ? preloaded() : &own;
}

}  // namespace

bool process_heap_is_malloc() { return &process_heap() != &own; }

SharedHeap& process_heap() {
  static SharedHeap* const found = find();
  return *found;
}

}  // namespace spinloom
