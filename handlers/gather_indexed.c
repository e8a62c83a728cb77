/* indexed.c the other way: its payload_handler() fills the packets of a process-put of lists. Constants: as there. */
#define SPL_DDT_GATHER
#include "indexed.c"
