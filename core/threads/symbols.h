#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// The names of the functions of this program, from the symbol table of its file. A program without
/// one has no names: `strip` removes it.
class Symbols {
 public:
  /// Reads the table of the running program. Takes some milliseconds.
  static Symbols of_this_program();

  /// Returns the name of the function at an address in this process, or the file and the place in
  /// it, such as "libzmq.so.5+0x1f3a0", if no function is known there.
  std::string name_at(std::uintptr_t address) const;

 private:
  struct Function {
    std::uintptr_t begin = 0;  // Relative to where the program is loaded.
    std::uintptr_t end = 0;
    std::string name;  // As the linker knows it.
  };

  std::vector<Function> functions_;  // Sorted by begin.
};

/// Returns a function's name without the arguments of functions and templates:
/// "troupe::Worker::run" for "troupe::Worker::run()". Longer names than `most` bytes lose their
/// beginning.
std::string short_name(const std::string& name, std::size_t most);

}  // namespace troupe
