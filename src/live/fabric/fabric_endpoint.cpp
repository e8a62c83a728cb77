// The port over a reliable endpoint (FI_EP_RDM) of libfabric, and the choice among its providers.
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <unordered_map>
#include <utility>

#include "live/fabric/fabric_choice.hpp"
#include "live/fabric/fabric_interface.hpp"
#include "live/fabric/fabric_library.hpp"
#include "live/fabric/fabric_operation.hpp"
#include "live/launch/business_card.hpp"

namespace spinloom::live {
namespace {

using namespace fabric;

constexpr uint32_t api_version_max = version_of(1, 14);
constexpr size_t message_bytes_max = 16 << 10;  // the longest message; most providers need no handshake for it
constexpr size_t receives = 128;                 // messages that wait here for poll()
constexpr size_t sends_of_peer = 32;             // slots of one peer; fewer where the provider's own queue is short
constexpr size_t sends_max = 4096;
constexpr size_t reads = 64;
constexpr size_t completions_per_poll = 32;
constexpr size_t address_bytes_max = 128;

class Endpoint final : public FabricPort {
 public:
  static Result<std::unique_ptr<FabricPort>> open(const FabricLibrary& library, InfoPtr info) {
    std::unique_ptr<Endpoint> made(new Endpoint(library, std::move(info)));
    SPL_TRY(made->open());
    SPL_TRY(made->make_operations());
    return std::unique_ptr<FabricPort>(std::move(made));
  }

  // Slots are made as they are needed: a peer that takes nothing keeps its own for ever.
  [[nodiscard]] Slot* slot(nic::Rank peer) override {
    uint32_t& in_use = slots_in_use_[peer.value];
    if (in_use >= sends_of_peer_) return nullptr;
    if (free_sends_.empty() && !make_sending()) return nullptr;
    ++in_use;
    SendOperation* const free = free_sends_.back();
    free_sends_.pop_back();
    free->peer = peer;
    free->bytes.clear();
    return free;
  }
  void release_slot(Slot& slot) override {
    --slots_in_use_[slot.peer.value];
    free_sends_.push_back(static_cast<SendOperation*>(&slot));
  }

  [[nodiscard]] bool send(Slot& slot) override {
    const nic::Rank peer = slot.peer;
    SendOperation& sending = static_cast<SendOperation&>(slot);
    const ssize_t code = endpoint_->msg->send(endpoint_.get(), slot.bytes.data(), slot.bytes.size(),
                                              descriptor_of(sending.memory), addresses_[peer.value], &sending.context);
    if (code == 0) return true;
    if (code == -error_again) return false;
    failed_.push_back(failure(peer, code));
    release_slot(slot);
    return true;
  }

  void poll(std::vector<FabricEvent>& events) override {
    post_receives();
    for (FabricEvent& one : std::exchange(failed_, {})) events.push_back(std::move(one));
    for (const uint64_t token : std::exchange(refused_reads_, {})) events.push_back(end_of_read(token, false));
    while (true) {
      std::array<fi_cq_msg_entry, completions_per_poll> ended;
      const ssize_t count = completions_->ops->read(completions_.get(), ended.data(), ended.size());
      if (count == -error_avail && take_error(events)) continue;
      for (ssize_t i = 0; i < count; ++i) {
        const fi_cq_msg_entry& one = ended[static_cast<size_t>(i)];
        if (one.op_context != nullptr) complete(*static_cast<Operation*>(one.op_context), one.len, events);
      }
      if (count < static_cast<ssize_t>(ended.size())) return;
    }
  }

  void release_message(std::span<const uint8_t> bytes) override {
    const auto found = delivered_.find(bytes.data());
    to_post_.push_back(found->second);
    delivered_.erase(found);
    if (to_post_.size() >= receives / 4) post_receives();
  }

  [[nodiscard]] Result<FabricRegion> lend(const uint8_t* bytes, uint64_t length) override {
    SPL_ASSIGN(FidPtr<fid_mr> memory, register_memory(bytes, length, cap_remote_read));
    FabricRegion region;
    region.key = memory->key;
    region.address = has_mr_mode(mr_virt_addr) ? reinterpret_cast<uint64_t>(bytes) : 0;
    lent_.emplace(region.key, std::move(memory));
    return region;
  }
  void end_loan(const FabricRegion& region) override {
    if (const auto found = lent_.find(region.key); found != lent_.end()) lent_.erase(found);
  }

