// What it takes to get tensors from one process to another: half a round trip by every carrier,
// beside a copy in memory, plain sockets and OpenMPI (where mpirun and mpicc are installed).
//
//     ./dev bench transport [ROUNDS]
//
// Rounds are interleaved, so that what disturbs one disturbs the others, and medians are shown.

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/child.h"
#include "transport/channel_thread.h"
#include "transport/local_channel.h"
#include "transport/shm_channel.h"
#include "transport/tcp_channel.h"

namespace troupe::bench {
namespace {

using Clock = std::chrono::steady_clock;
using namespace transport;

constexpr std::size_t kib = 1024, mib = 1024 * kib;

struct Size {
  const char* name;
  std::size_t bytes;
  int turns;
};
constexpr Size sizes[] = {{"64 B", 64, 2000}, {"4 KiB", 4 * kib, 1000}, {"64 KiB", 64 * kib, 400},
                          {"1 MiB", mib, 60}, {"16 MiB", 16 * mib, 8},  {"256 MiB", 256 * mib, 1}};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> numbers) {
  std::ranges::sort(numbers);
  return numbers.empty() ? 0 : numbers[numbers.size() / 2];
}

/// The two processes and their threads keep to a core each.
void stay_on(std::size_t core) {
  if (std::thread::hardware_concurrency() < 2) return;
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  sched_setaffinity(0, sizeof cores, &cores);
}

// Plain sockets.

void write_all(int socket, const void* from, std::size_t bytes) {
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const auto wrote = send(socket, at, bytes, MSG_NOSIGNAL);
    if (wrote <= 0) _exit(0);
    at += wrote;
    bytes -= static_cast<std::size_t>(wrote);
  }
}

void read_all(int socket, void* to, std::size_t bytes) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const auto got = recv(socket, at, bytes, 0);
    if (got <= 0) _exit(0);
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
}

/// Another process that sends back as much as it is told to receive, in a loop that blocks.
class PlainPeer {
 public:
  PlainPeer(int own, int other) : socket_(own) {
    child_ = fork();
    if (child_ == 0) {
      close(own);
      stay_on(1);
      echo(other);
    }
    close(other);
  }
  ~PlainPeer() {
    close(socket_);
    waitpid(child_, nullptr, 0);
  }

  /// Seconds for half a round trip.
  double measure(const Size& size) {
    std::vector<char> out(size.bytes), in(size.bytes);
    const std::uint64_t order[2] = {size.bytes, static_cast<std::uint64_t>(size.turns) + 1};
    write_all(socket_, order, sizeof order);
    Clock::time_point start;
    for (int turn = -1; turn < size.turns; ++turn) {
      if (turn == 0) start = Clock::now();
      write_all(socket_, out.data(), out.size());
      read_all(socket_, in.data(), in.size());
    }
    return seconds_since(start) / size.turns / 2;
  }

 private:
  [[noreturn]] static void echo(int socket) {
    for (;;) {
      std::uint64_t order[2];
      read_all(socket, order, sizeof order);
      std::vector<char> out(order[0]), in(order[0]);
      for (std::uint64_t turn = 0; turn < order[1]; ++turn) {
        read_all(socket, in.data(), in.size());
        write_all(socket, out.data(), out.size());
      }
    }
  }

  int socket_;
  pid_t child_ = -1;
};

std::unique_ptr<PlainPeer> plain_unix() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return nullptr;
  return std::make_unique<PlainPeer>(ends[0], ends[1]);
}

std::unique_ptr<PlainPeer> plain_tcp() {
  const int listening = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* where = reinterpret_cast<sockaddr*>(&address);
  if (bind(listening, where, size) != 0 || listen(listening, 1) != 0) return nullptr;
  getsockname(listening, where, &size);
  const int own = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(own, where, size) != 0) return nullptr;
  const int other = accept(listening, nullptr, nullptr);
  close(listening);
  const int on = 1;
  for (const int one : {own, other}) setsockopt(one, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return std::make_unique<PlainPeer>(own, other);
}

