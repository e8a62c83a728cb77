#include "mpi/abi/version.hpp"

#include "mpi/abi/layer.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

const std::string& library_version() {
  static const std::string version = [] {
    constexpr size_t length_max = 16 << 10;  // MPI_MAX_LIBRARY_VERSION_STRING is 8192 at most
    std::string text(length_max, '\0');
    int length = 0;
    if (real.Get_library_version(text.data(), &length) != success) return std::string();
    text.resize(text.find('\0'));
    return text;
  }();
  return version;
}

bool version_has(std::string_view words) { return library_version().find(words) != std::string::npos; }

bool is_before_mpich_5() {
  if (Library::of_process().abi() != Abi::mpich) return false;
  const std::string_view version = library_version();
  constexpr std::string_view before = "MPICH Version:";
  const size_t at = version.find(before);
  const size_t digit = at == std::string_view::npos ? at : version.find_first_of("0123456789", at + before.size());
  return digit == std::string_view::npos || (version[digit] < '5' && version.substr(digit + 1, 1) == ".");
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