  [[nodiscard]] Result<uint8_t*> make_read_buffer(uint64_t length) override {
    ReadBuffer made;
    made.bytes.resize(length);
    if (has_mr_mode(mr_local)) {
      SPL_ASSIGN(made.memory, register_memory(made.bytes.data(), length, cap_read));
    }
    read_buffers_.push_back(std::move(made));
    return read_buffers_.back().bytes.data();
  }

  [[nodiscard]] bool read(nic::Rank peer, const FabricRegion& from, uint8_t* to, uint64_t length,
                          uint64_t token) override {
    if (free_reads_.empty()) free_reads_.push_back(&reads_.emplace_back());  // reads of a lost peer may never end
    const auto read_buffer = std::find_if(read_buffers_.begin(), read_buffers_.end(), [&](const ReadBuffer& one) {
      return to >= one.bytes.data() && to < one.bytes.data() + one.bytes.size();
    });
    void* const known = read_buffer == read_buffers_.end() ? nullptr : descriptor_of(read_buffer->memory);
    ReadOperation& reading = *free_reads_.back();
    reading.token = token;
    const ssize_t code = endpoint_->rma->read(endpoint_.get(), to, length, known, addresses_[peer.value], from.address,
                                              from.key, &reading.context);
    if (code == -error_again) return false;
    if (code == 0) {
      free_reads_.pop_back();
    } else {
      refused_reads_.push_back(token);
    }
    return true;
  }

  [[nodiscard]] bool arm() override {
    if (!failed_.empty() || !refused_reads_.empty()) return false;
    if (descriptor_ < 0) return true;
    fid* object = &completions_->fid;
    const int code = fabric_->ops->trywait(fabric_.get(), &object, 1);
    if (code != 0 && code != -error_again) descriptor_ = -1;  // nobody may sleep on it
    return code != -error_again;
  }
  [[nodiscard]] int descriptor() const override { return descriptor_; }
  [[nodiscard]] bool idle() const override { return free_sends_.size() == sends_.size(); }
  [[nodiscard]] size_t message_bytes() const override { return message_bytes_; }
  [[nodiscard]] bool has_reads() const override { return (info_->caps & cap_rma) != 0; }
  [[nodiscard]] std::string address() const override { return address_; }
  [[nodiscard]] std::string provider() const override { return info_->fabric_attr->prov_name; }
  [[nodiscard]] std::string describe() const override {
    return text(library_.name(), " ", provider(), " on ", info_->domain_attr->name);
  }

  [[nodiscard]] std::string describe(nic::Rank peer) const override {
    if (peer.value >= exchanged_addresses_.size()) return "no such rank";
    std::array<char, 2 * address_bytes_max> shown{};
    size_t length = shown.size();
    peers_->ops->straddr(peers_.get(), exchanged_addresses_[peer.value].data(), shown.data(), &length);
    shown.back() = 0;
    const std::string printed = shown.data();
    const size_t scheme = printed.find("://");
    return scheme == std::string::npos ? printed : printed.substr(scheme + 3);
  }

  [[nodiscard]] Status set_addresses(const std::vector<std::string>& addresses) override {
    exchanged_addresses_ = addresses;
    slots_in_use_.resize(addresses.size());
    addresses_.assign(addresses.size(), addr_notavail);
    for (size_t rank = 0; rank < addresses.size(); ++rank) {
      if (addresses[rank].empty()) continue;
      const int count = peers_->ops->insert(peers_.get(), addresses[rank].data(), 1, &addresses_[rank], 0, nullptr);
      if (count != 1) {
        return fail(Code::environment, provider(), ": the address of rank ", rank, " is not understood");
      }
    }
    return {};
  }

 private:
  Endpoint(const FabricLibrary& library, InfoPtr info) : library_(library), info_(std::move(info)) {}

  [[nodiscard]] bool has_mr_mode(int mode) const { return (info_->domain_attr->mr_mode & mode) != 0; }
  static void* descriptor_of(const FidPtr<fid_mr>& memory) { return memory ? memory->mem_desc : nullptr; }
  [[nodiscard]] FabricEvent failure(nic::Rank peer, int64_t code) const {
    FabricEvent event;
    event.kind = FabricEvent::Kind::failed;
    event.peer = peer;
    event.why = library_.error_text(static_cast<int>(code < 0 ? -code : code));
    return event;
  }
  static FabricEvent end_of_read(uint64_t token, bool succeeded) {
    FabricEvent event;
    event.kind = FabricEvent::Kind::read;
    event.token = token;
    event.succeeded = succeeded;
    return event;
  }

  // Makes an object by a call of libfabric that returns a code.
  template <class Object, class Call>
  [[nodiscard]] Status make(const char* what, FidPtr<Object>& to, Call call) {
    Object* made = nullptr;
    const int code = call(&made);
    if (code != 0) return library_.trouble(what, code);
    to.reset(made);
    return {};
  }