// Channels.

constexpr Epoch epoch{{1, 2}, 3};
constexpr Bound bound{600 * mib, 64};

enum class Way : std::uint8_t { in_place, one_copy, tcp, tcp_without_checksums };
constexpr Way ways[] = {Way::in_place, Way::one_copy, Way::tcp, Way::tcp_without_checksums};

/// A pair of channels that have the same carrier, to and fro.
struct Link {
  std::unique_ptr<Receiver> receiver;
  std::unique_ptr<Sender> sender;
};

/// One of the two processes.
class Side {
 public:
  /// `ours` and `theirs` tell apart the two ends' tokens; addresses travel over `control`.
  Side(int control, std::uint64_t ours, std::uint64_t theirs, std::function<void(Parcel)> listener)
      : listener_(std::move(listener)) {
    tcp_door_ = open_tcp_door(thread_, "127.0.0.1:0", {epoch}).value();
    shm_door_ = open_shm_door(thread_, {epoch}).value();
    for (std::uint64_t i = 0; i < 3; ++i) {
      Door& door = i == 0 ? *shm_door_ : *tcp_door_;
      links_[i].receiver = door.expect(Token{ours + i}, {bound, &pool_, {listener_, {}}});
    }
    const auto shm = exchange(control, shm_door_->address());
    const auto tcp = exchange(control, tcp_door_->address());
    for (std::uint64_t i = 0; i < 3; ++i) {
      const Sending sending{epoch, Token{theirs + i}, bound, &pool_, {}};
      links_[i].sender =
          i == 0
              ? connect_shm(thread_, shm, sending).value()
              : connect_tcp(thread_, tcp, sending, i == 1 ? Checksums::on : Checksums::off).value();
    }
  }
  ~Side() {
    for (auto& link : links_) link.sender.reset();
    for (auto& link : links_) link.receiver.reset();
  }

  /// Sends a tensor of so many bytes, the way that it says.
  void send(Way way, std::size_t bytes) {
    auto& sender = *links_[way == Way::tcp ? 1 : way == Way::tcp_without_checksums ? 2 : 0].sender;
    const Shape shape{static_cast<std::int64_t>(bytes)};
    const std::byte head{static_cast<std::uint8_t>(way)};
    Tensor tensor;
    if (way == Way::in_place) {
      tensor = sender.lend(shape, DType::u8);
      *tensor.data<std::uint8_t>() = 1;  // What a kernel would write is the same by any carrier.
    } else {
      auto& made = made_[bytes];
      if (made.empty()) {
        made = Tensor::make(pool_, shape, DType::u8);
        std::memset(made.raw(), 1, made.bytes());
      }
      tensor = made;
    }
    const auto sent = sender.send({&head, 1}, {&tensor, 1});
    assert(sent.ok());
  }

 private:
  static std::string exchange(int control, const std::string& own) {
    std::array<char, 128> text{};
    std::memcpy(text.data(), own.data(), own.size());
    write_all(control, text.data(), text.size());
    read_all(control, text.data(), text.size());
    return text.data();
  }

  MemoryPool pool_;
  std::map<std::size_t, Tensor> made_;
  std::function<void(Parcel)> listener_;
  ChannelThread thread_;
  std::unique_ptr<Door> tcp_door_;
  std::unique_ptr<Door> shm_door_;
  std::array<Link, 3> links_;
};

/// Sends each tensor back as it came, until the other end hangs up.
[[noreturn]] void echo_channels(int control) {
  std::promise<Side*> made;
  auto side_made = made.get_future().share();
  {
    Side side(control, 100, 200, [side_made](const Parcel& parcel) {
      side_made.get()->send(static_cast<Way>(parcel.head[0]), parcel.tensors[0].bytes());
    });
    made.set_value(&side);
    char byte = 0;
    while (read(control, &byte, 1) > 0) continue;
  }
  _exit(0);
}

