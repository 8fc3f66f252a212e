/* The envelope parser, decompression behind it, and what must hold of whatever they accept. */
#include "compression.h"
#include "envelope.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_envelope(cl_bytes value)
{
    cl_envelope envelope = {0};
    cl_code code = cl_envelope_parse(value, &envelope);
    if (code == CL_OK && (value.size < CL_ENVELOPE_OVERHEAD || envelope.size != value.size - CL_ENVELOPE_OVERHEAD ||
                          envelope.ciphertext != value.data + CL_ENVELOPE_HEADER ||
                          envelope.tag + CL_TAG_SIZE != value.data + value.size || (envelope.flags & 0xFAU) != 0)) {
        abort();
    }
    if (code != CL_OK && code != CL_ENVELOPE_TOO_SHORT && code != CL_UNSUPPORTED_VERSION &&
        code != CL_UNSUPPORTED_FLAGS) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t buffer[1000];
    size_t used = 0;
    if (cl_has_magic((cl_bytes){data, size})) {
        check_envelope((cl_bytes){data, size});
    }
    cl_code code = cl_decompress((cl_bytes){data, size}, 2000, buffer, sizeof buffer, &used);
    if (code == CL_OK && used > sizeof buffer) {
        abort();
    }
    return 0;
}
