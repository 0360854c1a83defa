#include "play.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <numeric>

#include "core/memory/tensor.h"
#include "transport/links/edge_word.h"

namespace edges_play {

using namespace troupe;
using namespace troupe::transport;

namespace {

constexpr auto time_of_step = std::chrono::microseconds(10);
constexpr Epoch epoch_numbered(std::uint64_t number) { return {{0x1234, 0x5678}, number}; }

std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 31)) * 0x7fb5d329728ea185u;
  x = (x ^ (x >> 27)) * 0x81dadef4bc2dd44du;
  return x ^ (x >> 33);
}

/// Returns the seed of a parcel's content.
std::uint64_t seed_of(std::uint64_t epoch, std::size_t edge, std::uint64_t parcel) {
  return mixed(epoch * 1'000'003 + edge * 1009 + parcel + 1);
}

/// Returns the sizes of a parcel's tensors. Some parcels have no tensor, some tensors are empty,
/// and some are sent before their receive.
std::vector<std::int64_t> counts_of(std::uint64_t seed) {
  std::vector<std::int64_t> counts;
  for (std::uint64_t i = 0; i < seed % 4; ++i)
    counts.push_back(static_cast<std::int64_t>(mixed(seed + i) % 5 * (mixed(seed) % 2 ? 7 : 41)));
  return counts;
}

std::int32_t number_of(std::uint64_t seed, std::size_t tensor, std::int64_t i) {
  return static_cast<std::int32_t>(mixed(seed + 31 * tensor + static_cast<std::uint64_t>(i)) %
                                   100'000);
}

std::int64_t sum_of(std::span<const Tensor> tensors) {
  std::int64_t sum = 0;
  for (const auto& tensor : tensors)
    for (std::int64_t i = 0; i < tensor.count(); ++i) sum += tensor.data<std::int32_t>()[i];
  return sum;
}

std::int64_t expected_sum(std::uint64_t epoch, std::size_t edge, std::uint64_t parcels) {
  std::int64_t sum = 0;
  for (std::uint64_t parcel = 0; parcel < parcels; ++parcel) {
    const auto seed = seed_of(epoch, edge, parcel);
    const auto counts = counts_of(seed);
    for (std::size_t t = 0; t < counts.size(); ++t)
      for (std::int64_t i = 0; i < counts[t]; ++i) sum += number_of(seed, t, i);
  }
  return sum;
}

/// Returns how many numbers of a sum each member gets. Some get none, and some sums are small.
std::vector<std::int64_t> sizes_of(std::uint64_t seed, std::size_t members) {
  std::vector<std::int64_t> sizes(members);
  for (std::size_t k = 0; k < members; ++k)
    sizes[k] = static_cast<std::int64_t>(mixed(seed + k) % 3 * (mixed(seed) % 2 ? 5 : 83));
  if (std::ranges::max(sizes) == 0) sizes[seed % members] = 1;
  return sizes;
}

/// Returns a whole number, so that sums do not depend on the order.
float addend_of(std::uint64_t seed, std::size_t member, std::int64_t i) {
  return static_cast<float>(mixed(seed + 97 * member + static_cast<std::uint64_t>(i)) % 1000);
}

}  // namespace

/// The ordinary channel of words between two processes. Words arrive in order after a random time.
class Play::Words final : public Sender {
 public:
  Tensor lend(const Shape&, DType) override { return {}; }
  Status send(std::span<const std::byte> head, std::span<const Tensor>) override {
    line.emplace_back(head.begin(), head.end());
    return Done{};
  }
  Status close(std::chrono::milliseconds) override { return Done{}; }
  ChannelCounters counters() const override { return {}; }

  std::deque<std::vector<std::byte>> line;
};

