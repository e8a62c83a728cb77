// Exchange - one collective call, as messages between pairs of ranks on a communicator of the layer's own.
//
// Contract: send() and receive() say what goes to and comes from each rank of Teams::comm(); begin() starts it, and
//   wait() or test() end it, after which it may begin again. run() does a blocking call: by slot tables where they are
//   open, else by begin() and wait(). What a rank sends to itself is copied where both types are known, else sent.
// Invariants: (1) messages between two ranks meet in the order in which both have named them.
// Threads: one at a time. Time: none.
#pragma once

#include <vector>

#include "mpi/abi/carried.hpp"
#include "mpi/abi/packing.hpp"
#include "mpi/meeting/slot_tables.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

class Exchange : public CarriedCall {
 public:
  // `wait`: ranks that send also wait for messages of others, so they may as well wait until theirs are taken.
  enum class Senders : uint8_t { go_on, wait };
  // `call`: its name, for the report.
  Exchange(const char* call, int tag, Senders senders = Senders::go_on) : call_(call), tag_(tag), senders_(senders) {}

  void send(int rank, const void* buffer, int64_t count, Datatype type) {
    sends_.push_back(make_part(const_cast<void*>(buffer), count, type, rank));
  }
  void receive(int rank, void* buffer, int64_t count, Datatype type) {
    receives_.push_back(make_part(buffer, count, type, rank));
  }
  // Received blocks replace the blocks that are sent: each is packed before another takes its place.
  void swap() { is_swap_ = true; }
  // This rank sends the message that it receives, so it receives first. Only for run() with open slot tables.
  void relay() { is_relay_ = true; }
  // True if a count or a type is wrong, for which the MPI has an error.
  [[nodiscard]] bool is_wrong() const { return is_wrong_; }
  // Takes the same calls of send() and receive() again, and says whether this exchange consists of them.
  class Repeat;
  // Keeps copies of the datatypes, for calls that begin after the program may have freed them.
  void keep_types();

  [[nodiscard]] int begin() override;
  // Used in place of begin() and of send() and receive(): the MPI carries the call by `request` (packed_call.hpp). The
  // end of the call ends `packing`, too.
  void begin(Request request, std::shared_ptr<const Packing> packing);
  [[nodiscard]] int wait() override;
  [[nodiscard]] bool test(int& code) override;
  [[nodiscard]] int run(SlotTables& slot_tables);

 private:
  // The means by which a blocking call hands a message to its receiver.
  enum class Means : uint8_t {
    entry,  // packed, in the slot table
    offer,  // its receiver copies it where it lies, and this rank waits for that
    pipeline,  // any message of the layer goes so: by a record in the slot table, or by the MPI
  };
  // One message of the call, to or from a rank.
  struct Part {
    void* buffer;
    int64_t count;
    Datatype type;
    int rank;
    FormPointer form;
    Means means = Means::pipeline;
    const char* why = "";  // the reason for `means`, for the report
    CopyPipeline::Source source{};  // the place where a receiver has found the message
    // In a call by slot tables:
    uint64_t number = 0;  // the number of the message among those of its pair
    uint64_t pending_serial = 0;  // the serial of the message that its receiver copies; 0: none
    bool is_offered = false;
    bool is_over = false;

    // A message without bytes is not sent: both ends see that it has none.
    [[nodiscard]] bool is_empty() const { return count == 0 || form->size == 0; }
    [[nodiscard]] Message message() const { return {*form, count, buffer}; }
    [[nodiscard]] Place place(const char* call) const;
  };
  [[nodiscard]] Part make_part(void* buffer, int64_t count, Datatype type, int rank);
  void choose_means(Part& part) const;
  [[nodiscard]] bool check_types();
  [[nodiscard]] int begin_all();
  [[nodiscard]] int post(const Part& part, bool sends);
  [[nodiscard]] int post_all(const std::vector<Part>& parts, bool sends);
  [[nodiscard]] int post_to_mpi(const Part& part);
  [[nodiscard]] std::optional<PendingSend> pending_send_for(const Place& place, int rank) const;
  [[nodiscard]] bool may_take(const Part& part) const;
  [[nodiscard]] int run_by_slot_tables(SlotTables& slot_tables);
  void number_messages(SlotTables& slot_tables);
  // Moves what can be moved; true if anything was. The first error becomes `code`.
  [[nodiscard]] bool step(SlotTables& slot_tables, int& code);
  [[nodiscard]] bool send_part(SlotTables& slot_tables, Part& part, int& code);
  void post_bytes(SlotTables& slot_tables, SlotTables::Entry& entry, Part& part) const;
  [[nodiscard]] bool offer(SlotTables& slot_tables, SlotTables::Entry& entry, Part& part) const;
  [[nodiscard]] int land_entry(const SlotTables::Entry& entry, Part& part) const;
  [[nodiscard]] bool receive_part(SlotTables& slot_tables, Part& part, int& code);
  [[nodiscard]] bool is_over() const;
  [[nodiscard]] bool waits_for_dead_rank(const SlotTables& slot_tables) const;
  [[nodiscard]] int copy_to_self();
  [[nodiscard]] int end(int code);

  const char* call_;
  int tag_;
  Senders senders_;
  bool is_swap_ = false;
  bool is_relay_ = false;
  bool is_wrong_ = false;
  uint64_t type_changes_ = 0;  // Types::changes() when the forms were last looked up
  std::vector<Part> sends_, receives_;
  std::vector<std::unique_ptr<KeptType>> kept_types_;
  std::shared_ptr<const Packing> packing_;
  std::vector<Request> requests_;
  std::vector<Status> statuses_;
};

class Exchange::Repeat {
 public:
  explicit Repeat(Exchange& exchange) : exchange_(exchange) {}
  void send(int rank, const void* buffer, int64_t count, Datatype type) {
    look(exchange_.sends_, sends_, buffer, count, type, rank);
  }
  void receive(int rank, const void* buffer, int64_t count, Datatype type) {
    look(exchange_.receives_, receives_, buffer, count, type, rank);
  }
  // Call this after all send() and receive(): then all types are the program's.
  [[nodiscard]] bool is_same() const {
    return is_same_ && sends_ == exchange_.sends_.size() && receives_ == exchange_.receives_.size() &&
           exchange_.check_types();
  }

 private:
  void look(const std::vector<Part>& parts, size_t& number, const void* buffer, int64_t count, Datatype type,
            int rank) {
    if (!is_same_ || number >= parts.size()) {
      is_same_ = false;
      return;
    }
    const Part& part = parts[number++];
    is_same_ = part.buffer == buffer && part.count == count && part.type == type && part.rank == rank;
  }

  Exchange& exchange_;
  size_t sends_ = 0;
  size_t receives_ = 0;
  bool is_same_ = true;
};

}  // namespace spinloom::mpi::SPINLOOM_ABI
