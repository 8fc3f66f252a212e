/* Plaintext that is compressed before it is encrypted (flag 1): exactly one zstd frame; reading is bounded [CL-ENV-011]. */
#ifndef CL_COMPRESSION_H
#define CL_COMPRESSION_H

#include <cipherlane/cipherlane.h>
#include <zstd.h>

/*
 * Compresses into `out`, which has room for value.size bytes, apart from the value. CL_OK with *size set, 0 when the frame, which
 * states its content size, would not be shorter than the value [CL-ENV-045]; CL_INTERNAL when zstd fails.
 */
cl_code cl_compress(ZSTD_CCtx *context, cl_bytes value, uint8_t *out, size_t *size);

/*
 * Decompresses into `out`. CL_OK with *size set; CL_PLAINTEXT_TOO_LONG over `limit`; CL_BUFFER_TOO_SMALL over
 * `capacity`, with *size a size that is needed at least; CL_DECOMPRESSION_FAILED; CL_INTERNAL without memory. Memory is
 * bounded by the limit whatever the frame claims.
 */
cl_code cl_decompress(cl_bytes frame, size_t limit, uint8_t *out, size_t capacity, size_t *size);

#endif
