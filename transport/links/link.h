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

/// Links move bytes from one device's memory to another's. A link has one direction, joins two
/// devices and serves one attempt: it is a NCCL communicator with two ranks, or a link of
/// ipc_fabric.h. Some fabrics also have links that join any number of devices and sum what each of
/// them has. edges.h uses links in a way that avoids NCCL's traps:
///
/// - There are no tags: the k-th send matches the k-th receive, and the k-th sums of all ends
///   match.
/// - A posted operation blocks the link's queue until the other ends have posted their part. It
///   occupies the device meanwhile, and starts only if other work leaves room for it.
/// - A send may complete before its receive was posted: small data is buffered on the way. So may
///   the part of an end that gets no piece of a sum.
/// - A link's first exchange connects its ends, allocates memory and loads code. It waits for the
///   device, as making and ending a link do: forever, if an unmatched operation occupies the
///   device.
/// - Sizes that differ cause undefined behavior instead of an error.
/// - The order in which a sum adds its terms is undefined.
/// - An aborted operation completes with garbage, and the work behind it starts.
/// - The loss of another end, or a failure, is found only by polling, and not always.
namespace troupe::transport {

/// The id of a link, which only the fabric that made it can interpret.
struct LinkId {
  std::array<std::byte, 128> bytes{};
};

enum class LinkSide : std::uint8_t { sends, receives };

/// The number of an end of a summing link, and the number of ends.
struct LinkMember {
  int number = 0;
  int of = 2;
};

/// Memory to send, to receive into, or to sum.
struct Piece {
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
};

/// The progress of a link.
struct LinkReport {
  enum class Phase : std::uint8_t { forming, ready, broken };

  Phase phase = Phase::forming;
  std::uint64_t issued = 0;  // Posted operations that the device has in its queue or had.
  std::uint64_t ended = 0;   // Issued operations that have left the queue; they leave it in order.
};

/// One end of a link. It never waits.
class Link {
 public:
  /// Called only by the fabric, to which the link was given back.
  virtual ~Link() = default;

  virtual LinkReport report() = 0;
  /// The error of a broken link.
  virtual std::string why_broken() const = 0;

  /// Sends or receives all pieces as one operation; the other end posts pieces of the same sizes.
  /// On a summing link each member posts one piece of floats for each member: member k's piece k
  /// becomes the sum of all pieces k, and its other pieces become undefined. Requires that the link
  /// is ready, that earlier posts are issued, and that the device is done with the memory: sent
  /// data is complete, and no earlier work touches received data. So it never waits for the device.
  /// The link owns the memory until the operation has ended.
  virtual void post(std::span<const Piece> pieces) = 0;

  /// Orders all later work of the device after all issued operations.
  virtual void join() = 0;
};

/// Makes the links of one device. One thread calls the fabric and its links.
class Fabric {
 public:
  virtual ~Fabric() = default;

  /// Makes the id of a new link. The process that made it must live until both ends are ready.
  virtual Result<LinkId> name_link() = 0;
  /// Starts to make an end. It becomes ready after the other end was begun too.
  virtual Result<std::unique_ptr<Link>> begin(const LinkId& id, LinkSide side) = 0;
  /// Returns whether the fabric has summing links. All fabrics of one kind agree.
  virtual bool adds() const { return false; }
  /// Starts to make an end of a summing link. It becomes ready after all ends were begun.
  virtual Result<std::unique_ptr<Link>> begin_adding(const LinkId& /*id*/, LinkMember /*member*/) {
    return Error{"links of this kind add up nothing"};
  }

  /// Starts to end all links together and aborts their operations. Call it again only after
  /// ended().
  virtual void end(std::vector<std::unique_ptr<Link>> links) = 0;
  /// Returns whether all links given to end() are gone and the device no longer uses their memory.
  virtual bool ended() = 0;

  /// The poison word, which the device sees too.
  virtual Poison& poison() = 0;
};

}  // namespace troupe::transport
