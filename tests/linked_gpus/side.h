#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/memory/stream.h"
#include "core/result.h"
#include "linked_gpu.h"
#include "transport/channels/channel_thread.h"
#include "transport/channels/door.h"
#include "transport/links/edge_thread.h"
#include "transport/links/edges.h"

namespace troupe::transport {

/// One of two processes with a GPU each, perhaps the same, and edges from each to the other; and
/// one that adds up, where the fabric has such. As a node has them. What goes along an edge follows
/// from its number.
class Side {
 public:
  /// `here` is 0 or 1. `gpu` outlives it.
  Side(int here, LinkedGpu& gpu, std::uint64_t epoch);
  ~Side();
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  /// Where the other one's words knock.
  std::string address() const { return door_->address(); }
  /// Before the other one begins. The other one's door is open.
  Status connect(const std::string& address);
  /// Waits until the edges are ready.
  Status form();

  /// As many as may be under way, at once. Every fourth parcel has a sum beside it.
  Status send_more(std::uint64_t most);
  /// Looks at what has come; an error where it is wrong, or where the edge has ended.
  Status look();
  std::uint64_t sent() const { return sent_; }
  std::uint64_t looked() const { return looked_; }
  /// So many parcels have gone and come, with all sums beside them.
  bool has_played(std::uint64_t count) const;
  /// How the edges have ended; empty while they have not.
  std::string end() const;
  /// Waits until `holds`, and does all that can be done meanwhile.
  Status play(std::uint64_t most, const std::function<bool()>& holds);

  /// Everything is let go in time.
  bool leave();

 private:
  struct Heard {
    std::uint64_t head = 0;
    std::vector<Tensor> tensors;
  };

  /// What the device makes, once it has passed the mark.
  struct Made {
    std::vector<Tensor> tensors;
    Device::Mark mark = 0;
  };

  void make_next();
  void make_addend();
  bool is_ready(const Made& made);
  Status add_more();
  Status look_at(const Tensor& sum);
  void note(const std::string& why);

  const int here_;
  LinkedGpu& gpu_;
  const Epoch epoch_;
  Stream stream_;
  ChannelThread channels_;
  std::unique_ptr<Door> door_;
  std::unique_ptr<Receiver> words_in_;
  std::unique_ptr<Sender> words_out_;
  EdgeThread thread_;
  std::unique_ptr<Edges> edges_;
  std::unique_ptr<Sender> sender_;
  std::unique_ptr<Receiver> receiver_;
  std::unique_ptr<Adder> adder_;  // Null where the fabric adds up nothing.
  std::deque<Made> made_;         // What is sent next, and what then.
  std::optional<Made> addend_;    // What is added up next.
  std::uint64_t sent_ = 0;
  std::uint64_t looked_ = 0;
  std::uint64_t added_ = 0;  // Sums that were begun, and those that were looked at.
  std::uint64_t summed_ = 0;

  mutable std::mutex mutex_;
  std::deque<Heard> heard_;
  std::deque<Tensor> sums_;
  std::string end_;
};

}  // namespace troupe::transport
