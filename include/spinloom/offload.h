/* offload.h - schedules of operations, and whole collective operations, that the NIC executes without the CPU.
 *
 * After the abstract machine of Di Girolamo, Jolivet, Underwood and Hoefler, "Exploiting Offload Enabled Network
 * Interfaces" (FFLIB), sections II and III, over the calls of portals4.h. The CPU makes operations, says which of them
 * wait for which others, and posts them; from then on the NIC carries them on by counters, triggered operations and
 * match list entries. The CPU only asks whether they have ended.
 *
 * Functions return PTL_OK, or another code of portals4.h; spl_oe_error() then has a sentence. No function aborts.
 * Memory that a schedule names belongs to it from spl_schedule_start() until it has ended, and must stay where it is
 * until spl_schedule_free(). An engine is for one thread at a time.
 */
#ifndef SPINLOOM_OFFLOAD_H
#define SPINLOOM_OFFLOAD_H

#include <portals4.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spl_oe spl_oe;             /* the offload engine of a logical network interface */
typedef struct spl_team spl_team;         /* ranks that do something together */
typedef struct spl_schedule spl_schedule; /* a rank's operations and what they wait for */
typedef uint32_t spl_op;                  /* an operation: its number in its schedule */
#define SPL_OP_NONE UINT32_MAX            /* the operation was refused; spl_oe_error() says why */

/* -- The engine ---------------------------------------------------------------------------------------------------- */

/* The side that begins an operation when everything that the operation waits for has happened. The CPU does so only in
 * spl_schedule_test() and spl_schedule_wait(): the same schedule on the same NIC, for comparison. */
enum {
  SPL_BY_NIC = 0,
  SPL_BY_CPU = 1
};
/* Messages longer than `eager_bytes` go when both ends are ready. SPL_BY_RECEIVER: the receiver says that its memory is
 * ready, and the data follow. SPL_BY_SENDER: the sender says that its data are ready, and the receiver gets them
 * (section III.A.2). Neither needs the CPU. */
enum {
  SPL_BY_RECEIVER = 0,
  SPL_BY_SENDER = 1
};
/* SPL_MEET: spl_oe_open() waits until all ranks of the job have opened theirs. SPL_MEET_OTHERWISE: it does not, and the
 * caller starts no schedule before it knows that they have: messages to a rank without an engine are lost. No rank has
 * had an engine on that portal table entry before. */
enum {
  SPL_MEET = 0,
  SPL_MEET_OTHERWISE = 1
};

typedef struct {
  uint64_t eager_bytes; /* the longest message that leaves before its receiver is known to be ready; 0: 4096 */
  uint32_t early_messages; /* messages that one rank may send another before it takes them; 0: 16 */
  uint32_t portal; /* portal table entry, the same at all ranks; 0: the last one of the interface */
  int rendezvous; /* SPL_BY_RECEIVER or SPL_BY_SENDER */
  int progress; /* SPL_BY_NIC or SPL_BY_CPU */
  uint32_t counters; /* the most that the engine may use at a time; 0: all of the interface */
  uint32_t triggered;
  uint32_t entries;
  int meeting; /* SPL_MEET or SPL_MEET_OTHERWISE */
} spl_oe_options;

/* One engine for a portal table entry. All ranks of the job open theirs, with the same options, and the call waits
 * until they have, with SPL_MEET. PTL_FAIL: a rank is gone. `options` NULL: all zero. */
int spl_oe_open(ptl_handle_ni_t interface, const spl_oe_options *options, spl_oe **engine);
/* Frees all of its teams and schedules. PTL_IN_USE while one of them is under way. Waits until all that this rank has
 * sent has come to its targets, 10 s at most: another engine may be opened on the portal table entry then, and hears
 * nothing of this one. */
int spl_oe_close(spl_oe *engine);
/* Describes the last error; never NULL. With `engine` NULL: the last error of spl_oe_open(). */
const char *spl_oe_error(const spl_oe *engine);

/* Ranks of the interface that do something together, the same `id` (below 2^16) and list at each of them. `ranks` NULL:
 * all. No message is sent. */
