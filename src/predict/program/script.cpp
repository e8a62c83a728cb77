#include "predict/program/script.hpp"

#include <algorithm>

#include "predict/program/story.hpp"

namespace spinloom::predict {
namespace {

// The sums of the events before the cut.
RecordedTimes recorded_of(const trace::RankTrace& trace, const RankScript& script) {
  RecordedTimes sum;
  uint64_t begun = 0;
  uint64_t ended = 0;
  const size_t end = std::min<size_t>(trace.events.size(), script.cut_event);
  for (size_t number = 0; number < end; ++number) {
    const trace::Event& event = trace.events[number];
    const trace::Call call = trace.signatures[event.signature].call;
    if (call == trace::Call::Init) {
      sum = {};
      begun = ended = event.end_ns;
      continue;
    }
    if (number == 0) begun = ended = event.begin_ns;
    if (event.begin_ns > ended) sum.compute_ns += event.begin_ns - ended;
    if (call == trace::Call::Finalize) {
      ended = std::max(ended, event.begin_ns);
      break;
    }
    const uint64_t begin = std::max(event.begin_ns, ended);
    const uint64_t time = event.end_ns > begin ? event.end_ns - begin : 0;
    sum.communication_ns += time;
    if (event.polls != 0) sum.polled_ns += time;
    ended = std::max(ended, event.end_ns);
  }
  sum.total_ns = ended - begun;
  sum.between_polls_ns = std::min(script.recorded.between_polls_ns, sum.polled_ns);
  sum.compute_ns += sum.between_polls_ns;
  sum.communication_ns -= std::min(sum.communication_ns, sum.between_polls_ns);
  sum.polled_ns -= std::min(sum.polled_ns, sum.between_polls_ns);
  for (const Step& step : script.steps) {
    if (step.kind == Step::Kind::fixed && step.event < script.cut_event) sum.fixed_ns += step.value;
  }
  sum.communication_ns -= std::min(sum.communication_ns, sum.fixed_ns);
  return sum;
}

// A replay knows only calls that follow each other, so calls from several threads at once are an error.
Status check_threads(const trace::RankTrace& trace) {
  uint64_t ended = 0;
  for (size_t number = 0; number < trace.events.size(); ++number) {
    const trace::Event& event = trace.events[number];
    if (event.begin_ns < ended) {
      const auto name = [&](size_t one) { return trace::name_of(trace.signatures[trace.events[one].signature].call); };
      return fail(Code::unsupported, "rank ", trace.rank, " calls MPI from several threads at once (event ", number,
                  ", ", name(number), ", began before event ", number - 1, ", ", name(number - 1),
                  ", had ended): only ranks that make one call after the other can be replayed");
    }
    ended = event.end_ns;
  }
  return {};
}

Status check_ranks(std::span<const trace::RankTrace> traces) {
  if (traces.empty()) return fail(Code::invalid, "there are no traces to replay");
  for (size_t rank = 0; rank < traces.size(); ++rank) {
    const trace::RankTrace& trace = traces[rank];
    if (trace.ranks != traces.size()) {
      return fail(Code::invalid, "rank ", trace.rank, " is one of ", trace.ranks, " ranks, and ", traces.size(),
                  " have traces; all of them are needed");
    }
    if (trace.rank != rank) return fail(Code::invalid, "the trace of rank ", rank, " is missing");
    SPL_TRY(check_threads(trace));
  }
  return {};
}

}  // namespace

Result<Script> script_of(std::span<const trace::RankTrace> traces, const Algorithms& algorithms, PollMeaning polls) {
  SPL_TRY(check_ranks(traces));
  SPL_ASSIGN(const Layouts layouts, Layouts::build(traces));
  std::vector<const trace::RankTrace*> all;
  for (const trace::RankTrace& one : traces) all.push_back(&one);
  const trace::Communicators communicators(all);
  Script script;
  script.layouts = layouts.blobs();
  Tags tags;
  const StoryContext context{communicators, layouts, algorithms, tags, script, polls};
  for (const trace::RankTrace& trace : traces) {
    SPL_ASSIGN(RankScript rank_script, story_of(trace, context));
    script.ranks.push_back(std::move(rank_script));
  }
  SPL_TRY(pair_legs(traces, script.ranks, tags));
  for (size_t rank = 0; rank < traces.size(); ++rank) {
    script.ranks[rank].recorded = recorded_of(traces[rank], script.ranks[rank]);
  }
  return script;
}

}  // namespace spinloom::predict
