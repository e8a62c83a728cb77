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

constexpr std::string_view meet_mark = "spl1-meet-";  // then the kind, the sender's rank, a blank, and the rest
constexpr size_t meet_head_bytes = 32;
constexpr size_t meet_word_bytes = meet_head_bytes + exchange_bytes_max;
constexpr int meet_words_at_once = 256;

struct SocketName {
  sockaddr_un name{};
  socklen_t length = 0;
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

// The names begin with a zero byte: the system knows them, and no file system does.
SocketName socket_name_of(const std::string& name) {
  SocketName made;
  made.name.sun_family = AF_UNIX;
  const size_t bytes = std::min(name.size(), sizeof made.name.sun_path - 1);
  std::memcpy(made.name.sun_path + 1, name.data(), bytes);
  made.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes);
  return made;
}

std::string rank_name_of(const std::string& job, uint32_t rank) { return text(job, "-", rank); }

}  // namespace

struct Rendezvous::Word {
  std::string_view said;
  ucred by{};
};

Rendezvous::Rendezvous(const std::string& job, uint32_t rank, uint32_t ranks)
    : name_(text("spinloom-", getuid(), "-", std::hex, std::hash<std::string>{}(job))),
      rank_(rank),
      ranks_(ranks),
      known_(ranks),
      owed_(ranks),
      parted_(ranks) {}

Rendezvous::~Rendezvous() {
  for (const int one : {socket_, sign_}) {
    if (one >= 0) close(one);
  }
}

Status Rendezvous::bind_name(int socket) const {
  if (socket < 0) return fail(Code::environment, "a socket for peers to ask at: ", trouble_of(errno));
  const SocketName own = socket_name_of(rank_name_of(name_, rank_));
  if (bind(socket, own.get(), own.length) == 0) return {};
  const int error = errno;
  return fail(Code::environment, "the socket for peers to ask rank ", rank_, " at: ", std::strerror(error),
              error == EADDRINUSE ? ": another process has its name" : "", "; set SPINLOOM_MEET=start for all ranks");
}

Result<std::unique_ptr<Rendezvous>> Rendezvous::open(const std::string& job, uint32_t rank, uint32_t ranks) {
  std::unique_ptr<Rendezvous> made(new Rendezvous(job, rank, ranks));
  made->socket_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int yes = 1;
  setsockopt(made->socket_, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes);  // without it serve() refuses every message
  SPL_TRY(made->bind_name(made->socket_));
  for (uint32_t peer = 0; peer < ranks; ++peer) {
    if (peer == rank || !made->refuses(peer)) continue;
    return fail(Code::environment, "rank ", peer,
                " meets all others in PtlInit: set SPINLOOM_MEET=start for all ranks");
  }
  return made;
}

// Peers see that this rank refuses by connecting to its sign, at which nobody accepts.
Result<std::unique_ptr<Rendezvous>> Rendezvous::refuse(const std::string& job, uint32_t rank, uint32_t ranks) {
  std::unique_ptr<Rendezvous> made(new Rendezvous(job, rank, ranks));
  made->sign_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  SPL_TRY(made->bind_name(made->sign_));
  made->socket_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listen(made->sign_, SOMAXCONN) != 0 || made->socket_ < 0) {
    return fail(Code::environment, "a socket for peers to ask at: ", trouble_of(errno));
  }
  made->stay_away();
  SPL_TRY(made->bind_name(made->socket_));
  for (uint32_t peer = 0; peer < ranks; ++peer) {
    if (peer == rank || made->ask(peer) != Asked::asked) continue;
    const Error error = fail(Code::environment, "rank ", peer, " meets others at their first contact, and rank ", rank,
                             " cannot: set SPINLOOM_MEET=start for all ranks");
    made->part_from_all(text("it cannot start: ", error.message));
    return error;
  }
  return made;
}

bool Rendezvous::refuses(uint32_t rank) const {
  const int asker = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (asker < 0) return false;
  const SocketName peer = socket_name_of(rank_name_of(name_, rank));
  ucred by{};
  socklen_t bytes = sizeof by;
  const bool found = connect(asker, peer.get(), peer.length) == 0 &&
                     getsockopt(asker, SOL_SOCKET, SO_PEERCRED, &by, &bytes) == 0 && by.uid == getuid();
  close(asker);
  return found;
}

void Rendezvous::show(const BusinessCard& own) {
  const std::lock_guard inside(lock_);
  own_ = write(own);
}