  [[nodiscard]] Status open() {
    SPL_TRY(make("fi_fabric", fabric_,
                 [&](fid_fabric** made) { return library_.fabric(info_->fabric_attr, made, nullptr); }));
    SPL_TRY(make("fi_domain", domain_,
                 [&](fid_domain** made) { return fabric_->ops->domain(fabric_.get(), info_.get(), made, nullptr); }));
    fi_av_attr addresses{};
    addresses.type = info_->domain_attr->av_type;
    SPL_TRY(make("fi_av_open", peers_,
                 [&](fid_av** made) { return domain_->ops->av_open(domain_.get(), &addresses, made, nullptr); }));
    fi_cq_attr completions{};
    completions.size = receives + sends_max + 4 * reads;
    completions.format = cq_format_msg;
    const auto open_completions = [&](fid_cq** made) {
      return domain_->ops->cq_open(domain_.get(), &completions, made, nullptr);
    };
    completions.wait_obj = wait_fd;
    if (!make("fi_cq_open", completions_, open_completions)) {
      completions.wait_obj = wait_none;
      SPL_TRY(make("fi_cq_open", completions_, open_completions));
    } else if (completions_->fid.ops->control(&completions_->fid, command_getwait, &descriptor_) != 0) {
      descriptor_ = -1;
    }
    SPL_TRY(make("fi_endpoint", endpoint_,
                 [&](fid_ep** made) { return domain_->ops->endpoint(domain_.get(), info_.get(), made, nullptr); }));
    if (const int code = bind(&endpoint_->fid, &peers_->fid, 0)) return library_.trouble("fi_ep_bind", code);
    if (const int code = bind(&endpoint_->fid, &completions_->fid, cap_transmit | cap_recv)) {
      return library_.trouble("fi_ep_bind", code);
    }
    if (const int code = enable(&endpoint_->fid)) return library_.trouble("fi_enable", code);
    std::array<char, address_bytes_max> name{};
    size_t length = name.size();
    if (const int code = endpoint_->cm->getname(&endpoint_->fid, name.data(), &length)) {
      return library_.trouble("fi_getname", code);
    }
    address_.assign(name.data(), length);
    return {};
  }

  // Makes the room for messages and posts the receives.
  [[nodiscard]] Status make_operations() {
    message_bytes_ = std::min(message_bytes_max, info_->ep_attr->max_msg_size);
    for (size_t i = 0; i < std::min(receives, info_->rx_attr->size); ++i) {
      ReceiveOperation& receive = receives_.emplace_back();
      receive.bytes.resize(message_bytes_);
      if (has_mr_mode(mr_local)) {
        SPL_ASSIGN(receive.memory, register_memory(receive.bytes.data(), message_bytes_, cap_recv));
      }
      to_post_.push_back(&receive);
    }
    sends_of_peer_ = std::clamp<size_t>(info_->tx_attr->size / 4, 1, sends_of_peer);
    for (size_t i = 0; i < reads; ++i) free_reads_.push_back(&reads_.emplace_back());
    post_receives();
    return {};
  }

  [[nodiscard]] bool make_sending() {
    if (sends_.size() >= sends_max) return false;
    SendOperation& sending = sends_.emplace_back();
    sending.bytes.reserve(message_bytes_);
    if (has_mr_mode(mr_local)) {
      auto memory = register_memory(sending.bytes.data(), message_bytes_, cap_send);
      if (!memory) {
        sends_.pop_back();
        return false;
      }
      sending.memory = std::move(*memory);
    }
    free_sends_.push_back(&sending);
    return true;
  }

  // Registers memory. Where we choose the key and it has 64 bits, it is random, so that nobody can use it who was not
  // told; shorter keys are counted.
  [[nodiscard]] Result<FidPtr<fid_mr>> register_memory(const uint8_t* bytes, uint64_t length, uint64_t access) {
    const size_t key_bytes = info_->domain_attr->mr_key_size;
    uint64_t key = 0;
    if (!has_mr_mode(mr_prov_key)) key = key_bytes >= sizeof key ? random_secret()[0] : ++last_short_key_;
    FidPtr<fid_mr> memory;
    SPL_TRY(make("fi_mr_reg", memory, [&](fid_mr** made) {
      return domain_->mr->reg(&domain_->fid, bytes, length, access, 0, key, 0, made, nullptr);
    }));
    if (has_mr_mode(mr_endpoint)) {
      if (const int code = bind(&memory->fid, &endpoint_->fid, 0)) return library_.trouble("fi_mr_bind", code);
      if (const int code = enable(&memory->fid)) return library_.trouble("fi_mr_enable", code);
    }
    return memory;
  }

