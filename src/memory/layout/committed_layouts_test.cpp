// Committed layouts with every kernel set that this processor runs, over all layouts: whole messages at once where that
// is offered. What writes a byte twice is refused.
#include "memory/layout/committed.hpp"
#include "memory/layout/testing/forced_kernels.hpp"
#include "memory/layout/testing/layout_ways.hpp"
#include "memory/layout/transfer.hpp"

namespace spinloom::layout {
namespace {

using namespace test;

class CommittedMover final : public Mover {
 public:
  static Result<MoverPointer> open(const std::string& kernels, const Side& from, const Side& to) {
    // Structs are made ready once for a kernel set.
    const ForcedKernels forced(kernels);
    SPL_TRY(forced.done());
    auto made = std::make_unique<CommittedMover>(kernels, from.count, to.count);
    if (!from.is_packed()) {
      SPL_ASSIGN(made->from_, Committed::commit(*from.type));
    }
    if (!to.is_packed()) {
      SPL_ASSIGN(made->to_, Committed::commit(*to.type));
      if (*oracle::overlaps(*to.type, to.count)) return fail(Code::unsupported, "it writes a byte twice");
    }
    return MoverPointer(std::move(made));
  }
  CommittedMover(std::string kernels, int64_t from_count, int64_t to_count)
      : kernels_(std::move(kernels)), from_count_(from_count), to_count_(to_count) {}

  Status move(const Buffer& from, const Buffer& to, const Cut& cut) override {
    const ForcedKernels forced(kernels_);
    SPL_TRY(forced.done());
    const PackedRange range{cut.first, cut.last};
    const auto bytes = static_cast<size_t>(cut.bytes());
    if (!to_) {
      const bool whole = cut.first == 0 && cut.last == from_count_ * from_->type().size();
      if (whole && from_->pack_at_once(from_count_, from.base, to.base)) return {};
      return from_->pack(from_count_, from.base, range, {to.base, bytes});
    }
    if (!from_) {
      const bool whole = cut.first == 0 && cut.last == to_count_ * to_->type().size();
      if (whole && to_->unpack_at_once(to_count_, to.base, from.base)) return {};
      return to_->unpack(to_count_, to.base, range, {from.base, bytes});
    }
    if (!made_whole_) {  // it copies whole messages only
      made_whole_ = true;
      return copy({&*from_, from_count_, from.base}, {&*to_, to_count_, to.base});
    }
    return copy(Source{from_->blob(), from_count_, from.base}, Target{to_->blob(), to_count_, to.base}, cut.first,
                cut.last);
  }

 private:
  std::string kernels_;
  std::optional<Committed> from_;
  std::optional<Committed> to_;
  int64_t from_count_;
  int64_t to_count_;
  bool made_whole_ = false;
};

std::vector<LayoutWay> ways() {
  std::vector<LayoutWay> made;
  for (const std::string& name : kernel_names()) {
    made.push_back(
        {.name = name,
         .open = [name](const Side& from, const Side& to, Random&) { return CommittedMover::open(name, from, to); },
         .messages = 80,
         .refuses = 1});
  }
  return made;
}

SPINLOOM_LAYOUT_SUITE(CommittedLayouts, ways());

}  // namespace
}  // namespace spinloom::layout
