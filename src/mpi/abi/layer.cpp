#include "mpi/abi/layer.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>

#include "base/shared_heap.hpp"
#include "mpi/meeting/world.hpp"
#include "mpi/moving/way.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

Layer& layer = *new Layer;  // never destroyed, because calls come until the very end of the process

namespace {

int forget_comm(Comm comm, int, void*, void*) {
  layer.forget_comm(comm);
  return success;
}

std::unique_ptr<OfferedSend> make_offered_send(const PendingSend& pending, const Place& place) {
  auto send = std::make_unique<OfferedSend>(OfferedSend{.pending = pending, .place = place});
  constexpr int64_t patience_min_ns = 20'000;
  send->patience_ns = patience_min_ns + place.capacity() / 4;
  // A receiver's first kernels for a layout are slow, and to go by the host costs both ends some hundred microseconds.
  constexpr int64_t device_patience_ns = 5'000'000;
  if (pending.slot->offer.is_on_device) send->patience_ns += device_patience_ns;
  return send;
}

}  // namespace

int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

// Returns an empty text if all went well, else why the layer stays off.
std::string Layer::begin() {
  library = &Library::of_process();
  settings = read_settings(environ);
  for (const std::string& complaint : settings.complaints) std::fprintf(stderr, "spinloom: %s\n", complaint.c_str());
  if (settings.is_off) return "SPINLOOM_MPI=off";
  if (settings.collectives) offload.turn_off("the layer is off");
  if (settings.rma) rma.turn_off("the layer is off");
  library->find_parts();
  if (const std::string unknown = library->unknown_receives(); !unknown.empty()) {
    return "this MPI can receive by calls that are not known here: " + unknown;
  }
  int level = 0;
  Comm parent{};
  if (real.Comm_size(handles().comm_world, &ranks) != success ||
      real.Comm_rank(handles().comm_world, &rank) != success || real.Query_thread(&level) != success ||
      real.Comm_get_parent(&parent) != success) {
    return "the MPI does not say who this rank is";
  }
  is_threaded = level >= thread_multiple;
  is_pack_on = types.begin();
  if (parent != handles().comm_null) return "the ranks were started by MPI_Comm_spawn";
  const bool is_alone = ranks < 2;
  if (is_alone) {
    const std::string launcher_error = foreign_launcher();
    if (!launcher_error.empty()) std::fprintf(stderr, "spinloom: %s\n", launcher_error.c_str());
  }
  job = is_alone ? lone_name(settings.job) : world_name(settings.job, ranks);
  if (job.empty()) return "the launcher gives the job no name";
  // Ranks with different wishes for the NIC, or for windows, join different boards: so all founders of a board open it,
  // or none, and all of them agree on each window, or none.
  if (settings.collectives) job += "-nic";
  if (settings.rma) job += "-rma";
  if (!settings.maps_windows()) job += "-apart";
  if (!is_pack_on ||
      real.Comm_create_keyval(&copy_nothing, &SPINLOOM_ABI::forget_comm, &comm_keyval_, nullptr) != success ||
      real.Comm_group(handles().comm_world, &world_group_) != success) {
    return "the MPI refuses attributes";
  }
  if (!settings.report.empty()) {
    tally = std::make_unique<Tally>();
    started_ns = now_ns();
    started_ticks = ticks();
  }
  const uint32_t ranks_here = is_alone ? 1 : local_ranks(ranks);  // 0: not known
  has_processor_each = (ranks_here > 0 ? ranks_here : ranks) <= sysconf(_SC_NPROCESSORS_ONLN);
  const spinloom::Status joined =
      pipeline.begin(job, static_cast<uint32_t>(rank), static_cast<uint32_t>(ranks), ranks_here, settings);
  patience_.resize(static_cast<size_t>(ranks));
  if (!joined.ok()) return joined.error().message;
  pipeline.settle();
  teams.begin(pipeline.board(), world_group_);
  if (is_alone) {
    if (settings.collectives) offload.turn_off("there is one rank only");
    if (settings.rma) rma.turn_off("there is one rank only");
  } else if (settings.collectives || settings.rma) {
    begin_nic();
  }
  if (!is_alone && !settings.rma && settings.maps_windows()) rma.begin();
  return "";
}