  void post_receives() {
    while (!to_post_.empty()) {
      ReceiveOperation& receive = *to_post_.back();
      if (endpoint_->msg->recv(endpoint_.get(), receive.bytes.data(), receive.bytes.size(),
                               descriptor_of(receive.memory), addr_unspec, &receive.context) != 0) {
        return;  // tried again by the next poll()
      }
      to_post_.pop_back();
    }
  }

  void complete(Operation& operation, size_t length, std::vector<FabricEvent>& events) {
    switch (operation.kind) {
      case Operation::Kind::send: release_slot(static_cast<SendOperation&>(operation)); break;
      case Operation::Kind::receive: {
        ReceiveOperation& receive = static_cast<ReceiveOperation&>(operation);
        FabricEvent event;
        event.bytes = {receive.bytes.data(), std::min(length, receive.bytes.size())};
        delivered_[receive.bytes.data()] = &receive;
        events.push_back(event);
        break;
      }
      case Operation::Kind::read: {
        ReadOperation& reading = static_cast<ReadOperation&>(operation);
        events.push_back(end_of_read(reading.token, true));
        free_reads_.push_back(&reading);
        break;
      }
    }
  }

  // Returns true if there was an error; there may be more.
  [[nodiscard]] bool take_error(std::vector<FabricEvent>& events) {
    fi_cq_err_entry error{};
    if (completions_->ops->readerr(completions_.get(), &error, 0) < 1) return false;
    if (error.op_context == nullptr) return true;
    Operation& operation = *static_cast<Operation*>(error.op_context);
    switch (operation.kind) {
      case Operation::Kind::send: {
        SendOperation& sending = static_cast<SendOperation&>(operation);
        events.push_back(failure(sending.peer, error.err));
        release_slot(sending);
        break;
      }
      case Operation::Kind::receive: to_post_.push_back(static_cast<ReceiveOperation*>(&operation)); break;
      case Operation::Kind::read: {
        ReadOperation& reading = static_cast<ReadOperation&>(operation);
        events.push_back(end_of_read(reading.token, false));
        free_reads_.push_back(&reading);
        break;
      }
    }
    return true;
  }

