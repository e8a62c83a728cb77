// Library - the MPI that this process has loaded: its place, its binary interface, and its functions.
//
// Contract: find() looks among the shared objects of the process for the one that defines PMPI_Init; it returns false
//   if none does. function() gives the MPI's own PMPI_X. tool_function() gives the MPI_X of another tool that stands
//   between the program and the MPI, if one does. contains() is true if an address belongs to the MPI or to one of its
//   parts: their own calls are left alone. object() finds the MPI's data, such as ompi_mpi_byte.
// Invariants: (1) nothing is loaded that was not loaded before; (2) the layer never finds itself.
// Threads: find() from one; then read only, but for find_parts(), which MPI_Init calls. Time: none.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace spinloom::mpi {

enum class Abi : uint8_t { none, openmpi, mpich, standard };

class Library {
 public:
  [[nodiscard]] static Library& of_process();

  [[nodiscard]] bool find();
  // Looks for the MPI's own parts again: some load theirs when the program calls MPI_Init.
  void find_parts();
  [[nodiscard]] Abi abi() const { return abi_; }
  [[nodiscard]] void* function(const std::string& name) const;  // "PMPI_Send"
  [[nodiscard]] void* tool_function(const std::string& name) const;  // "MPI_Send"
  [[nodiscard]] void* object(const char* name) const;
  // A function that not every MPI has ("MPIX_Query_cuda_support"), as a program would find it; null if there is none.
  [[nodiscard]] void* extension(const char* name) const { return object(name); }
  [[nodiscard]] bool contains(const void* address) const {
    const auto place = reinterpret_cast<uint64_t>(address);
    if (place - program_.first < program_.bytes) return false;
    if (outside_[place % outside_.size()].load(std::memory_order_relaxed) == place) return false;
    return contains_place(place);
  }
  // Returns the names, separated by commas, of this MPI's point-to-point receives that the layer does not know.
  [[nodiscard]] std::string unknown_receives() const;

 private:
  struct Span {
    uint64_t first = 0;
    uint64_t bytes = 0;
  };
  [[nodiscard]] bool contains_place(uint64_t place) const;
  [[nodiscard]] bool is_part(uint64_t place) const;

  void* handle_ = nullptr;
  std::string path_;
  Abi abi_ = Abi::none;
  Span program_, main_;
  std::vector<Span> parts_;  // code of the MPI's plugins and helper libraries, sorted by address
  mutable std::array<std::atomic<uint64_t>, 64>
      outside_{};  // addresses that were found to be outside of the MPI, the latest ones
};

}  // namespace spinloom::mpi
