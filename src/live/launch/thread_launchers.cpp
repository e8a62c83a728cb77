#include "live/launch/thread_launchers.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <iterator>
#include <string_view>
#include <utility>

#include "live/launch/rendezvous.hpp"

namespace spinloom::live {
namespace {

constexpr std::string_view packed_mark = "spl1-threads-";
// The longest head of a part, which holds the number of ranks of its process and the number of parts.
constexpr size_t part_head_max = 48;
constexpr size_t part_bytes_max = exchange_bytes_max - part_head_max;

// Takes "NUMBER-" off the front of a text.
bool take_number(std::string_view& text, uint64_t& number) {
  const auto [end, trouble] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  if (trouble != std::errc() || end == text.data() + text.size() || *end != '-') return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()) + 1);
  return true;
}

std::string hex(uint64_t number) {
  char digits[20];
  const auto [end, trouble] = std::to_chars(digits, digits + sizeof digits, number, 16);
  return std::string(digits, trouble == std::errc() ? end : digits) + "-";
}

// The launcher of one of these ranks.
class ThreadLauncher final : public Launcher {
 public:
  ThreadLauncher(std::shared_ptr<ThreadLaunchers> all, uint32_t number) : all_(std::move(all)), number_(number) {}

  [[nodiscard]] const char* name() const override { return all_->process_launcher().name(); }
  [[nodiscard]] uint32_t rank() const override { return all_->process_launcher().rank() * all_->count() + number_; }
  [[nodiscard]] uint32_t size() const override { return all_->process_launcher().size() * all_->count(); }
  [[nodiscard]] Result<std::vector<std::string>> exchange(const std::string& mine, const StartWait& wait) override {
    return all_->exchange(number_, mine, wait);
  }
  [[nodiscard]] bool is_shared() const override { return all_->process_launcher().is_shared(); }
  void finish() override { all_->process_launcher().finish(); }
  void abort(int code) override { all_->process_launcher().abort(code); }
  [[nodiscard]] Launcher& of_process() override { return all_->process_launcher(); }

 private:
  std::shared_ptr<ThreadLaunchers> all_;
  uint32_t number_;
};

struct Part {
  uint64_t ranks = 0;  // ranks of its process
  uint64_t parts = 0;  // parts that its process has to publish
  std::string_view bytes;
};

Result<Part> read_part(std::string_view text, uint32_t process) {
  Part part;
  const bool marked = text.substr(0, packed_mark.size()) == packed_mark;
  if (marked) text.remove_prefix(packed_mark.size());
  if (!marked || !take_number(text, part.ranks) || !take_number(text, part.parts)) {
    return fail(Code::environment, "process ", process, " of the job does not have its ranks on threads, or has ",
                "another version of the library");
  }
  part.bytes = text;
  return part;
}

}  // namespace

bool is_packed(std::string_view text) { return text.substr(0, packed_mark.size()) == packed_mark; }

std::string pack(const std::vector<std::string>& texts) {
  std::string packed;
  for (const std::string& text : texts) packed += hex(text.size()) + text;
  return packed;
}

Result<std::vector<std::string>> unpack(const std::string& packed) {
  std::vector<std::string> texts;
  for (std::string_view left = packed; !left.empty();) {
    uint64_t length = 0;
    if (!take_number(left, length) || length > left.size()) {
      return fail(Code::environment, "a process of the job published '", packed, "', which is no list of texts");
    }
    texts.emplace_back(left.substr(0, length));
    left.remove_prefix(length);
  }
  return texts;
}

ThreadLaunchers::ThreadLaunchers(std::shared_ptr<Launcher> process_launcher, uint32_t count)
    : process_launcher_(std::move(process_launcher)), count_(count), texts_(count) {}

std::shared_ptr<ThreadLaunchers> ThreadLaunchers::create(std::shared_ptr<Launcher> process_launcher, uint32_t count) {
  return std::shared_ptr<ThreadLaunchers>(new ThreadLaunchers(std::move(process_launcher), count));
}

