#include "kernels/cuda/kernels.h"

#include "kernels/cuda/between_layers.h"
#include "kernels/cuda/rounding.h"
#include "kernels/cuda/tensor_cores.h"

namespace troupe::kernels::cuda {

const DeviceKernels all_kernels = {
    .layers = layer_kernels<float>,
    .gelu_forward = gelu_forward,
    .gelu_backward = gelu_backward,
    .softcap_forward = softcap_forward,
    .softcap_backward = softcap_backward,
    .add_row = add_row,
    .attention_forward = attention_forward,
    .attention_backward = attention_backward,
    .batch_norm_forward = batch_norm_forward,
    .batch_norm_apply = batch_norm_apply,
    .batch_norm_backward_input = batch_norm_backward_input,
    .batch_norm_backward_weight = batch_norm_backward_weight,
    .average_pool_forward = average_pool_forward,
    .average_pool_backward = average_pool_backward,
    .max_pool_forward = max_pool_forward,
    .max_pool_backward = max_pool_backward,
    .window_mean_forward = window_mean_forward,
    .window_mean_backward = window_mean_backward,
    .conv2d_forward = conv2d_forward,
    .conv2d_backward_input = conv2d_backward_input,
    .conv2d_backward_weight = conv2d_backward_weight,
    .combine = combine,
    .multiply_elements = multiply,
    .fill = fill,
    .copy_rows = copy_rows,
    .cut_patches = cut_patches,
    .join_patches = join_patches,
    .dropout = dropout,
    .embedding_forward = embedding_forward,
    .embedding_backward_weight = embedding_backward_weight,
    .adam_direction = adam_direction,
    .adam_forecast = adam_forecast,
    .average_squares = average_squares,
    .usual_step = usual_step,
    .gap_share = gap_share,
    .compensate_delay = compensate_delay,
    .inverses_of_blocks = inverses_of_blocks,
    .multiply = multiply,
    .bias_backward = bias_backward,
    .sgd_step = sgd_step,
    .adam_step = adam_step,
    .squares_of_blocks = squares_of_blocks,
    .accumulate = accumulate,
    .all_finite = all_finite,
    .round_to_f16 = round_all<Float16>,
    .widen_f16 = widen_all<Float16>,
    .round_to_bf16 = round_all<BFloat16>,
    .widen_bf16 = widen_all<BFloat16>,
    .tf32 = &tf32_kernels,
    .fp16 = &fp16_kernels,
    .bf16 = &bf16_kernels,
};

}  // namespace troupe::kernels::cuda
