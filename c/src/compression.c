/* One zstd frame: made, and decompressed under a limit. */
#include "compression.h"

#include <string.h>
#include <zstd_errors.h>

#define LEVEL 3 /* zstd's own default */

/* The smallest window that holds the limit, but 8 MiB at least, as RFC 8878 recommends; frames that ask for more fail. */
static int window_log(size_t limit)
{
    int log = 23;
    while (log < 31 && ((size_t)1 << (unsigned)log) < limit) {
        log++;
    }
    return log;
}

/* Whether more comes out of the frame than fits into the buffer, seen by asking for one more byte. */
static cl_code at_capacity(ZSTD_DCtx *context, ZSTD_inBuffer *in, size_t capacity, size_t limit, size_t *size)
{
    uint8_t more = 0;
    ZSTD_outBuffer out = {&more, 1, 0};
    size_t left = ZSTD_decompressStream(context, &out, in);
    if (ZSTD_isError(left) || (out.pos == 0 && left != 0)) {
        return CL_DECOMPRESSION_FAILED;
    }
    if (out.pos == 0) {
        return in->pos == in->size ? CL_OK : CL_DECOMPRESSION_FAILED;
    }
    *size = capacity + 1;
    return capacity >= limit ? CL_PLAINTEXT_TOO_LONG : CL_BUFFER_TOO_SMALL;
}

static cl_code stream(ZSTD_DCtx *context, cl_bytes frame, size_t limit, uint8_t *buffer, size_t capacity, size_t *size)
{
    ZSTD_inBuffer in = {frame.data, frame.size, 0};
    ZSTD_outBuffer out = {buffer, capacity < limit ? capacity : limit, 0};
    size_t left = 1;
    while (left != 0 && in.pos < in.size && out.pos < out.size) {
        left = ZSTD_decompressStream(context, &out, &in);
        if (ZSTD_isError(left)) {
            return CL_DECOMPRESSION_FAILED;
        }
    }
    *size = out.pos;
    if (left != 0 && out.pos == out.size) {
        return at_capacity(context, &in, out.size, limit, size);
    }
    return left == 0 && in.pos == in.size ? CL_OK : CL_DECOMPRESSION_FAILED;
}

cl_code cl_decompress(cl_bytes frame, size_t limit, uint8_t *out, size_t capacity, size_t *size)
{
    static const uint8_t MAGIC[] = {0x28, 0xB5, 0x2F, 0xFD}; /* skippable frames have another */
    unsigned long long claimed = ZSTD_getFrameContentSize(frame.data, frame.size);
    *size = 0;
    if (claimed == ZSTD_CONTENTSIZE_ERROR || frame.size < sizeof MAGIC ||
        memcmp(frame.data, MAGIC, sizeof MAGIC) != 0) {
        return CL_DECOMPRESSION_FAILED;
    }
    if (claimed != ZSTD_CONTENTSIZE_UNKNOWN && claimed > limit) {
        return CL_PLAINTEXT_TOO_LONG;
    }
    if (claimed != ZSTD_CONTENTSIZE_UNKNOWN && claimed > capacity) {
        *size = (size_t)claimed;
        return CL_BUFFER_TOO_SMALL;
    }
    ZSTD_DCtx *context = ZSTD_createDCtx();
    if (context == NULL || ZSTD_isError(ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, window_log(limit)))) {
        (void)ZSTD_freeDCtx(context);
        return CL_INTERNAL;
    }
    cl_code code = stream(context, frame, limit, out, capacity, size);
    (void)ZSTD_freeDCtx(context);
    return code;
}

cl_code cl_compress(ZSTD_CCtx *context, cl_bytes value, uint8_t *out, size_t *size)
{
    *size = 0;
    if (value.size == 0) {
        return CL_OK;
    }
    size_t made = ZSTD_compressCCtx(context, out, value.size - 1, value.data, value.size, LEVEL);
    if (ZSTD_isError(made)) {
        return ZSTD_getErrorCode(made) == ZSTD_error_dstSize_tooSmall ? CL_OK : CL_INTERNAL;
    }
    *size = made;
    return CL_OK;
}
