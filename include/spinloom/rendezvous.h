/* What both ends of a message that asks first agree on: hosts in C++, handlers in C.
 *
 * Match bits: the two highest say what a message is; the others of an ordinary one are the user's, those of an answer
 * and of data a number. A request is an ordinary message with header data: a number of its sender's, and how many bytes
 * there will be. An answer brings the request's match bits back, and data have them as header data. The counter of a
 * send's entry says what an answer starts: the bytes, and above them, plus one, the number of the context whose
 * handlers gather them; it is one more when they have been sent.
 */
#ifndef SPINLOOM_RENDEZVOUS_H
#define SPINLOOM_RENDEZVOUS_H

#include <stdint.h>

#define SPL_KIND_BITS ((uint64_t)3 << 62)
#define SPL_ANSWER_BITS ((uint64_t)1 << 62) /* + the number of the request */
#define SPL_DATA_BITS ((uint64_t)2 << 62)   /* + the number of the receive */
#define SPL_NO_DATA_BITS (~(uint64_t)0 ^ (uint64_t)1 << 62) /* data that no receive wants */

#define SPL_REQUEST_BYTES_BITS 40 /* of header data; the number above them */
#define SPL_REQUEST_BYTES_MASK (((uint64_t)1 << SPL_REQUEST_BYTES_BITS) - 1)

#define SPL_SEND_BYTES_MASK (((uint64_t)1 << 40) - 1)
#define SPL_SEND_CONTEXT_SHIFT 44

#endif
