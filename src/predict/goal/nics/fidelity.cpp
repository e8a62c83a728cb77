#include "predict/goal/nics/fidelity.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/limits.hpp"
#include "predict/goal/model/places.hpp"
#include "predict/goal/model/plan.hpp"
#include "predict/goal/nics/full_nics.hpp"
#include "predict/goal/nics/host.hpp"
#include "predict/goal/nics/light_nics.hpp"
#include "predict/goal/nics/shared_run.hpp"

namespace spinloom::goal {

using schedule::Kind;
using schedule::Schedule;
using schedule::Shape;

namespace {

Status check_for_nics(const Schedule& schedule, const Model& model) {
  if (!model.tags_apart.is_empty()) {
    return fail(Code::unsupported,
                "tags that a receive of any tag does not take are known at the fidelity message only");
  }
  SPL_TRY(check_peers(schedule));
  SPL_TRY(check_places(schedule));
  for (const Shape& shape : schedule.shapes()) {
    if (shape.nic > 0) {
      return fail(Code::unsupported, "the schedule uses NIC ", shape.nic,
                  " of a rank; at the fidelities nic and full a rank has NIC 0 only");
    }
    if (shape.kind == Kind::send && shape.tag == schedule::any) {
      return fail(Code::unsupported, "a send has any tag, which match bits cannot say; give it a tag");
    }
    if (schedule::has_peer(shape.kind) && shape.size > message_bytes_max) {
      return fail(Code::unsupported, "a message has ", shape.size, " B; at the fidelities nic and full it has at most ",
                  message_bytes_max, " B (message_bytes_max)");
    }
  }
  return {};
}

// A light NIC has no port between link and memory: a clustered one's must be at least as fast as the link.
Status check_light(const simulated::Profile& profile) {
  if (!profile.clustered()) return {};
  const int64_t cycles = div_ceil(profile.link.payload, profile.pulp.port_width);
  const Time port = Rate::cycle_of(profile.hpu.clock).time_of_cycles(cycles);
  const Time link = profile.link.byte_time.time_of(Bytes{profile.link.payload});
  if (port <= link) return {};
  return fail(Code::unsupported, "the NIC's port takes ", port, " for a packet of ", profile.link.payload,
              " B, its link ", link, "; only whole nodes have such a port: use --fidelity full");
}

Result<std::unique_ptr<Nics>> nics_of(Fidelity fidelity, const simulated::Profile& profile, uint32_t ranks,
                                      const Setup& setup, const Model& model, const Sample& sample = {}) {
  if (fidelity == Fidelity::nic) {
    SPL_TRY(check_light(profile));
    SPL_ASSIGN(auto switches, simulated::Network::switches_of(profile, model.network, ranks));
    return std::unique_ptr<Nics>(std::make_unique<LightNics>(profile, ranks, setup, sample, std::move(switches)));
  }
  uint32_t nodes = 0;
  for (uint32_t rank = 0; rank < ranks; ++rank) nodes += sample.has(rank) ? 1 : 0;
  if (nodes > limits::rank_count_max) {
    return fail(Code::exhausted, nodes, " ranks are to be nodes; whole nodes are simulated for at most ",
                limits::rank_count_max, " (rank_count_max); use --fidelity nic");
  }
  SPL_ASSIGN(std::unique_ptr<Nics> nics, FullNics::create(profile, ranks, setup, model.network, sample));
  return nics;
}

// Returns the time of a CPU for each byte that it copies: the byte is read and written.
Rate copy_of(const simulated::Profile& profile) {
  const Rate memory = profile.host.memory_byte_time;
  return {2 * memory.ps_numerator(), memory.denominator()};
}

}  // namespace

Result<Outcome> run_on(Fidelity fidelity, const simulated::Profile& profile, const Schedule& schedule,
                       const Model& model, Record* record, const Watch& watch) {
  if (schedule.repeats()) return run_on(fidelity, profile, schedule.unrolled(), model, record, watch);
  SPL_TRY(check_for_nics(schedule, model));
  SPL_ASSIGN(Payloads payloads, Payloads::make(schedule, model.S_bytes, fidelity == Fidelity::full));
  SPL_ASSIGN(
      const std::unique_ptr<Nics> nics,
      nics_of(fidelity, profile, schedule.ranks(), [&](uint32_t rank) { return Host::setup(payloads, rank); }, model));
  return run_hosts(*nics, payloads, copy_of(profile), schedule, model, record, watch);
}

Result<Outcome> run_sample(Fidelity fidelity, const simulated::Profile& profile, const Schedule& schedule,
                           const Model& model, const Sample& sample, const Watch& watch) {
  if (model.network) {
    return fail(Code::unsupported,
                "ranks of two fidelities have one switch between their NICs; leave out the network, or run all at one "
                "fidelity");
  }
  if (schedule.repeats()) return run_sample(fidelity, profile, schedule.unrolled(), model, sample, watch);
  SPL_TRY(check_for_nics(schedule, model));
  SPL_ASSIGN(Payloads payloads, Payloads::make(schedule, model.S_bytes, fidelity == Fidelity::full, sample));
  SPL_ASSIGN(const std::unique_ptr<Nics> nics,
             nics_of(
                 fidelity, profile, schedule.ranks(), [&](uint32_t rank) { return Host::setup(payloads, rank); }, model,
                 sample));
  return run_shared(*nics, payloads, copy_of(profile), schedule, model, {profile, sample}, watch);
}

}  // namespace spinloom::goal
