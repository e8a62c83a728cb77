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

Layer& layer = *new Layer;  // calls come until the very end of the process

namespace {

int forget_comm(Comm comm, int, void*, void*) {
  layer.forget_comm(comm);
  return success;
}

std::unique_ptr<Offered> offered_of(const PendingSend& pending, const Place& place) {
  auto one = std::make_unique<Offered>(Offered{.pending = pending, .place = place});
  constexpr int64_t patience_least_ns = 20'000;
  one->patience_ns = patience_least_ns + place.capacity() / 4;
  constexpr int64_t patience_with_devices_ns = 5'000'000;  // to pack after all costs both ends as much as a round trip
  if (pending.slot->offer.on_device) one->patience_ns += patience_with_devices_ns;
  return one;
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
  if (settings.off) return "SPINLOOM_MPI=off";
  if (settings.collectives) offload.turn_off("the layer is off");
  if (settings.rma) rma.turn_off("the layer is off");
  library->learn();
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
  threaded = level >= thread_multiple;
  pack_on = types.begin();
  if (parent != handles().comm_null) return "the ranks were started by MPI_Comm_spawn";
  const bool is_alone = ranks < 2;
  if (is_alone) {
    const std::string wrong = foreign_launcher();
    if (!wrong.empty()) std::fprintf(stderr, "spinloom: %s\n", wrong.c_str());
  }
  job = is_alone ? lone_name(settings.job) : world_name(settings.job, ranks);
  if (job.empty()) return "the launcher gives the job no name";
  // Ranks that want the NIC and ranks that do not never found one board, so that its founders are of one mind.
  if (settings.collectives) job += "-nic";
  if (settings.rma) job += "-rma";
  if (!pack_on ||
      real.Comm_create_keyval(&copy_nothing, &SPINLOOM_ABI::forget_comm, &comm_keyval_, nullptr) != success ||
      real.Comm_group(handles().comm_world, &world_group_) != success) {
    return "the MPI refuses attributes";
  }
  if (!settings.report.empty()) {
    tally = std::make_unique<Tally>();
    started_ns = now_ns();
    started_ticks = ticks();
  }
  const spinloom::Status began = pipeline.begin(job, static_cast<uint32_t>(rank), static_cast<uint32_t>(ranks),
                                                is_alone ? 1 : local_ranks(ranks), settings);
  patience_.resize(static_cast<size_t>(ranks));
  if (!began.ok()) return began.error().message;
  pipeline.settle();
  teams.begin(pipeline.board(), world_group_);
  if (is_alone) {
    if (settings.collectives) offload.turn_off("there is one rank only");
    if (settings.rma) rma.turn_off("there is one rank only");
  } else if (settings.collectives || settings.rma) {
    begin_nic();
  }
  return "";
}

// Opens the NIC; a collective call, after which all ranks have opened theirs, or none has. Returns why not; empty: it
// is open.
std::string Layer::open_nic() {
  if (!teams.spans_the_job()) {
    const bool both = settings.collectives && settings.rma;
    return text("not all ranks are on one machine with the layer and ",
                settings.collectives ? "SPINLOOM_MPI_COLLECTIVES=on" : "", both ? " and " : "",
                settings.rma ? "SPINLOOM_MPI_RMA=on" : "");
  }
  const auto all_agree = [&](bool own) {
    const uint8_t says = own ? 1 : 0;
    std::vector<uint8_t> told(static_cast<size_t>(ranks));
    const int code = real.Allgather(&says, 1, handles().byte, told.data(), 1, handles().byte, teams.comm());
    return code == success && std::ranges::all_of(told, [](uint8_t one) { return one == 1; });
  };
  std::string wrong = nic.load();
  if (!all_agree(wrong.empty())) return wrong.empty() ? "another rank cannot use the NIC" : wrong;
  wrong = nic.open(static_cast<uint32_t>(rank), settings.collectives);
  if (all_agree(wrong.empty())) {
    if (settings.rma) wrong = nic.open_memory();
    if (!settings.rma || all_agree(wrong.empty())) return "";
  }
  nic.close();
  return wrong.empty() ? "another rank has no NIC" : wrong;
}

void Layer::begin_nic() {
  const std::string wrong = open_nic();
  if (!wrong.empty()) {
    if (settings.collectives) offload.turn_off(wrong);
    if (settings.rma) rma.turn_off(wrong);
    return;
  }
  if (settings.collectives) offload.begin();
  if (settings.rma) rma.begin();
}

void Layer::start() {
  try {
    why_off = begin();
    on = why_off.empty();
    is_plain = on && !threaded && !tally;
  } catch (const std::exception& trouble) {
    why_off = trouble.what();
  }
  const auto tell_off = [&](const char* what, const std::string& why) {
    if (rank == 0 && ranks > 1) {
      std::fprintf(stderr, "spinloom: %s stay with the MPI: %s\n", what, on ? why.c_str() : why_off.c_str());
    }
  };
  if (settings.collectives && !offload.is_on()) tell_off("collective calls", offload.why_off());
  if (settings.rma && !rma.is_on()) tell_off("windows", rma.why_off());
}

void Layer::stop() {
  if (on) {
    const Lock lock;
    poll_orphans();
    while (offers()) progress(Waiting::blocked);
    for (Orphan& orphan : orphans) real.Request_free(&orphan.request);
    poll_outbox();
    for (Copy& left : outbox) left.bytes.release();
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
  on = false;
  pack_on = false;
  is_plain = false;
}

std::vector<int> Layer::ranks_of(Comm comm) const {
  int is_inter = 0;
  int size = 0;
  Group group{};
  if (real.Comm_test_inter(comm, &is_inter) != success) return {};
  if ((is_inter ? real.Comm_remote_group(comm, &group) : real.Comm_group(comm, &group)) != success) return {};
  if ((is_inter ? real.Comm_remote_size(comm, &size) : real.Comm_size(comm, &size)) != success) size = 0;
  std::vector<int> there(static_cast<size_t>(size));
  std::vector<int> in_world(static_cast<size_t>(size));
  for (int i = 0; i < size; ++i) there[static_cast<size_t>(i)] = i;
  if (real.Group_translate_ranks(group, size, there.data(), world_group_, in_world.data()) != success) in_world.clear();
  real.Group_free(&group);
  return in_world;
}

// Returns a rank in MPI_COMM_WORLD; below zero for a process of another world, for MPI_PROC_NULL and other numbers that
// are no rank, and where the MPI refuses an attribute.
int Layer::world_rank(Comm comm, int rank_in_comm) {
  if (rank_in_comm < 0) return -1;
  const uint64_t key = key_of(comm);
  if (forgotten_comms_.any()) forgotten_comms_.take([this](uint64_t gone) { ranks_.erase(gone); });
  const std::vector<int>* in_world = ranks_.find(key);
  if (in_world == nullptr) {
    std::vector<int> made = ranks_of(comm);
    if (real.Comm_set_attr(comm, comm_keyval_, nullptr) != success) return -1;
    in_world = &ranks_.put(key, std::move(made));
  }
  return static_cast<size_t>(rank_in_comm) < in_world->size() ? (*in_world)[static_cast<size_t>(rank_in_comm)] : -1;
}

void Layer::let_go_comm(Comm comm) {
  if (comm == handles().comm_null || comm == handles().comm_world || comm == handles().comm_self) return;
  if (forgotten_comms_.any()) forgotten_comms_.take([this](uint64_t gone) { ranks_.erase(gone); });
  if (ranks_.find(key_of(comm)) != nullptr) real.Comm_delete_attr(comm, comm_keyval_);
  teams.let_go(comm);
}

std::optional<PendingSend> Layer::pending_send_for(const Place& place, int peer, Offers may) {
  if (!bounced_sends.empty()) {
    if (auto bounced = take_bounced(place.buffer, place.count, place.type)) return bounced;
  }
  const bool may_offer = may != Offers::none;
  const bool takes_runs = place.call[0] != 0;  // the receiver may have gaps where the sender has none
  const int64_t bytes = place.capacity();
  if (place.count <= 0 || bytes == INT64_MAX || bytes < settings.min_bytes) {
    if (tally) [[unlikely]]
      count_pass(*place.form, place.count, peer, place.comm, place.call);
    return std::nullopt;
  }
  const int to = world_rank(place.comm, peer);
  if (to < 0 || !pipeline.can_reach(static_cast<uint32_t>(to))) {
    if (peer != proc_null) count(place, to, Way::pass, unreachable(to));
    return std::nullopt;
  }
  const Message message(*place.form, place.count, place.buffer);
  const bool asked = may_offer && place.form->known && may_offer_to(static_cast<uint32_t>(to));
  const bool within = to == rank && DeviceEnds::of_process().find(place.buffer) == nullptr;
  const Reach reach{asked && !within && process_heap_is_malloc() && CopyPipeline::is_mapped(message),
                    may == Offers::any, asked && may == Offers::any && pipeline.can_read(static_cast<uint32_t>(to)),
                    takes_runs, asked && within};
  const Choice choice = choose(settings, *place.form, place.count, bytes, reach);
  if (choice.way != Way::pass && choice.way != Way::staged) {
    const CopyPipeline::By by = choice.way == Way::within ? CopyPipeline::By::within
                                : choice.way == Way::cma  ? CopyPipeline::By::cma
                                : choice.joins            ? CopyPipeline::By::both
                                                          : CopyPipeline::By::receiver;
    if (auto offer = pipeline.offer(message, by)) {
      count(place, to, choice.way, choice.why);
      if (to == rank) pipeline.count_within(bytes);
      offer->receiver = static_cast<uint32_t>(to);
      return offer;
    }
  }
  if (choice.way == Way::pass || (place.form->contiguous(place.count) && !takes_runs)) {
    count(place, to, Way::pass, choice.why);
    return std::nullopt;
  }
  auto pending = pipeline.prepare(bytes);
  if (!pending) {
    count(place, to, Way::pass, "there was no room in shared memory");
  } else {
    if (to == rank) pipeline.count_within(bytes);
    const bool explain = choice.why == cannot_be_mapped;
    count(place, to, Way::staged, explain ? why_not_mapped(may_offer, asked) : choice.why);
  }
  return pending;
}

int Layer::announce(const PendingSend& pending, const Place& place, Mode mode, int peer, int tag, Request* request) {
  const void* const record = pending.record();
  const auto length = static_cast<int>(place.form->record_bytes);
  const Datatype byte = handles().byte;
  Request own{};
  Request* const into = request == nullptr ? &own : request;
  int code = success;
  const bool at_once = request == nullptr && mode != Mode::synchronous;
  if (at_once) {
    code = mode == Mode::ready ? real.Rsend(record, length, byte, peer, tag, place.comm)
                               : real.Send(record, length, byte, peer, tag, place.comm);
  } else if (mode == Mode::synchronous) {
    code = real.Issend(record, length, byte, peer, tag, place.comm, into);
  } else if (mode == Mode::ready) {
    code = real.Irsend(record, length, byte, peer, tag, place.comm, into);
  } else {
    code = real.Isend(record, length, byte, peer, tag, place.comm, into);
  }
  if (code != success) {
    const Lock lock;
    pipeline.abandon(pending);
    return code;
  }
  if (!pending.offered) {
    pipeline.load(pending, {*place.form, place.count, place.buffer});
    return request == nullptr && !at_once ? real.Wait(&own, status_ignore) : success;
  }
  auto one = offered_of(pending, place);
  one->record = at_once ? handles().request_null : *into;
  if (request != nullptr) {
    auto* const serial = reinterpret_cast<void*>(pending.serial);
    code = real.Grequest_start(&query_offer, &free_offer, &cancel_nothing, serial, &one->whole);
    one->has_whole = code == success;
    if (one->has_whole) {
      *request = one->whole;
      add_offer(std::move(one));
      return success;
    }
  }
  const uint64_t waited = pending.serial;
  add_offer(std::move(one));
  while (is_open(waited)) progress(Waiting::blocked);
  if (request != nullptr) *request = handles().request_null;
  return success;
}

void Layer::hand_over(const PendingSend& pending, const Place& place) {
  if (!pending.offered) return pipeline.load(pending, {*place.form, place.count, place.buffer});
  auto one = offered_of(pending, place);
  one->record = handles().request_null;
  add_offer(std::move(one));
}

void Layer::attend_now() {
  if (pipeline.has_news()) pipeline.notice();
  if (offers()) progress(Waiting::no);
  if (!orphans.empty()) poll_orphans();
  if (!outbox.empty()) poll_outbox();
}

Open* Layer::take(Request handle) {
  if (open.empty()) return nullptr;
  Open* const* const found = open.find(key_of(handle));
  if (found == nullptr) return nullptr;
  Open* const known = *found;
  if (threaded) open.erase(key_of(handle));
  return known;
}

void Layer::put_back(Request handle, Open* known) {
  if (threaded) open.put(key_of(handle), known);
}

bool Layer::knows(Request handle) {
  const Lock lock;
  return open.find(key_of(handle)) != nullptr;
}

void Layer::release(Request handle, Open* known) {
  if (!threaded) open.erase(key_of(handle));
  constexpr size_t spare_most = 1'024;
  if (spare_open.size() >= spare_most) {
    delete known;
    return;
  }
  known->reset();
  spare_open.emplace_back(known);
}

void Layer::remember_receive(void* buffer, int64_t count, Datatype type, Comm comm, Request handle,
                             ClaimPointer claim) {
  const Lock lock;
  const FormPointer& form = types.form(type);
  if (!claim && Place::capacity_of(*form, count) < Record::least) return;
  if (spare_open.empty()) spare_open.push_back(std::make_unique<Open>());
  Open* const known = spare_open.back().release();
  spare_open.pop_back();
  known->active = true;
  known->claim = std::move(claim);
  Place& place = known->place;
  place.buffer = buffer;
  place.count = count;
  place.type = type;
  place.comm = comm;
  // Counting owners costs an atomic addition; mostly it is the form of the last receive.
  if (place.form != form) place.form = form;
  remember(handle, known);
}

void Layer::poll_outbox() {
  std::erase_if(outbox, [](Copy& sent) {
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
    if (code == success) (void)deliver(orphan.open->place, &status);
    if (orphan.open->persistent) real.Request_free(&orphan.request);
    delete orphan.open;
  }
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
