/* hpu_local.c for receives of an MPI library: its payload_handler(), with the header_handler() and completion_handler()
 * of receive.h. Constants and state: as there. */
#define SPL_RECEIVE_HANDLERS "hpu_local.c"
#include "receive.h"
