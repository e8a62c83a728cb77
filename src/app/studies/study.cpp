#include "app/studies/study.hpp"

#include <cstring>
#include <memory>
#include <vector>

#include "app/studies/broadcast.hpp"
#include "app/studies/collective.hpp"
#include "app/studies/raid.hpp"
#include "app/studies/study_side.hpp"

namespace spinloom::app {
namespace {

constexpr uint64_t ping_bits = 1;
constexpr uint64_t pong_bits = 2;
constexpr uint64_t complex_bytes = 16;  // accumulate: two doubles

class Study {
 public:
  Study(const StudyConfig& config, const LoadedImages& loaded, simulated::World& world)
      : config_(config),
        loaded_(loaded),
        world_(world),
        message_(random_bytes(config.ordering.seed, "app.study", config.bytes)),
        array_(random_bytes(config.ordering.seed, "app.study.array", config.bytes)),
        answer_buffer_(config.bytes) {}

  Result<StudyResult> run() {
    SPL_ASSIGN(rank0_, Side::make(world_.node(0)));
    SPL_ASSIGN(rank1_, Side::make(world_.node(1)));
    SPL_TRY(config_.experiment == Experiment::pingpong ? prepare_pingpong() : prepare_accumulate());
    StudyResult result;
    for (int round = 1; round <= study_rounds; ++round) {
      world_.drain();
      const simulated::HandlerStatistics before = handlers();
      std::vector<uint8_t> expected = config_.experiment == Experiment::pingpong ? message_ : product();
      const Time start = rank0_.node->now();
      SPL_TRY(rank0_.interface->put(rank0_.put(message_, rank1_, ping_bits)));
      if (config_.experiment == Experiment::pingpong) {
        SPL_TRY(finish_pingpong(round));
        result.time_ps = (rank0_.node->now() - start).ps / 2;
        SPL_TRY(compare(answer_buffer_, expected));
        std::fill(answer_buffer_.begin(), answer_buffer_.end(), uint8_t{0});
      } else {
        SPL_TRY(finish_accumulate(round));
        result.time_ps = (rank1_.node->now() - start).ps;
        SPL_TRY(compare(array_, expected));
      }
      result.handlers = handlers().handlers - before.handlers;
      result.handler_cycles = handlers().cycles - before.cycles;
    }
    return result;
  }

 private:
  [[nodiscard]] simulated::HandlerStatistics handlers() const {
    return rank1_.node->hpus().statistics(nic::HandlerKind::payload);
  }

