// The layer's moves within a machine, over all layouts: one end copies, both ends copy parts, or system calls copy
// between processes (here from this process to itself).
#include <unistd.h>

#include "memory/layout/oracle.hpp"
#include "memory/layout/testing/layout_ways.hpp"
#include "mpi/messages/cma.hpp"
#include "mpi/messages/joint.hpp"

namespace spinloom::mpi {
namespace {

using namespace layout::test;

FormPointer form_of(const layout::test::Side& side) {
  return side.is_packed() ? basic_form(1, 1) : make_form(*side.type);
}

class EndMover : public Mover {
 public:
  EndMover(const layout::test::Side& from, const layout::test::Side& to)
      : from_(form_of(from)),
        to_(form_of(to)),
        bytes_(from.is_packed() ? to.count * to.type->size() : from.count * from.type->size()),
        from_count_(from.is_packed() ? bytes_ : from.count),
        to_count_(to.is_packed() ? bytes_ : to.count),
        from_is_packed_(from.is_packed()),
        to_is_packed_(to.is_packed()) {}

  Status move(const Buffer& from, const Buffer& to, const Cut& cut) override {
    // The base of packed bytes is that of the cut.
    const Message source(*from_, from_count_, from.base - (from_is_packed_ ? cut.first : 0));
    const Message target(*to_, to_count_, to.base - (to_is_packed_ ? cut.first : 0));
    return copy(source, target, {cut.first, cut.last});
  }

 protected:
  [[nodiscard]] virtual Status copy(const Message& from, const Message& to, Range range) = 0;
  [[nodiscard]] int64_t bytes() const { return bytes_; }

 private:
  FormPointer from_;
  FormPointer to_;
  int64_t bytes_;
  int64_t from_count_;
  int64_t to_count_;
  bool from_is_packed_;
  bool to_is_packed_;
};

class OneEnd final : public EndMover {
 public:
  OneEnd(const layout::test::Side& from, const layout::test::Side& to, Random&) : EndMover(from, to) {}

 protected:
  Status copy(const Message& from, const Message& to, Range range) override {
    return copy_part(end_of(from, from.count()), end_of(to, to.count()), range);
  }
};

// The ends take parts in any order, and the sender refuses some.
class BothEnds final : public EndMover {
 public:
  BothEnds(const layout::test::Side& from, const layout::test::Side& to, Random& random)
      : EndMover(from, to), turns_(random.next()) {}

 protected:
  Status copy(const Message& from, const Message& to, Range) override {
    const CopyEnd source = end_of(from, from.count());
    const CopyEnd target = end_of(to, to.count());
    JointCopy joint;
    joint.open({}, bytes(), bundle_bytes(target));
    while (!joint.is_over()) {
      const bool is_sender = turns_.chance(1, 2) && !joint.has_refused();
      auto part = is_sender ? joint.take(JointCopy::Side::sender) : joint.take_refused();
      if (!is_sender && !part) part = joint.take(JointCopy::Side::receiver);
      if (!part) continue;
      if (is_sender && turns_.chance(1, 4)) {
        joint.refuse(*part);
        continue;
      }
      SPL_TRY(copy_part(source, target, *part));
      joint.finish();
    }
    return {};
  }

 private:
  Random turns_;
};

// Whole messages, read by the receiver or written by the sender.
class SystemCalls final : public EndMover {
 public:
  SystemCalls(const layout::test::Side& from, const layout::test::Side& to, Random& random)
      : EndMover(from, to), reads_(random.chance(1, 2)) {}

 protected:
  Status copy(const Message& from, const Message& to, Range) override {
    peer::Process self;
    if (self.open(getpid()) != 0) return fail(Code::environment, "this process cannot be opened");
    uint64_t known = 1;
    const Message& there = reads_ ? from : to;
    const CopyEnd end = end_of(there, there.count());
    const RemotePlace place{end.blob, end.count, reinterpret_cast<uint64_t>(end.base)};
    if (reads_) return read_by_cma(self, place, to, bytes());
    return write_by_cma(self, {reinterpret_cast<uint64_t>(&known), known}, place, from, bytes());
  }

 private:
  bool reads_;
};

template <class Made>
Result<MoverPointer> open(const layout::test::Side& from, const layout::test::Side& to, Random& random) {
  return MoverPointer(std::make_unique<Made>(from, to, random));
}

SPINLOOM_LAYOUT_SUITE(EndLayouts,
                      (std::vector<LayoutWay>{
                          {.name = "one_end", .open = open<OneEnd>, .messages = 80},
                          {.name = "both_ends", .open = open<BothEnds>, .messages = 80, .cuts = false},
                          {.name = "system_calls", .open = open<SystemCalls>, .messages = 60, .cuts = false}}));

}  // namespace
}  // namespace spinloom::mpi
