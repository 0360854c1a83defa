#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/descriptor.h"

namespace troupe::transport {

/// Somebody between a sender and a door who reads all that travels, and may change it. Serves one
/// connection.
class Middleman {
 public:
  using Bytes = std::vector<std::byte>;
  /// Bytes of one direction that are held back until all of them have come, and then changed.
  struct Window {
    std::size_t begin = 0;
    std::size_t size = 0;
    std::function<void(Bytes&)> change;
    bool then_hang_up = false;
  };

  Middleman(std::string door, std::optional<Window> forth, std::optional<Window> back = {});
  ~Middleman();

  std::string address() const;
  /// All that the sender has said, as it was said.
  Bytes said() const;

 private:
  struct Direction {
    std::optional<Window> window;
    std::size_t passed = 0;  // Bytes before the window.
    Bytes held;
  };

  void serve();
  /// False at the end of the connection.
  bool pass_on(int from, int to, Direction& direction);

  std::string door_;
  Descriptor listening_;
  Direction forth_, back_;
  mutable std::mutex mutex_;
  Bytes said_;
  std::thread thread_;
};

}  // namespace troupe::transport
