/* PsPIN's runtime, as handlers see it. */
#ifndef SPINLOOM_PSPIN_PSPIN_RT_H
#define SPINLOOM_PSPIN_PSPIN_RT_H

#include "spinloom/pspin/handler.h"

#endif
