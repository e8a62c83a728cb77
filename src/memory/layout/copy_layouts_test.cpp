// pack(), unpack() and copy() of blobs with every kernel set that this processor runs, over all layouts.
#include "memory/layout/copy.hpp"
#include "memory/layout/testing/forced_kernels.hpp"
#include "memory/layout/testing/layout_ways.hpp"
#include "memory/layout/transfer.hpp"

namespace spinloom::layout {
namespace {

using namespace test;

class Copies final : public Mover {
 public:
  static Result<MoverPointer> open(const std::string& kernels, const Side& from, const Side& to, Random& random) {
    const Width width = random.chance(1, 4) ? Width::wide : Width::automatic;
    auto made = std::make_unique<Copies>(kernels, from, to);
    for (const auto& [side, blob] : {std::pair(&from, &made->from_blob_), std::pair(&to, &made->to_blob_)}) {
      if (side->is_packed()) continue;
      SPL_ASSIGN(*blob, Blob::build(*side->type, {width, side->count}));
    }
    return MoverPointer(std::move(made));
  }
  Copies(std::string kernels, const Side& from, const Side& to)
      : kernels_(std::move(kernels)), from_count_(from.count), to_count_(to.count) {}

  Status move(const Buffer& from, const Buffer& to, const Cut& cut) override {
    const ForcedKernels forced(kernels_);
    SPL_TRY(forced.done());
    const auto bytes = static_cast<size_t>(cut.bytes());
    if (!to_blob_) return pack(*from_blob_, from_count_, from.base, cut.first, cut.last, {to.base, bytes});
    if (!from_blob_) return unpack(*to_blob_, to_count_, to.base, cut.first, cut.last, {from.base, bytes});
    const Source source{*from_blob_, from_count_, from.base};
    const Target target{*to_blob_, to_count_, to.base};
    const bool whole = cut.first == 0 && cut.last == from_count_ * from_blob_->size();
    return whole ? copy(source, target) : copy(source, target, cut.first, cut.last);
  }

 private:
  std::string kernels_;
  std::optional<Blob> from_blob_;
  std::optional<Blob> to_blob_;
  int64_t from_count_;
  int64_t to_count_;
};

std::vector<LayoutWay> ways() {
  std::vector<LayoutWay> made;
  for (const std::string& name : kernel_names()) {
    made.push_back({.name = name,
                    .open = [name](const Side& from, const Side& to,
                                   Random& random) { return Copies::open(name, from, to, random); },
                    .messages = 60});
  }
  return made;
}

// Rules: LAY-14, LAY-44, LAY-45.
SPINLOOM_LAYOUT_SUITE(CopyLayouts, ways());

}  // namespace
}  // namespace spinloom::layout
