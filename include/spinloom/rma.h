/* rma.h - one-sided memory: put, get and atomics on the memory of other ranks, over the calls of portals4.h.
 *
 * After the RMA of pscom over Portals 4 (RED-SEA, ParaStation MPI): a process registers memory and hands out keys, who
 * has a key reads and writes by it, and two counters, of what was begun and of what has ended, say when all is done.
 *
 * Contract: functions return PTL_OK, or another code of portals4.h; spl_rma_error() then has a sentence. No function
 *   aborts. Operations do not wait for their targets (but for room: see spl_rma_options). Memory that an operation
 *   reads or writes at its origin belongs to it until a flush, or a wait for its request, has returned. Operations may
 *   take effect in any order, but accumulating ones of one rank on one element do so in the order in which they were
 * called. Failures: an operation that its target's NIC refuses (the key has been revoked or never was, or does not
 *   grant it), or whose target is gone, changes nothing, is counted, and makes the next flush of its rank PTL_FAIL.
 *   Nobody waits for a rank that is gone: calls that wait for it end with PTL_FAIL.
 * Threads: a context is for one thread at a time. The target's program need not call anything, but with
 *   SPL_RMA_EMULATED.
 */
#ifndef SPINLOOM_RMA_H
#define SPINLOOM_RMA_H

#include <portals4.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spl_rma spl_rma;                 /* a context: all ranks of the job on a logical network interface */
typedef struct spl_rma_memory spl_rma_memory;   /* registered memory of this process */
typedef struct spl_rma_key spl_rma_key;         /* the right to access memory of a rank */
typedef struct spl_rma_request spl_rma_request; /* an operation that can be waited for by itself */
typedef struct spl_rma_window spl_rma_window;   /* memory at each rank, and the keys of all of them */

/* -- Contexts ------------------------------------------------------------------------------------------------------ */

/* SPL_RMA_NATIVE: the NICs do all. SPL_RMA_EMULATED: a message asks the target's processor, which does it when its
 * program calls a function of its context, and answers: for comparison. Both may be used on the same memory at the same
 * time; atomics of both are atomic with each other. */
enum {
  SPL_RMA_NATIVE = 0,
  SPL_RMA_EMULATED = 1
};
/* Accumulating calls with more bytes than an atomic of the NIC may have (max_atomic_size, max_fetch_atomic_size).
 * SPL_RMA_SPLIT: they become several atomics of whole elements. SPL_RMA_EMULATE: they go as with SPL_RMA_EMULATED. */
enum {
  SPL_RMA_SPLIT = 0,
  SPL_RMA_EMULATE = 1
};

typedef struct {
  uint32_t portal; /* portal table entry, the same at all ranks; the one below is used, too. 0: 62 */
  int way; /* SPL_RMA_NATIVE or SPL_RMA_EMULATED */
  int above_limit; /* SPL_RMA_SPLIT or SPL_RMA_EMULATE */
  uint32_t message_bytes; /* the longest data in a message of the emulation; more go in several. 0: 8192 */
  uint32_t messages; /* messages of the emulation under way to one rank; an operation waits for room. 0: 8 */
  uint32_t small_pieces; /* spl_rma_put_pieces and _get_pieces: parts with fewer bytes on average go packed to the
                            target's processor. 0: never */
  uint32_t notices; /* notices with values that this rank may have waiting (spl_rma_next_notice). 0: 1024 */
} spl_rma_options;

/* Collective: all ranks of the job call it, with the same options (`way` may differ), and it waits until they have.
 * `options` NULL: all zero. `interface` is logical and matching, and has all ranks of the job. */
int spl_rma_open(ptl_handle_ni_t interface, const spl_rma_options *options, spl_rma **rma);
/* Collective. Frees all memory, keys, requests and windows. After PTL_OK nothing reads or writes memory of this rank by
 * the context. PTL_FAIL: a rank is gone, or operations have failed; the context is freed all the same, but another one
 * must not take its portal table entries. */
int spl_rma_close(spl_rma *rma);
/* Describes the last error; never NULL. With `rma` NULL: the last error of spl_rma_open(). */
const char *spl_rma_error(const spl_rma *rma);
ptl_rank_t spl_rma_rank(const spl_rma *rma);
uint32_t spl_rma_size(const spl_rma *rma);
/* Lets the emulation go on. Other calls that wait do so, too. */
int spl_rma_progress(spl_rma *rma);

