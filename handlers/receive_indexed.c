/* indexed.c for receives of an MPI library: its payload_handler(), with the header_handler() and completion_handler()
 * of receive.h. Constants and state: as there. */
#define SPL_RECEIVE_HANDLERS "indexed.c"
#include "receive.h"