class ChannelPeer {
 public:
  ChannelPeer() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::abort();
    child_ = fork();
    if (child_ == 0) {
      close(ends[0]);
      stay_on(1);
      echo_channels(ends[1]);
    }
    close(ends[1]);
    control_ = ends[0];
  }
  /// Once all processes have been made: from here on there are threads.
  void start() {
    side_ = std::make_unique<Side>(control_, 200, 100, [this](const Parcel&) { came_back(); });
  }
  ~ChannelPeer() {
    side_.reset();
    close(control_);
    waitpid(child_, nullptr, 0);
  }

  double measure(Way way, const Size& size) {
    way_ = way;
    bytes_ = size.bytes;
    // In place a turn takes microseconds whatever the size: a few of them would show the clock.
    turns_ = way == Way::in_place ? 2000 : size.turns;
    turn_ = -1;
    done_ = {};
    auto done = done_.get_future();
    side_->send(way_, bytes_);
    return done.get() / turns_ / 2;
  }

 private:
  /// On the channel's thread: the next turn begins where the last one ends.
  void came_back() {
    if (++turn_ == 0) start_ = Clock::now();
    if (turn_ == turns_) return done_.set_value(seconds_since(start_));
    side_->send(way_, bytes_);
  }

  pid_t child_ = -1;
  int control_ = -1;
  std::unique_ptr<Side> side_;
  Way way_ = Way::tcp;
  std::size_t bytes_ = 0;
  int turns_ = 0;
  int turn_ = 0;
  Clock::time_point start_;
  std::promise<double> done_;
};

double measure_hand_over(const Size& size) {
  MemoryPool pool;
  const Tensor tensor = Tensor::make(pool, {static_cast<std::int64_t>(size.bytes)}, DType::u8);
  Tensor kept;
  std::int64_t came = 0;
  const auto channel = make_local_channel(pool, {size.bytes, 4},
                                          {[&](const Parcel& parcel) {
                                             kept = std::move(parcel.tensors[0]);
                                             ++came;
                                           },
                                           {}},
                                          {});
  const std::byte head[64] = {};
  constexpr int turns = 20'000;
  const auto start = Clock::now();
  for (int i = 0; i < turns; ++i)
    if (!channel.sender->send(head, {&tensor, 1}).ok()) return 0;
  return seconds_since(start) / turns;
}

double measure_copy(const Size& size) {
  static std::map<std::size_t, std::pair<std::vector<char>, std::vector<char>>> memory;
  auto& [from, to] = memory[size.bytes];
  from.resize(size.bytes);
  to.resize(size.bytes);
  const int turns = 2 * size.turns;
  const auto start = Clock::now();
  for (int i = 0; i < turns; ++i) {
    std::memcpy(to.data(), from.data(), size.bytes);
    asm volatile("" : : "r"(to.data()) : "memory");
  }
  return seconds_since(start) / turns;
}

// OpenMPI.

class Mpi {
 public:
  Mpi() {
    folder_ = std::filesystem::temp_directory_path() / ("troupe-bench-" + std::to_string(getpid()));
    std::filesystem::create_directory(folder_);
    const auto compiled = run_child(
        {{"mpicc", "-O2", TROUPE_ROOT "/bench/peer_mpi.c", "-o", (folder_ / "peer_mpi").string()},
         {},
         2});
    usable_ = compiled && compiled->exit_status == 0 && measure().size() == std::size(sizes);
  }
  ~Mpi() { std::filesystem::remove_all(folder_); }

  bool usable() const { return usable_; }
  /// Seconds by size.
  std::vector<double> measure() const {
    ChildOrder order{{"mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "core", "-n",
                      "2", (folder_ / "peer_mpi").string()},
                     {},
                     2};
    for (const auto& size : sizes) {
      order.command.push_back(std::to_string(size.bytes));
      order.command.push_back(std::to_string(size.turns));
    }
    std::vector<double> seconds;
    if (const auto ran = run_child(order))
      for (const auto& line : ran->lines)
        seconds.push_back(std::strtod(line.c_str() + line.find(' '), nullptr) * 1e-6);
    return seconds;
  }

