/* A receive of an MPI library into one block: the header_handler() of receive.h. No constants, no state. */
#include "receive.h"
