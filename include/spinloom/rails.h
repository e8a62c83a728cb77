/* rails.h - messages, one-sided memory and active messages over all NICs of a process.
 *
 * After the multirail protocol layer of MPC (deliverable D4.7 of RED-SEA, sections 2.2.3 and 2.3.2): every NIC is a
 * rail with its own engine; what is above them decides which rail carries what. Short messages leave at once. Of a long
 * one a word leaves, and its receiver reads the bytes out of the sender's memory (or has them put), in fragments over
 * all rails; each rail gets as much as its measured speed allows. docs/rails.md begins at the beginning.
 *
 * Functions return PTL_OK, or another code of portals4.h; spl_rails_error() then has a sentence. No function aborts.
 * Memory of a request belongs to it until it is complete. Rails are for one thread at a time.
 */
#ifndef SPINLOOM_RAILS_H
#define SPINLOOM_RAILS_H

#include <portals4.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spl_rails spl_rails;
typedef uint64_t spl_rails_request;
#define SPL_RAILS_ANY_SOURCE UINT32_MAX

/* The side that matches messages with receives. SPL_RAILS_BY_TAG: the receiver's NIC, on its home rail; other rails
 * carry fragments only, and a rank whose home rail is lost is lost. SPL_RAILS_BY_WORD: the receiver's processor;
 * messages take any rail. */
enum {
  SPL_RAILS_BY_TAG = 0,
  SPL_RAILS_BY_WORD = 1
};
/* The side that continues a long message after the receiver's processor has begun it. SPL_RAILS_NIC: the NICs, by
 * counters and triggered puts. SPL_RAILS_CPU: the processor in its next call, for comparison. */
enum {
  SPL_RAILS_NIC = 0,
  SPL_RAILS_CPU = 1
};
/* The side that moves the bytes of a long message. SPL_RAILS_GET: the receiver reads them; memory that is sent
 * again is exposed once. SPL_RAILS_PUT: the receiver opens its memory and says so, and the sender puts them. */
enum {
  SPL_RAILS_GET = 0,
  SPL_RAILS_PUT = 1
};

/* All ranks must pass the same options. 0 stands for the usual value. */
typedef struct {
  int matching; /* SPL_RAILS_BY_TAG or SPL_RAILS_BY_WORD */
  int progress; /* SPL_RAILS_NIC or SPL_RAILS_CPU */
  uint32_t rails; /* the number of the job's rails to use; 0: all */
  uint32_t home; /* the home rail of all ranks */
  uint64_t eager_bytes; /* the longest message that leaves at once; 8192 */
  uint64_t stripe_bytes; /* the shortest message that is cut into fragments; 524288 */
  uint64_t fragment_bytes; /* the longest fragment; 524288 */
  uint32_t window; /* messages from one rank to another that no receive has taken yet; further ones wait; 32 */
  int words; /* active messages also with SPL_RAILS_BY_TAG, unless 0 */
  uint32_t portal; /* the first of three portal table entries, the same at all ranks; 58 */
  int rendezvous; /* SPL_RAILS_GET or SPL_RAILS_PUT */
} spl_rails_options;

/* All ranks of the job open their rails, on a logical interface that matches; the call waits for all. `options` NULL:
 * all zero. Close them before the interface. */
int spl_rails_open(ptl_handle_ni_t interface, const spl_rails_options *options, spl_rails **rails);
/* PTL_IN_USE while requests are under way or somebody reads or writes memory under a key; it may be called again. */
int spl_rails_close(spl_rails *rails);
/* Describes the last error; never NULL. With `rails` NULL: the last error of spl_rails_open(). */
const char *spl_rails_error(const spl_rails *rails);

/* -- Messages ------------------------------------------------------------------------------------------------------ */

typedef struct {
  uint32_t source;
  int truncated; /* the message was longer than its receive */
  uint64_t tag;
  uint64_t bytes; /* bytes in the receive's memory; the length of another request */
} spl_rails_status;

/* Sends and receives work as MPI_Isend and MPI_Irecv do: messages of one rank match in the order in which they were
 * sent. A receive takes a message whose tag differs only in bits of `ignore`. */