// Opens the NIC. All ranks call this together; then all of them have an open NIC, or none has. Returns an empty text if
// it is open, else why it is not.
std::string Layer::open_nic() {
  if (!teams.spans_the_job()) {
    const bool both = settings.collectives && settings.rma;
    return text("not all ranks are on one machine with the layer and ",
                settings.collectives ? "SPINLOOM_MPI_COLLECTIVES=on" : "", both ? " and " : "",
                settings.rma ? "SPINLOOM_MPI_RMA=on" : "");
  }
  const auto all_agree = [&](bool own_agrees) {
    const uint8_t own_answer = own_agrees ? 1 : 0;
    std::vector<uint8_t> answers(static_cast<size_t>(ranks));
    const int code = real.Allgather(&own_answer, 1, handles().byte, answers.data(), 1, handles().byte, teams.comm());
    return code == success && std::ranges::all_of(answers, [](uint8_t answer) { return answer == 1; });
  };
  std::string failure = nic.load();
  if (!all_agree(failure.empty())) return failure.empty() ? "another rank cannot use the NIC" : failure;
  failure = nic.open(static_cast<uint32_t>(rank), settings.collectives);
  if (all_agree(failure.empty())) {
    if (settings.rma) failure = nic.open_memory();
    if (!settings.rma || all_agree(failure.empty())) return "";
  }
  nic.close();
  return failure.empty() ? "another rank has no NIC" : failure;
}

void Layer::begin_nic() {
  const std::string failure = open_nic();
  if (!failure.empty()) {
    if (settings.collectives) offload.turn_off(failure);
    if (settings.rma) rma.turn_off(failure);
    return;
  }
  if (settings.collectives) offload.begin();
  if (settings.rma) rma.begin();
}

void Layer::start() {
  try {
    why_off = begin();
    is_on = why_off.empty();
    is_plain = is_on && !is_threaded && !tally;
  } catch (const std::exception& trouble) {
    why_off = trouble.what();
  }
  const auto warn_off = [&](const char* what, const std::string& why) {
    if (rank == 0 && ranks > 1) {
      std::fprintf(stderr, "spinloom: %s stay with the MPI: %s\n", what, is_on ? why.c_str() : why_off.c_str());
    }
  };
  if (settings.collectives && !offload.is_on()) warn_off("collective calls", offload.why_off());
  if (settings.rma && !rma.is_on()) warn_off("windows", rma.why_off());
}

void Layer::stop() {
  if (is_on) {
    const Lock lock;
    poll_orphans();
    while (has_work()) progress(Waiting::blocked);
    for (Orphan& orphan : orphans) real.Request_free(&orphan.request);
    poll_outbox();
    for (SentCopy& sent : outbox) sent.bytes.release();
    outbox.clear();
    rma.end();
    offload.end();
    nic.close();
    teams.end();
    if (has_own_comm_) real.Comm_free(&own_comm_);
    real.Group_free(&world_group_);
    pipeline.end();
  }
  report();
  is_on = false;
  is_pack_on = false;
  is_plain = false;
}

std::vector<int> Layer::ranks_of(Comm comm) const {
  int is_inter = 0;
  int size = 0;
  Group group{};
  if (real.Comm_test_inter(comm, &is_inter) != success) return {};
  if ((is_inter ? real.Comm_remote_group(comm, &group) : real.Comm_group(comm, &group)) != success) return {};
  if ((is_inter ? real.Comm_remote_size(comm, &size) : real.Comm_size(comm, &size)) != success) size = 0;
  std::vector<int> ranks_in_group(static_cast<size_t>(size));
  std::vector<int> world_ranks(static_cast<size_t>(size));
  for (int i = 0; i < size; ++i) ranks_in_group[static_cast<size_t>(i)] = i;
  if (real.Group_translate_ranks(group, size, ranks_in_group.data(), world_group_, world_ranks.data()) != success)
    world_ranks.clear();
  real.Group_free(&group);
  return world_ranks;
}

// Returns a rank in MPI_COMM_WORLD. Returns a number below zero for a process of another world, for MPI_PROC_NULL and
// other numbers that are no rank, and if the MPI refuses the attribute or does not tell the ranks.
int Layer::world_rank(Comm comm, int rank_in_comm) {
  if (rank_in_comm < 0) return -1;
  const uint64_t key = key_of(comm);
  if (freed_comms_.any()) freed_comms_.take_each([this](uint64_t freed) { world_ranks_by_comm_.erase(freed); });
  const std::vector<int>* in_world = world_ranks_by_comm_.find(key);
  if (in_world == nullptr) {
    std::vector<int> world_ranks = ranks_of(comm);
    if (real.Comm_set_attr(comm, comm_keyval_, nullptr) != success) return -1;
    in_world = &world_ranks_by_comm_.put(key, std::move(world_ranks));
  }
  return static_cast<size_t>(rank_in_comm) < in_world->size() ? (*in_world)[static_cast<size_t>(rank_in_comm)] : -1;
}

