#include "transport/channels/local_channel.h"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "transport/channels/credit.h"

namespace troupe::transport {
namespace {

/// The state that both ends share, with parcels that were sent while the listener was busy.
class Passage {
 public:
  Passage(Bound bound, Listener listener, OnEnd on_end)
      : credit_(bound),
        line_(bound.parcels),
        listener_(std::move(listener)),
        on_end_(std::move(on_end)) {}

  Status send(std::span<const std::byte> head, std::span<const Tensor> tensors) {
    assert_sane(head, tensors);
    std::size_t bytes = 0;
    for (const auto& tensor : tensors) bytes += tensor.bytes();
    std::unique_lock lock(mutex_);
    if (end_) return Error{end_->text};
    if (auto taken = credit_.take(bytes); !taken) return taken;
    auto& waiting = line_.push();
    waiting.head.assign(head.begin(), head.end());
    waiting.tensors.assign(tensors.begin(), tensors.end());
    credit_.sent(bytes);
    ++counters_.parcels;
    counters_.bytes += bytes;
    if (!delivering_) deliver(lock);
    return Done{};
  }

  /// Returns whether everything was delivered within `patience`.
  bool settle(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    return idle_.wait_for(lock, patience, [&] { return line_.empty() && !delivering_; });
  }

  void end_by_sender(ChannelEnd end) {
    if (set_end(end) && listener_.on_end) listener_.on_end(end);
  }
  void end_by_receiver(ChannelEnd end) {
    const bool first = set_end(end);
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return !delivering_; });
    lock.unlock();
    if (first && on_end_) on_end_(end);
  }

  ChannelCounters counters() const {
    const std::lock_guard lock(mutex_);
    return counters_;
  }

 private:
  struct Waiting {
    std::vector<std::byte> head;
    std::vector<Tensor> tensors;
  };

  void deliver(std::unique_lock<std::mutex>& lock) {
    delivering_ = true;
    for (; !line_.empty(); line_.pop()) {
      auto& waiting = line_.front();
      if (!end_) {
        lock.unlock();
        listener_.on_parcel({waiting.head, waiting.tensors});
        lock.lock();
      }
      waiting.tensors.clear();
      credit_.arrived(++arrived_);
    }
    delivering_ = false;
    idle_.notify_all();
  }

  bool set_end(const ChannelEnd& end) {
    const std::lock_guard lock(mutex_);
    if (end_) return false;
    end_ = end;
    return true;
  }

  mutable std::mutex mutex_;
  std::condition_variable idle_;
  Credit credit_;
  Line<Waiting> line_;
  const Listener listener_;
  const OnEnd on_end_;
  std::optional<ChannelEnd> end_;
  bool delivering_ = false;
  std::uint64_t arrived_ = 0;
  ChannelCounters counters_;
};

class LocalSender final : public Sender {
 public:
  LocalSender(MemoryPool& memory, std::shared_ptr<Passage> passage)
      : memory_(memory), passage_(std::move(passage)) {}
  ~LocalSender() override {
    passage_->end_by_sender({ChannelEnd::Why::lost, "the sender is lost: no goodbye came"});
  }

  Tensor lend(const Shape& shape, DType type) override {
    return Tensor::make(memory_, shape, type);
  }
  Status send(std::span<const std::byte> head, std::span<const Tensor> tensors) override {
    return passage_->send(head, tensors);
  }
  Status close(std::chrono::milliseconds patience) override {
    if (!passage_->settle(patience))
      return Error{"parcels have not arrived after " + std::to_string(patience.count()) + " ms"};
    passage_->end_by_sender({ChannelEnd::Why::closed, "the channel was closed by its sender"});
    return Done{};
  }
  ChannelCounters counters() const override { return passage_->counters(); }

 private:
  MemoryPool& memory_;
  std::shared_ptr<Passage> passage_;
};

class LocalReceiver final : public Receiver {
 public:
  explicit LocalReceiver(std::shared_ptr<Passage> passage) : passage_(std::move(passage)) {}
  ~LocalReceiver() override {
    passage_->end_by_receiver({ChannelEnd::Why::closed, "the channel was closed by its receiver"});
  }
  ChannelCounters counters() const override { return passage_->counters(); }

 private:
  std::shared_ptr<Passage> passage_;
};

}  // namespace

LocalChannel make_local_channel(MemoryPool& memory, Bound bound, Listener listener, OnEnd on_end) {
  auto passage = std::make_shared<Passage>(bound, std::move(listener), std::move(on_end));
  return {std::make_unique<LocalSender>(memory, passage), std::make_unique<LocalReceiver>(passage)};
}

}  // namespace troupe::transport
