#include "bench/transport_bench.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "bench/figures.h"
#include "bench/half_round_trip.h"
#include "bench/peers/channel_peer.h"
#include "bench/peers/other_peers.h"
#include "bench/peers/plain_peer.h"
#include "bench/peers/zmq_peer.h"
#include "transport/channels/local_channel.h"

namespace troupe::bench {
namespace {

using Clock = std::chrono::steady_clock;
using namespace transport;

Result<double> measure_hand_over(const Size& size) {
  MemoryPool pool;
  const Tensor tensor = Tensor::make(pool, {static_cast<std::int64_t>(size.bytes)}, DType::u8);
  Tensor kept;
  const auto channel = make_local_channel(
      pool, {size.bytes, 4},
      {[&](const Parcel& parcel) { kept = std::move(parcel.tensors[0]); }, {}}, {});
  const std::byte head[64] = {};
  constexpr int turns = 20'000;
  const auto start = Clock::now();
  for (int i = 0; i < turns; ++i)
    if (auto sent = channel.sender->send(head, {&tensor, 1}); !sent) return sent.error();
  return seconds_since(start) / turns;
}

/// A benchmark of copies from memory to memory on one thread.
class Copies {
 public:
  Result<double> measure(const Size& size) {
    auto& [from, to] = memory_[size.bytes];
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

 private:
  std::map<std::size_t, std::pair<std::vector<char>, std::vector<char>>> memory_;
};

struct Row {
  std::string name;
  HalfRoundTrip measure;
  std::array<std::vector<double>, sizes.size()> seconds{};

  double at(std::size_t size) const { return median(seconds[size]); }
};

std::string table(const std::vector<Row>& rows, int rounds) {
  std::string text;
  print(text, "Half a round trip, median of %d rounds; in brackets GB/s\n\n| |", rounds);
  for (const auto& size : sizes) print(text, " %s |", size.name);
  text += "\n|---|";
  for ([[maybe_unused]] const auto& size : sizes) text += "---|";
  text += "\n";
  for (const auto& row : rows) {
    print(text, "| %s |", row.name.c_str());
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const double seconds = row.at(i);
      if (seconds < 1e-3)
        print(text, " %.2f us", seconds * 1e6);
      else
        print(text, " %.2f ms", seconds * 1e3);
      if (sizes[i].bytes >= mib)
        print(text, " (%.1f)", static_cast<double>(sizes[i].bytes) / seconds * 1e-9);
      text += " |";
    }
    text += "\n";
  }
  return text;
}

/// Returns the median over rounds of how much faster `ours` is than `theirs`.
double ratio(const Row& ours, const Row& theirs, std::size_t size) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < ours.seconds[size].size(); ++i)
    ratios.push_back(theirs.seconds[size][i] / ours.seconds[size][i]);
  return median(ratios);
}

class Comparison {
 public:
  /// Creates the other processes, before this one has threads.
  Status start() {
    auto peer = ChannelPeer::make();
    if (!peer) return peer.error();
    peer_ = std::move(*peer);
    for (const std::size_t threads : {std::size_t{1}, ChannelStreams::channels}) {
      auto streams = ChannelStreams::make(threads);
      if (!streams) return streams.error();
      streams_.emplace_back(std::move(*streams), std::vector<double>());
    }
    for (auto* make : {PlainPeer::by_tcp, PlainPeer::by_unix_socket}) {
      auto plain = make();
      if (!plain) return plain.error();
      plain_.push_back(std::move(*plain));
    }
    auto zmq = ZmqPeer::by_ipc();
    if (!zmq) return zmq.error();
    zmq_ = std::move(*zmq);
    stay_on(0);
    if (auto started = peer_->start(); !started) return started;
    for (auto& [streams, rates] : streams_)
      if (auto started = streams->start(); !started) return started;
    others_ = find_other_peers();
    const auto by = [this](Way way) {
      return [this, way](const Size& size) { return peer_->measure(way, size); };
    };
    const auto plain = [this](std::size_t i) {
      return [this, i](const Size& size) { return plain_[i]->measure(size); };
    };
    rows_ = {{"copy in memory, one thread", [this](const Size& s) { return copies_.measure(s); }},
             {"hand-over in the process", measure_hand_over},
             {"shared memory, written in place", by(Way::in_place)},
             {"shared memory, one copy", by(Way::one_copy)},
             {"TCP", by(Way::tcp)},
             {"TCP without checksums", by(Way::tcp_without_checksums)},
             {"encrypted TCP", by(Way::tcp_sealed)},
             {"plain TCP loop", plain(0)},
             {"plain Unix socket loop", plain(1)},
             {"ZeroMQ ipc", [this](const Size& s) { return zmq_->measure(s); }}};
    return Done{};
  }