void Layer::drop_comm_attributes(Comm comm) {
  if (comm == handles().comm_null || comm == handles().comm_world || comm == handles().comm_self) return;
  if (freed_comms_.any()) freed_comms_.take_each([this](uint64_t freed) { world_ranks_by_comm_.erase(freed); });
  if (world_ranks_by_comm_.find(key_of(comm)) != nullptr) real.Comm_delete_attr(comm, comm_keyval_);
  teams.drop_attribute(comm);
}

std::optional<PendingSend> Layer::pending_send_for(const Place& place, int peer, AllowedOffers allowed) {
  if (!bounced_sends.empty()) {
    if (auto bounced = take_bounced(place.buffer, place.count, place.type)) return bounced;
  }
  const bool may_offer = allowed != AllowedOffers::none;
  const bool offers_contiguous = place.call[0] != 0;  // the receiver may have gaps where the sender has none
  const int64_t bytes = place.capacity();
  if (place.count <= 0 || bytes == INT64_MAX || bytes < settings.min_bytes) {
    if (tally) [[unlikely]]
      count_pass(*place.form, place.count, peer, place.comm, place.call);
    return std::nullopt;
  }
  const int receiver = world_rank(place.comm, peer);
  if (receiver < 0 || !pipeline.can_reach(static_cast<uint32_t>(receiver))) {
    if (peer != proc_null) count(place, receiver, Way::pass, why_unreachable(receiver));
    return std::nullopt;
  }
  const Message message(*place.form, place.count, place.buffer);
  const bool is_offerable = may_offer && place.form->is_known && may_offer_to(static_cast<uint32_t>(receiver));
  const bool is_to_self = receiver == rank && DeviceEnds::of_process().find(place.buffer) == nullptr;
  const Reach reach{is_offerable && !is_to_self && process_heap_is_malloc() && CopyPipeline::is_mapped(message),
                    allowed == AllowedOffers::any,
                    is_offerable && allowed == AllowedOffers::any && pipeline.can_read(static_cast<uint32_t>(receiver)),
                    offers_contiguous, is_offerable && is_to_self};
  Choice choice = choose(settings, *place.form, place.count, bytes, reach);
  if (choice.way != Way::pass && choice.way != Way::staged) {
    const CopyPipeline::CopyMode mode = choice.way == Way::within ? CopyPipeline::CopyMode::within
                                        : choice.way == Way::cma  ? CopyPipeline::CopyMode::cma
                                        : choice.joins            ? CopyPipeline::CopyMode::both
                                                                  : CopyPipeline::CopyMode::receiver;
    if (auto offer = pipeline.offer(message, mode)) {
      count(place, receiver, choice.way, choice.why);
      if (receiver == rank) pipeline.count_within(bytes);
      offer->receiver = static_cast<uint32_t>(receiver);
      return offer;
    }
    choice.why = "there was no room in shared memory";
  }
  if (choice.way == Way::pass || (place.form->is_contiguous(place.count) && !offers_contiguous)) {
    count(place, receiver, Way::pass, choice.why);
    return std::nullopt;
  }
  auto pending = pipeline.prepare(bytes);
  if (!pending) {
    count(place, receiver, Way::pass, "there was no room in shared memory");
  } else {
    if (receiver == rank) pipeline.count_within(bytes);
    const bool needs_reason = choice.why == cannot_be_mapped;
    count(place, receiver, Way::staged, needs_reason ? why_not_mapped(may_offer, is_offerable) : choice.why);
  }
  return pending;
}

