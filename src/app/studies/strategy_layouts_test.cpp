// The strategies by which simulated NICs send and receive, over all layouts: handlers run instruction by instruction.
#include "memory/layout/testing/layout_ways.hpp"

#ifdef SPINLOOM_HANDLERS
#include "app/studies/setup.hpp"
#include "app/studies/testing/images.hpp"
#include "memory/layout/oracle.hpp"
#include "portals/interface/interface.hpp"
#include "portals/strategies/receive.hpp"
#include "portals/strategies/send.hpp"
#include "simulated/node/testing/profile.hpp"

namespace spinloom::app {
namespace {

using namespace layout::test;
using strategies::SendStrategy;
using strategies::Strategy;

struct Way {
  SendStrategy send;
  Strategy receive;
};

// A sender and a receiver. What is packed is sent and received as it is.
class NicMover final : public Mover {
 public:
  static Result<MoverPointer> open(const Way& way, const Side& from, const Side& to, Random& random) {
    const Side& layout = from.is_packed() ? to : from;
    if (layout.count * layout.type->size() == 0) return fail(Code::unsupported, "there is nothing to send");
    if (!to.is_packed() && *layout::oracle::overlaps(*to.type, to.count)) {
      return fail(Code::unsupported, "it writes a byte twice");
    }
    auto made = std::make_unique<NicMover>();
    Setup& setup = made->setup_;
    setup.profile = simulated::test_profile();
    setup.hpus = static_cast<uint32_t>(random.between(1, 8));
    setup.payload_bytes = static_cast<uint32_t>(random.chance(1, 2) ? 2048 : 256);
    setup.ordering.seed = random.next();
    setup.ordering.window = way.receive == Strategy::iovec ? 1 : static_cast<uint32_t>(random.between(1, 8));
    SPL_TRY(made->prepare(way, from, to));
    return MoverPointer(std::move(made));
  }

  Status move(const Buffer& from, const Buffer& to, const Cut& cut) override {
    portals::PutArguments put;
    put.target = world_->node(1).rank();
    put.portal = portal_;
    put.match_bits = cell_match_bits;
    auto* const target = reinterpret_cast<uint8_t*>(to.base);
    if (receive_) {
      SPL_TRY(receive_->post(target, cell_match_bits));
    } else {
      nic::Entry entry;
      entry.start = target;
      entry.length = static_cast<uint64_t>(cut.bytes());
      entry.match_bits = cell_match_bits;
      entry.options.use_once = true;
      entry.options.event_unlink_disable = true;
      SPL_TRY(receiver_->me_append(portal_, entry));
    }
    const auto* const source = reinterpret_cast<const uint8_t*>(from.base);
    if (send_) {
      SPL_TRY(send_->start(source, put));
      SPL_TRY(send_->finish());
    } else {
      put.local = source;
      put.length = static_cast<uint64_t>(cut.bytes());
      SPL_TRY(sender_->put(put));
    }
    if (receive_) {
      SPL_TRY(receive_->finish());
    } else {
      SPL_ASSIGN(const nic::Event arrived, receiver_->eq_wait(arrivals_));
      if (arrived.fail != nic::Fail::ok) return fail(Code::fault, "the message failed: ", nic::name_of(arrived.fail));
    }
    world_->drain();
    if (send_) SPL_TRY(send_->release());
    return receive_ ? receive_->release() : Status();
  }

 private:
  static const LoadedImages& images() {
    static const auto loaded = load_images(test_images(SPINLOOM_HANDLERS));
    return loaded.value();
  }

  Status prepare(const Way& way, const Side& from, const Side& to) {
    SPL_ASSIGN(world_, simulated::World::create(setup_.profile, images().images, world_options(setup_)));
    sender_ = std::make_unique<portals::Interface>(world_->node(0));
    receiver_ = std::make_unique<portals::Interface>(world_->node(1));
    SPL_ASSIGN(arrivals_, receiver_->eq_alloc(cell_queue_slots));
    SPL_ASSIGN(portal_, receiver_->pt_alloc(arrivals_));
    SPL_ASSIGN(const nic::QueueId departures, sender_->eq_alloc(cell_queue_slots));
    const strategies::NicFacts facts = facts_of(setup_);
    if (!from.is_packed()) {
      SPL_ASSIGN(const strategies::Message message, strategies::make_message(*from.type, from.count));
      SPL_ASSIGN(send_, strategies::Send::prepare(*sender_, departures, images().handlers, way.send, message, facts));
    }
    if (!to.is_packed()) {
      const strategies::HandlerCost cost{Time{100'000}, Time{20'000}};
      SPL_ASSIGN(const strategies::Message message, strategies::make_message(*to.type, to.count));
      SPL_ASSIGN(receive_, strategies::Receive::prepare(*receiver_, portal_, arrivals_, images().handlers, way.receive,
                                                        message, facts, cost));
    }
    return {};
  }

  Setup setup_;
  std::unique_ptr<simulated::World> world_;
  std::unique_ptr<portals::Interface> sender_;
  std::unique_ptr<portals::Interface> receiver_;
  nic::QueueId arrivals_;
  nic::PortalIndex portal_;
  std::unique_ptr<strategies::Send> send_;
  std::unique_ptr<strategies::Receive> receive_;
};

// Each way has a name, a strategy to send and one to receive, and the number of moves of the listed layouts that it
// refuses: those without bytes, with too many, or with one that is written twice; RDMA also those with gaps.
std::vector<LayoutWay> ways() {
  const struct {
    const char* name;
    Way way;
    int64_t refuses;
  } all[] = {
      {"pack_to_host", {SendStrategy::pack, Strategy::host_mpitypes}, 28},
      {"pack_to_best_host", {SendStrategy::pack, Strategy::host_best}, 28},
      {"pack_to_warm_host", {SendStrategy::pack, Strategy::host_warm}, 28},
      {"pack_to_rdma", {SendStrategy::pack, Strategy::rdma_direct}, 171},
      {"streaming_to_iovec", {SendStrategy::streaming, Strategy::iovec}, 28},
      {"specialised", {SendStrategy::outbound_specialised, Strategy::specialised}, 28},
      {"seek", {SendStrategy::outbound_seek, Strategy::seek}, 28},
      {"seek_to_hpu_local", {SendStrategy::outbound_seek, Strategy::hpu_local}, 28},
      {"seek_to_ro_cp", {SendStrategy::outbound_seek, Strategy::ro_cp}, 28},
      {"seek_to_rw_cp", {SendStrategy::outbound_seek, Strategy::rw_cp}, 28},
  };
  std::vector<LayoutWay> made;
  for (const auto& each : all) {
    made.push_back({.name = each.name,
                    .open = [way = each.way](const Side& from, const Side& to,
                                             Random& random) { return NicMover::open(way, from, to, random); },
                    .messages = 6,
                    .cuts = false,
                    .refuses = each.refuses,
                    .bytes_max = 128 << 10});
  }
  return made;
}

SPINLOOM_LAYOUT_SUITE(StrategyLayouts, ways());

}  // namespace
}  // namespace spinloom::app
#endif