/* -- Memory and keys ----------------------------------------------------------------------------------------------- */

enum {
  SPL_RMA_READ = 1, /* get */
  SPL_RMA_WRITE = 2, /* put */
  SPL_RMA_ATOMIC = 4 /* accumulating operations, fetching ones too */
};
#define SPL_RMA_ALL (SPL_RMA_READ | SPL_RMA_WRITE | SPL_RMA_ATOMIC)

/* The traces of notified operations at their target. SPL_RMA_COUNTED: a count. SPL_RMA_QUEUED: a count, and a notice
 * with a value, which the program takes with spl_rma_next_notice(). An operation whose notice finds no room
 * (spl_rma_options.notices) is refused. */
enum {
  SPL_RMA_COUNTED = 1,
  SPL_RMA_QUEUED = 2
};

/* A key on its way: bytes that may be copied and sent by any means. */
typedef struct {
  unsigned char bytes[64];
} spl_rma_key_text;

/* Makes memory accessible, to those who get a key. `notices`: 0, SPL_RMA_COUNTED or SPL_RMA_QUEUED. */
int spl_rma_register(spl_rma *rma, void *memory, uint64_t bytes, int notices, spl_rma_memory **registered);
/* Registers memory in pieces, one after the other: offsets of operations count through them. The list is copied. */
int spl_rma_register_list(spl_rma *rma, const ptl_iovec_t *pieces, size_t count, int notices,
                          spl_rma_memory **registered);
/* A key of its own for each call, of random bits. `rights`: some of SPL_RMA_READ, SPL_RMA_WRITE, SPL_RMA_ATOMIC. */
int spl_rma_export(spl_rma_memory *registered, unsigned int rights, spl_rma_key_text *key);
/* When these have returned, no operation by the key, or by any key of the memory, reads or writes it any more; those
 * that come later fail. They wait for operations that have begun. */
int spl_rma_revoke(spl_rma_memory *registered, const spl_rma_key_text *key);
int spl_rma_deregister(spl_rma_memory *registered);

/* Makes a key usable at this rank. No message is sent: whether the key is valid shows when it is used. */
int spl_rma_import(spl_rma *rma, const spl_rma_key_text *text, spl_rma_key **key);
int spl_rma_forget(spl_rma_key *key);
ptl_rank_t spl_rma_key_rank(const spl_rma_key *key);
uint64_t spl_rma_key_bytes(const spl_rma_key *key);
unsigned int spl_rma_key_rights(const spl_rma_key *key);

/* -- Operations ---------------------------------------------------------------------------------------------------- */

/* Besides Portals' operations (PTL_MIN ... PTL_BXOR). PTL_SWAP is SPL_RMA_REPLACE. SPL_RMA_NO_OP is for fetching only:
 * it reads elements atomically; `from` is not used. */
enum {
  SPL_RMA_REPLACE = 0x100,
  SPL_RMA_NO_OP = 0x101
};

/* `offset` counts bytes from the beginning of the key's memory. PTL_ARG_INVALID: the range is not in the key's memory,
 * or the key does not grant the operation; nothing is sent then. Elements are atomic each by itself. */
int spl_rma_put(spl_rma_key *key, uint64_t offset, const void *from, uint64_t bytes);
int spl_rma_get(spl_rma_key *key, uint64_t offset, void *to, uint64_t bytes);
int spl_rma_accumulate(spl_rma_key *key, uint64_t offset, const void *from, uint64_t count, int op,
                       ptl_datatype_t type);
/* `result` gets the elements before the operation. It does not overlap `from`. */
int spl_rma_get_accumulate(spl_rma_key *key, uint64_t offset, const void *from, void *result, uint64_t count, int op,
                           ptl_datatype_t type);
/* One element. */
int spl_rma_fetch_and_op(spl_rma_key *key, uint64_t offset, const void *from, void *result, int op,
                         ptl_datatype_t type);