Layout drawn_layout(std::uint64_t seed) {
  Layout layout;
  std::mt19937_64 random(seed);
  layout.devices = 2 + static_cast<int>(random() % 3);
  layout.edges.clear();
  for (int from = 0; from < layout.devices; ++from)
    for (int to = 0; to < layout.devices; ++to)
      if (from != to && random() % 3 != 0) layout.edges.emplace_back(from, to);
  std::shuffle(layout.edges.begin(), layout.edges.end(), random);
  layout.places = 1 + random() % 3;
  layout.handed_over = random() % 2 ? HandedOver::at_issue : HandedOver::at_end;
  for (auto sums = random() % 3; sums > 0; --sums) {
    std::vector<int> devices(static_cast<std::size_t>(layout.devices));
    std::iota(devices.begin(), devices.end(), 0);
    std::shuffle(devices.begin(), devices.end(), random);
    devices.resize(2 + random() % (devices.size() - 1));
    layout.sums.push_back(std::move(devices));
  }
  return layout;
}

Play::Play(std::uint64_t seed, Layout layout)
    : layout_(std::move(layout)), world_(seed), random_(seed + 1), slowness_(1 + 3 * draw(5)) {
  for (int i = 0; i < layout_.devices; ++i) start(processes_.emplace_back());
  for (int i = 0; i < layout_.devices * layout_.devices; ++i)
    words_.push_back(std::make_unique<Words>());
}

void Play::start(Process& process) {
  pools_.push_back(std::make_unique<MemoryPool>());
  process = {};
  process.device = world_.add_device();
  process.pool = pools_.back().get();
  process.fabric = world_.fabric(process.device);
}

Play::~Play() {
  end_epoch();
  while (world_.step()) continue;
}

void Play::end_epoch() {
  for (auto& edge : edges_) {
    edge.sender.reset();
    edge.receiver.reset();
  }
  for (auto& end : sum_ends_) end.adder.reset();
  for (auto& process : processes_) {
    auto& edges = process.edges;
    if (!edges) continue;
    edges->abort("the epoch is over");
    // Kills a device that does not release its memory.
    if (edges->phase() == Edges::Phase::stuck) world_.kill(process.device);
    for (int i = 0; i < 100'000 && edges->phase() != Edges::Phase::over; ++i) {
      edges->advance(now_);
      world_.step();
    }
    edges.reset();
  }
  edges_.clear();
  sum_ends_.clear();
}

void Play::begin_epoch(std::uint64_t number) {
  end_epoch();
  epoch_ = number;
  for (auto& process : processes_) {
    if (!process.alive) start(process);
    process.edges = std::make_unique<Edges>(
        *process.fabric, EdgesOrder{.epoch = epoch_numbered(number),
                                    .memory = process.pool,
                                    .places = layout_.places,
                                    .patience = {patience, patience, patience, patience},
                                    .wake = {}});
  }
  edges_.resize(layout_.edges.size());
  for (std::size_t i = 0; i < edges_.size(); ++i) open(i);
  for (std::size_t i = 0; i < layout_.sums.size(); ++i)
    for (std::size_t member = 0; member < layout_.sums[i].size(); ++member)
      sum_ends_.push_back({.sum = i, .member = member, .adder = nullptr, .end = {}});
  for (std::size_t i = 0; i < sum_ends_.size(); ++i) open_sum(i);
  for (auto& process : processes_) process.edges->begin();
}

Sender* Play::between(int from, int to) {
  return words_[static_cast<std::size_t>(from) * processes_.size() + static_cast<std::size_t>(to)]
      .get();
}

int Play::process_of(const SumEnd& end) const { return layout_.sums[end.sum][end.member]; }

void Play::open(std::size_t number) {
  const auto [from, to] = layout_.edges[number];
  auto& edge = edges_[number];
  edge.sender = process_at(from).edges->open_sender(
      {.number = number, .bound = layout_.bound, .words = between(from, to)},
      [this, number](const ChannelEnd& end) { edges_[number].sender_end = end; });
  edge.receiver = process_at(to).edges->open_receiver(
      {.number = number, .bound = layout_.bound, .words = between(to, from)}, layout_.handed_over,
      {[this, number](Parcel parcel) { hear(number, parcel); },
       [this, number](const ChannelEnd& end) { edges_[number].receiver_end = end; }});
}

