/* Plaintext that was compressed before it was encrypted (flag 1): exactly one zstd frame, bounded [CL-ENV-011]. */
#ifndef CL_COMPRESSION_H
#define CL_COMPRESSION_H

#include <cipherlane/cipherlane.h>

/*
 * Decompresses into `out`. CL_OK with *size set; CL_PLAINTEXT_TOO_LONG over `limit`; CL_BUFFER_TOO_SMALL over
 * `capacity`, with *size a size that is needed at least; CL_DECOMPRESSION_FAILED; CL_INTERNAL without memory. Memory is
 * bounded by the limit whatever the frame claims.
 */
cl_code cl_decompress(cl_bytes frame, size_t limit, uint8_t *out, size_t capacity, size_t *size);

#endif