int spl_team_make(spl_oe *engine, uint32_t id, const ptl_rank_t *ranks, uint32_t size, spl_team **team);
int spl_team_free(spl_team *team);

/* -- Schedules ----------------------------------------------------------------------------------------------------- */

/* SPL_CACHED: the operations stay on the NIC when they have been executed, and spl_schedule_start() may be called again
 * and again (section III.B). Otherwise a schedule is started once. */
enum {
  SPL_ONCE = 0,
  SPL_CACHED = 1
};

/* All ranks of a team make its schedules in the same order: the n-th of one rank belongs to the n-th of another. */
int spl_schedule_make(spl_team *team, unsigned int flags, spl_schedule **schedule);

/* Ranks are those of the team. The n-th send with a tag from one rank to another meets the n-th receive. */
spl_op spl_send(spl_schedule *schedule, const void *from, uint64_t bytes, uint32_t to_rank, uint32_t tag);
spl_op spl_receive(spl_schedule *schedule, void *to, uint64_t bytes, uint32_t from_rank, uint32_t tag);
/* Send and receive with memory in pieces, one after the other: a layout at this end. The list of pieces is copied, not
 * the memory. */
spl_op spl_send_list(spl_schedule *schedule, const ptl_iovec_t *from, size_t pieces, uint32_t to_rank, uint32_t tag);
spl_op spl_receive_list(spl_schedule *schedule, const ptl_iovec_t *to, size_t pieces, uint32_t from_rank, uint32_t tag);
/* Local computations: `into` = `into` op `from`, element by element (an operation and a type of Portals' atomics). */
spl_op spl_combine(spl_schedule *schedule, void *into, const void *from, uint64_t bytes, ptl_op_t op,
                   ptl_datatype_t type);
spl_op spl_copy(spl_schedule *schedule, void *to, const void *from, uint64_t bytes);
/* One-sided, to a match list entry that the target has made with Portals' own calls. */
typedef struct {
  uint32_t rank; /* the target's rank in the team */
  ptl_pt_index_t portal;
  ptl_match_bits_t bits;
  ptl_size_t offset;
} spl_target;
spl_op spl_put(spl_schedule *schedule, const void *from, uint64_t bytes, spl_target target);
spl_op spl_get(spl_schedule *schedule, void *to, uint64_t bytes, spl_target target);
spl_op spl_atomic(spl_schedule *schedule, const void *from, uint64_t bytes, ptl_op_t op, ptl_datatype_t type,
                  spl_target target);

/* first -> then (`first` was made before `then`): `then` begins when `first` has ended. A receive ends when its message
 * is there, a send when its memory may be used again, a put or an atomic when the target has it. */
int spl_after(spl_schedule *schedule, spl_op first, spl_op then);
/* `then` also waits for one of all operations that were given so. */
int spl_after_any(spl_schedule *schedule, spl_op first, spl_op then);
/* The operation also waits for spl_enable(), at each start. It may be disabled later, too. Not for receives. */
int spl_cpu_dependent(spl_schedule *schedule, spl_op op);

/* Gives the operations to the NIC. No operation may be added any more. PTL_NO_SPACE: the NIC has no room, whose limit
 * the error names; cached schedules that are not under way have left by then. */
int spl_schedule_post(spl_schedule *schedule);
/* Begins the operations that wait for nothing. Memory may be written until then. This call does not wait for other
 * ranks. */
int spl_schedule_start(spl_schedule *schedule);
/* spl_schedule_test() sets `done` to 1 if all has ended, otherwise to 0; spl_schedule_wait() returns when all has
 * ended. A failed operation ends the schedule with PTL_FAIL, which these calls answer from then on: it can only be
 * freed. A rank that is gone fails all that exchange messages with it in the schedule; what waits for a failed
 * operation does not begin. A rank that finds its schedule failed tells all with which it exchanges messages in it, and
 * they fail as well, unless theirs has ended. In a team in which a schedule has failed, later ones may be held up by
 * messages that nobody takes; that is an error, too. Make another team then. */
