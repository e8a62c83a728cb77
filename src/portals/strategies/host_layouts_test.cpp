// MPITypes' loops, by which a host without NICs that unpack does it, over all layouts.
#include "memory/layout/testing/layout_ways.hpp"
#include "portals/strategies/pack.hpp"
#include "portals/strategies/unpack.hpp"

namespace spinloom::strategies {
namespace {

using namespace layout::test;

class HostMover final : public Mover {
 public:
  HostMover(Message message, bool packs) : message_(std::move(message)), packs_(packs) {}

  Status move(const Buffer& from, const Buffer& to, const Cut& cut) override {
    std::byte* const first = (packs_ ? from.base : to.base) + message_.reach.first;
    if (packs_) {
      return pack(message_, reinterpret_cast<const uint8_t*>(first),
                  {reinterpret_cast<uint8_t*>(to.base), static_cast<size_t>(cut.bytes())});
    }
    unpack(message_, reinterpret_cast<const uint8_t*>(from.base), reinterpret_cast<uint8_t*>(first));
    return {};
  }

 private:
  Message message_;
  bool packs_;
};

Result<MoverPointer> open(const layout::Type& type, int64_t count, bool packs, Random&) {
  SPL_ASSIGN(Message message, make_message(type, count));
  return MoverPointer(std::make_unique<HostMover>(std::move(message), packs));
}

std::vector<LayoutWay> ways() {
  LayoutWay whole = packing_way("mpitypes", open, 100);
  whole.cuts = false;
  return {whole};
}

SPINLOOM_LAYOUT_SUITE(HostLayouts, ways());

}  // namespace
}  // namespace spinloom::strategies
