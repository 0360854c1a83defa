#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "transport/links/poison.h"

/// What moves bytes from the memory of one device to that of another. A link is one way, between
/// two devices, and of one epoch: a communicator of NCCL with two ranks, or what ipc_fabric.h has.
/// Some fabrics also have links that join any number of devices, and add up what each of them has.
/// They are used as edges.h says, which keeps clear of the traps that NCCL has:
///
/// - There are no tags: the k-th send meets the k-th receive, the k-th sum that of all others.
/// - What is posted goes into a queue of the link's and stays there, with all that is behind it,
///   until the other ends have posted their part. It occupies the device meanwhile, and begins only
///   where other work leaves room for it.
/// - A send may be over before its receive was posted, and so may the part of an end to which no
///   piece of a sum comes: what is small waits on the way.
/// - The first exchange of a link connects its ends, takes memory and loads code. That, to make a
///   link and to end one wait for the device: for ever, where what nobody meets occupies it.
/// - Sizes that differ are no error: what happens then is not said.
/// - In which order the numbers of a sum are added up is not said either.
/// - What is aborted ends as well: garbage is where its numbers would be, and what stands behind
///   it begins.
/// - That another end is gone, or that something failed, is found by asking, and not always.
namespace troupe::transport {

/// What names a link that is to be. Bytes that only the fabric which made it understands.
struct LinkId {
  std::array<std::byte, 128> bytes{};
};

enum class LinkSide : std::uint8_t { sends, receives };

/// One of the ends of a link that adds up.
struct LinkMember {
  int number = 0;
  int of = 2;
};

/// What is sent, where to put what comes, or what is added up.
struct Piece {
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
};

/// How far a link is.
struct LinkReport {
  enum class Phase : std::uint8_t { forming, ready, broken };

  Phase phase = Phase::forming;
  std::uint64_t issued = 0;  // Of the operations that were posted, those in the device's queue.
  std::uint64_t ended = 0;   // Of these, in order, those that have left it.
};

/// One end of a link. Never waits.
class Link {
 public:
  /// By its fabric alone, to which it was given back.
  virtual ~Link() = default;

  virtual LinkReport report() = 0;
  /// Where it is broken.
  virtual std::string why_broken() const = 0;

  /// Sends all pieces, or receives them, as one operation; the other end has pieces of the same
  /// sizes. A link that adds up has a piece for each member, of floats: member k's piece k becomes
  /// the sum of all members' pieces k, and its others are nothing any more. Only where the link is
  /// ready and what was posted before is issued. The device is done with the memory: what is sent
  /// or added up is there, and nothing that it was given before touches what is written. So this
  /// waits for no work of the device. The memory is the link's until the operation has ended.
  virtual void post(std::span<const Piece> pieces) = 0;

  /// Whatever the device is given from now on begins after all operations that are issued.
  virtual void join() = 0;
};

/// What makes the links of one device. One thread calls it and its links.
class Fabric {
 public:
  virtual ~Fabric() = default;

  /// Names a link. Whoever made the name lives until both ends are ready.
  virtual Result<LinkId> name_link() = 0;
  /// Begins to make an end, which becomes ready once the other end was begun as well.
  virtual Result<std::unique_ptr<Link>> begin(const LinkId& id, LinkSide side) = 0;
  /// Whether there are links that add up. Fabrics of one kind say the same.
  virtual bool adds() const { return false; }
  /// Likewise an end of such a link, once all were begun.
  virtual Result<std::unique_ptr<Link>> begin_adding(const LinkId& /*id*/, LinkMember /*member*/) {
    return Error{"links of this kind add up nothing"};
  }

  /// Begins to end them all at once: what they have posted is aborted. Not before an earlier call
  /// has come to its end().
  virtual void end(std::vector<std::unique_ptr<Link>> links) = 0;
  /// Whether all that was given to end() is gone, and the device touches none of its memory.
  virtual bool ended() = 0;

  /// The device sees it too.
  virtual Poison& poison() = 0;
};

}  // namespace troupe::transport
