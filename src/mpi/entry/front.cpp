#include "mpi/entry/front.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>

#include "mpi/entry/device_watch.hpp"
#include "mpi/entry/functions.hpp"
#include "mpi/entry/library.hpp"
#include "mpi/entry/shown.hpp"

namespace spinloom::mpi {
namespace {

constexpr const char* names[] = {
#define SPINLOOM_NAMES(name) "MPI_" #name, "PMPI_" #name,
    SPINLOOM_MPI_FUNCTIONS(SPINLOOM_NAMES) SPINLOOM_MPI_RECORDED(SPINLOOM_NAMES)
#undef SPINLOOM_NAMES
#define SPINLOOM_NAMES(name) "MPIX_" #name,
        SPINLOOM_MPIX_FUNCTIONS(SPINLOOM_NAMES)
#undef SPINLOOM_NAMES
#define SPINLOOM_NAMES(name) #name,
            SPINLOOM_MPIX_FORTRAN(SPINLOOM_NAMES)
#undef SPINLOOM_NAMES
};

// Returns the upper-case name of one of our calls in Fortran (mpix_type_free_comm_: MPIX_TYPE_FREE_COMM); empty for
// all other names.
std::string fortran_name(std::string_view name) {
  if (!name.starts_with("mpix_") && !name.starts_with("MPIX_TYPE_")) return {};
  while (name.back() == '_') name.remove_suffix(1);
  std::string upper(name);
  std::ranges::transform(upper, upper.begin(), [](unsigned char letter) { return std::toupper(letter); });
  return upper;
}

// The tables of one binary interface.
struct InterfaceTables {
  Hooks (*hooks)();
  Hooks (*stand_ins)();
  const RecordingHook* (*recording_hook)(std::string_view name);
  const ForwardingHook* (*offload_hook)(std::string_view name);
  const ForwardingHook* (*rma_hook)(std::string_view name);
  const ForwardingHook* (*bounce_hook)(std::string_view name);
};
InterfaceTables tables_of(Abi abi) {
  switch (abi) {
    case Abi::openmpi:
      return {&openmpi::hooks,        &openmpi::stand_ins, &openmpi::recording_hook,
              &openmpi::offload_hook, &openmpi::rma_hook,  &openmpi::bounce_hook};
    case Abi::mpich:
      return {&mpich::hooks,        &mpich::stand_ins, &mpich::recording_hook,
              &mpich::offload_hook, &mpich::rma_hook,  &mpich::bounce_hook};
    case Abi::standard:
      return {&standard::hooks,        &standard::stand_ins, &standard::recording_hook,
              &standard::offload_hook, &standard::rma_hook,  &standard::bounce_hook};
    case Abi::none: break;
  }
  const auto nothing = [] { return Hooks{nullptr, 0}; };
  const auto no_hook = [](std::string_view) -> const ForwardingHook* { return nullptr; };
  return {nothing, nothing, [](std::string_view) -> const RecordingHook* { return nullptr; },
          no_hook, no_hook, no_hook};
}

bool is_recording() {
  const char* const directory = std::getenv("SPINLOOM_MPI_RECORD");
  return directory != nullptr && directory[0] != 0;
}

bool is(const char* variable, std::string_view wanted) {
  const char* const value = std::getenv(variable);
  return value != nullptr && value == wanted;
}

bool is_bouncing() {
  static const bool wanted = DeviceWatch::is_wanted(std::getenv("SPINLOOM_MPI_GPU"));
  return wanted;
}

void* find_in(const Hooks& hooks, std::string_view word) {
  for (size_t i = 0; i < hooks.count; ++i) {
    if (word == hooks.first[i].name) return hooks.first[i].function;
  }
  return nullptr;
}

// Returns the function that the door `name` leads to.
void* find_target(const std::string& name) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  Library& library = Library::of_process();
  if (!library.find()) {
    std::fprintf(stderr, "spinloom: %s was called, but no MPI library is loaded\n", name.c_str());
    std::exit(127);
  }
  settle_shown(Moment::later);
  const std::string in_fortran = fortran_name(name);
  if (!in_fortran.empty() || name.starts_with("MPIX_")) {
    if (void* const function = find_in(tables_of(library.abi()).hooks(), in_fortran.empty() ? name : in_fortran))
      return function;
    std::fprintf(stderr, "spinloom: %s needs MPI 3 or later\n", name.c_str());
    std::exit(127);
  }
  const bool is_public = name[0] == 'M';
  if (is_public) {
    if (void* const tool = library.tool_function(name)) return tool;
  }
  const std::string word = name.substr(is_public ? 4 : 5);
  const InterfaceTables tables = tables_of(library.abi());
  void* const real = library.function("PMPI_" + word);
  void* const hook = find_in(tables.hooks(), word);
  void* target = hook != nullptr ? hook : real;
  if (real == nullptr) {
    const bool is_large =
        word.ends_with("_c") && library.function("PMPI_" + word.substr(0, word.size() - 2)) != nullptr;
    if (target == nullptr) target = find_in(tables.stand_ins(), word);
    if (!is_large || target == nullptr) {  // a call with large counts is done by the one with ints
      std::fprintf(stderr, "spinloom: the MPI library that is loaded has no %s\n", name.c_str());
      if (void* const refuse = find_in(tables.hooks(), "refuse")) return refuse;
      std::exit(127);
    }
  }
  const ForwardingHook* offload = is("SPINLOOM_MPI_COLLECTIVES", "on") ? tables.offload_hook(word) : nullptr;
  if (offload == nullptr && !is("SPINLOOM_MPI_RMA", "off")) offload = tables.rma_hook(word);
  if (offload != nullptr) {
    *offload->next = target;
    *offload->mpi_function = real;
    target = offload->function;
  }
  const ForwardingHook* const bounce = is_bouncing() ? tables.bounce_hook(word) : nullptr;
  if (bounce != nullptr) {
    *bounce->next = target;
    *bounce->mpi_function = real != nullptr ? real : target;  // null for large counts that the MPI lacks
    target = bounce->function;
  }
  const RecordingHook* const recording = is_recording() ? tables.recording_hook(word) : nullptr;
  if (recording == nullptr) return target;
  *recording->next = target;
  return recording->function;
}

}  // namespace
}  // namespace spinloom::mpi

