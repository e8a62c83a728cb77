// Calibrate - measures a payload handler of the checkpoint strategies on a profile, for their interval rule.
//
// Contract: T_PH(gamma) = fixed + gamma * block (SC'19 datatypes paper, section 3.2.4) of the rw-cp handler, fitted to
//   vectors of 1 and 16 blocks in packets of calibration_payload_bytes on one HPU with warm predictors. It
//   depends on the profile and the image only, not on the message, the HPUs or the packet size at hand.
// Threads: any. Time: modelled, in ps; handler start and finish are part of `fixed`.
#pragma once

#include "app/studies/ddt.hpp"
#include "portals/strategies/plan.hpp"

namespace spinloom::app {

inline constexpr uint32_t calibration_payload_bytes = 2048;

[[nodiscard]] Result<strategies::HandlerCost> calibrate(const DdtConfig& config);

}  // namespace spinloom::app
