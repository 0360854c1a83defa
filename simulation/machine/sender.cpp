#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "simulation/machine/sockets.h"
#include "transport/channels/credit.h"
#include "transport/channels/door_rules.h"
#include "transport/channels/frame.h"
#include "transport/network.h"

namespace troupe::simulation {
namespace {

using transport::Carrier;
using transport::ChannelEnd;
using transport::Checksums;

class SimulatedSender final : public transport::Sender, private Plugged {
 public:
  SimulatedSender(Plug plug, Carrier carrier, transport::Sending sending)
      : plug_(std::move(plug)), sending_(std::move(sending)), credit_(sending_.bound) {
    plug_.set_owner(*this);
    if (carrier == Carrier::tcp) plug_.set_patience(patience_of_paths);
  }

  Tensor lend(const Shape& shape, DType type) override {
    return Tensor::make(*sending_.memory, shape, type);
  }

  Status send(std::span<const std::byte> head, std::span<const Tensor> tensors) override {
    transport::assert_sane(head, tensors);
    std::size_t bytes = 0;
    for (const auto& tensor : tensors) bytes += tensor.bytes();
    if (end_) return Error{end_->text};
    if (auto arrived = take_arrivals(plug_.told()); !arrived) return arrived;
    if (auto taken = credit_.take(bytes); !taken) return taken;
    std::vector<std::byte> front;
    transport::write_front(head, tensors, front);
    transport::number_front(front, sending_.epoch.number, credit_.sent_so_far(), Checksums::on);
    std::string payload(transport::payload_bytes_of(tensors), '\0');
    std::size_t offset = 0;
    for (const auto& tensor : tensors) {
      std::memcpy(payload.data() + offset, tensor.host_bytes().data(), tensor.bytes());
      offset += transport::aligned(tensor.bytes());
    }
    credit_.sent(bytes);
    ++counters_.parcels;
    counters_.bytes += bytes;
    counters_.copied += bytes;
    plug_.send({text_of(front), std::move(payload)});
    return Done{};
  }

  /// Cannot wait. What has arrived counts even if this end would not know it yet.
  Status close(std::chrono::milliseconds patience) override {
    if (end_ && !(credit_.parcels() == 0 && end_->why == ChannelEnd::Why::closed))
      return Error{end_->text};
    if (end_) return Done{};
    if (auto arrived = take_arrivals(plug_.told_at_last()); !arrived) return arrived;
    if (credit_.parcels() > 0)
      return Error{std::to_string(credit_.parcels()) + " parcels have not arrived after " +
                   std::to_string(patience.count()) + " ms"};
    transport::FrameHeader goodbye;
    goodbye.kind = transport::FrameKind::goodbye;
    std::vector<std::byte> front(sizeof goodbye);
    std::memcpy(front.data(), &goodbye, sizeof goodbye);
    transport::number_front(front, sending_.epoch.number, credit_.sent_so_far(), Checksums::on);
    plug_.send({text_of(front), ""});
    plug_.close(Plug::Rest::arrives);
    end_ = ChannelEnd{ChannelEnd::Why::closed, "the channel was closed by its sender"};
    return Done{};
  }

  transport::ChannelCounters counters() const override { return counters_; }

 private:
  static std::string text_of(const std::vector<std::byte>& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  Status take_arrivals(std::uint64_t parcels) {
    if (parcels < arrived_ || credit_.arrived(parcels)) {
      arrived_ = std::max(arrived_, parcels);
      return Done{};
    }
    return Error{"the receiver acknowledges parcels that were not sent"};
  }

  void hear(Parts) override {
    end(ChannelEnd::Why::closed, "the channel was closed by its receiver");
  }
  void over(Over) override {
    end(ChannelEnd::Why::lost, "the other process died (connection closed without notice)");
  }
  void end(ChannelEnd::Why why, const std::string& text) {
    (void)take_arrivals(plug_.told_at_last());
    plug_.close();
    end_ = ChannelEnd{why, text};
    if (sending_.on_end) sending_.on_end({why, text});
  }

  Plug plug_;
  transport::Sending sending_;
  transport::Credit credit_;
  std::uint64_t arrived_ = 0;
  std::optional<ChannelEnd> end_;
  transport::ChannelCounters counters_;
};

}  // namespace

/// A sender that asks to be admitted at a door. A task of the loop owns it, so that nothing is
/// called once the loop has ended.
class Knock final : public std::enable_shared_from_this<Knock>, private Plugged {
 public:
  using Made = Result<std::unique_ptr<transport::Sender>>;

  Knock(Wires& wires, const Wires::Party& who, std::string to, transport::Sending sending,
        Loop& loop, std::function<void(Made)> then)
      : wires_(wires),
        who_(who),
        to_(std::move(to)),
        sending_(std::move(sending)),
        loop_(loop),
        then_(std::move(then)) {}

