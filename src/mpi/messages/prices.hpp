// Prices - the costs of the parts of a message's way between two processes on this host, in nanoseconds of host time.
//
// Contract: the defaults were measured by `spinloom calibrate peers` on two cores of an Intel Xeon server (AVX-512, 2
//   MiB of L2 each). read_prices() takes the list that `spinloom run` hands over, "staged=900,near_line=0.9,...": names
//   that are not in it keep their value, and anything else in it makes the whole list invalid.
// Threads: plain values. Time: none.
#pragma once

#include <optional>
#include <string_view>

namespace spinloom::mpi {

// clang-format off
#define SPINLOOM_MPI_PRICES(X)                                                      \
  X(staged, 1620)    /* a packed message, whatever its size */                      \
  X(mapped, 710)     /* a message that the receiver copies from the sender's heap */\
  X(joint, 1060)     /* a message that both ends copy */                            \
  X(cma, 1640)       /* a message that the receiver reads by system calls */        \
  X(block, 0.0001)   /* a contiguous block, gathered or scattered by our kernels */ \
  X(near_line, 0.83) /* a cache line that a core touches in its own memory */       \
  X(far_line, 2.9)   /* a line of a run that another core has touched last */       \
  X(far_jump, 5.2)   /* the first line of such a run */                             \
  X(deep_line, 1.5)  /* each line beyond those that a core's near caches hold */    \
  X(cma_block, 95)   /* a block of the other process, by system calls */            \
  X(cma_line, 7.1)   /* a line that system calls copy */
// clang-format on

struct Prices {
#define SPINLOOM_MPI_PRICE(name, ns) double name##_ns = ns;
  SPINLOOM_MPI_PRICES(SPINLOOM_MPI_PRICE)
#undef SPINLOOM_MPI_PRICE
};

[[nodiscard]] std::optional<Prices> read_prices(std::string_view list);

}  // namespace spinloom::mpi