extern "C" {
[[gnu::visibility("hidden")]] extern void* spinloom_mpi_doors[];

// Called by a door that has not been used yet.
[[gnu::visibility("hidden")]] void* spinloom_mpi_open_door(uint64_t number) {
  void* const target = spinloom::mpi::find_target(spinloom::mpi::names[number]);
  __atomic_store_n(&spinloom_mpi_doors[number], target, __ATOMIC_RELEASE);
  return target;
}

// Returns the function that the program's dlsym jumps to: the dlsym behind ours or, for a name that only we define,
// dlvsym, which gets a version that none of our names has. Names that the MPI lacks are taken out of ours first.
[[gnu::visibility("hidden")]] void* spinloom_mpi_asked(void*, const char* name) {
  spinloom::mpi::settle_shown(spinloom::mpi::Moment::later);
  if (spinloom::mpi::is_ours_alone(name)) return reinterpret_cast<void*>(&dlvsym);
  return spinloom::mpi::dlsym_behind();
}

[[gnu::constructor]] static void spinloom_mpi_begin() { spinloom::mpi::settle_shown(spinloom::mpi::Moment::start); }
}

// spinloom_number counts the doors; the order is that of `names`.
#if defined(__x86_64__)
#define SPINLOOM_DOOR(name)                                                \
  ".globl " name "\n.type " name ",@function\n.balign 16\n" name           \
  ":\n"                                                                    \
  "  jmp *(spinloom_mpi_doors + 8 * spinloom_number)(%rip)\n"              \
  "1: push $spinloom_number\n"                                             \
  "  jmp spinloom_mpi_late\n"                                              \
  ".size " name ", . - " name                                              \
  "\n"                                                                     \
  ".pushsection .data.rel.spinloom_mpi, \"aw\"\n  .quad 1b\n.popsection\n" \
  ".set spinloom_number, spinloom_number + 1\n"
