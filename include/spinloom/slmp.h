/* slmp.h - SLMP, the sPIN lightweight messaging protocol, over UDP sockets: messages of up to 4 GiB to a sPIN NIC or to
 * a receiver in user space.
 *
 * Contract: C11 and C++. slmp_socket, slmp_sendmsg and slmp_close have the names and arguments of FPsPIN's library.
 *   Each function returns 0 (SLMP_OK) or a negative code; slmp_last_error() then says in one sentence what happened,
 *   with which values. No function ends the process, prints, or lets an exception out. The protocol on the wire is
 *   FPsPIN's (deliverable D4.7, section 4.4.1): ten bytes of header, UDP port 9330.
 * Invariants: (1) when slmp_sendmsg returns SLMP_OK, every packet that asked for an acknowledgement has got it; (2) no
 *   call waits longer than its time-outs say.
 * Threads: several may send over one socket at once; options are set before. A receiver has one owner. The last error
 *   belongs to its thread. Time: host time.
 *
 * Link with pkg-config (spinloom-slmp) or CMake (find_package(Spinloom COMPONENTS slmp), spinloom::slmp).
 */
#ifndef SPINLOOM_SLMP_H
#define SPINLOOM_SLMP_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define SLMP_API __attribute__((visibility("default")))
#else
#define SLMP_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define SLMP_PORT 9330

typedef enum slmp_status {
  SLMP_OK = 0,
  SLMP_ERR_INVALID = -1, /* an argument is wrong */
  SLMP_ERR_TOO_LARGE = -2, /* a message of more than 4 GiB */
  SLMP_ERR_TIMEOUT = -3, /* a packet was not acknowledged, or no message came, in time */
  SLMP_ERR_SYSTEM = -4, /* the operating system refused a call */
  SLMP_ERR_MEMORY = -5, /* there is not enough memory */
  SLMP_ERR_STOPPED = -6, /* the progress function said so */
  SLMP_ERR_INTERNAL = -7 /* our own bug */
} slmp_status;

SLMP_API const char *slmp_strerror(int status);
/* The sentence of this thread's last failed call; "" if none has failed. Valid until the thread's next failure. */
SLMP_API const char *slmp_last_error(void);

/* ---- Sending. ---- */

struct slmp_state;
typedef struct slmp_sock {
  struct slmp_state *state;
} slmp_sock_t;

/* wnd_sz: packets that may wait for their acknowledgements, shared among the threads and rounded up; 0: only the first
 *   and the last packet are acknowledged (SLMP_MODE_MESSAGE), and no window bounds the others.
 * align: a packet's payload is the largest multiple of it within 1462 bytes: 64 gives 1408, 4 gives 1460.
 * fc_us: microseconds from one packet of a thread to its next.
 * num_threads: each sends a share of the message, with a share of the window. */
SLMP_API int slmp_socket(slmp_sock_t *sock, int wnd_sz, int align, int fc_us, int num_threads);

typedef enum slmp_option {
  SLMP_OPT_MODE = 0, /* the packets that are acknowledged, an slmp_mode; wnd_sz says otherwise */
  SLMP_OPT_TRIES = 1, /* a packet's departures before its message has failed; 0: once, with FPsPIN's deadlines */
  SLMP_OPT_FIXED_WINDOW = 2, /* 1: the window does not begin small and does not adapt to losses */
  SLMP_OPT_POLLING = 3, /* a thread's way to wait, an slmp_polling */
  SLMP_OPT_PORT = 4, /* the receiver's UDP port, 9330 otherwise */
  SLMP_OPT_SILENCE_MS = 6, /* the wait for an acknowledgement with tries 0 (1000); twice as long at the end */
  SLMP_OPT_REPORTS = 7, /* 1: asks the receiver how many packets it has room for, and sends no more; needs
                          SLMP_MODE_SEGMENT and more than 2 tries; a receiver that does not know it gets plain
                          packets */
  SLMP_OPT_AS_ORIGINAL = 5 /* 1: behaves as FPsPIN's library: tries 0, a fixed window, SLMP_POLL_ORIGINAL */
} slmp_option;