  /// Waits for the knocks of the loop that came before.
  void wait_for(std::shared_ptr<KnockLine> line) {
    line_ = std::move(line);
    // A task that is never due owns it.
    timer_ = loop_.after(std::chrono::hours(1'000'000), [self = shared_from_this()] {});
    if (!timer_) return;
    if (!line_->first.expired()) return line_->waiting.push_back(weak_from_this());
    knock();
  }

 private:
  void knock() {
    line_->first = weak_from_this();
    const auto waited = *timer_;
    timer_ = loop_.after(sending_.patience, [self = shared_from_this()] {
      self->timer_.reset();
      self->fail("no answer to the greeting in time");
    });
    loop_.cancel(waited);
    if (!timer_) return;
    const bool is_shared = to_.starts_with(transport::shared_memory);
    carrier_ = is_shared ? Carrier::shm : Carrier::tcp;
    const auto endpoint = is_shared
                              ? endpoint_of_shm_door(to_.substr(transport::shared_memory.size()))
                              : endpoint_of_door(to_);
    if (!endpoint) return finish(endpoint.error());
    auto hello = transport::hello_of(sending_, carrier_, Checksums::on);
    transport::KeyOffer offer;
    if (sending_.keys && !is_shared) {
      hello = transport::hello_of(sending_, carrier_, Checksums::off);
      hello.protection = transport::Protection::sealed;
      auto asker = transport::KeyAsker::begin(*sending_.keys, hello);
      if (!asker) return fail(asker.error().text);
      asker_ = std::move(*asker);
      offer = asker_->offer();
    }
    plug_ = wires_.dial(who_, *endpoint, *this, {to_part(hello), to_part(offer)});
    if (plug_ && !is_shared) plug_.set_patience(patience_of_paths);
  }

  void hear(Parts parts) override {
    const auto self = shared_from_this();
    const auto answer = from_part<transport::Answer>(parts[0]);
    if (!answer || answer->magic != transport::hello_magic || parts.size() != 2)
      return fail("is not the listening port of a channel");
    if (answer->verdict != transport::Verdict::welcome)
      return fail("rejected: " + transport::to_text(answer->verdict));
    const auto agreed = from_part<transport::KeyAnswer>(parts[1]);
    if (asker_) {
      const auto terms = asker_->finish(agreed.value_or(transport::KeyAnswer{}));
      if (!terms) return fail(terms.error().text);
    }
    finish(std::unique_ptr<transport::Sender>(
        std::make_unique<SimulatedSender>(std::move(plug_), carrier_, std::move(sending_))));
  }
  void over(Over why) override {
    const auto self = shared_from_this();
    fail(why == Over::refused  ? "cannot connect: Connection refused"
         : why == Over::silent ? "cannot connect: no answer in time"
                               : "closed the connection without an answer");
  }

  void fail(const std::string& why) { finish(within(to_, Error{why})); }

  void finish(Made made) {
    plug_.close();
    // Copies of a task share the result, which cannot be copied.
    const auto shared = std::make_shared<Made>(std::move(made));
    loop_.post([shared, then = std::move(then_)] { then(std::move(*shared)); });
    const auto self = shared_from_this();
    if (timer_) loop_.cancel(*timer_);
    line_->first.reset();
    while (line_->first.expired() && !line_->waiting.empty()) {
      const auto next = line_->waiting.front().lock();
      line_->waiting.pop_front();
      if (next) next->knock();
    }
  }

  Wires& wires_;
  Wires::Party who_;
  std::string to_;
  transport::Sending sending_;
  Loop& loop_;
  std::function<void(Made)> then_;
  Carrier carrier_ = Carrier::tcp;
  std::optional<transport::KeyAsker> asker_;
  std::optional<Loop::Timer> timer_;  // Waits while nothing is decided.
  std::shared_ptr<KnockLine> line_;
  Plug plug_;
};

void SenderDials::connect(const std::string& to, transport::Sending sending, Loop& loop,
                          std::function<void(Result<std::unique_ptr<transport::Sender>>)> then) {
  std::erase_if(lines_, [](const auto& entry) { return entry.second.expired(); });
  const auto found = std::find_if(lines_.begin(), lines_.end(),
                                  [&](const auto& entry) { return entry.first == &loop; });
  auto line = found == lines_.end() ? std::make_shared<KnockLine>() : found->second.lock();
  if (found == lines_.end()) lines_.emplace_back(&loop, line);
  std::make_shared<Knock>(wires_, who_, to, std::move(sending), loop, std::move(then))
      ->wait_for(std::move(line));
}

}  // namespace troupe::simulation
