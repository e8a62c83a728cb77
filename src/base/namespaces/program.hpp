// Program - an ELF file whose main() every rank runs, each rank in a copy of its own.
//
// Contract: open() reads a shared object or a position-independent executable; its Error says why the file cannot be
//   loaded several times into one process. load() makes one more copy, with globals of its own, and runs its
//   constructors.
// Invariants: (1) no file stays behind; (2) copies stay loaded until the process ends: a NIC may still write to them;
//   (3) finish() runs the destructors of a copy; the loader runs none of its own at the end of the process.
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace spinloom::namespaces {

using Main = int (*)(int, char**, char**);

struct Copy {
  Main main = nullptr;
  uintptr_t base = 0;
  void* handle = nullptr;
};

class Program {
 public:
  // `cure` is advice at the end of the Error for a program that must be built in another way, such as "or let ...
  // compile its sources".
  static Result<Program> open(const std::string& path, const std::string& cure);

  [[nodiscard]] Result<Copy> load() const;
  // Runs a copy's destructors, and the functions that it registered by atexit().
  void finish(const Copy& copy) const;
  [[nodiscard]] const std::string& path() const { return path_; }
  // Returns the name of the function at this offset from a copy's base; empty if there is none.
  [[nodiscard]] const char* function_at(uint64_t offset) const;
  [[nodiscard]] uint64_t size() const { return size_; }

 private:
  struct Function {
    uint64_t start = 0;
    uint64_t size = 0;
    std::string name;
  };

  std::string path_;
  std::string cure_;
  std::vector<uint8_t> file_;
  uint64_t destructors_ = 0;  // offset of the array of functions that run at the end
  uint64_t destructors_count_ = 0;
  uint64_t main_ = 0;
  uint64_t size_ = 0;  // bytes of memory that one copy takes
  std::vector<Function> functions_;

  friend class ElfReader;
};

}  // namespace spinloom::namespaces