  Status compare(const std::vector<uint8_t>& bytes, const std::vector<uint8_t>& expected) const {
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] != expected[i]) {
        return fail(Code::mismatch, "byte ", i, " of ", bytes.size(), " is ", int{bytes[i]}, ", not ",
                    int{expected[i]});
      }
    }
    return {};
  }

  Status prepare_pingpong() {
    SPL_ASSIGN(std::ignore, rank0_.interface->me_append(rank0_.portal, rank0_.entry(answer_buffer_, pong_bits)));
    nic::Entry entry = rank1_.entry(array_, ping_bits);
    if (config_.way == StudyWay::store || config_.way == StudyWay::stream) {
      const uint32_t streams = config_.way == StudyWay::stream ? 1 : 0;
      constexpr uint64_t state_bytes = 64;
      SPL_ASSIGN(entry.context,
                 rank1_.context(loaded_, "pingpong", {streams, static_cast<uint32_t>(pong_bits), config_.payload_bytes},
                                state_bytes));
      entry.options.ct_comm = false;
    }
    SPL_ASSIGN(std::ignore, rank1_.interface->me_append(rank1_.portal, entry));
    if (config_.way == StudyWay::portals4) {
      SPL_TRY(rank1_.interface->put(rank1_.put(array_, rank0_, pong_bits),
                                    nic::Trigger{rank1_.counter, config_.bytes, config_.bytes}));
    }
    return {};
  }

  Status finish_pingpong(int round) {
    const uint64_t total = static_cast<uint64_t>(round) * config_.bytes;
    if (config_.way == StudyWay::rdma) {
      SPL_TRY(rank1_.wait_for(total));
      SPL_TRY(rank1_.react());
      SPL_TRY(rank1_.interface->put(rank1_.put(array_, rank0_, pong_bits)));
    }
    return rank0_.wait_for(total);
  }

  Status prepare_accumulate() {
    if (config_.bytes % complex_bytes != 0) {
      return fail(Code::invalid, "accumulate takes whole complex numbers of ", complex_bytes, " B, ", config_.bytes,
                  " B were given");
    }
    make_numbers(message_);
    make_numbers(array_);
    landing_buffer_.resize(config_.bytes);
    nic::Entry entry = rank1_.entry(config_.way == StudyWay::rdma ? landing_buffer_ : array_, ping_bits);
    if (config_.way == StudyWay::stream) {
      SPL_ASSIGN(entry.context, rank1_.context(loaded_, "accumulate", {0}, 64));
    } else if (config_.way != StudyWay::rdma) {
      return fail(Code::unsupported, "accumulate goes by rdma or stream");
    }
    SPL_ASSIGN(std::ignore, rank1_.interface->me_append(rank1_.portal, entry));
    return {};
  }

  Status finish_accumulate(int round) {
    SPL_TRY(rank1_.wait_for(static_cast<uint64_t>(round) * config_.bytes));
    if (config_.way != StudyWay::rdma) return {};
    SPL_TRY(rank1_.react());
    array_ = product();
    portals::HostWork work;  // memory-bound: reads both arrays, writes one
    const uint64_t bytes = config_.bytes;
    work.touches = [bytes](const portals::HostWork::Touch& touch) {
      for (uint64_t at = 0; at < bytes; at += complex_bytes) {
        touch(at, complex_bytes, false);
        touch(bytes + 4096 + at, complex_bytes, true);
      }
    };
    return rank1_.interface->host_work(work);
  }

  // Turns random bytes into numbers between -1 and 1, exactly.
  static void make_numbers(std::vector<uint8_t>& bytes) {
    for (size_t at = 0; at < bytes.size(); at += sizeof(double)) {
      int64_t random = 0;
      std::memcpy(&random, bytes.data() + at, sizeof random);
      const double number = static_cast<double>(random >> 11) * 0x1p-52;
      std::memcpy(bytes.data() + at, &number, sizeof number);
    }
  }

  // Returns the product by the handler's operations in the same order, also compiled without contraction.
  [[nodiscard]] std::vector<uint8_t> product() const {
    std::vector<uint8_t> products(array_.size());
    for (size_t at = 0; at < array_.size(); at += complex_bytes) {
      double x[2];
      double y[2];
      std::memcpy(x, array_.data() + at, sizeof x);
      std::memcpy(y, message_.data() + at, sizeof y);
      const double z[2] = {x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]};
      std::memcpy(products.data() + at, z, sizeof z);
    }
    return products;
  }

  const StudyConfig& config_;
  const LoadedImages& loaded_;
  simulated::World& world_;
  Side rank0_;
  Side rank1_;
  std::vector<uint8_t> message_;
  std::vector<uint8_t> array_;   // rank 1's memory
  std::vector<uint8_t> landing_buffer_;  // accumulate by rdma: the place where the message lands
  std::vector<uint8_t> answer_buffer_;
};

}  // namespace

Result<Experiment> experiment_named(std::string_view name) {
  if (name == "pingpong") return Experiment::pingpong;
  if (name == "accumulate") return Experiment::accumulate;
  if (name == "broadcast") return Experiment::broadcast;
  if (name == "raid") return Experiment::raid;
  if (name == "raid-read") return Experiment::raid_read;
  if (name == "multicast") return Experiment::multicast;
  if (name == "reduce") return Experiment::reduce;
  if (name == "allreduce") return Experiment::allreduce;
  return fail(Code::invalid, "unknown experiment \"", name,
              "\"; there are pingpong, accumulate, broadcast, raid and raid-read, multicast, reduce and allreduce");
}

Result<StudyWay> study_way_named(std::string_view name) {
  if (name == "rdma") return StudyWay::rdma;
  if (name == "portals4") return StudyWay::portals4;
  if (name == "store") return StudyWay::store;
  if (name == "stream") return StudyWay::stream;
  if (name == "linear") return StudyWay::linear;
  if (name == "switch") return StudyWay::switches;
  return fail(Code::invalid, "unknown way \"", name, "\"; there are rdma, portals4, store, stream, linear and switch");
}

Result<StudyResult> run_study(const StudyConfig& config) {
  uint64_t bytes = config.bytes;
  for (const RaidPiece& piece : config.pieces) bytes += piece.bytes;
  if (bytes == 0) return fail(Code::unsupported, "a study of zero bytes has nothing to compare");
  SPL_ASSIGN(const LoadedImages loaded, load_images(config.images));
  if (config.experiment >= Experiment::multicast) return run_collective(config, loaded);
  if (config.way == StudyWay::linear || config.way == StudyWay::switches) {
    return fail(Code::unsupported, "only multicast, reduce and allreduce go by linear and by switch");
  }
  if (config.experiment == Experiment::broadcast) return run_broadcast(config, loaded);
  if (config.experiment == Experiment::raid || config.experiment == Experiment::raid_read) {
    return run_raid(config, loaded);
  }
  SPL_ASSIGN(const auto world, simulated::World::create(config.profile, loaded.images, world_options(config)));
  return Study(config, loaded, *world).run();
}

}  // namespace spinloom::app