  Status round() {
    for (std::size_t i = 0; i < sizes.size(); ++i)
      for (auto& row : rows_) {
        auto seconds = row.measure(sizes[i]);
        if (!seconds) return within(row.name, seconds.error());
        row.seconds[i].push_back(*seconds);
      }
    for (auto& [streams, rates] : streams_) {
      const auto rate = streams->measure();
      if (!rate) return rate.error();
      rates.push_back(*rate * 1e-9);
    }
    for (const auto& other : others_.usable) {
      const auto seconds = other->measure();
      for (std::size_t i = 0; i < seconds.size(); ++i)
        other_seconds_[other->name()][i].push_back(seconds[i]);
    }
    return Done{};
  }

  void forget() {
    for (auto& row : rows_) row.seconds = {};
    for (auto& [streams, rates] : streams_) rates.clear();
    other_seconds_.clear();
  }

  std::string text(int rounds) const {
    auto all = rows_;
    for (const auto& [name, seconds] : other_seconds_) all.push_back({name, {}, seconds});
    std::string text = table(all, rounds);
    for (const auto& sentence : others_.missing) text += "\n" + sentence;
    if (!others_.missing.empty()) text += "\n";
    print(text,
          "\nfour TCP channels at once, 16 MiB: %.2f GB/s by one thread a process, %.2f by one a "
          "channel\n",
          median(streams_[0].second), median(streams_[1].second));
    const auto &copy = rows_[0], &in_place = rows_[2], &one_copy = rows_[3];
    double most_in_place = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i)
      most_in_place = std::max(most_in_place, in_place.at(i));
    print(text, "hand-over: %.2f us (goal: under 2)\n", rows_[1].at(0) * 1e6);
    print(text, "shared memory in place, any size: at most %.2f us (goal: under 5)\n",
          most_in_place * 1e6);
    print(text,
          "shared memory, one copy, to a copy in memory: %.2f at 1 MiB, %.2f at 16 MiB (goal: "
          "0.7)\n",
          ratio(one_copy, copy, 3), ratio(one_copy, copy, 4));
    for (std::size_t i = rows_.size() - 1; i < all.size(); ++i)
      print(text, "shared memory, one copy, to %s: %.2f at 1 MiB, %.2f at 16 MiB (goal: over 1)\n",
            all[i].name.c_str(), ratio(one_copy, all[i], 3), ratio(one_copy, all[i], 4));
    const auto &tcp = rows_[4], &sealed = rows_[6], &loop = rows_[7];
    print(text, "TCP to a plain loop at 16 MiB: %.2f, %.2f without checksums (goal: 0.9)\n",
          ratio(tcp, loop, 4), ratio(rows_[5], loop, 4));
    print(
        text,
        "encrypted TCP to TCP at 16 MiB: %.2f (goal: 0.8); %.2f s more for each GB by one core at "
        "each end\n",
        ratio(sealed, tcp, 4),
        (sealed.at(4) - tcp.at(4)) / static_cast<double>(sizes[4].bytes) * 1e9);
    return text;
  }

 private:
  Copies copies_;
  std::unique_ptr<ChannelPeer> peer_;
  std::vector<std::pair<std::unique_ptr<ChannelStreams>, std::vector<double>>> streams_;
  std::vector<std::unique_ptr<PlainPeer>> plain_;
  std::unique_ptr<ZmqPeer> zmq_;
  FoundPeers others_;
  std::vector<Row> rows_;
  std::map<std::string, std::array<std::vector<double>, sizes.size()>> other_seconds_;
};

}  // namespace

Result<std::string> measure_transport(int rounds) {
  Comparison comparison;
  if (auto started = comparison.start(); !started) return started.error();
  for (int round = -1; round < rounds; ++round) {
    if (auto measured = comparison.round(); !measured) return measured.error();
    if (round < 0) comparison.forget();  // The first round warms up.
  }
  return comparison.text(rounds);
}

}  // namespace troupe::bench
