/* seek.c the other way: its payload_handler() fills the packets of a process-put of any datatype. Constants: as there.
 */
#define SPL_DDT_GATHER
#include "seek.c"
