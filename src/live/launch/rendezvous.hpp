// Rendezvous - how the ranks of one machine get each other's cards one by one, without a meeting of all.
//
// Contract: open() makes a socket that peers find by the user, the job and the rank. ask() asks one peer for its card,
//   greet() asks all. serve() takes what has come and returns the news: a card, or that a peer is gone for this rank
//   and why. It answers peers that ask with the card that set_card() has set, and asks a peer back that it does not
//   know. send_gone() says to one peer that this rank is gone for it, now and whenever that peer asks. After
//   stop_answering() all peers that ask find this rank gone, while the object lives; nobody has to call serve() for
//   that. refuse() is for a rank that has to meet all others at once. Of two ranks of which one calls open() and one
//   refuse(), at least one gets an Error.
// Invariants: (1) a word of a peer counts only if the kernel says that a process of this user sent it, and a card
//   only if it names that process; others can take such names and can send anything; (2) no call waits; (3) of two
//   ranks that call open() and then greet(), each learns of the other if both live for long enough to answer; (4) after
//   the process has ended, nothing is left.
// Threads: open(), set_card() first; then serve() by one thread, the others by any. Time: none.
#pragma once

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "live/launch/business_card.hpp"

namespace spinloom::live {

class Rendezvous {
 public:
  // `job` is a name that no other job of this user on this machine has.
  [[nodiscard]] static Result<std::unique_ptr<Rendezvous>> open(const std::string& job, uint32_t rank, uint32_t ranks);
  // Makes an object that tells peers, as long as it lives, that this rank refuses.
  [[nodiscard]] static Result<std::unique_ptr<Rendezvous>> refuse(const std::string& job, uint32_t rank,
                                                                  uint32_t ranks);
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  void set_card(const BusinessCard& own);

  enum class AskResult : uint8_t {
    delivered,  // the peer has the question, or is too busy to take it now
    absent,  // there is nobody yet
    gone,  // the peer's process lives, and is no rank of the job any more
  };
  [[nodiscard]] AskResult ask(uint32_t rank);
  void greet();
  void send_gone(uint32_t rank, const std::string& why);
  void send_gone_to_all(const std::string& why);
  void stop_answering();

  struct News {
    uint32_t rank = 0;
    std::optional<BusinessCard> card;  // none: the peer is gone for this rank
    std::string why;  // the reason why the peer is gone; empty if it has left
  };
  [[nodiscard]] std::vector<News> serve();
  // Becomes readable when there is something to serve.
  [[nodiscard]] int descriptor() const { return socket_; }
  // The number of messages that were refused, because they came from elsewhere or make no sense.
  [[nodiscard]] uint64_t rejected_messages() const { return rejected_messages_; }

 private:
  Rendezvous(const std::string& job, uint32_t rank, uint32_t ranks);
  [[nodiscard]] Status bind_name(int socket) const;
  [[nodiscard]] bool peer_refuses(uint32_t rank) const;
  struct Message;
  enum class Kind : char { ask = 'a', card = 'c', gone = 'g' };

  [[nodiscard]] bool receive(std::optional<News>& news);
  [[nodiscard]] bool handle(const Message& received, std::optional<News>& news);
  void answer(uint32_t rank);
  void greet(uint32_t rank);
  void greet_again();
  [[nodiscard]] int send(uint32_t rank, Kind kind, std::string_view rest);

  std::string name_;  // the beginning of the names of this job's sockets
  uint32_t rank_;
  uint32_t ranks_;
  int socket_ = -1;
  int refusal_socket_ = -1;  // the socket of a rank that refuses
  uint64_t rejected_messages_ = 0;
  bool warned_ = false;
  std::vector<pid_t> peer_pids_;  // one for each rank: the process that has sent its card; only serve() uses it
  std::mutex lock_;  // guards the members below
  std::string own_card_;
  bool any_greeting_missed_ = false;  // some rank in greeting_missed_ may be set
  // One for each rank: true if it must be greeted again, because its queue was full.
  std::vector<bool> greeting_missed_;
  // One for each rank: the reason that it gets if we are gone for it.
  std::vector<std::optional<std::string>> gone_reasons_;
};

}  // namespace spinloom::live
