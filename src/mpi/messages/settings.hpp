// Settings - the settings of the MPI layer, from the environment.
//
// Contract: read_settings() reads SPINLOOM_MPI and SPINLOOM_MPI_*. A value that is not understood leaves the default.
//   Each such value, and each unknown name that begins with SPINLOOM_MPI, gets a sentence in `complaints`.
// Threads: any. Time: none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mpi/messages/prices.hpp"

namespace spinloom::mpi {

enum class Path : uint8_t {
  automatic,  // the layer chooses
  pass,       // every message is left to the MPI; records that arrive are still understood
  staged,     // two copies through shared memory, the second while the first is under way
  mapped,     // one copy by the receiver, where it can map the sender's buffer; else staged
  joint,  // one copy by both ends, where the sender waits and its buffer can be mapped; else mapped or staged
  cma,  // one copy by the receiver, by system calls, where those are allowed; else staged
};

struct Settings {
  bool is_off = false;
  Path path = Path::automatic;
  int64_t min_bytes = 6 << 10;  // shorter messages are left to the MPI
  int64_t chunk_bytes = 4 << 10;  // packed bytes that are handed to the receiver at once
  int64_t staging_bytes = 64 << 20;  // memory of this rank for messages under way
  bool collectives = false;  // non-blocking collective calls go by the live NIC
  bool gpu_by_host = false;  // buffers in a GPU's memory go by the host, even if the MPI can take them
  bool windows_mapped = true;  // windows stand on memory that all of their ranks map, where they do
  bool rma = false;  // windows stand on memory of the live NIC, where they cannot be mapped
  bool memoised = true;  // layouts of peers are kept; false: they are read with each message
  Prices prices;  // the costs on this host, by which the ways are compared
  std::string job;  // put in front of the name that the ranks of a node meet by
  std::string record;  // a directory for the traces of the ranks; empty: none is made
  bool records_cpu_time = false;  // traces have the processor time of the rank's thread, not the time of day
  std::string report;  // a file that every rank adds a line to when it ends; empty: none
  std::vector<std::string> complaints;

  // True if windows may stand on mapped memory: the path does not name another way for their bytes.
  [[nodiscard]] bool maps_windows() const { return windows_mapped && path != Path::pass && path != Path::cma; }
  // True if contiguous messages are offered where they lie, too.
  [[nodiscard]] bool offers_contiguous() const {
    return path == Path::mapped || path == Path::joint || path == Path::cma;
  }
};

[[nodiscard]] Settings read_settings(const char* const* environment);

}  // namespace spinloom::mpi
