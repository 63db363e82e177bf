#pragma once
// The rules that operators.inc names. Each follows the operator's section in the ONNX specification.
#include "core/result.h"
#include "ingest/infer_step.h"

namespace plumbline::ingest {

// infer_elementwise.cc
Status infer_same(Step& step);
Status infer_same_boolean(Step& step);
Status infer_along_axis(Step& step);
Status infer_channels(Step& step);
Status infer_dropout(Step& step);
Status infer_eye_like(Step& step);
Status infer_cast(Step& step);
Status infer_cast_like(Step& step);
Status infer_one_way(Step& step);
Status infer_broadcast(Step& step);
Status infer_broadcast_boolean(Step& step);
Status infer_where(Step& step);
Status infer_dequantize(Step& step);
Status infer_dynamic_quantize(Step& step);
Status infer_quantize(Step& step);
Status infer_qlinear_add(Step& step);
Status infer_batch_normalization(Step& step);
Status infer_instance_normalization(Step& step);
Status infer_layer_normalization(Step& step);
Status infer_skip_layer_normalization(Step& step);

// infer_matrix.cc
Status infer_matmul(Step& step);
Status infer_matmul_integer(Step& step);
Status infer_matmul_fused(Step& step);
Status infer_qlinear_matmul(Step& step);
Status infer_gemm(Step& step);
Status infer_einsum(Step& step);
Status infer_lstm(Step& step);
Status infer_gru(Step& step);
Status infer_rnn(Step& step);

// infer_window.cc
Status infer_conv(Step& step);
Status infer_conv_integer(Step& step);
Status infer_qlinear_conv(Step& step);
Status infer_conv_transpose(Step& step);
Status infer_pool(Step& step);
Status infer_global_pool(Step& step);

// infer_reduction.cc
Status infer_reduce(Step& step);
Status value_reduce(Step& step);
Status infer_arg(Step& step);
Status infer_topk(Step& step);

// infer_layout.cc: the same elements in another shape
Status infer_reshape(Step& step);
Status infer_flatten(Step& step);
Status infer_squeeze(Step& step);
Status infer_unsqueeze(Step& step);
Status infer_transpose(Step& step);
Status infer_depth_to_space(Step& step);
Status infer_space_to_depth(Step& step);
Status infer_concat(Step& step);
Status infer_split(Step& step);
Status value_copy(Step& step);
Status value_transpose(Step& step);
Status value_concat(Step& step);
Status value_split(Step& step);

// infer_selection.cc: some elements, or elements repeated
Status infer_slice(Step& step);
Status infer_gather(Step& step);
Status infer_gather_elements(Step& step);
Status infer_gather_nd(Step& step);
Status infer_expand(Step& step);
Status infer_tile(Step& step);
Status infer_pad(Step& step);
Status infer_one_hot(Step& step);
Status infer_resize(Step& step);
Status infer_upsample(Step& step);
Status value_slice(Step& step);
Status value_gather(Step& step);
Status value_expand(Step& step);
Status value_tile(Step& step);
Status value_scatter_nd(Step& step);

// infer_values.cc: shapes as values, and arithmetic on them
Status infer_shape(Step& step);
Status infer_size(Step& step);
Status infer_constant_of_shape(Step& step);
Status infer_range(Step& step);
Status infer_non_zero(Step& step);
Status value_unary(Step& step);
Status value_binary(Step& step);
Status value_clip(Step& step);
Status value_cast(Step& step);
Status value_where(Step& step);

}  // namespace plumbline::ingest
