#include "live/launch/rendezvous.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <functional>
#include <tuple>
#include <utility>

#include "base/log.hpp"
#include "live/launch/launcher.hpp"

namespace spinloom::live {
namespace {

constexpr std::string_view meet_mark = "spl1-meet-";  // the kind, the sender's rank, a blank and the rest follow
constexpr size_t meet_head_bytes = 32;
constexpr size_t meet_message_bytes = meet_head_bytes + exchange_bytes_max;
constexpr int messages_per_serve = 256;

struct SocketName {
  sockaddr_un name{};
  socklen_t length = 0;
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

// The names begin with a zero byte: the system knows them, and no file system does.
SocketName socket_name_of(const std::string& name) {
  SocketName socket_name;
  socket_name.name.sun_family = AF_UNIX;
  const size_t bytes = std::min(name.size(), sizeof socket_name.name.sun_path - 1);
  std::memcpy(socket_name.name.sun_path + 1, name.data(), bytes);
  socket_name.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes);
  return socket_name;
}

std::string rank_name_of(const std::string& job, uint32_t rank) { return text(job, "-", rank); }

}  // namespace

struct Rendezvous::Message {
  std::string_view text;
  ucred sender{};
};

Rendezvous::Rendezvous(const std::string& job, uint32_t rank, uint32_t ranks)
    : name_(text("spinloom-", getuid(), "-", std::hex, std::hash<std::string>{}(job))),
      rank_(rank),
      ranks_(ranks),
      peer_pids_(ranks),
      greeting_missed_(ranks),
      gone_reasons_(ranks) {}

Rendezvous::~Rendezvous() {
  for (const int one : {socket_, refusal_socket_}) {
    if (one >= 0) close(one);
  }
}

Status Rendezvous::bind_name(int socket) const {
  if (socket < 0) return fail(Code::environment, "a socket for peers to ask at: ", error_text(errno));
  const SocketName own = socket_name_of(rank_name_of(name_, rank_));
  if (bind(socket, own.get(), own.length) == 0) return {};
  const int error = errno;
  return fail(Code::environment, "the socket for peers to ask rank ", rank_, " at: ", std::strerror(error),
              error == EADDRINUSE ? ": another process has its name" : "", "; set SPINLOOM_MEET=start for all ranks");
}

Result<std::unique_ptr<Rendezvous>> Rendezvous::open(const std::string& job, uint32_t rank, uint32_t ranks) {
  std::unique_ptr<Rendezvous> rendezvous(new Rendezvous(job, rank, ranks));
  rendezvous->socket_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int yes = 1;
  // Without this, serve() refuses every message.
  setsockopt(rendezvous->socket_, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes);
  SPL_TRY(rendezvous->bind_name(rendezvous->socket_));
  for (uint32_t peer = 0; peer < ranks; ++peer) {
    if (peer == rank || !rendezvous->peer_refuses(peer)) continue;
    return fail(Code::environment, "rank ", peer,
                " meets all others in PtlInit: set SPINLOOM_MEET=start for all ranks");
  }
  return rendezvous;
}

// Peers see that this rank refuses by connecting to its sign, at which nobody accepts.
Result<std::unique_ptr<Rendezvous>> Rendezvous::refuse(const std::string& job, uint32_t rank, uint32_t ranks) {
  std::unique_ptr<Rendezvous> rendezvous(new Rendezvous(job, rank, ranks));
  rendezvous->refusal_socket_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  SPL_TRY(rendezvous->bind_name(rendezvous->refusal_socket_));
  rendezvous->socket_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listen(rendezvous->refusal_socket_, SOMAXCONN) != 0 || rendezvous->socket_ < 0) {
    return fail(Code::environment, "a socket for peers to ask at: ", error_text(errno));
  }
  rendezvous->stop_answering();
  SPL_TRY(rendezvous->bind_name(rendezvous->socket_));
  for (uint32_t peer = 0; peer < ranks; ++peer) {
    if (peer == rank || rendezvous->ask(peer) != AskResult::delivered) continue;
    const Error error = fail(Code::environment, "rank ", peer, " meets others at their first contact, and rank ", rank,
                             " cannot: set SPINLOOM_MEET=start for all ranks");
    rendezvous->send_gone_to_all(text("it cannot start: ", error.message));
    return error;
  }
  return rendezvous;
}

bool Rendezvous::peer_refuses(uint32_t rank) const {
  const int asker = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (asker < 0) return false;
  const SocketName peer = socket_name_of(rank_name_of(name_, rank));
  ucred sender{};
  socklen_t bytes = sizeof sender;
  const bool found = connect(asker, peer.get(), peer.length) == 0 &&
                     getsockopt(asker, SOL_SOCKET, SO_PEERCRED, &sender, &bytes) == 0 && sender.uid == getuid();
  close(asker);
  return found;
}

void Rendezvous::set_card(const BusinessCard& own) {
  const std::lock_guard inside(lock_);
  own_card_ = write(own);
}

int Rendezvous::send(uint32_t rank, Kind kind, std::string_view rest) {
  const std::string message = text(meet_mark, static_cast<char>(kind), rank_, " ", rest.substr(0, exchange_bytes_max));
  const SocketName peer = socket_name_of(rank_name_of(name_, rank));
  const ssize_t sent =
      sendto(socket_, message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL, peer.get(), peer.length);
  return sent < 0 ? errno : 0;
}

