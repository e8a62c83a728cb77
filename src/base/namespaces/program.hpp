// Program - an ELF file whose main() every rank runs, each rank in a copy of its own.
//
// Contract: open() reads a shared object or a position-independent executable; its Error says why the file cannot be
//   loaded several times into one process. load() makes one more copy, with globals of its own, and runs its
//   constructors.
// Invariants: (1) no file stays behind; (2) copies stay loaded until the process ends: a NIC may still write to them;
//   (3) run_destructors() runs the destructors of a copy; the loader runs none of its own at the end of the process.
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace spinloom::namespaces {

using Main = int (*)(int, char**, char**);

struct LoadedCopy {
  Main main = nullptr;
  uintptr_t base = 0;      // address of the copy's first byte
  void* handle = nullptr;  // the loader's handle (dlopen)
};

class Program {
 public:
  // `advice` ends the Error for a program that must be built in another way, such as "or let ...
  // compile its sources".
  static Result<Program> open(const std::string& path, const std::string& advice);

  [[nodiscard]] Result<LoadedCopy> load() const;
  // Runs a copy's destructors, and the functions that it registered by atexit().
  void run_destructors(const LoadedCopy& copy) const;
  [[nodiscard]] const std::string& path() const { return path_; }
  // Returns the name of the function at this offset from a copy's base; empty if there is none.
  [[nodiscard]] const char* function_at(uint64_t offset) const;
  [[nodiscard]] uint64_t size() const { return memory_bytes_; }

 private:
  struct Function {
    uint64_t start = 0;
    uint64_t size = 0;
    std::string name;
  };

  std::string path_;
  std::string advice_;
  std::vector<uint8_t> image_;
  // Offsets count from a copy's base. The destructors are an array of pointers to functions.
  uint64_t destructors_offset_ = 0;
  uint64_t destructor_count_ = 0;
  uint64_t main_offset_ = 0;
  uint64_t memory_bytes_ = 0;  // bytes of memory that one copy takes
  std::vector<Function> functions_;

  friend class ElfReader;
};

}  // namespace spinloom::namespaces