int Rendezvous::say(uint32_t rank, Kind kind, std::string_view rest) {
  const std::string word = text(meet_mark, static_cast<char>(kind), rank_, " ", rest.substr(0, exchange_bytes_max));
  const SocketName peer = socket_name_of(rank_name_of(name_, rank));
  const ssize_t sent = sendto(socket_, word.data(), word.size(), MSG_DONTWAIT | MSG_NOSIGNAL, peer.get(), peer.length);
  return sent < 0 ? errno : 0;
}

Rendezvous::Asked Rendezvous::ask(uint32_t rank) {
  switch (say(rank, Kind::ask, {})) {
    case EPIPE: return Asked::gone;
    case ECONNREFUSED: return Asked::absent;
    default: return Asked::asked;
  }
}

void Rendezvous::greet() {
  for (uint32_t rank = 0; rank < ranks_; ++rank) {
    if (rank != rank_) greet(rank);
  }
}

void Rendezvous::greet(uint32_t rank) {
  const bool full = say(rank, Kind::ask, {}) == EAGAIN;
  const std::lock_guard inside(lock_);
  owed_[rank] = full;
  owes_ = owes_ || full;
}

void Rendezvous::part(uint32_t rank, const std::string& why) {
  {
    const std::lock_guard inside(lock_);
    if (parted_[rank]) return;
    parted_[rank] = why;
  }
  std::ignore = say(rank, Kind::gone, why);
}

void Rendezvous::part_from_all(const std::string& why) {
  for (uint32_t rank = 0; rank < ranks_; ++rank) {
    if (rank != rank_) part(rank, why);
  }
}

// From now on the kernel answers peers that ask (EPIPE). The name stays taken, so that nobody waits for this rank.
void Rendezvous::stay_away() { shutdown(socket_, SHUT_RD); }

std::vector<Rendezvous::News> Rendezvous::serve() {
  std::vector<News> all;
  std::optional<News> news;
  for (int words = 0; words < meet_words_at_once && take(news); ++words) {
    if (news) all.push_back(std::move(*news));
    news.reset();
  }
  greet_again();
  return all;
}

// Greets the peers whose queues were full when they were greeted.
void Rendezvous::greet_again() {
  std::vector<bool> owed(ranks_);
  {
    const std::lock_guard inside(lock_);
    if (!std::exchange(owes_, false)) return;
    owed.swap(owed_);
  }
  for (uint32_t rank = 0; rank < ranks_; ++rank) {
    if (owed[rank] && known_[rank] == 0) greet(rank);
  }
}

// Takes one message; returns false if there is none. Descriptors that others send find no room, so the kernel closes
// them.
bool Rendezvous::take(std::optional<News>& news) {
  std::array<char, meet_word_bytes + 1> bytes{};
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
  Word word;
  const bool named = control != nullptr && control->cmsg_level == SOL_SOCKET && control->cmsg_type == SCM_CREDENTIALS &&
                     control->cmsg_len == CMSG_LEN(sizeof word.by);
  if (named) std::memcpy(&word.by, CMSG_DATA(control), sizeof word.by);
  word.said = std::string_view(bytes.data(), static_cast<size_t>(got));
  const bool ours = named && word.by.uid == getuid();
  if (!ours && named && !std::exchange(warned_, true)) {
    log::emit(
        log::Level::warning, "live",
        text("a process of user ", word.by.uid, " sends messages that only ranks of this job send; nobody heeds them"));
  }
  if (!ours || word.said.size() > meet_word_bytes || !hear(word, news)) ++refused_;
  return true;
}

// Acts on a message that this rank takes; returns false for any other message.
bool Rendezvous::hear(const Word& word, std::optional<News>& news) {
  std::string_view rest = word.said;
  if (rest.substr(0, meet_mark.size()) != meet_mark) return false;
  rest.remove_prefix(meet_mark.size());
  uint32_t rank = 0;
  if (rest.empty()) return false;
  const auto kind = static_cast<Kind>(rest.front());
  rest.remove_prefix(1);
  const auto [end, trouble] = std::from_chars(rest.data(), rest.data() + rest.size(), rank);
  const auto digits = static_cast<size_t>(end - rest.data());
  if (trouble != std::errc() || digits == rest.size() || *end != ' ' || rank >= ranks_ || rank == rank_) return false;
  if (known_[rank] != 0 && known_[rank] != word.by.pid) return false;
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
      if (card->pid != word.by.pid) return false;
      if (std::exchange(known_[rank], word.by.pid) == 0) news = News{rank, std::move(*card), {}};
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
    gone = parted_[rank];
    own = own_;
  }
  if (gone) {
    std::ignore = say(rank, Kind::gone, *gone);
    return;
  }
  std::ignore = say(rank, Kind::card, own);  // a peer whose queue is full asks again when it needs the card
  if (known_[rank] == 0) greet(rank);
}

}  // namespace spinloom::live
