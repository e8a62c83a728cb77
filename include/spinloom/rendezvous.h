/* The protocol of a message that asks before it sends its bytes, for hosts in C++ and handlers in C.
 *
 * Match bits: the two highest are the kind of a message. The others belong to the user in an ordinary message, and are
 * a number in an answer and in data. A request is an ordinary message with header data: a number that its sender has
 * chosen, and the length of the data to come. An answer returns the request's match bits, and data have them as header
 * data. The counter of a send's entry says what an answer starts: the bytes, and above them, plus one, the number of
 * the context whose handlers gather them. The counter is one more when the bytes have been sent.
 */
#ifndef SPINLOOM_RENDEZVOUS_H
#define SPINLOOM_RENDEZVOUS_H

#include <stdint.h>

#define SPL_KIND_BITS ((uint64_t)3 << 62)
#define SPL_ANSWER_BITS ((uint64_t)1 << 62) /* + the number of the request */
#define SPL_DATA_BITS ((uint64_t)2 << 62)   /* + the number of the receive */
#define SPL_NO_DATA_BITS (~(uint64_t)0 ^ (uint64_t)1 << 62) /* data that no receive wants */

#define SPL_REQUEST_BYTES_BITS 40 /* the low bits of header data; the number lies above them */
#define SPL_REQUEST_BYTES_MASK (((uint64_t)1 << SPL_REQUEST_BYTES_BITS) - 1)

#define SPL_SEND_BYTES_MASK (((uint64_t)1 << 40) - 1)
#define SPL_SEND_CONTEXT_SHIFT 44

#endif
