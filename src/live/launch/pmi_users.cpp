#include "live/launch/pmi_users.hpp"

#include <link.h>

#include <cstdint>
#include <cstring>
#include <string_view>

namespace spinloom::live {
namespace {

constexpr std::string_view variable = "PMI_FD";

struct Bytes {
  const char* at;
  size_t length;
};

Bytes bytes_of(const dl_phdr_info& object, const ElfW(Phdr) & part) {
  return {reinterpret_cast<const char*>(object.dlpi_addr + part.p_vaddr), part.p_filesz};
}

bool holds_code_of_ours(const dl_phdr_info& object, const ElfW(Phdr) & part) {
  const auto here = reinterpret_cast<uintptr_t>(&pmi_has_other_users);
  const uintptr_t begin = object.dlpi_addr + part.p_vaddr;
  return here >= begin && here - begin < part.p_memsz;
}

// True for a part of an object that holds constants. Constants lie in a part without code if the linker has made one,
// otherwise with the code.
bool has_constants(const ElfW(Phdr) & part, bool with_code) {
  const unsigned wanted = PF_R | (with_code ? PF_X : 0);
  return part.p_type == PT_LOAD && (part.p_flags & (PF_R | PF_W | PF_X)) == wanted;
}

bool is_user(const dl_phdr_info& object) {
  bool apart = false;
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr) & part = object.dlpi_phdr[i];
    if (part.p_type == PT_LOAD && holds_code_of_ours(object, part)) return false;
    apart = apart || has_constants(part, false);
  }
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr) & part = object.dlpi_phdr[i];
    if (!has_constants(part, !apart)) continue;
    const Bytes bytes = bytes_of(object, part);
    if (memmem(bytes.at, bytes.length, variable.data(), variable.size()) != nullptr) return true;
  }
  return false;
}

}  // namespace

bool pmi_has_other_users() {
  const auto look = [](dl_phdr_info* object, size_t, void*) { return is_user(*object) ? 1 : 0; };
  return dl_iterate_phdr(look, nullptr) != 0;
}

}  // namespace spinloom::live