int Layer::announce(const PendingSend& pending, const Place& place, Mode mode, int peer, int tag, Request* request) {
  const void* const record = pending.record();
  const auto length = static_cast<int>(place.form->record_bytes);
  const Datatype byte = handles().byte;
  Request own_request{};
  Request* const record_request = request == nullptr ? &own_request : request;
  int code = success;
  const bool at_once = request == nullptr && mode != Mode::synchronous;
  if (at_once) {
    code = mode == Mode::ready ? real.Rsend(record, length, byte, peer, tag, place.comm)
                               : real.Send(record, length, byte, peer, tag, place.comm);
  } else if (mode == Mode::synchronous) {
    code = real.Issend(record, length, byte, peer, tag, place.comm, record_request);
  } else if (mode == Mode::ready) {
    code = real.Irsend(record, length, byte, peer, tag, place.comm, record_request);
  } else {
    code = real.Isend(record, length, byte, peer, tag, place.comm, record_request);
  }
  if (code != success) {
    const Lock lock;
    pipeline.abandon(pending);
    return code;
  }
  if (!pending.is_offered) {
    pipeline.load(pending, {*place.form, place.count, place.buffer});
    return request == nullptr && !at_once ? real.Wait(&own_request, status_ignore) : success;
  }
  auto send = make_offered_send(pending, place);
  send->record_request = at_once ? handles().request_null : *record_request;
  if (request != nullptr) {
    auto* const state = reinterpret_cast<void*>(pending.serial);
    code = real.Grequest_start(&query_offer, &free_offer, &cancel_nothing, state, &send->program_request);
    send->has_program_request = code == success;
    if (send->has_program_request) {
      *request = send->program_request;
      add_offer(std::move(send));
      return success;
    }
  }
  const uint64_t serial = pending.serial;
  add_offer(std::move(send));
  while (is_open(serial)) progress(Waiting::blocked);
  if (request != nullptr) *request = handles().request_null;
  return success;
}

void Layer::hand_over(const PendingSend& pending, const Place& place) {
  if (!pending.is_offered) return pipeline.load(pending, {*place.form, place.count, place.buffer});
  auto send = make_offered_send(pending, place);
  send->record_request = handles().request_null;
  add_offer(std::move(send));
}

void Layer::attend_now() {
  if (pipeline.has_news()) pipeline.notice();
  if (has_work()) progress(Waiting::no);
  if (!orphans.empty()) poll_orphans();
  if (!outbox.empty()) poll_outbox();
}

TrackedRequest* Layer::take(Request handle) {
  if (tracked_requests.empty()) return nullptr;
  TrackedRequest* const* const found = tracked_requests.find(key_of(handle));
  if (found == nullptr) return nullptr;
  TrackedRequest* const tracked = *found;
  if (is_threaded) tracked_requests.erase(key_of(handle));
  return tracked;
}

void Layer::put_back(Request handle, TrackedRequest* tracked) {
  if (is_threaded) tracked_requests.put(key_of(handle), tracked);
}

bool Layer::knows(Request handle) {
  const Lock lock;
  return tracked_requests.find(key_of(handle)) != nullptr;
}

void Layer::release(Request handle, TrackedRequest* tracked) {
  if (!is_threaded) tracked_requests.erase(key_of(handle));
  constexpr size_t spare_requests_max = 1'024;
  if (spare_requests.size() >= spare_requests_max) {
    delete tracked;
    return;
  }
  tracked->reset();
  spare_requests.emplace_back(tracked);
}

void Layer::remember_receive(void* buffer, int64_t count, Datatype type, Comm comm, Request handle,
                             ClaimPointer claim) {
  const Lock lock;
  const FormPointer& form = types.form(type);
  if (!claim && Place::capacity_of(*form, count) < Record::least) return;
  if (spare_requests.empty()) spare_requests.push_back(std::make_unique<TrackedRequest>());
  TrackedRequest* const tracked = spare_requests.back().release();
  spare_requests.pop_back();
  tracked->is_active = true;
  tracked->claim = std::move(claim);
  Place& place = tracked->place;
  place.buffer = buffer;
  place.count = count;
  place.type = type;
  place.comm = comm;
  // A spare request mostly has this form from its last receive. To assign it again would cost an atomic addition.
  if (place.form != form) place.form = form;
  remember(handle, tracked);
}

void Layer::poll_outbox() {
  std::erase_if(outbox, [](SentCopy& sent) {
    int flag = 0;
    return real.Test(&sent.request, &flag, status_ignore) != success || flag != 0;
  });
}

void Layer::poll_orphans() {
  std::vector<Orphan> waiting;
  waiting.swap(orphans);
  for (Orphan& orphan : waiting) {
    int flag = 0;
    Status status{};
    const int code = real.Test(&orphan.request, &flag, &status);
    if (code == success && flag == 0) {
      orphans.push_back(orphan);
      continue;
    }
    if (code == success) (void)deliver(orphan.tracked->place, &status);
    if (orphan.tracked->is_persistent) real.Request_free(&orphan.request);
    delete orphan.tracked;
  }
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
