#include "apps/events/tensorboard_sink.h"

#include <array>
#include <bit>
#include <cmath>
#include <span>
#include <string_view>

#include "core/json.h"

namespace troupe::apps {
namespace {

// Messages of TensorFlow's event.proto and summary.proto, in the wire format of protocol buffers.

enum class Wire : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void append_varint(std::string& message, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) message += static_cast<char>(number | 0x80);
  message += static_cast<char>(number);
}

template <class Number>
void append_fixed(std::string& message, Number number) {
  for (std::size_t i = 0; i < sizeof number; ++i)
    message += static_cast<char>(number >> (8 * i) & 0xff);
}

void append_key(std::string& message, int field, Wire wire) {
  append_varint(message, static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(wire));
}

void append_bytes(std::string& message, int field, std::string_view bytes) {
  append_key(message, field, Wire::bytes);
  append_varint(message, bytes.size());
  message += bytes;
}

void append_integer(std::string& message, int field, std::int64_t number) {
  append_key(message, field, Wire::varint);
  append_varint(message, static_cast<std::uint64_t>(number));
}

/// Returns the beginning of an Event: its time.
std::string event_at(double time) {
  std::string event;
  append_key(event, 1, Wire::fixed64);
  append_fixed(event, std::bit_cast<std::uint64_t>(time));
  return event;
}

/// Returns the Event with which each file begins.
std::string version_event(double time) {
  auto event = event_at(time);
  append_bytes(event, 3, "brain.Event:2");
  return event;
}

/// Returns the Event with which a run begins anew at a step: earlier values from there on go.
std::string start_event(double time, std::int64_t step) {
  auto event = event_at(time);
  append_integer(event, 2, step);
  std::string session;
  append_integer(session, 1, 1);  // SessionLog.START
  append_bytes(event, 7, session);
  return event;
}

/// Adds a value to a Summary.
void append_value(std::string& summary, std::string_view tag, double number) {
  std::string value;
  append_bytes(value, 1, tag);
  append_key(value, 2, Wire::fixed32);
  append_fixed(value, std::bit_cast<std::uint32_t>(static_cast<float>(number)));
  append_bytes(summary, 1, value);
}

/// Adds a text to a Summary, as TensorBoard's plugin for texts reads it.
void append_text(std::string& summary, std::string_view tag, std::string_view text) {
  std::string plugin, metadata, dimension, shape, tensor, value;
  append_bytes(plugin, 1, "text");
  append_bytes(metadata, 1, plugin);
  append_integer(dimension, 1, 1);
  append_bytes(shape, 2, dimension);
  append_integer(tensor, 1, 7);  // DT_STRING
  append_bytes(tensor, 2, shape);
  append_bytes(tensor, 8, text);
  append_bytes(value, 1, tag);
  append_bytes(value, 9, metadata);
  append_bytes(value, 8, tensor);
  append_bytes(summary, 1, value);
}

struct Tag {
  std::string_view key;
  std::string_view tag;
};
constexpr std::array<Tag, 8> step_tags = {{{"loss", "train/loss"},
                                           {"grad_norm", "train/gradient_norm"},
                                           {"lr", "train/learning_rate"},
                                           {"rate", "train/rate"},
                                           {"loss_scale", "train/loss_scale"},
                                           {"bubble", "run/bubble"},
                                           {"goodput", "run/goodput"},
                                           {"memory", "run/memory"}}};

/// Returns the Summary of an event; empty if it has neither a number nor a text.
std::string summary_of(const Value& event, std::string_view type) {
  std::string summary;
  const auto add = [&](std::string_view key, std::string_view tag) {
    const Value* number = event.find(key);
    if (number && number->is_number() && std::isfinite(number->number()))
      append_value(summary, tag, number->number());
  };
  if (type == "eval") add("loss", "validation/loss");
  if (type == "sample")
    append_text(summary, "sample", text_of(event, "prompt") + text_of(event, "text"));
  if (type == "step")
    for (const auto& [key, tag] : step_tags) add(key, tag);
  return summary;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  constexpr std::uint32_t polynomial = 0x82f63b78;  // Reversed.
  static const auto table = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < table.size(); ++i) {
      table[i] = i;
      for (int bit = 0; bit < 8; ++bit)
        table[i] = table[i] >> 1 ^ ((table[i] & 1) != 0 ? polynomial : 0);
    }
    return table;
  }();
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char byte : bytes)
    crc = crc >> 8 ^ table[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~crc;
}

std::string tensorboard_record(const std::string& message) {
  // The format masks checksums, so that the checksum of a text that holds one is no constant.
  const auto masked = [](std::string_view bytes) {
    return std::rotr(crc32c(bytes), 15) + 0xa282ead8U;
  };
  std::string record;
  append_fixed(record, static_cast<std::uint64_t>(message.size()));
  append_fixed(record, masked(record));
  record += message;
  append_fixed(record, masked(message));
  return record;
}

void TensorboardSink::event(const Value& event) {
  const std::string type = text_of(event, "type");
  const auto summary = summary_of(event, type);
  if (summary.empty()) return;
  const double time = number_in(event, "time");
  const auto step = integer_in(event, "step");
  if (!file_ && !open(time)) return;
  // A sample comes at any time, and steps go on meanwhile.
  if (type != "sample") {
    // An evaluation comes after the step that it evaluates.
    const bool goes_back = type == "step" ? step <= step_ : step < step_;
    if (step_ < 0 || goes_back) write(start_event(time, step));
    step_ = step;
  }
  auto message = event_at(time);
  append_integer(message, 2, step);
  append_bytes(message, 5, summary);
  write(message);
}

bool TensorboardSink::open(double time) {
  if (!files_.make_directory(folder_)) return false;
  // TensorBoard reads the files of a folder in the order of their names.
  const auto seconds = std::to_string(static_cast<std::int64_t>(time));
  const std::string name = folder_ + "/events.out.tfevents." +
                           std::string(seconds.size() < 10 ? 10 - seconds.size() : 0, '0') +
                           seconds + "." + std::to_string(env_.random() >> 33) + ".troupe";
  auto file = files_.create(name);
  if (!file) return false;
  file_ = std::move(*file);
  step_ = -1;
  write(version_event(time));
  return file_ != nullptr;
}

void TensorboardSink::write(const std::string& message) {
  if (!file_) return;
  const auto record = tensorboard_record(message);
  if (!file_->write(std::as_bytes(std::span(record.data(), record.size())))) file_.reset();
}

}  // namespace troupe::apps