int spl_schedule_test(spl_schedule *schedule, int *done);
int spl_schedule_wait(spl_schedule *schedule);
/* PTL_IN_USE while it is under way. Of a schedule that has failed, messages may still be on their way; the call waits
 * for them, 10 s at most, and answers PTL_IN_USE then: it may be called again. After PTL_OK nothing reads or writes
 * memory that the schedule named. */
int spl_schedule_free(spl_schedule *schedule);

/* SPL_EXECUTED: it has begun, and perhaps ended. */
enum {
  SPL_CREATED = 0,
  SPL_POSTED = 1,
  SPL_ACTIVE = 2,
  SPL_EXECUTED = 3
};
int spl_state(spl_schedule *schedule, spl_op op, int *state);
/* Lets a CPU-dependent operation go, or holds it back (section II.C.4). *held: whether it had not begun. */
int spl_enable(spl_schedule *schedule, spl_op op);
int spl_disable(spl_schedule *schedule, spl_op op, int *held);

/* The resources of the NIC that a posted schedule uses, counted as in Table I of the paper: memory descriptors (one for
 * each counter that sends count on) and entries, triggered operations, counters for dependencies, memory of the
 * schedule's own. */
typedef struct {
  uint32_t descriptors, entries, triggered, counters;
  uint64_t memory_bytes;
} spl_resources;
int spl_schedule_resources(const spl_schedule *schedule, spl_resources *taken);
int spl_oe_resources(const spl_oe *engine, spl_resources *taken);

/* -- Collective operations ----------------------------------------------------------------------------------------- */

enum {
  SPL_BARRIER,
  SPL_BCAST,
  SPL_GATHER,
  SPL_GATHERV,
  SPL_SCATTER,
  SPL_SCATTERV,
  SPL_ALLGATHER,
  SPL_ALLGATHERV,
  SPL_ALLTOALL,
  SPL_ALLTOALLV,
  SPL_ALLTOALLW,
  SPL_NEIGHBOR_ALLGATHER,
  SPL_NEIGHBOR_ALLGATHERV,
  SPL_NEIGHBOR_ALLTOALL,
  SPL_NEIGHBOR_ALLTOALLV,
  SPL_NEIGHBOR_ALLTOALLW,
  SPL_REDUCE,
  SPL_ALLREDUCE,
  SPL_REDUCE_SCATTER,
  SPL_REDUCE_SCATTER_BLOCK,
  SPL_SCAN,
  SPL_EXSCAN
};

/* Memory and meaning as in MPI; all lengths are in bytes. A broadcast's data are in `receive` at all ranks. `bytes`:
 * all data of a broadcast, a reduction or a scan, of other calls the block of one rank. Calls with V have lists in
 * place of `bytes`, with an element for each rank or neighbour, and of what goes alike to all or from one (send of
 * GATHERV and ALLGATHERV, receive of SCATTERV) with one element. Memory that a rank does not use may be NULL. */
typedef struct {
  int operation; /* SPL_BARRIER ... */
  const char *algorithm; /* its name; NULL: chosen by size and number of ranks, alike at all ranks */
  uint32_t root;
  const void *send; /* NULL: in place, as MPI has it (but for a broadcast; of a scatter `receive` is NULL) */
  void *receive;
  uint64_t bytes;
  const uint64_t *send_bytes, *send_at; /* calls with V: the bytes of each block, and its begin */
  const uint64_t *receive_bytes, *receive_at; /* the received blocks'; reduce-scatter has only receive_bytes */
  ptl_op_t op;
  ptl_datatype_t type;
  uint64_t segment_bytes; /* the segments of pipelined algorithms; 0: chosen */
  uint32_t sources, destinations; /* neighbourhood calls have these; UINT32_MAX in the lists: nobody */
  const uint32_t *source, *destination;
} spl_call;

/* Makes the schedule and posts it. spl_schedule_start() starts it. */
int spl_collective(spl_team *team, const spl_call *call, unsigned int flags, spl_schedule **schedule);

#ifdef __cplusplus
}
#endif

#endif
