#include "predict/trace/text_rank.hpp"

#include <algorithm>
#include <cmath>

#include "predict/trace/text_signature.hpp"
#include "predict/trace/writer.hpp"

namespace spinloom::trace {
namespace {

constexpr uint64_t unix_ns_max = uint64_t{1} << 62;

// Text traces do not give the results of probes and tests: an Iprobe, or a test that ended no request, is a poll in
// vain.
bool is_failed_poll(const Signature& signature) {
  switch (signature.call) {
    case Call::Iprobe: return true;
    case Call::Test:
    case Call::Testall:
    case Call::Testany:
    case Call::Testsome: return signature.requests.empty();
    default: return false;
  }
}

}  // namespace

CommMark mark_of(const TextCall& call) {
  CommMark mark{.comm = call.comm, .group = call.form->new_group, .place = call.comm_place};
  if (call.form->call == Call::Comm_free) {
    mark.kind = CommMark::Kind::release;
  } else if (call.form->call == Call::Comm_make) {
    mark.kind = CommMark::Kind::make;
    if (call.numbers.size() == 2) {
      mark.colour = call.numbers[0];
      mark.key = call.numbers[1];
    }
  }
  return mark;
}
bool has_mark(const TextCall& call) { return call.has_comm || call.form->call == Call::Comm_free; }

Status TextRank::cut_line() {
  ++totals_.cut_lines;
  return {};
}

Status TextRank::on_unknown_call(std::string_view name) {
  count(is_local(name) ? LeftOut::local : LeftOut::not_known, name);
  return {};
}

Status TextRank::call(const TextCall& call) {
  uint32_t comm = none;
  if (has_mark(call)) comm = trace_number_of(binder_.apply(mark_of(call)), call);
  const bool makes_comm = call.form->call == Call::Comm_make;
  if (call.has_comm && comm == none && !makes_comm) return leave_out(LeftOut::no_members, call);
  if (makes_comm && comm == none && call.form->new_group != TextGroup::split)
    return leave_out(LeftOut::no_members, call);
  if (!call.has_counts) return leave_out(LeftOut::no_counts, call);
  TextFacts text_facts{
      .is_mpich = facts_.is_mpich, .comm = comm, .type_of = [this](const TextType& type) { return type_of(type); }};
  SPL_ASSIGN(Signature signature, signature_of(call, text_facts));
  if (!trouble_.ok()) return trouble_;
  note_requests(call);
  if (signature.call == Call::Recv && signature.peer == any) ++totals_.any_source;
  if (signature.receive_peer == any && (signature.call == Call::Sendrecv || signature.call == Call::Sendrecv_replace)) {
    ++totals_.any_source;
  }
  add(call, std::move(signature));
  return {};
}

Status TextRank::write(const std::string& directory, uint32_t ranks) {
  const double ahead_ns = std::clamp(facts_.clock_ahead_us * 1e3, -1e18, 1e18);
  const auto begun = static_cast<int64_t>(std::min(facts_.first_ns, unix_ns_max));
  const int64_t on_rank_0 = std::max<int64_t>(0, begun + std::llround(ahead_ns));
  SPL_ASSIGN(const auto writer,
             Writer::create(directory, {rank_, ranks, facts_.first_ns, static_cast<uint64_t>(on_rank_0), facts_.host,
                                        "not told by a text trace", "not told by a text trace"}));
  for (uint32_t i = 0; i < types_.size(); ++i) {
    const uint32_t number = writer->add(types_[i]);
    SPL_ASSERT(number == i, "type ", i, " is the trace's ", number);
  }
  for (const CommEntry& comm : entries()) (void)writer->add(comm);
  auto slots = requests_.solve(static_cast<uint32_t>(calls_.size()));
  totals_.never_ended += requests_.never_ended();
  totals_.guessed_comms += binder_.ambiguous_handles();
  for (size_t i = 0; i < calls_.size(); ++i) {
    RankCall& rank_call = calls_[i];
    rank_call.signature.requests = std::move(slots[i]);
    if (is_failed_poll(rank_call.signature)) {
      writer->poll(rank_call.signature, rank_call.begin_ns, rank_call.end_ns);
    } else {
      writer->record(rank_call.signature, rank_call.begin_ns, rank_call.end_ns);
    }
  }
  totals_.calls += calls_.size();
  writer->end();
  if (!writer->trouble().empty()) return fail(Code::environment, writer->trouble());
  return {};
}

Status TextRank::leave_out(LeftOut why, const TextCall& call) {
  count(why, "MPI_" + std::string(call.form->name));
  return {};
}

// Returns the communicator's number in the trace; none: its members are not known, or contradict the line.
uint32_t TextRank::trace_number_of(uint32_t comm, const TextCall& call) {
  if (comm == TextComms::unknown) return none;
  if (comm == TextComms::itself) return 1;
  const auto rank = comms_.rank_in(comm, rank_);
  if (!rank) return none;
  const bool is_used = call.has_comm && call.form->call != Call::Comm_make;
  if (is_used && (*rank != call.comm.rank || comms_.members(comm).size() != call.comm.size)) return none;
  if (comm_numbers_.empty()) find_numbers();
  return comm_numbers_[comm];
}

// Numbers this rank's communicators, in the same order on all ranks.
void TextRank::find_numbers() {
  comm_numbers_.assign(comms_.count(), none);
  comm_numbers_[TextComms::world] = 0;
  uint32_t next = 2;
  for (uint32_t comm = 2; comm < comms_.count(); ++comm) {
    if (comms_.rank_in(comm, rank_)) comm_numbers_[comm] = next++;
  }
}

std::vector<CommEntry> TextRank::entries() {
  if (comm_numbers_.empty()) find_numbers();
  std::vector<CommEntry> entries;
  for (uint32_t comm = 0; comm < comm_numbers_.size(); ++comm) {
    const bool is_own = comm == TextComms::itself;
    if (!is_own && comm_numbers_[comm] == none) continue;
    CommEntry& entry = entries.emplace_back();
    entry.rank = is_own ? 0 : *comms_.rank_in(comm, rank_);
    entry.world_ranks = is_own ? std::vector<uint32_t>{rank_} : comms_.members(comm);
  }
  return entries;
}

uint32_t TextRank::type_of(const TextType& type) {
  const auto [number, is_new] = type_numbers_.try_emplace(type, static_cast<uint32_t>(types_.size()));
  if (!is_new) return number->second;
  auto entry = entry_of(type);
  if (!entry) {
    trouble_ = entry.error();
    type_numbers_.erase(number);
    return none;
  }
  // Types of other handles may be the same.
  const auto same_type = std::ranges::find_if(types_, [&](const TypeEntry& other) {
    return other.name == entry->name && other.size_bytes == entry->size_bytes &&
           other.extent_bytes == entry->extent_bytes;
  });
  if (same_type != types_.end()) return number->second = static_cast<uint32_t>(same_type - types_.begin());
  types_.push_back(std::move(*entry));
  return number->second;
}

void TextRank::note_requests(const TextCall& call) {
  const auto number = static_cast<uint32_t>(calls_.size());
  switch (call.form->call) {
    case Call::Start:
    case Call::Startall: return requests_.start(number, call.request, call.requests);
    case Call::Wait:
    case Call::Waitall: return requests_.complete(number, call.request, call.requests, true);
    case Call::Waitany:
    case Call::Waitsome:
    case Call::Test:
    case Call::Testall:
    case Call::Testany:
    case Call::Testsome: return requests_.complete(number, call.request, call.requests, false);
    case Call::Request_free: return requests_.free(number, call.request);
    case Call::Cancel: return requests_.cancel(number, call.request);
    default: break;
  }
  if (call.form->call_form != CallForm::blocking) {
    requests_.make(number, call.request, call.form->call_form == CallForm::persistent);
  }
}

void TextRank::add(const TextCall& call, Signature signature) {
  uint64_t begin = call.has_begin ? call.begin_ns : call.end_ns;
  uint64_t end = call.has_end ? call.end_ns : call.begin_ns;
  if (end < last_ns_) {
    ++totals_.times_back;
    end = last_ns_;
  }
  begin = std::min(std::max(begin, last_ns_), end);
  last_ns_ = end;
  calls_.push_back({std::move(signature), begin, end});
}

}  // namespace spinloom::trace