int spl_rails_send(spl_rails *rails, const void *data, uint64_t bytes, uint32_t rank, uint64_t tag,
                   spl_rails_request *request);
int spl_rails_receive(spl_rails *rails, void *data, uint64_t bytes, uint32_t source, uint64_t tag, uint64_t ignore,
                      spl_rails_request *request);
/* Send and receive a message that consists of pieces, one after the other. NICs gather and scatter long messages in
 * place. The list itself may be changed after the call. */
int spl_rails_send_list(spl_rails *rails, const ptl_iovec_t *pieces, size_t count, uint32_t rank, uint64_t tag,
                        spl_rails_request *request);
int spl_rails_receive_list(spl_rails *rails, const ptl_iovec_t *pieces, size_t count, uint32_t source, uint64_t tag,
                           uint64_t ignore, spl_rails_request *request);
/* A request is complete once. Its failure is the result of the call that completes it. `status` may be NULL. */
int spl_rails_test(spl_rails *rails, spl_rails_request request, int *done, spl_rails_status *status);
int spl_rails_wait(spl_rails *rails, spl_rails_request request, spl_rails_status *status);
/* Takes messages that have arrived; all other calls do so, too. */
int spl_rails_progress(spl_rails *rails);

/* -- Memory under keys --------------------------------------------------------------------------------------------- */

enum {
  SPL_RAILS_READ = 1,
  SPL_RAILS_WRITE = 2
};
/* Lets other ranks reach memory on all rails. The key is a number that means something together with this rank. */
int spl_rails_expose(spl_rails *rails, void *data, uint64_t bytes, int rights, uint64_t *key);
/* PTL_IN_USE while somebody writes or reads; it may be called again. A get is over when its reader's acknowledgement
 * has come, which may be after the reader has gone on. */
int spl_rails_withdraw(spl_rails *rails, uint64_t key);
/* In fragments over all rails. A put is complete when the bytes are in the other rank's memory. */
int spl_rails_put(spl_rails *rails, const void *data, uint64_t bytes, uint32_t rank, uint64_t key, uint64_t offset,
                  spl_rails_request *request);
int spl_rails_get(spl_rails *rails, void *data, uint64_t bytes, uint32_t rank, uint64_t key, uint64_t offset,
                  spl_rails_request *request);

/* -- Active messages ----------------------------------------------------------------------------------------------- */

/* `handler` runs inside a call of the target, for each word with this number, in the order sent. It may send words and
 * messages, and post receives; it must not wait. NULL: words are dropped. `id` is below 64. */
typedef void (*spl_rails_handler)(void *argument, uint32_t source, const void *data, uint64_t bytes);
int spl_rails_handle(spl_rails *rails, uint32_t id, spl_rails_handler handler, void *argument);
/* At most eager_bytes, which are copied. A word may wait for the window until a later call of this rank. */
int spl_rails_word(spl_rails *rails, uint32_t rank, uint32_t id, const void *data, uint64_t bytes);
/* Sends a word without a copy: the NIC reads the pieces. Their bytes must not change until the request is complete,
 * which means that they have arrived at the target. */
int spl_rails_word_list(spl_rails *rails, uint32_t rank, uint32_t id, const ptl_iovec_t *pieces, size_t count,
                        spl_rails_request *request);
/* Waits until all words of this rank, and messages that wait for the window, have come to their targets. */
int spl_rails_flush(spl_rails *rails);

/* -- The rails ----------------------------------------------------------------------------------------------------- */

typedef struct {
  char name[64];
  uint64_t bytes_per_second; /* measured; before the first long transfer: what the driver says */
  uint64_t carried_bytes; /* bytes that this rank has moved by it */
} spl_rails_fact;
int spl_rails_count(const spl_rails *rails, uint32_t *count);
int spl_rails_describe(const spl_rails *rails, uint32_t rail, spl_rails_fact *fact);
/* Sets `reaches` to 1 if the rail still reaches the rank, otherwise to 0. */
int spl_rails_reaches(const spl_rails *rails, uint32_t rail, uint32_t rank, int *reaches);
/* Fragments that were moved again because their rail was lost. */
int spl_rails_repeated(const spl_rails *rails, uint64_t *fragments);

#ifdef __cplusplus
}
#endif

#endif
