/* The error codes: names, layers, and which of them pass by themselves. The only table of them. */
#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct code_text {
    const char *name;
    const char *layer;
} code_text;

static const code_text TEXTS[CL_CODES] = {
    [CL_OK] = {"ok", "none"},
    [CL_CONFIGURATION_INVALID] = {"configuration-invalid", "configuration"},
    [CL_VALUE_TYPE] = {"value-type", "input"},
    [CL_TOPIC_INVALID] = {"topic-invalid", "input"},
    [CL_PLAINTEXT_TOO_LONG] = {"plaintext-too-long", "input"},
    [CL_AMBIGUOUS_PLAINTEXT] = {"ambiguous-plaintext", "input"},
    [CL_ENVELOPE_TOO_SHORT] = {"envelope-too-short", "parse"},
    [CL_UNSUPPORTED_VERSION] = {"unsupported-version", "parse"},
    [CL_UNSUPPORTED_FLAGS] = {"unsupported-flags", "parse"},
    [CL_RECORD_KEY_UNAVAILABLE] = {"record-key-unavailable", "parse"},
    [CL_TOPIC_UNKNOWN] = {"topic-unknown", "policy"},
    [CL_TOPIC_FORBIDDEN] = {"topic-forbidden", "policy"},
    [CL_NOT_AUTHORIZED] = {"not-authorized", "policy"},
    [CL_SCOPE_MISMATCH] = {"scope-mismatch", "policy"},
    [CL_PLAINTEXT_REJECTED] = {"plaintext-rejected", "policy"},
    [CL_KEY_UNKNOWN] = {"key-unknown", "key-id"},
    [CL_KEY_DESTROYED] = {"key-destroyed", "key-id"},
    [CL_KEY_MALFORMED] = {"key-malformed", "key-id"},
    [CL_KEY_ID_MISMATCH] = {"key-id-mismatch", "key-id"},
    [CL_AUTHENTICATION_FAILED] = {"authentication-failed", "decryption"},
    [CL_DECOMPRESSION_FAILED] = {"decompression-failed", "decryption"},
    [CL_UNAUTHENTICATED] = {"unauthenticated", "key-service"},
    [CL_REQUEST_INVALID] = {"request-invalid", "key-service"},
    [CL_REQUEST_TOO_LARGE] = {"request-too-large", "key-service"},
    [CL_NOT_FOUND] = {"not-found", "key-service"},
    [CL_KEY_SERVICE_UNAVAILABLE] = {"key-service-unavailable", "key-service"},
    [CL_KEY_SERVICE_BAD_ANSWER] = {"key-service-bad-answer", "key-service"},
    [CL_KEY_SERVICE_INTERNAL] = {"internal", "key-service"},
    [CL_AUDIT_UNAVAILABLE] = {"audit-unavailable", "key-service"},
    [CL_LEASE_EXPIRED] = {"lease-expired", "key-service"},
    [CL_CLOSED] = {"closed", "client"},
    [CL_INTERNAL] = {"internal", "client"},
    [CL_BUFFER_TOO_SMALL] = {"buffer-too-small", "client"},
};

static const code_text *text_of(cl_code code)
{
    return (unsigned)code < CL_CODES ? &TEXTS[code] : &TEXTS[CL_INTERNAL];
}

const char *cl_code_name(cl_code code)
{
    return text_of(code)->name;
}

const char *cl_code_layer(cl_code code)
{
    return text_of(code)->layer;
}

bool cl_code_retriable(cl_code code)
{
    return code == CL_KEY_SERVICE_UNAVAILABLE || code == CL_LEASE_EXPIRED || code == CL_AUDIT_UNAVAILABLE ||
           code == CL_KEY_SERVICE_INTERNAL;
}

cl_code cl_code_of_name(const char *name)
{
    for (unsigned i = CL_CONFIGURATION_INVALID; i < CL_CODES; i++) {
        if (strcmp(TEXTS[i].name, name) == 0) {
            return (cl_code)i;
        }
    }
    return CL_CODES;
}

cl_code cl_fail(cl_error *error, cl_code code, const char *format, ...)
{
    if (error != NULL) {
        va_list arguments;
        va_start(arguments, format);
        error->code = code;
        (void)vsnprintf(error->message, sizeof error->message, format, arguments);
        va_end(arguments);
    }
    return code;
}

cl_code cl_no_memory(cl_error *error)
{
    return cl_fail(error, CL_INTERNAL, "internal: no memory");
}
