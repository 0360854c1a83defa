#include "side.h"

#include <cassert>
#include <cstring>
#include <thread>
#include <utility>

#include "kernels/copy.h"
#include "transport/channels/shm_channel.h"

namespace troupe::transport {
namespace {

constexpr std::chrono::seconds limit{60};
constexpr Bound bound{std::size_t{64} << 20, 4};
constexpr Token token{0x1234};

/// Returns the sizes of a parcel's tensors: small ones, some empty, and sometimes one larger than a
/// piece of memory.
std::vector<std::int64_t> counts_of(std::uint64_t parcel) {
  std::vector<std::int64_t> counts;
  for (std::uint64_t t = 0; t <= parcel % 3; ++t)
    counts.push_back(static_cast<std::int64_t>(parcel * 7919 % 5 * (parcel + 11 * t) % 5000));
  if (parcel % 16 == 5) counts.push_back(700'000);
  return counts;
}

float number_of(std::uint64_t parcel, std::size_t tensor) {
  return static_cast<float>(parcel * 8 + tensor);
}

// Every so many parcels come with a sum.
constexpr std::uint64_t parcels_for_sum = 4;
constexpr std::uint64_t most_sums = 2;  // At once, as an edge allows.

// A device makes further parcels while one is sent.
constexpr std::size_t most_made = 2;

/// Returns the sizes of a sum's two pieces; sometimes the second is empty.
std::vector<std::int64_t> sizes_of(std::uint64_t sum) {
  return {static_cast<std::int64_t>(100 + sum % 7 * 20'000),
          static_cast<std::int64_t>(sum % 3 * 5000)};
}

/// Returns a member's addend; sums of these numbers are exact in floats.
float addend_of(std::uint64_t sum, std::size_t piece, int member) {
  return static_cast<float>(sum * 4 + piece * 2 + static_cast<std::uint64_t>(member));
}

}  // namespace

Side::Side(int here, LinkedGpu& gpu, std::uint64_t epoch)
    : here_(here),
      gpu_(gpu),
      epoch_{{1, 2}, epoch},
      stream_(*gpu.pool, *gpu.computes),
      thread_([&gpu] { gpu.computes->enter(); }) {
  auto door = open_shm_door(channels_, {.epoch = epoch_});
  assert(door.ok());
  door_ = std::move(*door);
  edges_ = std::make_unique<Edges>(*gpu.fabric, EdgesOrder{.epoch = epoch_,
                                                           .memory = gpu.pool.get(),
                                                           .patience = {limit, limit, limit, limit},
                                                           .wake = [this] { thread_.wake(); }});
  words_in_ = door_->expect(
      token, {.bound = {0, 256},
              .memory = gpu.pool.get(),
              .listener = {[this](Parcel parcel) { edges_->hear(parcel.head); },
                           [this](const ChannelEnd& end) { note("words: " + end.text); }}});
}

Side::~Side() { (void)leave(); }

Status Side::connect(const std::string& address) {
  auto words = connect_shm(channels_, address,
                           {.epoch = epoch_,
                            .token = token,
                            .bound = {0, 256},
                            .memory = gpu_.pool.get(),
                            .on_end = {}});
  if (!words) return words.error();
  words_out_ = std::move(*words);
  const auto there = static_cast<std::uint64_t>(here_ == 0);
  sender_ = edges_->open_sender({static_cast<std::uint64_t>(here_), bound, words_out_.get()},
                                [this](const ChannelEnd& end) { note(end.text); });
  receiver_ =
      edges_->open_receiver({there, bound, words_out_.get()}, HandedOver::at_end,
                            {[this](Parcel parcel) {
                               Heard heard;
                               std::memcpy(&heard.head, parcel.head.data(), sizeof heard.head);
                               for (auto& tensor : parcel.tensors)
                                 heard.tensors.push_back(std::move(tensor));
                               const std::lock_guard lock(mutex_);
                               heard_.push_back(std::move(heard));
                             },
                             [this](const ChannelEnd& end) { note(end.text); }});
  if (gpu_.fabric->adds())
    adder_ = edges_->open_adder({2, {here_, 2}, {words_out_.get()}},
                                [this](const ChannelEnd& end) { note(end.text); });
  thread_.drive(*edges_);
  return Done{};
}

Status Side::form() {
  edges_->begin();
  const auto phase = edges_->wait_while({Edges::Phase::gathering, Edges::Phase::forming},
                                        std::chrono::steady_clock::now() + limit);
  if (phase == Edges::Phase::ready) return Done{};
  const auto why = end();
  return Error{why.empty() ? "the edges were not ready in time" : why};
}

/// Sends parcels once the device has made them.
Status Side::send_more(std::uint64_t most) {
  for (; sent_ < most; ++sent_, made_.pop_front()) {
    while (made_.size() < most_made && sent_ + made_.size() < most) make_next();
    if (!is_ready(made_.front())) break;
    auto sent = sender_->send(std::as_bytes(std::span(&sent_, 1)), made_.front().tensors);
    if (!sent && sent.error().text.find("bound") == std::string::npos) return sent;
    if (!sent) break;
  }
  return adder_ ? add_more() : Done{};
}

bool Side::is_ready(const Made& made) {
  const auto passed = gpu_.computes->passed();
  return passed && *passed >= made.mark;
}

Status Side::add_more() {
  for (; added_ < sent_ / parcels_for_sum && added_ < summed_ + most_sums;
       ++added_, addend_.reset()) {
    if (!addend_) make_addend();
    if (!is_ready(*addend_)) break;
    const auto numbers = addend_->tensors[0];
    auto added = adder_->add(numbers, sizes_of(added_), [this, numbers] {
      const std::lock_guard lock(mutex_);
      sums_.push_back(numbers);
    });
    if (!added) return added;
  }
  return Done{};
}

bool Side::has_played(std::uint64_t count) const {
  return sent_ == count && looked_ == count && (!adder_ || summed_ == count / parcels_for_sum);
}

void Side::make_next() {
  const auto parcel = sent_ + made_.size();
  auto& tensors = made_.emplace_back().tensors;
  for (const auto count : counts_of(parcel)) {
    tensors.push_back(sender_->lend({count}, DType::f32));
    const auto number = number_of(parcel, tensors.size() - 1);
    if (count > 0) kernels::fill(stream_, number, tensors.back().data<float>(), count);
  }
  made_.back().mark = gpu_.computes->mark();
}

void Side::make_addend() {
  const auto sizes = sizes_of(added_);
  auto numbers = Tensor::make(*gpu_.pool, {sizes[0] + sizes[1]});
  auto* at = numbers.f32();
  for (std::size_t piece = 0; piece < sizes.size(); at += sizes[piece++])
    if (sizes[piece] > 0) kernels::fill(stream_, addend_of(added_, piece, here_), at, sizes[piece]);
  addend_ = Made{{std::move(numbers)}, gpu_.computes->mark()};
}

/// Checks what has come so far. What comes meanwhile waits for the next call, because the other
/// side may be faster.
Status Side::look() {
  std::deque<Tensor> sums;
  std::deque<Heard> parcels;
  std::string end;
  {
    const std::lock_guard lock(mutex_);
    sums.swap(sums_);
    parcels.swap(heard_);
    end = end_;
  }
  for (const auto& sum : sums) {
    if (auto right = look_at(sum); !right) return right;
    ++summed_;
  }
  for (const auto& parcel : parcels) {
    if (auto right = look_at(parcel); !right) return right;
    ++looked_;
  }
  return end.empty() ? Status(Done{}) : Error{end};
}

Status Side::look_at(const Heard& parcel) {
  const Error wrong{"parcel " + std::to_string(looked_) + " is not what was sent"};
  const auto counts = counts_of(looked_);
  if (parcel.head != looked_ || parcel.tensors.size() != counts.size()) return wrong;
  for (std::size_t t = 0; t < counts.size(); ++t) {
    if (parcel.tensors[t].shape() != Shape{counts[t]}) return wrong;
    const Tensor here = stream_.to_host(parcel.tensors[t]);
    stream_.wait();
    for (const float number : here.numbers<float>())
      if (number != number_of(looked_, t)) return wrong;
  }
  return Done{};
}

/// Checks a sum. This side has the piece of its own number.
Status Side::look_at(const Tensor& sum) {
  const auto sizes = sizes_of(summed_);
  const auto piece = static_cast<std::size_t>(here_);
  const Error wrong{"sum " + std::to_string(summed_) + " is not that of what was added"};
  if (sum.shape() != Shape{sizes[0] + sizes[1]}) return wrong;
  const Tensor here = stream_.to_host(sum);
  stream_.wait();
  const auto own = here.numbers<float>().subspan(
      static_cast<std::size_t>(piece == 0 ? 0 : sizes[0]), static_cast<std::size_t>(sizes[piece]));
  for (const float number : own)
    if (number != addend_of(summed_, piece, 0) + addend_of(summed_, piece, 1)) return wrong;
  return Done{};
}

Status Side::play(std::uint64_t most, const std::function<bool()>& holds) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (!holds()) {
    if (auto sent = send_more(most); !sent) return sent;
    if (auto looked = look(); !looked) return looked;
    if (std::chrono::steady_clock::now() > until)
      return Error{"it takes too long: " + std::to_string(sent_) + " sent, " +
                   std::to_string(looked_) + " have come"};
    std::this_thread::yield();
  }
  return Done{};
}

void Side::note(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (end_.empty()) end_ = why;
}

std::string Side::end() const {
  const std::lock_guard lock(mutex_);
  return end_;
}

bool Side::leave() {
  if (!edges_) return true;
  bool is_over = true;
  if (words_out_) {
    edges_->abort("the test is over");
    using Phase = Edges::Phase;
    is_over = edges_->wait_while({Phase::gathering, Phase::forming, Phase::ready, Phase::failed,
                                  Phase::ending, Phase::stuck},
                                 std::chrono::steady_clock::now() + limit) == Phase::over;
    thread_.leave();
  }
  sender_.reset();
  receiver_.reset();
  adder_.reset();
  words_in_.reset();  // From here on no message is received.
  words_out_.reset();
  edges_.reset();
  stream_.wait();
  heard_.clear();
  sums_.clear();
  made_.clear();
  addend_.reset();
  return is_over;
}

}  // namespace troupe::transport
