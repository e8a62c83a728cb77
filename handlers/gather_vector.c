/* vector.c the other way: its payload_handler() fills the packets of a process-put of one-level vectors. Constants: as
 * there. */
#define SPL_DDT_GATHER
#include "vector.c"
