// The headers are C++ as well.
#include "ring.c"
