#include "kernels/cuda/launch_queue.h"

#include <cassert>

#include "core/memory/device_progress.h"
#include "kernels/cuda/machine/queue.h"

namespace troupe::kernels::cuda {
namespace {

// For all numbers between two plays: enough for some hundred layers.
constexpr std::size_t room_for_numbers = 8192;
// A graph with fewer kernels is hardly faster than single launches.
constexpr std::size_t least_pieces = 8;

}  // namespace

LaunchQueue::LaunchQueue(cudaStream_t queue, cudaStream_t recorder, MemoryPool& host)
    : queue_(queue), host_(host), graphs_(queue, recorder) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, room_for_numbers));
  numbers_ = static_cast<std::byte*>(memory);
}

LaunchQueue::~LaunchQueue() {
  (void)cudaStreamSynchronize(queue_);
  (void)cudaFree(numbers_);
}

const void* LaunchQueue::place_numbers(const void* numbers, std::size_t bytes) {
  if (written_bytes_ + bytes > room_for_numbers) {
    play();
    clear();  // Kernels with no elements place numbers too, but are never enqueued.
  }
  if (!written_) written_ = host_.take(room_for_numbers);
  const std::size_t at = written_bytes_;
  std::memcpy(written_.get()->memory + at, numbers, bytes);
  written_bytes_ =
      (at + bytes + alignment_of_numbers - 1) / alignment_of_numbers * alignment_of_numbers;
  return numbers_ + at;
}

/// Copies the numbers in order with earlier work, which may still read the previous ones.
void LaunchQueue::send_numbers() {
  if (!written_) return;
  check(
      cudaMemcpyAsync(numbers_, written_.get()->memory, written_bytes_, cudaMemcpyDefault, queue_));
  // The host memory must not be reused before the copy has read it.
  if (auto* work = DeviceWork::of_this_thread())
    work->hold(written_);
  else
    check(cudaStreamSynchronize(queue_));
}

void LaunchQueue::play() {
  if (work_.pieces() == 0) return;
  try {
    send_numbers();
    is_repeated_&& work_.pieces() >= least_pieces ? graphs_.play(work_) : work_.give_to(queue_);
  } catch (...) {
    clear();
    throw;
  }
  clear();
}

void LaunchQueue::clear() {
  work_.clear();
  written_ = {};
  written_bytes_ = 0;
}

void LaunchQueue::begin_repeated() {
  assert(!is_repeated_);
  play();
  is_repeated_ = true;
}

void LaunchQueue::end_repeated() {
  play();
  is_repeated_ = false;
}

void LaunchQueue::drop_repeated() {
  clear();
  is_repeated_ = false;
}

}  // namespace troupe::kernels::cuda