/* The element becomes `value` if it is `compare`; `result` gets what it was. */
int spl_rma_compare_and_swap(spl_rma_key *key, uint64_t offset, const void *value, const void *compare, void *result,
                             ptl_datatype_t type);
/* Memory in pieces at this end; the lists are copied. */
int spl_rma_put_list(spl_rma_key *key, uint64_t offset, const ptl_iovec_t *from, size_t pieces);
int spl_rma_get_list(spl_rma_key *key, uint64_t offset, const ptl_iovec_t *to, size_t pieces);

/* Memory in pieces at both ends: what is behind the other in one list comes behind the other in the other list. The NIC
 * gathers or scatters at this end, with a message for each part of the key's memory; small parts may go in a few
 * messages to the target's processor (spl_rma_options.small_pieces). */
typedef struct {
  uint64_t offset, bytes;
} spl_rma_piece;
int spl_rma_put_pieces(spl_rma_key *key, const spl_rma_piece *parts, size_t count, const ptl_iovec_t *from,
                       size_t pieces);
int spl_rma_get_pieces(spl_rma_key *key, const spl_rma_piece *parts, size_t count, const ptl_iovec_t *to,
                       size_t pieces);

/* The operations above, each with a request of its own. spl_rma_wait(), or a test that finds the operation done, frees
 * the request. Both return PTL_FAIL if the operation has failed. Flushes wait for these operations, too. */
int spl_rma_put_request(spl_rma_key *key, uint64_t offset, const void *from, uint64_t bytes, spl_rma_request **request);
int spl_rma_get_request(spl_rma_key *key, uint64_t offset, void *to, uint64_t bytes, spl_rma_request **request);
int spl_rma_accumulate_request(spl_rma_key *key, uint64_t offset, const void *from, uint64_t count, int op,
                               ptl_datatype_t type, spl_rma_request **request);
int spl_rma_get_accumulate_request(spl_rma_key *key, uint64_t offset, const void *from, void *result, uint64_t count,
                                   int op, ptl_datatype_t type, spl_rma_request **request);
int spl_rma_test(spl_rma_request *request, int *done);
int spl_rma_wait(spl_rma_request *request);

/* Waits until all operations to the rank, or to all ranks, have ended: their data are at the target, or here. PTL_FAIL:
 * some have failed since the last flush. Memory of this rank may be used again, so there is no weaker flush. */
int spl_rma_flush(spl_rma *rma, ptl_rank_t rank);
int spl_rma_flush_all(spl_rma *rma);
/* Does not wait: `done` is 0, or a flush would end at once. */
int spl_rma_flush_test(spl_rma *rma, ptl_rank_t rank, int *done);
/* The numbers of messages that this rank has begun at the target, that have ended among these, and that have failed
 * among those. An operation may need several messages. */
typedef struct {
  uint64_t begun, ended, failed;
} spl_rma_counts;
int spl_rma_count(spl_rma *rma, ptl_rank_t rank, spl_rma_counts *counts);

/* -- Notified operations ------------------------------------------------------------------------------------------- */

/* These put and get as spl_rma_put() and spl_rma_get() do. Once the data are at the target, or have left it, the target
 * has a notice with `value`. The key's memory must have been registered for notices. */
int spl_rma_put_notify(spl_rma_key *key, uint64_t offset, const void *from, uint64_t bytes, uint64_t value);
int spl_rma_get_notify(spl_rma_key *key, uint64_t offset, void *to, uint64_t bytes, uint64_t value);
/* Sets *count to the number of notified operations on the memory since it was registered. */
int spl_rma_notified(spl_rma_memory *registered, uint64_t *count);
int spl_rma_wait_notified(spl_rma_memory *registered, uint64_t count);
typedef struct {
  uint64_t value;
  uint64_t offset; /* the place of the data in the key's memory */
  uint64_t bytes; /* 0 for a get */
  ptl_rank_t rank; /* the rank that did the operation */
} spl_rma_notice;
/* The next notice of the memory, in the order in which the data came. PTL_EQ_EMPTY: there is none yet. */
int spl_rma_next_notice(spl_rma_memory *registered, spl_rma_notice *notice);
int spl_rma_wait_notice(spl_rma_memory *registered, spl_rma_notice *notice);

/* -- Synchronisation ----------------------------------------------------------------------------------------------- */

