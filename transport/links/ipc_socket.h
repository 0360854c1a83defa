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

/// What the two ends of a link by shared memory of devices tell one another, by a socket of their
/// own: words with ranges of memory in them, and now and then a file.
namespace troupe::transport {

enum class IpcKind : std::uint32_t {
  opening = 1,  // By the sender, first of all: how much memory it has reserved.
  piece = 2,  // By the sender: a piece of it, with its file. Before the first offer that needs it.
  offer = 3,  // By the sender: what the operation of this number sends lies there, and is done.
  taken = 4,  // By the receiver: it has what was sent with this number.
};

struct IpcWord {
  IpcKind kind = IpcKind::opening;
  std::uint64_t number = 0;
  std::vector<MemoryRange> ranges;
  Descriptor file;
};

/// Ranges of one word, at most.
constexpr std::size_t most_ipc_ranges = 4096;

/// A name for a link, and the socket at which the other end is waited for.
struct NamedSocket {
  std::string name;
  Descriptor listening;
};
Result<NamedSocket> listen_for_ipc();
/// The one who has come; nobody yet: none. Who is of another user is sent away.
Descriptor accept_ipc(const Descriptor& listening);
Result<Descriptor> connect_ipc(const std::string& name);

/// One end. Never waits.
class IpcSocket {
 public:
  explicit IpcSocket(Descriptor socket);

  /// What there is no room for goes later, in order, when this end says or hears something.
  void say(IpcWord word);
  /// The next word that has come, or none. Nothing that comes is believed.
  Result<std::optional<IpcWord>> hear();
  /// Whether the other end has hung up, or its process has ended. What it has said before can be
  /// heard yet.
  bool is_gone() const;

 private:
  void send_line();
  bool send_first();

  Descriptor socket_;
  std::deque<IpcWord> line_;
  std::vector<std::byte> bytes_;  // Of the word that is said or heard.
};

}  // namespace troupe::transport
