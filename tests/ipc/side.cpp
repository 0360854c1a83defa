#include "side.h"

#include <cassert>
#include <cstring>
#include <thread>
#include <utility>

#include "kernels/copy.h"
#include "kernels/cuda/arena.h"
#include "kernels/cuda/device.h"
#include "transport/ipc_fabric.h"
#include "transport/shm_channel.h"

namespace troupe::transport {
namespace {

constexpr std::chrono::seconds limit{60};
constexpr Bound bound{std::size_t{64} << 20, 4};
constexpr Token token{0x1234};

/// Small ones, some without a number, and now and then one that is longer than a piece of memory.
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

}  // namespace

Result<std::unique_ptr<LinkedGpu>> LinkedGpu::open() {
  auto gpu = std::make_unique<LinkedGpu>();
  auto computes = kernels::cuda::open_device(0);
  if (!computes) return computes.error();
  auto copies = kernels::cuda::open_device(0);
  if (!copies) return copies.error();
  auto memory = kernels::cuda::device_memory(0);
  if (!memory) return memory.error();
  const auto exported = kernels::cuda::exported(**memory);
  if (!exported) return exported.error();
  gpu->computes = std::move(*computes);
  gpu->copies = copies->get();
  gpu->pool = std::make_unique<MemoryPool>(std::move(*memory));
  auto fabric = open_ipc_fabric(
      {.computes = *gpu->computes,
       .copies = std::move(*copies),
       .memory = **exported,
       .import = [](std::size_t reserved) { return kernels::cuda::import_memory(0, reserved); }});
  if (!fabric) return fabric.error();
  gpu->fabric = std::move(*fabric);
  return gpu;
}

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

/// Given away before the device has made them.
Status Side::send_more(std::uint64_t most) {
  for (; sent_ < most; ++sent_, made_.clear()) {
    if (made_.empty()) make_next();
    const auto sent = sender_->send(std::as_bytes(std::span(&sent_, 1)), made_);
    if (!sent) return sent.error().text.find("bound") != std::string::npos ? Done{} : sent;
  }
  return Done{};
}

void Side::make_next() {
  for (const auto count : counts_of(sent_)) {
    made_.push_back(sender_->lend({count}, DType::f32));
    const auto number = number_of(sent_, made_.size() - 1);
    if (count > 0) kernels::fill(stream_, number, made_.back().data<float>(), count);
  }
}

Status Side::look() {
  for (;;) {
    Heard heard;
    {
      const std::lock_guard lock(mutex_);
      if (heard_.empty()) return end_.empty() ? Status(Done{}) : Error{end_};
      heard = std::move(heard_.front());
      heard_.pop_front();
    }
    const Error wrong{"parcel " + std::to_string(looked_) + " is not what was sent"};
    const auto counts = counts_of(looked_);
    if (heard.head != looked_ || heard.tensors.size() != counts.size()) return wrong;
    for (std::size_t t = 0; t < counts.size(); ++t) {
      if (heard.tensors[t].shape() != Shape{counts[t]}) return wrong;
      const Tensor here = stream_.to_host(heard.tensors[t]);
      stream_.wait();
      for (const float number : here.numbers<float>())
        if (number != number_of(looked_, t)) return wrong;
    }
    ++looked_;
  }
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
  words_in_.reset();  // From now on nobody hears of anything.
  words_out_.reset();
  edges_.reset();
  stream_.wait();
  heard_.clear();
  made_.clear();
  return is_over;
}

}  // namespace troupe::transport