 private:
  std::filesystem::path folder_;
  bool usable_ = false;
};

// One thread for all channels of a process, or one for each: four channels at once.

class Streams {
 public:
  static constexpr std::size_t channels = 4, bytes = 16 * mib;
  static constexpr int parcels = 8;  // Of each channel, in a measurement.

  explicit Streams(std::size_t threads) : threads_(threads) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::abort();
    child_ = fork();
    if (child_ == 0) {
      close(ends[0]);
      stay_on(1);
      receive(ends[1], threads);
    }
    close(ends[1]);
    control_ = ends[0];
  }
  void start() {
    for (std::size_t i = 0; i < threads_; ++i) all_.push_back(std::make_unique<ChannelThread>());
    for (std::size_t i = 0; i < channels; ++i) {
      std::array<char, 64> address{};
      read_all(control_, address.data(), address.size());
      senders_.push_back(
          connect_tcp(*all_[i % threads_], address.data(), {epoch, Token{i}, bound, &pool_, {}})
              .value());
    }
    tensor_ = Tensor::make(pool_, {static_cast<std::int64_t>(bytes)}, DType::u8);
    std::memset(tensor_.raw(), 1, bytes);
  }
  ~Streams() {
    senders_.clear();
    close(control_);
    waitpid(child_, nullptr, 0);
  }

  /// Bytes in a second, over all channels.
  double measure() {
    const auto start = Clock::now();
    for (int i = 0; i < parcels; ++i)
      for (auto& sender : senders_) {
        const auto sent = sender->send({}, {&tensor_, 1});
        assert(sent.ok());
      }
    char done = 0;
    read_all(control_, &done, 1);
    return channels * parcels * bytes / seconds_since(start);
  }

 private:
  [[noreturn]] static void receive(int control, std::size_t threads) {
    {
      MemoryPool pool;
      std::vector<std::unique_ptr<ChannelThread>> all;
      std::vector<std::unique_ptr<Door>> doors;
      for (std::size_t i = 0; i < threads; ++i) all.push_back(std::make_unique<ChannelThread>());
      std::atomic<int> came{0};
      const auto count = [&](const Parcel&) {
        if (++came % (parcels * static_cast<int>(channels)) == 0) write_all(control, "", 1);
      };
      // A door hands connections to its own thread, so each thread has one.
      std::vector<std::unique_ptr<Receiver>> receivers;
      for (std::size_t i = 0; i < channels; ++i) {
        if (i < threads) doors.push_back(open_tcp_door(*all[i], "127.0.0.1:0", {epoch}).value());
        receivers.push_back(doors[i % threads]->expect(Token{i}, {bound, &pool, {count, {}}}));
      }
      for (std::size_t i = 0; i < channels; ++i) {
        std::array<char, 64> address{};
        const auto text = doors[i % threads]->address();
        std::memcpy(address.data(), text.data(), text.size());
        write_all(control, address.data(), address.size());
      }
      char byte = 0;
      while (read(control, &byte, 1) > 0) continue;
    }
    _exit(0);
  }

  std::size_t threads_;
  pid_t child_ = -1;
  int control_ = -1;
  MemoryPool pool_;
  Tensor tensor_;
  std::vector<std::unique_ptr<ChannelThread>> all_;
  std::vector<std::unique_ptr<Sender>> senders_;
};

struct Row {
  const char* name;
  std::function<double(const Size&)> measure;
  std::map<std::size_t, std::vector<double>> seconds{};
};

void print(const Row& row) {
  std::printf("| %s |", row.name);
  for (const auto& size : sizes) {
    const double seconds = median(row.seconds.at(size.bytes));
    if (seconds < 1e-3)
      std::printf(" %.2f us", seconds * 1e6);
    else
      std::printf(" %.2f ms", seconds * 1e3);
    if (size.bytes >= mib) std::printf(" (%.1f)", static_cast<double>(size.bytes) / seconds * 1e-9);
    std::printf(" |");
  }
  std::puts("");
}