void Play::open_sum(std::size_t number) {
  auto& end = sum_ends_[number];
  const auto& devices = layout_.sums[end.sum];
  std::vector<Sender*> others;
  for (const int device : devices)
    if (device != process_of(end)) others.push_back(between(process_of(end), device));
  end.adder = process_at(process_of(end))
                  .edges->open_adder(
                      {.number = layout_.edges.size() + end.sum,
                       .member = {static_cast<int>(end.member), static_cast<int>(devices.size())},
                       .others = std::move(others)},
                      [this, number](const ChannelEnd& why) { sum_ends_[number].end = why; });
}

Status Play::add(std::size_t number) {
  auto& end = sum_ends_[number];
  const auto members = layout_.sums[end.sum].size();
  const auto seed = seed_of(epoch_, layout_.edges.size() + end.sum, end.given);
  const auto sizes = sizes_of(seed, members);
  const auto count = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  auto numbers = Tensor::make(*process_at(process_of(end)).pool, {count}, DType::f32);
  for (std::int64_t i = 0; i < count; ++i) numbers.f32()[i] = addend_of(seed, end.member, i);
  auto added =
      end.adder->add(numbers, sizes, [this, number, numbers] { check_sum(number, numbers); });
  if (added) ++end.given;
  return added;
}

void Play::check_sum(std::size_t number, const Tensor& numbers) {
  auto& end = sum_ends_[number];
  const auto members = layout_.sums[end.sum].size();
  const auto seed = seed_of(epoch_, layout_.edges.size() + end.sum, end.heard++);
  const auto sizes = sizes_of(seed, members);
  const auto first = std::accumulate(
      sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(end.member), std::int64_t{0});
  for (std::int64_t i = first; i < first + sizes[end.member]; ++i) {
    float sum = 0;
    for (std::size_t member = 0; member < members; ++member) sum += addend_of(seed, member, i);
    if (numbers.f32()[i] != sum) wrong_ = "a sum has wrong numbers";
  }
}

/// Lets the device process what has come, by work that changes data which outlives a step.
void Play::hear(std::size_t number, Parcel parcel) {
  auto& edge = edges_[number];
  const auto seed = seed_of(epoch_, number, edge.heard);
  std::uint64_t head = 0;
  if (parcel.head.size() == sizeof head) std::memcpy(&head, parcel.head.data(), sizeof head);
  if (head != seed) wrong_ = "a parcel came out of order";
  const auto counts = counts_of(seed);
  bool same = parcel.tensors.size() == counts.size();
  for (std::size_t t = 0; same && t < counts.size(); ++t)
    same = parcel.tensors[t].shape() == Shape{counts[t]};
  if (!same) wrong_ = "a parcel has other shapes";
  ++edge.heard;
  auto& process = process_at(layout_.edges[number].second);
  std::vector<Piece> uses;
  for (auto& tensor : parcel.tensors)
    uses.push_back({static_cast<std::byte*>(tensor.raw()), tensor.bytes()});
  world_.give(
      process.device,
      [applied = edge.applied, epoch = epoch_, steps = layout_.steps,
       poison = &process.fabric->poison(),
       tensors = std::vector<Tensor>(parcel.tensors.begin(), parcel.tensors.end())] {
        if (steps == Steps::look_at_poison && poison->spoils(epoch)) return;
        ++applied->parcels;
        applied->sum += sum_of(tensors);
      },
      std::move(uses));
}

Status Play::send(std::size_t number) {
  auto& edge = edges_[number];
  const auto seed = seed_of(epoch_, number, edge.sent);
  std::vector<Tensor> tensors;
  const auto counts = counts_of(seed);
  for (std::size_t t = 0; t < counts.size(); ++t) {
    tensors.push_back(edge.sender->lend({counts[t]}, DType::i32));
    for (std::int64_t i = 0; i < counts[t]; ++i)
      tensors.back().data<std::int32_t>()[i] = number_of(seed, t, i);
  }
  auto sent = edge.sender->send(std::as_bytes(std::span(&seed, 1)), tensors);
  if (sent) ++edge.sent;
  return sent;
}