std::shared_ptr<Launcher> ThreadLaunchers::launcher_of(uint32_t number) {
  return std::make_shared<ThreadLauncher>(shared_from_this(), number);
}

void ThreadLaunchers::quit(uint32_t number) {
  const std::lock_guard inside(lock_);
  if (failure_.empty()) failure_ = text("rank ", process_launcher_->rank() * count_ + number, " has ended");
  if (arrived_ > 0) end_round(fail(Code::environment, failure_));
}

ThreadLaunchers::Texts ThreadLaunchers::exchange(uint32_t number, const std::string& mine, const StartWait& wait) {
  std::unique_lock inside(lock_);
  if (!failure_.empty()) return fail(Code::environment, failure_);
  texts_[number] = mine;
  const uint64_t round = round_;
  if (++arrived_ == count_) {
    end_round(exchange_all(wait));
  } else if (!wait_for_others(inside, round, wait)) {
    const Error late = start_timeout("threads", count_, wait);
    failure_ = late.message;
    end_round(late);
  }
  return *last_result_;
}

// Waits for the end of this round. Returns false if that takes too long. The thread that came last waits for other
// processes, for the same time, with the lock held, so no thread gives up before it.
bool ThreadLaunchers::wait_for_others(std::unique_lock<std::mutex>& inside, uint64_t round, const StartWait& wait) {
  const auto over = [this, round] { return round_ != round; };
  if (changed_.wait_for(inside, std::chrono::seconds(wait.first_wait_s()), over)) return true;
  if (wait.is_reported() && !std::exchange(warned_, true)) warn_of_waiting(count_, wait);
  if (wait.limit_s == 0) {
    changed_.wait(inside, over);
    return true;
  }
  return changed_.wait_for(inside, std::chrono::seconds(wait.limit_s - wait.first_wait_s()), over);
}

void ThreadLaunchers::end_round(Texts texts) {
  last_result_ = std::make_shared<const Texts>(std::move(texts));
  arrived_ = 0;
  warned_ = false;
  ++round_;
  changed_.notify_all();
}

// Makes the exchange of the whole process. Each part of a text names the number of its parts; all processes take part
// until the longest text is published.
ThreadLaunchers::Texts ThreadLaunchers::exchange_all(const StartWait& wait) {
  std::unique_ptr<Rendezvous> refusal;
  if (round_ == 0) {
    SPL_ASSIGN(const std::string job, process_launcher_->job_here());
    if (!job.empty()) {
      SPL_ASSIGN(refusal, Rendezvous::refuse(job, process_launcher_->rank(), process_launcher_->size()));
    }
  }
  const std::string packed = pack(texts_);
  const uint64_t own_parts = std::max<uint64_t>(1, (packed.size() + part_bytes_max - 1) / part_bytes_max);
  const uint32_t processes = process_launcher_->size();
  std::vector<std::string> packed_texts(processes);
  uint64_t rounds = 1;
  for (uint64_t i = 0; i < rounds; ++i) {
    const size_t from = std::min<size_t>(i * part_bytes_max, packed.size());
    SPL_ASSIGN(const auto parts,
               process_launcher_->exchange(
                   text(packed_mark, hex(count_), hex(own_parts), packed.substr(from, part_bytes_max)), wait));
    for (uint32_t process = 0; process < processes; ++process) {
      SPL_ASSIGN(const Part part, read_part(parts[process], process));
      if (part.ranks != count_) {
        return fail(Code::environment, "process ", process, " has ", part.ranks, " ranks on threads, process ",
                    process_launcher_->rank(), " has ", count_, ": all must have as many");
      }
      rounds = std::max(rounds, part.parts);
      packed_texts[process] += part.bytes;
    }
  }
  std::vector<std::string> all;
  for (uint32_t process = 0; process < processes; ++process) {
    SPL_ASSIGN(auto texts, unpack(packed_texts[process]));
    if (texts.size() != count_)
      return fail(Code::environment, "process ", process, " told of ", texts.size(), " ranks");
    std::move(texts.begin(), texts.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace spinloom::live