int run(int rounds) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  ChannelPeer peer;
  Streams by_one(1), by_each(Streams::channels);
  const auto tcp_loop = plain_tcp(), unix_loop = plain_unix();
  stay_on(0);
  peer.start();
  by_one.start();
  by_each.start();
  std::vector<double> rate_by_one, rate_by_each;
  const Mpi mpi;
  std::vector<Row> rows;
  rows.push_back({"copy in memory, one thread", measure_copy});
  rows.push_back({"hand-over in the process", measure_hand_over});
  const auto by = [&](Way way) { return [&, way](const Size& s) { return peer.measure(way, s); }; };
  rows.push_back({"shared memory, written in place", by(Way::in_place)});
  rows.push_back({"shared memory, one copy", by(Way::one_copy)});
  rows.push_back({"TCP", by(Way::tcp)});
  rows.push_back({"TCP without checksums", by(Way::tcp_without_checksums)});
  rows.push_back({"plain TCP loop", [&](const Size& s) { return tcp_loop->measure(s); }});
  rows.push_back({"plain Unix socket loop", [&](const Size& s) { return unix_loop->measure(s); }});
  Row mpi_row{"OpenMPI", {}};
  for (int round = -1; round < rounds; ++round) {
    for (const auto& size : sizes)
      for (auto& row : rows) {
        const double seconds = row.measure(size);
        if (round >= 0) row.seconds[size.bytes].push_back(seconds);  // The first one warms up.
      }
    const double one = by_one.measure(), each = by_each.measure();
    if (round < 0) continue;
    rate_by_one.push_back(one * 1e-9);
    rate_by_each.push_back(each * 1e-9);
    if (!mpi.usable()) continue;
    const auto seconds = mpi.measure();
    for (std::size_t i = 0; i < seconds.size(); ++i)
      mpi_row.seconds[sizes[i].bytes].push_back(seconds[i]);
  }
  if (mpi.usable()) rows.push_back(std::move(mpi_row));

  std::printf("Half a round trip, median of %d rounds; in brackets GB/s\n\n| |", rounds);
  for (const auto& size : sizes) std::printf(" %s |", size.name);
  std::printf("\n|---|");
  for ([[maybe_unused]] const auto& size : sizes) std::printf("---|");
  std::puts("");
  for (const auto& row : rows) print(row);
  if (!mpi.usable()) std::puts("\nOpenMPI is not measured: mpicc or mpirun is not installed.");

  std::printf(
      "\nfour TCP channels at once, 16 MiB: %.2f GB/s by one thread a process, %.2f by one "
      "a channel\n",
      median(rate_by_one), median(rate_by_each));

  const auto ratio = [&](std::size_t ours, std::size_t theirs, std::size_t bytes) {
    std::vector<double> ratios;
    const auto& a = rows[ours].seconds.at(bytes);
    const auto& b = rows[theirs].seconds.at(bytes);
    for (std::size_t i = 0; i < a.size(); ++i) ratios.push_back(b[i] / a[i]);
    return median(ratios);
  };
  double most_in_place = 0;
  for (const auto& size : sizes)
    most_in_place = std::max(most_in_place, median(rows[2].seconds.at(size.bytes)));
  std::printf("hand-over: %.2f us (goal: under 2)\n", median(rows[1].seconds.at(64)) * 1e6);
  std::printf("shared memory in place, any size: at most %.2f us (goal: under 5)\n",
              most_in_place * 1e6);
  std::printf(
      "shared memory, one copy, to a copy in memory: %.2f at 1 MiB, %.2f at 16 MiB (goal: "
      "0.7)\n",
      ratio(3, 0, mib), ratio(3, 0, 16 * mib));
  std::printf("TCP to a plain loop at 16 MiB: %.2f, %.2f without checksums (goal: 0.9)\n",
              ratio(4, 6, 16 * mib), ratio(5, 6, 16 * mib));
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int count, char** words) {
  return troupe::bench::run(count > 1 ? std::max(1, std::atoi(words[1])) : 9);
}
