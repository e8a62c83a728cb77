/* The registers of PsPIN's cores are those of its runtime; handlers use handler.h. */
#ifndef SPINLOOM_PSPIN_HWSCHED_H
#define SPINLOOM_PSPIN_HWSCHED_H

#include "spinloom/pspin/handler.h"

#endif
