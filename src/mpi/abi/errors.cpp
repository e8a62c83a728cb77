// Errors of MPI that say what was wrong, in a sentence.
#include <cstdio>
#include <map>
#include <string>

#include "mpi/abi/layer.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

int code_of(const Error& error) {
  static std::mutex mutex;
  static std::map<std::string, int> codes;
  constexpr size_t codes_max = 64;
  constexpr size_t text_max = 255;  // the length for which every MPI has room
  const std::lock_guard lock(mutex);
  const std::string sentence = ("spinloom: " + error.message).substr(0, text_max);
  const auto found = codes.find(sentence);
  if (found != codes.end()) return found->second;
  // Prints the sentence once, because the MPI's error handler may not show the text.
  if (codes.size() < codes_max) std::fprintf(stderr, "%s\n", sentence.c_str());
  // MPICH 4.0 does not find the texts of codes that are added to a class of MPI's own.
  static int error_class = error_other;
  if (error_class == error_other && real.Add_error_class(&error_class) != success) return error_other;
  int code = error_other;
  if (codes.size() >= codes_max || real.Add_error_code(error_class, &code) != success ||
      real.Add_error_string(code, sentence.c_str()) != success) {
    return error_other;
  }
  return codes[sentence] = code;
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
