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

/// One of two processes with a GPU each, perhaps the same GPU. It has the edges of a node: one in
/// each direction, and one that sums if the fabric supports that. The contents of a parcel follow
/// from its number.
class Side {
 public:
  /// `here` is 0 or 1. `gpu` outlives the object.
  Side(int here, LinkedGpu& gpu, std::uint64_t epoch);
  ~Side();
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  /// Returns the address for the other side's edge words.
  std::string address() const { return door_->address(); }
  /// Connects to the other side, whose door must be open already. Call it before the other side
  /// begins.
  Status connect(const std::string& address);
  /// Waits until the edges are ready.
  Status form();

  /// Sends as many parcels as may be under way, up to number `most`. Every fourth parcel comes with
  /// a sum.
  Status send_more(std::uint64_t most);
  /// Checks the parcels that have come. Fails if one is wrong or the edge has ended.
  Status look();
  std::uint64_t sent() const { return sent_; }
  std::uint64_t looked() const { return looked_; }
  bool has_played(std::uint64_t count) const;
  /// Returns how the edges ended; empty while they have not.
  std::string end() const;
  /// Waits until `holds` is true, and makes all possible progress meanwhile.
  Status play(std::uint64_t most, const std::function<bool()>& holds);

  /// Ends the side. Returns whether everything was released in time.
  bool leave();

 private:
  struct Heard {
    std::uint64_t head = 0;
    std::vector<Tensor> tensors;
  };

  /// Tensors that the device makes; ready once it has passed the mark.
  struct Made {
    std::vector<Tensor> tensors;
    Device::Mark mark = 0;
  };

  void make_next();
  void make_addend();
  bool is_ready(const Made& made);
  Status add_more();
  Status look_at(const Tensor& sum);
  Status look_at(const Heard& parcel);
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
  std::unique_ptr<Adder> adder_;  // Null if the fabric does not sum.
  std::deque<Made> made_;         // The next parcels to send.
  std::optional<Made> addend_;    // The next addend.
  std::uint64_t sent_ = 0;
  std::uint64_t looked_ = 0;
  std::uint64_t added_ = 0;  // The number of sums that were begun, and of those that were checked.
  std::uint64_t summed_ = 0;

  mutable std::mutex mutex_;
  std::deque<Heard> heard_;
  std::deque<Tensor> sums_;
  std::string end_;
};

}  // namespace troupe::transport
