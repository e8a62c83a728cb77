/* What both ends of a message that asks first agree on: hosts in C++, handlers in C.
 *
 * Match bits: the two highest say what a message is; the others of an ordinary one are the user's, those of an answer and
 * of data a number. A request is an ordinary message with header data: who asks, a number of its sender's, and how
 * many bytes there will be.
 */
#ifndef SPINLOOM_RENDEZVOUS_H
#define SPINLOOM_RENDEZVOUS_H

#include <stdint.h>

#define SPL_KIND_BITS ((uint64_t)3 << 62)
#define SPL_ANSWER_BITS ((uint64_t)1 << 62) /* + the number of the request */
#define SPL_DATA_BITS ((uint64_t)2 << 62)   /* + the number of the receive */

#define SPL_REQUEST_BYTES_BITS 40 /* of header data; the number above them */
#define SPL_REQUEST_BYTES_MASK (((uint64_t)1 << SPL_REQUEST_BYTES_BITS) - 1)

#endif
