/* members.c the other way: its payload_handler() fills the packets of a process-put of structs of vectors and lists.
 * Constants: as there. */
#define SPL_DDT_GATHER
#include "members.c"
