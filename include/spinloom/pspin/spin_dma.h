/* Copies between PsPIN's memories: spin_dma() of handler.h. */
#ifndef SPINLOOM_PSPIN_SPIN_DMA_H
#define SPINLOOM_PSPIN_SPIN_DMA_H

#include "spinloom/pspin/handler.h"

#endif
