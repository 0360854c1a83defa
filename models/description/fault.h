#pragma once

#include <functional>
#include <string>

#include "core/result.h"
#include "core/value.h"

namespace troupe::models {

/// A place in a description: a position in its text, or the path in its tree.
struct Place {
  Position position{};  // Column 0: unknown, because the description came in a message.
  std::string path{};   // "part[1].body[0]"
};

/// A mistake in a description, or in the options that were given for it.
struct Fault {
  Place at{};             // Without a path: the options are wrong, and not the description.
  std::string message{};  // "linear 'head' takes rows of numbers and gets images [128, 4, 4]"
  Place made_at{};        // The step that made the stream, if the message is about its shape.
  std::string maker{};    // "conv 'conv', i = 2"
};

/// Translates a position in a tree to one in the file that the tree was read from.
using LocalPosition = std::function<Position(const Position&)>;

/// Returns "12:18", or the path if the position is unknown.
std::string to_text(const Place& place, const LocalPosition& local = {});

/// Returns the message with the place where the stream was made, but without the place of the
/// fault.
std::string message_of(const Fault& fault, const LocalPosition& local = {});

/// Returns "12:18: linear 'head' takes ...".
Error error_of(const Fault& fault);

}  // namespace troupe::models
