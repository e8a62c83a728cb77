/* Compiles handlers that were written for PsPIN or FPsPIN, unchanged, for an Ethernet NIC (spinloom/frame.h).
 *
 * Contract: such a source includes <handler.h>, <packets.h>, <spin_dma.h>, <spin_host.h>, "pspin.h" and so on, which
 * lie in spinloom/pspin/. `spinloom handler build` recognises it, adds that folder to the include path and names its
 * functions by these macros; a source may name them itself, above its first include:
 *     #define SPL_HEADER_HANDLER ping_hh
 *     #define SPL_PAYLOAD_HANDLER ping_ph
 *     #define SPL_COMPLETION_HANDLER ping_th
 * Each is void NAME(handler_args_t *), and the frame is done when it returns (SUCCESS). Packets are FPsPIN's: Ethernet
 * frames in network order. With SPL_PSPIN_PACKETS (`--pspin`) they are those of PsPIN's test bench, from the IP header
 * on, in the order of the handler's processor; and there are 4 clusters instead of 2.
 *
 * The state of the context, which the host can write before it starts the NIC (pspin/memory_map.h has the offsets):
 *     0                        struct spl_host_data: requests, answers, counters
 *     SPL_PSPIN_TOLD           struct spl_pspin_told: what the host tells its handlers; zeros where it does not
 *     SPL_PSPIN_LINES          unfinished lines of printf(), one an HPU
 *     SPL_PSPIN_COPY(hpu)      a handler's own copy of a frame that another handler will see, SPL_PSPIN_COPY_BYTES
 *     SPL_PSPIN_SCRATCHPAD(c)  scratchpad of cluster c, SPL_PSPIN_SCRATCHPAD_BYTES
 *     SPL_PSPIN_HANDLER_MEM    handler memory, up to the end
 * The macros NB_CORES, NB_CLUSTERS, SPL_PSPIN_SCRATCHPAD_BYTES and SPL_PSPIN_COPY_BYTES may be given (`-D`).
 * docs/pspin.md has the differences. Threads, time: as handler.h; a call of a face costs what its instructions cost.
 */
#ifndef SPINLOOM_PSPIN_COMPAT_H
#define SPINLOOM_PSPIN_COMPAT_H

#include "spinloom/frame.h"
#include "spinloom/pspin/handler.h"
#include "spinloom/pspin/packets.h"
#include "spinloom/pspin/spin_host.h"

#endif
