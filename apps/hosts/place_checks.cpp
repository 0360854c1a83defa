#include "apps/hosts/place_checks.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>

#include "storage/files/files.h"
#include "transport/channels/socket.h"
#include "transport/keys/keys.h"

namespace troupe::apps {
namespace {

namespace fs = std::filesystem;
using SteadyClock = std::chrono::steady_clock;
using WallClock = std::chrono::system_clock;

constexpr auto day = std::chrono::hours(24);

std::string date_of(WallClock::time_point time) {
  const std::time_t seconds = WallClock::to_time_t(time);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[64];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &parts);
  return text;
}

}  // namespace

Result<std::chrono::nanoseconds> try_loopback() {
  const auto anywhere = transport::tcp_address("127.0.0.1:0");
  if (!anywhere) return anywhere.error();
  const auto listening = transport::listen_at(*anywhere);
  if (!listening) return listening.error();
  const auto start = SteadyClock::now();
  const auto connected =
      transport::connect_to(transport::address_of(*listening), start + std::chrono::seconds(2));
  if (!connected) return connected.error();
  return std::chrono::nanoseconds(SteadyClock::now() - start);
}

Check judge_loopback(const Result<std::chrono::nanoseconds>& taken) {
  if (!taken)
    return {"loopback", Verdict::fail, "127.0.0.1: " + taken.error().text,
            "ip link set lo up; and let no firewall filter lo"};
  char found[64];
  std::snprintf(found, sizeof found, "127.0.0.1 in %.0f us",
                static_cast<double>(taken->count()) * 1e-3);
  return {"loopback", Verdict::ok, found, ""};
}

Check judge_interfaces(const std::vector<Interface>& interfaces) {
  const Interface* chosen = choose_interface(interfaces);
  // A set, since an interface with several addresses appears several times.
  std::set<std::string> names;
  for (const auto& one : interfaces)
    if (!chosen || one.name != chosen->name) names.insert(one.name);
  std::string others;
  for (const auto& name : names) others += (others.empty() ? "not " : ", ") + name;
  if (!chosen)
    return {
        "interface", Verdict::warn,
        "none by which other machines reach this one" + (others.empty() ? "" : " (" + others + ")"),
        "for runs over several machines: ip link set DEVICE up, and an address for it"};
  std::string found = chosen->name + " " + chosen->address;
  if (chosen->megabits) found += ", " + std::to_string(*chosen->megabits) + " Mbit/s";
  return {"interface", Verdict::ok, found + (others.empty() ? "" : "; " + others), ""};
}

PortFacts try_port(int port) {
  PortFacts facts{port, {}};
  const auto address = transport::tcp_address("0.0.0.0:" + std::to_string(port));
  if (!address)
    facts.taken = address.error();
  else if (const auto listening = transport::listen_at(*address); !listening)
    facts.taken = listening.error();
  return facts;
}

Check judge_ports(const std::vector<PortFacts>& ports) {
  std::string free, taken;
  for (const auto& one : ports) {
    auto& list = one.taken ? taken : free;
    list += (list.empty() ? "" : ", ") + std::to_string(one.port);
    if (one.taken) list += " (" + one.taken->text + ")";
  }
  if (taken.empty()) return {"ports", Verdict::ok, free + " are free for a head", ""};
  return {"ports", Verdict::warn, "a head, or another program, has " + taken,
          "ss -ltnp says who; a second head takes others: troupe head --listen ADDRESS:PORT "
          "--events ADDRESS:PORT"};
}

ClockFacts read_clock() {
  ClockFacts facts;
  const auto before = SteadyClock::now();
  facts.wall = WallClock::now();
  struct stat program {};
  if (stat("/proc/self/exe", &program) == 0)
    facts.made = WallClock::from_time_t(program.st_mtim.tv_sec);
  facts.steady_step = SteadyClock::now() - before;
  return facts;
}

Check judge_clock(const ClockFacts& facts) {
  const std::string found = date_of(facts.wall);
  const std::string fix = "timedatectl set-ntp true, or date -s";
  if (facts.steady_step.count() < 0)
    return {"clock", Verdict::fail, "the clock that is never set went back", "restart the machine"};
  // The program may come from a machine whose clock is slightly ahead.
  if (facts.wall + day < facts.made)
    return {"clock", Verdict::fail, found + ", but this program was made " + date_of(facts.made),
            fix};
  constexpr int old = 10 * 365;
  if (facts.wall - facts.made > old * day)
    return {"clock", Verdict::warn,
            found + ", ten years after this program was made: " + date_of(facts.made), fix};
  return {"clock", Verdict::ok, found, ""};
}

Result<DiskFacts> try_disk(const std::string& folder) {
  DiskFacts facts;
  // The nearest existing folder, in which the missing ones will be made.
  std::error_code ignored;
  fs::path nearest = fs::absolute(folder, ignored);
  while (!fs::is_directory(nearest, ignored) && nearest.has_relative_path())
    nearest = nearest.parent_path();
  facts.folder = nearest.string();
  const auto files = storage::disk_files();
  const auto free = files->free_space(facts.folder);
  if (!free) return free.error();
  facts.free = *free;
  const std::string path = facts.folder + "/.troupe-doctor-" + std::to_string(getpid());
  constexpr std::size_t piece = std::size_t{4} << 20, pieces = 8;
  if (facts.free < 2 * piece * pieces) return facts;
  const std::vector<std::byte> bytes(piece, std::byte{0x5a});
  const auto start = SteadyClock::now();
  auto written = [&]() -> Status {
    auto file = files->create(path);
    if (!file) return file.error();
    for (std::size_t i = 0; i < pieces; ++i)
      if (auto wrote = (*file)->write(bytes); !wrote) return wrote;
    return (*file)->sync();
  }();
  const std::chrono::duration<double> taken = SteadyClock::now() - start;
  (void)storage::remove_if_there(*files, path);
  if (!written) return written.error();
  facts.write_rate = static_cast<double>(piece * pieces) / taken.count();
  return facts;
}

Check judge_disk(const Result<DiskFacts>& facts) {
  if (!facts)
    return {"disk", Verdict::fail, facts.error().text,
            "runs and checkpoints are written below the folder where troupe is started"};
  char found[64];
  std::snprintf(found, sizeof found, ": %.1f GiB free, writes %.0f MB/s",
                static_cast<double>(facts->free) / (1 << 30), facts->write_rate * 1e-6);
  const std::string text = facts->folder + found;
  constexpr std::uint64_t too_little = std::uint64_t{100} << 20, little = std::uint64_t{2} << 30;
  constexpr double slow = 20e6;
  const std::string fix = "make room, or start troupe in a folder of another disk";
  if (facts->free < too_little) return {"disk", Verdict::fail, text, fix};
  if (facts->free < little) return {"disk", Verdict::warn, text, fix};
  if (facts->write_rate < slow)
    return {"disk", Verdict::warn, text + ": checkpoints will take long",
            "a faster disk for runs/, or a larger checkpoint.every"};
  return {"disk", Verdict::ok, text, ""};
}

Check check_keys(const std::string& path) {
  if (path.empty())
    return {"keys", Verdict::skip, "none are named: plain connections stay on this machine", ""};
  const auto keys = transport::read_key_pair(path);
  // The error itself says what to do.
  if (!keys) return {"keys", Verdict::fail, keys.error().text, ""};
  return {"keys", Verdict::ok, path + ", public " + keys->public_key, ""};
}

}  // namespace troupe::apps
