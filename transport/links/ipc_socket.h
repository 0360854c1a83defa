#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/descriptor.h"
#include "core/memory/exported_memory.h"
#include "core/result.h"

/// The messages between the two ends of an ipc link, on a socket of their own: words that contain
/// memory ranges, and sometimes a file descriptor.
namespace troupe::transport {

enum class IpcKind : std::uint32_t {
  opening = 1,  // From the sender, first of all: how much memory it reserves.
  piece = 2,  // From the sender: a piece of memory, with its file; sent before the first offer that
              // uses it.
  offer = 3,  // From the sender: the data of operation `number` lies in these ranges.
  taken = 4,  // From the receiver: it has copied the data of operation `number`.
};

struct IpcWord {
  IpcKind kind = IpcKind::opening;
  std::uint64_t number = 0;
  std::vector<MemoryRange> ranges;
  Descriptor file;
};

/// The most ranges in one word.
constexpr std::size_t most_ipc_ranges = 4096;

/// A link's name, and the socket that listens for the other end.
struct NamedSocket {
  std::string name;
  Descriptor listening;
};
Result<NamedSocket> listen_for_ipc();
/// Returns a connection, or none if nobody has connected. Rejects other users.
Descriptor accept_ipc(const Descriptor& listening);
Result<Descriptor> connect_ipc(const std::string& name);

/// One end of the socket. It never waits.
class IpcSocket {
 public:
  explicit IpcSocket(Descriptor socket);

  /// Sends a word. If there is no room, it is sent later, in order, by a call of say() or hear().
  void say(IpcWord word);
  /// Returns the next word, or none. Checks everything that arrives.
  Result<std::optional<IpcWord>> hear();
  /// Returns whether the other end has hung up or its process has ended. Its earlier words can
  /// still be heard.
  bool is_gone() const;

 private:
  void send_line();
  bool send_first();

  Descriptor socket_;
  std::deque<IpcWord> line_;
  std::vector<std::byte> bytes_;  // A buffer for one word.
};

}  // namespace troupe::transport
