#include "mpi/messages/settings.hpp"

#include <charconv>
#include <optional>
#include <string_view>

#include "base/result.hpp"

namespace spinloom::mpi {
namespace {

constexpr int64_t bytes_max = int64_t{1} << 40;

// A number of bytes with an optional K, M or G (powers of 1,024).
std::optional<int64_t> bytes_in(std::string_view text) {
  int shift = 0;
  if (!text.empty()) {
    const size_t unit = std::string_view("kKmMgG").find(text.back());
    if (unit != std::string_view::npos) {
      shift = 10 * (static_cast<int>(unit) / 2 + 1);
      text.remove_suffix(1);
    }
  }
  int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) return std::nullopt;
  if (number < 0 || number > bytes_max >> shift) return std::nullopt;
  return number << shift;
}

class Reader {
 public:
  explicit Reader(Settings& settings) : settings_(settings) {}

  void read(std::string_view name, std::string_view value) {
    if (name == "SPINLOOM_MPI") {
      if (value == "off" || value == "0") {
        settings_.is_off = true;
      } else if (value != "on" && value != "1") {
        complain(name, value, "on or off");
      }
    } else if (name == "SPINLOOM_MPI_PATH") {
      if (value == "pass") {
        settings_.path = Path::pass;
      } else if (value == "staged") {
        settings_.path = Path::staged;
      } else if (value == "mapped") {
        settings_.path = Path::mapped;
      } else if (value == "joint") {
        settings_.path = Path::joint;
      } else if (value == "cma") {
        settings_.path = Path::cma;
      } else if (value != "auto") {
        complain(name, value, "auto, pass, staged, mapped, joint or cma");
      }
    } else if (name == "SPINLOOM_MPI_COLLECTIVES") {
      settings_.collectives = value == "on";
      if (value != "on" && value != "off") complain(name, value, "on or off");
    } else if (name == "SPINLOOM_MPI_RMA") {
      settings_.rma = value == "on" || value == "nic";
      settings_.windows_mapped = value != "nic" && value != "off";
      if (!settings_.rma && value != "off" && value != "mapped") complain(name, value, "on, mapped, nic or off");
    } else if (name == "SPINLOOM_MPI_GPU") {  // read by the front, too, before anything else
      settings_.gpu_by_host = value == "host";
      if (value != "auto" && value != "on" && value != "off" && value != "host") {
        complain(name, value, "auto, on, off or host");
      }
    } else if (name == "SPINLOOM_MPI_LAYOUT") {
      settings_.memoised = value != "naive";
      if (value != "naive" && value != "memoised") complain(name, value, "memoised or naive");
    } else if (name == "SPINLOOM_MPI_MIN_BYTES") {
      number(name, value, 0, settings_.min_bytes);
    } else if (name == "SPINLOOM_MPI_CHUNK_BYTES") {
      number(name, value, 1 << 10, settings_.chunk_bytes);
    } else if (name == "SPINLOOM_MPI_STAGING_BYTES") {
      number(name, value, 0, settings_.staging_bytes);
    } else if (name == "SPINLOOM_MPI_PRICES") {
      const auto prices = read_prices(value);
      if (prices) settings_.prices = *prices;
      if (!prices) complain(name, value, "a list such as 'spinloom calibrate peers' writes");
    } else if (name == "SPINLOOM_MPI_JOB") {
      settings_.job = value;
    } else if (name == "SPINLOOM_MPI_RECORD") {
      settings_.record = value;
    } else if (name == "SPINLOOM_MPI_RECORD_CLOCK") {
      settings_.records_cpu_time = value == "cpu";
      if (value != "cpu" && value != "wall") complain(name, value, "cpu or wall");
    } else if (name == "SPINLOOM_MPI_REPORT") {
      settings_.report = value;
    } else {
      settings_.complaints.push_back(text(name, " is ignored: the layer knows no such variable"));
    }
  }

 private:
  void complain(std::string_view name, std::string_view value, std::string_view legal) {
    settings_.complaints.push_back(text(name, "=", value, " is ignored: it must be ", legal));
  }
  void number(std::string_view name, std::string_view value, int64_t least, int64_t& into) {
    const auto bytes = bytes_in(value);
    if (bytes && *bytes >= least) {
      into = *bytes;
    } else {
      complain(name, value, text("a number of bytes from ", least, ", such as 65536 or 64K"));
    }
  }

  Settings& settings_;
};

}  // namespace

Settings read_settings(const char* const* environment) {
  Settings settings;
  Reader reader(settings);
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view line = *environment;
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos || !line.starts_with("SPINLOOM_MPI")) continue;
    reader.read(line.substr(0, equals), line.substr(equals + 1));
  }
  return settings;
}

}  // namespace spinloom::mpi