void Play::step() {
  now_ += time_of_step;
  switch (draw(6)) {
    case 0:
    case 1:
      if (draw(slowness_) == 0) world_.step();
      return;
    case 2:
      return carry_word();
    case 3:
    case 4:
      return advance(draw(processes_.size()));
    case 5:
      if (sends_) send_something();
      return;
  }
}

void Play::send_something() {
  auto number = draw(std::max<std::size_t>(edges_.size() + sum_ends_.size(), 1));
  if (number < edges_.size()) {
    if (edges_[number].sent < layout_.parcels && process_at(layout_.edges[number].first).alive)
      (void)send(number).ok();
    return;
  }
  number -= edges_.size();
  if (number >= sum_ends_.size()) return;
  const auto& end = sum_ends_[number];
  const bool has_place = end.given < end.heard + layout_.places;
  if (has_place && end.given < layout_.parcels && process_at(process_of(end)).alive)
    (void)add(number).ok();
}

bool Play::run_until(const std::function<bool()>& holds, int steps) {
  for (int i = 0; i < steps; ++i) {
    if (holds()) return true;
    step();
  }
  return holds();
}

void Play::advance(std::size_t process) {
  auto& at = processes_[process];
  if (at.alive && !at.frozen) at.edges->advance(now_);
}

void Play::carry_word() {
  const auto place = draw(words_.size());
  auto& line = words_[place]->line;
  if (line.empty()) return;
  const auto word = std::move(line.front());
  line.pop_front();
  const auto read = read_edge_word(word);
  if (read && read->word.kind == lost_) return;
  auto& to = processes_[place % processes_.size()];
  if (to.alive) to.edges->hear(word);
}

void Play::abort_all() {
  for (auto& process : processes_)
    if (process.alive) process.edges->abort("the test says so");
}

void Play::kill(int process) {
  process_at(process).alive = false;
  world_.kill(process_at(process).device);
}

void Play::block(int process) { world_.block(process_at(process).device); }

void Play::hold_up_all() {
  for (const auto& process : processes_) world_.hold_up(process.device);
}

void Play::let_all_go_on() {
  for (const auto& process : processes_) world_.go_on(process.device);
}

bool Play::all_are(Edges::Phase phase) const {
  return std::ranges::all_of(processes_, [&](const Process& process) {
    return !process.alive || process.edges->phase() == phase;
  });
}

bool Play::all_heard() const {
  const auto is_through = [&](const auto& end) { return end.heard == layout_.parcels; };
  return std::ranges::all_of(edges_, is_through) && std::ranges::all_of(sum_ends_, is_through);
}

bool Play::all_arrived() const { return all_heard() && left_out() == 0; }

std::uint64_t Play::left_out() const {
  std::uint64_t parcels = 0;
  for (const auto& edge : edges_) parcels += edge.heard - edge.applied->parcels;
  return parcels;
}

bool Play::all_given_back() const {
  return std::ranges::all_of(processes_, [&](const Process& process) {
    return !process.alive ||
           (world_.idle(process.device) && process.pool->counters().bytes_in_use == 0);
  });
}

std::string Play::wrong() const {
  if (!wrong_.empty()) return wrong_;
  for (const auto& misuse : world_.misuses()) return misuse;
  if (world_.most_under_way() > std::max<std::size_t>(layout_.places, 1))
    return "more was posted than there are places";
  for (std::size_t i = 0; i < edges_.size(); ++i) {
    const auto& applied = *edges_[i].applied;
    if (applied.sum != expected_sum(epoch_, i, applied.parcels))
      return "edge " + std::to_string(i) + " has brought wrong numbers";
  }
  return "";
}

}  // namespace edges_play