// spinloom_mpi_late keeps the registers and the stack that the call's arguments lie in. At its entry the stack holds
// the door's number and the return address.
asm(".pushsection .data.rel.spinloom_mpi, \"aw\"\n.balign 8\nspinloom_mpi_doors:\n.popsection\n"
    ".text\n.set spinloom_number, 0\n"
    "spinloom_mpi_late:\n"
    "  push %rdi\n  push %rsi\n  push %rdx\n  push %rcx\n  push %r8\n  push %r9\n  push %rax\n"
    "  sub $8, %rsp\n  mov 64(%rsp), %rdi\n"
    "  call spinloom_mpi_open_door\n"
    "  mov %rax, %r11\n"
    "  add $8, %rsp\n  pop %rax\n  pop %r9\n  pop %r8\n  pop %rcx\n  pop %rdx\n  pop %rsi\n  pop %rdi\n"
    "  add $8, %rsp\n"
    "  jmp *%r11\n"
    // dlsym depends on its caller, so it is jumped to. The version is dlvsym's third argument, which dlsym ignores.
    ".globl dlsym\n.type dlsym,@function\n.balign 16\ndlsym:\n"
    "  push %rdi\n  push %rsi\n  sub $8, %rsp\n"
    "  call spinloom_mpi_asked\n"
    "  add $8, %rsp\n  pop %rsi\n  pop %rdi\n"
    "  lea spinloom_mpi_no_version(%rip), %rdx\n"
    "  jmp *%rax\n"
    ".size dlsym, . - dlsym\n"
#elif defined(__aarch64__)
#define SPINLOOM_DOOR(name)                                                \
  ".globl " name "\n.type " name ",%function\n.balign 16\n" name           \
  ":\n"                                                                    \
  "  adrp x16, spinloom_mpi_doors + 8 * spinloom_number\n"                 \
  "  add x16, x16, :lo12:(spinloom_mpi_doors + 8 * spinloom_number)\n"     \
  "  ldr x16, [x16]\n"                                                     \
  "  br x16\n"                                                             \
  "1: mov x17, #spinloom_number\n"                                         \
  "  b spinloom_mpi_late\n"                                                \
  ".size " name ", . - " name                                              \
  "\n"                                                                     \
  ".pushsection .data.rel.spinloom_mpi, \"aw\"\n  .quad 1b\n.popsection\n" \
  ".set spinloom_number, spinloom_number + 1\n"
asm(".pushsection .data.rel.spinloom_mpi, \"aw\"\n.balign 8\nspinloom_mpi_doors:\n.popsection\n"
    ".text\n.set spinloom_number, 0\n"
    "spinloom_mpi_late:\n"
    "  stp x29, x30, [sp, #-96]!\n"
    "  stp x0, x1, [sp, #16]\n  stp x2, x3, [sp, #32]\n  stp x4, x5, [sp, #48]\n  stp x6, x7, [sp, #64]\n"
    "  str x8, [sp, #80]\n"
    "  mov x0, x17\n"
    "  bl spinloom_mpi_open_door\n"
    "  mov x16, x0\n"
    "  ldr x8, [sp, #80]\n"
    "  ldp x0, x1, [sp, #16]\n  ldp x2, x3, [sp, #32]\n  ldp x4, x5, [sp, #48]\n  ldp x6, x7, [sp, #64]\n"
    "  ldp x29, x30, [sp], #96\n"
    "  br x16\n"
    ".globl dlsym\n.type dlsym,%function\n.balign 16\ndlsym:\n"
    "  stp x29, x30, [sp, #-32]!\n  stp x0, x1, [sp, #16]\n"
    "  bl spinloom_mpi_asked\n"
    "  mov x16, x0\n"
    "  ldp x0, x1, [sp, #16]\n  ldp x29, x30, [sp], #32\n"
    "  adrp x2, spinloom_mpi_no_version\n  add x2, x2, :lo12:spinloom_mpi_no_version\n"
    "  br x16\n"
    ".size dlsym, . - dlsym\n"
#else
#error "the doors of the MPI layer are written for x86-64 and aarch64"
#endif
    ".pushsection .rodata\nspinloom_mpi_no_version:\n  .asciz \"SPINLOOM_NONE\"\n.popsection\n"
#define SPINLOOM_MPIX_DOOR(name) SPINLOOM_DOOR("MPIX_" #name)
#define SPINLOOM_FORTRAN_DOOR(name) SPINLOOM_DOOR(#name)
#define SPINLOOM_DOORS(name) SPINLOOM_DOOR("MPI_" #name) SPINLOOM_DOOR("PMPI_" #name)
    SPINLOOM_MPI_FUNCTIONS(SPINLOOM_DOORS) SPINLOOM_MPI_RECORDED(SPINLOOM_DOORS)
        SPINLOOM_MPIX_FUNCTIONS(SPINLOOM_MPIX_DOOR) SPINLOOM_MPIX_FORTRAN(SPINLOOM_FORTRAN_DOOR));
