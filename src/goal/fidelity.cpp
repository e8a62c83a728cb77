#include "goal/fidelity.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/limits.hpp"
#include "goal/full_nics.hpp"
#include "goal/host.hpp"
#include "goal/light_nics.hpp"
#include "goal/plan.hpp"

namespace spinloom::goal {

using schedule::Kind;
using schedule::Schedule;
using schedule::Shape;

namespace {

Status check_for_nics(Fidelity fidelity, const Schedule& schedule, const Model& model) {
  SPL_TRY(check_peers(schedule));
  if (model.network && fidelity == Fidelity::nic) {
    return fail(Code::unsupported,
                "the fidelity nic has one switch between all NICs; leave out the network, or use full");
  }
  for (const Shape& shape : schedule.shapes()) {
    if (shape.nic > 0) {
      return fail(Code::unsupported, "the schedule uses NIC ", uint32_t{shape.nic},
                  " of a rank; at the fidelities nic and full a rank has NIC 0 only");
    }
    if (shape.kind == Kind::send && shape.tag == schedule::any) {
      return fail(Code::unsupported, "a send has any tag, which match bits cannot say; give it a tag");
    }
    if (schedule::has_peer(shape.kind) && shape.size > message_bytes_most) {
      return fail(Code::unsupported, "a message has ", shape.size, " B; at the fidelities nic and full it has at most ",
                  message_bytes_most, " B (message_bytes_most)");
    }
  }
  return {};
}

Result<std::unique_ptr<Nics>> nics_of(Fidelity fidelity, const sim::Profile& profile, uint32_t ranks,
                                      const Setup& setup, const Model& model) {
  if (fidelity == Fidelity::nic) return std::unique_ptr<Nics>(std::make_unique<LightNics>(profile, ranks, setup));
  if (ranks > limits::rank_count_max) {
    return fail(Code::exhausted, "the schedule has ", ranks, " ranks; whole nodes are simulated for at most ",
                limits::rank_count_max, " (rank_count_max); use --fidelity nic");
  }
  SPL_ASSIGN(std::unique_ptr<Nics> made, FullNics::create(profile, ranks, setup, model.network));
  return made;
}

}  // namespace

Result<Outcome> run_on(Fidelity fidelity, const sim::Profile& profile, const Schedule& schedule, const Model& model,
                       Record* record) {
  SPL_TRY(check_for_nics(fidelity, schedule, model));
  SPL_ASSIGN(Payloads payloads, Payloads::make(schedule, model.S_bytes, fidelity == Fidelity::full));
  SPL_ASSIGN(
      const std::unique_ptr<Nics> nics,
      nics_of(fidelity, profile, schedule.ranks(), [&](uint32_t rank) { return Host::setup(payloads, rank); }, model));
  const Rate memory = profile.host.memory_byte_time;
  const Rate copy(2 * memory.ps_numerator(), memory.denominator());  // read and written
  return run_hosts(*nics, payloads, copy, schedule, model, record);
}

}  // namespace spinloom::goal