typedef enum slmp_mode {
  SLMP_MODE_NONE = 0, /* nothing is acknowledged: SLMP_OK means that the packets have left */
  SLMP_MODE_MESSAGE = 1, /* the first and the last packet: others may be lost unnoticed */
  SLMP_MODE_SEGMENT = 2 /* every packet */
} slmp_mode;

typedef enum slmp_polling {
  SLMP_POLL_WAIT = 0, /* sleeps until something comes or is due */
  SLMP_POLL_ORIGINAL = 1, /* a call for each packet; looks, and sleeps 100 microseconds where there is nothing */
  SLMP_POLL_BUSY = 2 /* looks all the time */
} slmp_polling;

SLMP_API int slmp_set(slmp_sock_t *sock, int option, int64_t value);

/* `call` is called by the thread of slmp_sendmsg, ten times a second at most, with the bytes that are through; if it
 * returns another value than 0, slmp_sendmsg ends with SLMP_ERR_STOPPED. */
typedef int (*slmp_progress)(void *context, uint64_t bytes, uint64_t bytes_total);
SLMP_API int slmp_on_progress(slmp_sock_t *sock, slmp_progress call, void *context);

/* `server` is an IPv4 address in network byte order, as inet_addr gives it; msgid one in the host's. */
SLMP_API int slmp_sendmsg(slmp_sock_t *sock, in_addr_t server, int msgid, const void *buf, size_t size);

/* Statistics of the socket's last slmp_sendmsg. */
typedef struct slmp_sent {
  uint64_t packets;
  uint64_t retransmitted;
  uint64_t acknowledged;
  uint64_t duplicates; /* acknowledgements of packets that were acknowledged before */
} slmp_sent_t;
SLMP_API int slmp_last_sent(const slmp_sock_t *sock, slmp_sent_t *out);

SLMP_API int slmp_close(slmp_sock_t *sock);

/* The window, in the unit of the buffer, with which a sender just fills a receiver's buffer: receive_buffer * send_rate
 * / (send_rate - receive_rate), rounded down (D4.7, equation 3). 0: the receiver keeps up, and no window is too
 * large. */
SLMP_API uint64_t slmp_window(uint64_t receive_buffer, uint64_t send_rate, uint64_t receive_rate);

/* ---- Receiving in user space. ---- */

typedef struct slmp_receiver slmp_receiver_t;

typedef struct slmp_message {
  const void *data;
  size_t size;
  uint32_t msgid;
  uint16_t port; /* the sender's, in the host's byte order */
  in_addr_t from; /* the sender's, in network byte order */
  uint64_t ns; /* host time from its first packet to its last */
  void *owner; /* this is the library's own */
} slmp_message_t;

/* Listens at an address of this host, in network byte order (INADDR_ANY: all). Port 0 takes a free one. Messages that
 * are not whole hold bytes_max bytes at most, all together. */
SLMP_API int slmp_listen(slmp_receiver_t **out, in_addr_t address, int port, uint64_t bytes_max);
SLMP_API int slmp_receiver_port(const slmp_receiver_t *receiver);
/* Waits for a whole message, at most so many milliseconds; -1: for ever. Free it with slmp_message_free. */
SLMP_API int slmp_receive(slmp_receiver_t *receiver, slmp_message_t *out, int timeout_ms);
SLMP_API void slmp_message_free(slmp_message_t *message);
/* Goes on answering repeats until none has come for so long, or another message is whole: before a receiver ends, its
 * last acknowledgements may have been lost. */
SLMP_API int slmp_answer(slmp_receiver_t *receiver, int quiet_ms);

typedef struct slmp_received {
  uint64_t packets; /* packets that brought something */
  uint64_t repeated; /* packets that brought nothing new */
  uint64_t malformed; /* packets that are not of this protocol, or contradict what has come */
  uint64_t refused; /* packets that found no room */
  uint64_t messages;
} slmp_received_t;
SLMP_API int slmp_receiver_counts(const slmp_receiver_t *receiver, slmp_received_t *out);
SLMP_API int slmp_receiver_close(slmp_receiver_t *receiver);

#ifdef __cplusplus
}
#endif

#endif