  const FabricLibrary& library_;
  InfoPtr info_;
  // They are closed in the opposite order: the endpoint first, then all memory, then what both need.
  FidPtr<fid_fabric> fabric_;
  FidPtr<fid_domain> domain_;
  FidPtr<fid_av> peers_;
  FidPtr<fid_cq> completions_;
  std::deque<ReceiveOperation> receives_;
  std::deque<SendOperation> sends_;
  std::deque<ReadOperation> reads_;
  std::deque<ReadBuffer> read_buffers_;
  // Memory regions by key; a provider's cache may give one key twice.
  std::unordered_multimap<uint64_t, FidPtr<fid_mr>> lent_;
  FidPtr<fid_ep> endpoint_;
  int descriptor_ = -1;
  size_t message_bytes_ = 0;
  uint64_t last_short_key_ = 0;
  std::string address_;
  std::vector<std::string> exchanged_addresses_;     // addresses by rank, as exchanged in the job
  std::vector<fi_addr_t> addresses_;  // the same addresses, as the fabric numbers them
  std::vector<SendOperation*> free_sends_;
  size_t sends_of_peer_ = 0;
  std::vector<uint32_t> slots_in_use_;  // one for each rank: slots that the caller has or that are on their way
  std::vector<ReadOperation*> free_reads_;
  std::vector<ReceiveOperation*> to_post_;
  // The messages that poll() has delivered, by their bytes.
  std::unordered_map<const uint8_t*, ReceiveOperation*> delivered_;
  std::vector<FabricEvent> failed_;
  std::vector<uint64_t> refused_reads_;  // tokens of reads that could not begin
};

InfoPtr hints_for(const FabricLibrary& library, const FabricWish& wish, bool with_reads) {
  InfoPtr hints(library.dupinfo(nullptr), FreeInfo{&library});
  hints->caps = cap_msg | (with_reads ? cap_rma | cap_read | cap_remote_read : 0);
  hints->mode = mode_context | mode_context2;
  hints->ep_attr->type = ep_rdm;
  hints->domain_attr->mr_mode = mr_local | mr_virt_addr | mr_allocated | mr_prov_key | mr_endpoint;
  hints->domain_attr->threading = thread_domain;  // all calls are made under the owner lock
  hints->domain_attr->resource_mgmt = rm_enabled;
  hints->tx_attr->msg_order = order_sas;
  hints->rx_attr->msg_order = order_sas;
  if (!wish.provider.empty()) hints->fabric_attr->prov_name = strdup(wish.provider.c_str());  // freed with the hints
  if (!wish.domain.empty()) hints->domain_attr->name = strdup(wish.domain.c_str());
  return hints;
}

// False for addresses of IPv6, and for a provider at another interface than the wanted one. The wanted address counts
// only for providers over sockets, and only if no domain is named: other providers have IP addresses, too, but of
// interfaces of their own.
bool is_at(const fi_info& info, const FabricWish& wish, uint32_t address) {
  if (info.addr_format == format_sockaddr_in6) return false;
  const bool follows = wish.domain.empty() && cost_of(info.fabric_attr->prov_name) > unknown_cost;
  if (!follows || info.addr_format != format_sockaddr_in || info.src_addr == nullptr || address == 0) return true;
  return ntohl(static_cast<const sockaddr_in*>(info.src_addr)->sin_addr.s_addr) == address;
}

std::string name_of(const fi_info& info) { return text(info.fabric_attr->prov_name, " ", info.domain_attr->name); }

// Returns what libfabric offers, cheapest first, without repetitions.
Result<std::vector<InfoPtr>> offers(const FabricLibrary& library, const FabricWish& wish, uint32_t address) {
  std::vector<InfoPtr> found;
  for (const bool with_reads : {true, false}) {
    const InfoPtr hints = hints_for(library, wish, with_reads);
    fi_info* list = nullptr;
    const uint32_t api_version = std::min(library.version(), api_version_max);
    const int code = library.getinfo(api_version, nullptr, nullptr, 0, hints.get(), &list);
    if (code != 0 && code != -error_nodata) return library.trouble("fi_getinfo", code);
    const InfoPtr all(list, FreeInfo{&library});
    for (const fi_info* one = list; one != nullptr; one = one->next) {
      // Not every provider looks at the hint.
      if (!wish.domain.empty() && wish.domain != one->domain_attr->name) continue;
      const bool known = std::any_of(found.begin(), found.end(),
                                     [&](const InfoPtr& other) { return name_of(*other) == name_of(*one); });
      if (!known && is_at(*one, wish, address)) found.emplace_back(library.dupinfo(one), FreeInfo{&library});
    }
  }
  const auto rank_of = [](const InfoPtr& one) {
    return std::pair{cost_of(one->fabric_attr->prov_name), name_of(*one)};
  };
  std::sort(found.begin(), found.end(), [&](const InfoPtr& a, const InfoPtr& b) { return rank_of(a) < rank_of(b); });
  return found;
}

}  // namespace

Result<std::unique_ptr<FabricPort>> open_fabric(const FabricWish& wish, const FabricOpenOptions& place) {
  SPL_ASSIGN(const FabricLibrary* const library, load_fabric(place.library));
  SPL_ASSIGN(auto found, offers(*library, wish, place.address));
  std::string tried, left_out;
  for (InfoPtr& info : found) {
    const std::string name = name_of(*info);
    const std::string_view provider = info->fabric_attr->prov_name;
    if (wish.kind == FabricWish::Kind::automatic && cost_of(provider) > automatic_max) {
      const std::string own(provider.substr(0, provider.find(';')));
      if (!left_out.ends_with(own)) left_out += text(left_out.empty() ? "" : ", ", own);
      continue;
    }
    auto opened = Endpoint::open(*library, std::move(info));
    if (opened) return opened;
    tried += text(tried.empty() ? "" : ", ", name, ": ", opened.error().message);
  }
  if (!left_out.empty()) tried += text(tried.empty() ? "" : "; ", "only with SPINLOOM_FABRIC: ", left_out);
  if (tried.empty() && wish.provider.empty()) tried = "it offers none";
  if (tried.empty()) {
    tried = text("it has no ", wish.provider, wish.domain.empty() ? "" : " on ", wish.domain, " here");
  }
  return fail(Code::unsupported, library->name(), ": ", tried);
}

Result<FabricList> list_fabrics(const std::string& path) {
  SPL_ASSIGN(const FabricLibrary* const library, load_fabric(path));
  FabricList offered;
  offered.library = library->name();
  SPL_ASSIGN(const auto found, offers(*library, {}, 0));
  for (const InfoPtr& info : found) offered.entries.push_back({info->fabric_attr->prov_name, info->domain_attr->name});
  return offered;
}

}  // namespace spinloom::live