/* Collective: nobody returns before all have come. */
int spl_rma_barrier(spl_rma *rma);
/* Collective: a flush of all, and a barrier. All operations of all ranks before it have ended after it. PTL_FAIL after
 * the barrier if operations of this rank have failed. */
int spl_rma_fence(spl_rma *rma);

/* Collective, at all ranks in the same order. Registers memory (bytes may differ, 0 too) and gives all ranks a key of
 * it. `rights` and `notices` as above, but the same at all ranks. */
int spl_rma_window_make(spl_rma *rma, void *memory, uint64_t bytes, unsigned int rights, int notices,
                        spl_rma_window **window);
/* A window of some ranks. Each of them names the group, the same ranks in the same order, makes its part, gives its
 * text to the others by any means, and joins with the texts of all, in the order of the group. Neither call waits. A
 * rank that cannot make its part tells the others, or gives them bytes that are no text: then join fails, and the part
 * is dropped. */
typedef struct {
  unsigned char bytes[128];
} spl_rma_part_text;
int spl_rma_window_part(spl_rma *rma, const ptl_rank_t *group, uint32_t size, void *memory, uint64_t bytes,
                        unsigned int rights, int notices, spl_rma_window **window, spl_rma_part_text *text);
int spl_rma_window_join(spl_rma_window *window, const spl_rma_part_text *texts);
/* Collective among the window's ranks. A fence of the window is part of it. */
int spl_rma_window_free(spl_rma_window *window);
/* Not collective: frees this rank's part. What others begin there later fails. */
int spl_rma_window_drop(spl_rma_window *window);
/* The key of a rank's memory, which belongs to the window; NULL if the window has no such rank. */
spl_rma_key *spl_rma_window_key(spl_rma_window *window, ptl_rank_t rank);
/* This rank's registered memory, for its notices. */
spl_rma_memory *spl_rma_window_memory(spl_rma_window *window);

/* Collective among the window's ranks: what they have begun before it, at each other, has ended after it. PTL_FAIL
 * after it if operations of this rank have failed. */
int spl_rma_window_fence(spl_rma_window *window);

/* Epochs between groups of ranks, as MPI's post, start, complete and wait. Post does not wait; start waits until all of
 * its group have posted; complete flushes the group and says so; wait waits until all of the posted group have
 * completed. */
int spl_rma_post(spl_rma_window *window, const ptl_rank_t *group, uint32_t size);
int spl_rma_start(spl_rma_window *window, const ptl_rank_t *group, uint32_t size);
int spl_rma_complete(spl_rma_window *window);
int spl_rma_wait_completed(spl_rma_window *window);
int spl_rma_test_completed(spl_rma_window *window, int *done);

/* Locks of a rank's part of a window, in the order in which they were asked for; shared ones together. Atomics on words
 * at the target do it: its program does nothing. Unlocking flushes the rank first. A rank that waits and finds that any
 * rank of the context is gone gives up with PTL_FAIL: that rank might have the lock. Whoever holds several locks takes
 * them in the order of ranks, as lock_all does, or may wait for ever for one who does not. */
enum {
  SPL_RMA_SHARED = 0,
  SPL_RMA_EXCLUSIVE = 1
};
int spl_rma_lock(spl_rma_window *window, ptl_rank_t rank, int kind);
int spl_rma_unlock(spl_rma_window *window, ptl_rank_t rank);
int spl_rma_lock_all(spl_rma_window *window); /* shared, of all the window's ranks */
int spl_rma_unlock_all(spl_rma_window *window);

/* Forms that do not wait, for programs that have other work while they wait. What is begun is tested until `done` is
 * not 0; an error ends it, too. */
int spl_rma_window_fence_begin(spl_rma_window *window);
int spl_rma_window_fence_test(spl_rma_window *window, int *done);
int spl_rma_start_test(spl_rma_window *window, const ptl_rank_t *group, uint32_t size,
                       int *done); /* starts, once it may */
int spl_rma_lock_begin(spl_rma_window *window, ptl_rank_t rank, int kind);
int spl_rma_lock_test(spl_rma_window *window, ptl_rank_t rank, int *done);

#ifdef __cplusplus
}
#endif

#endif