Rendezvous::AskResult Rendezvous::ask(uint32_t rank) {
  switch (send(rank, Kind::ask, {})) {
    case EPIPE: return AskResult::gone;
    case ECONNREFUSED: return AskResult::absent;
    default: return AskResult::delivered;
  }
}

void Rendezvous::greet() {
  for (uint32_t rank = 0; rank < ranks_; ++rank) {
    if (rank != rank_) greet(rank);
  }
}

void Rendezvous::greet(uint32_t rank) {
  const bool full = send(rank, Kind::ask, {}) == EAGAIN;
  const std::lock_guard inside(lock_);
  greeting_missed_[rank] = full;
  any_greeting_missed_ = any_greeting_missed_ || full;
}

void Rendezvous::send_gone(uint32_t rank, const std::string& why) {
  {
    const std::lock_guard inside(lock_);
    if (gone_reasons_[rank]) return;
    gone_reasons_[rank] = why;
  }
  std::ignore = send(rank, Kind::gone, why);
}

void Rendezvous::send_gone_to_all(const std::string& why) {
  for (uint32_t rank = 0; rank < ranks_; ++rank) {
    if (rank != rank_) send_gone(rank, why);
  }
}

// From now on the kernel answers peers that ask (EPIPE). The name stays taken, so that nobody waits for this rank.
void Rendezvous::stop_answering() { shutdown(socket_, SHUT_RD); }

std::vector<Rendezvous::News> Rendezvous::serve() {
  std::vector<News> all;
  std::optional<News> news;
  for (int messages = 0; messages < messages_per_serve && receive(news); ++messages) {
    if (news) all.push_back(std::move(*news));
    news.reset();
  }
  greet_again();
  return all;
}

// Greets the peers whose queues were full when they were greeted.
void Rendezvous::greet_again() {
  std::vector<bool> missed(ranks_);
  {
    const std::lock_guard inside(lock_);
    if (!std::exchange(any_greeting_missed_, false)) return;
    missed.swap(greeting_missed_);
  }
  for (uint32_t rank = 0; rank < ranks_; ++rank) {
    if (missed[rank] && peer_pids_[rank] == 0) greet(rank);
  }
}

// Takes one message; returns false if there is none. Descriptors that others send find no room, so the kernel closes
// them.
bool Rendezvous::receive(std::optional<News>& news) {
  std::array<char, meet_message_bytes + 1> bytes{};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> beside{};
  iovec where{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &where;
  message.msg_iovlen = 1;
  message.msg_control = beside.data();
  message.msg_controllen = beside.size();
  const ssize_t got = recvmsg(socket_, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) return errno == EINTR;
  const cmsghdr* const control = CMSG_FIRSTHDR(&message);
  Message received;
  const bool named = control != nullptr && control->cmsg_level == SOL_SOCKET && control->cmsg_type == SCM_CREDENTIALS &&
                     control->cmsg_len == CMSG_LEN(sizeof received.sender);
  if (named) std::memcpy(&received.sender, CMSG_DATA(control), sizeof received.sender);
  received.text = std::string_view(bytes.data(), static_cast<size_t>(got));
  const bool ours = named && received.sender.uid == getuid();
  if (!ours && named && !std::exchange(warned_, true)) {
    log::emit(log::Level::warning, "live",
              text("a process of user ", received.sender.uid,
                   " sends messages that only ranks of this job send; nobody heeds them"));
  }
  if (!ours || received.text.size() > meet_message_bytes || !handle(received, news)) ++rejected_messages_;
  return true;
}

// Acts on a message that this rank takes; returns false for any other message.
bool Rendezvous::handle(const Message& received, std::optional<News>& news) {
  std::string_view rest = received.text;
  if (rest.substr(0, meet_mark.size()) != meet_mark) return false;
  rest.remove_prefix(meet_mark.size());
  uint32_t rank = 0;
  if (rest.empty()) return false;
  const auto kind = static_cast<Kind>(rest.front());
  rest.remove_prefix(1);
  const auto [end, trouble] = std::from_chars(rest.data(), rest.data() + rest.size(), rank);
  const auto digits = static_cast<size_t>(end - rest.data());
  if (trouble != std::errc() || digits == rest.size() || *end != ' ' || rank >= ranks_ || rank == rank_) return false;
  if (peer_pids_[rank] != 0 && peer_pids_[rank] != received.sender.pid) return false;
  const std::string said(rest.substr(digits + 1));
  switch (kind) {
    case Kind::ask: answer(rank); return true;
    case Kind::gone: news = News{rank, std::nullopt, said}; return true;
    case Kind::card: {
      auto card = read_card(said);
      if (!card) {
        news = News{rank, std::nullopt, card.error().message};
        return true;
      }
      if (card->pid != received.sender.pid) return false;
      if (std::exchange(peer_pids_[rank], received.sender.pid) == 0) news = News{rank, std::move(*card), {}};
      return true;
    }
  }
  return false;
}

void Rendezvous::answer(uint32_t rank) {
  std::optional<std::string> gone;
  std::string own;
  {
    const std::lock_guard inside(lock_);
    gone = gone_reasons_[rank];
    own = own_card_;
  }
  if (gone) {
    std::ignore = send(rank, Kind::gone, *gone);
    return;
  }
  std::ignore = send(rank, Kind::card, own);  // a peer whose queue is full asks again when it needs the card
  if (peer_pids_[rank] == 0) greet(rank);
}

}  // namespace spinloom::live
