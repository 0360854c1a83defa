#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "apps/events/event_sink.h"
#include "core/env.h"
#include "storage/files/files.h"

namespace troupe::apps {

/// Writes the numbers of steps and evaluations to files that TensorBoard shows. Each life of a run
/// begins a file of its own in the folder; TensorBoard reads all of them. If a run goes back, the
/// file tells TensorBoard to forget the steps from there on. If the disk refuses a record, the
/// next event begins another file: events.jsonl has what is missing.
class TensorboardSink final : public EventSink {
 public:
  /// The environment and `files` outlive the sink. It makes the folder with the first number.
  TensorboardSink(Env& env, storage::Files& files, std::string folder)
      : env_(env), files_(files), folder_(std::move(folder)) {}

  void event(const Value& event) override;
  void close() override { file_.reset(); }

 private:
  bool open(double time);
  void write(const std::string& message);

  Env& env_;
  storage::Files& files_;
  const std::string folder_;
  std::unique_ptr<storage::FileWriter> file_;
  std::int64_t step_ = -1;  // The last step in the file; -1: none yet.
};

/// Returns a record of a TFRecord file: the length, the bytes, and a checksum of each.
std::string tensorboard_record(const std::string& message);

/// Returns the checksum CRC-32C (Castagnoli) of bytes.
std::uint32_t crc32c(std::string_view bytes);

}  // namespace troupe::apps
