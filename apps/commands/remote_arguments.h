#pragma once

#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace troupe::apps {

/// The options that say how other machines start this program.
struct RemoteArguments {
  std::string program;  // Empty: the same file as here.
  std::string folder;   // Empty: the same folder as here.

  void add_to(CLI::App& command);
};

}  // namespace troupe::apps
