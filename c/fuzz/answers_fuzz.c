/* Answers of the key service: first byte chooses status and kind, the rest is the body. */
#include "answers.h"
#include "http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static cl_http_answer answer_of(const uint8_t *data, size_t size, unsigned choice)
{
    static const long STATUS[] = {200, 200, 200, 403, 400, 500, 503, 404};
    cl_http_answer http = {.status = STATUS[choice % 8], .size = size, .body = malloc(size + 1)};
    memcpy(http.body, data, size);
    (void)snprintf(http.content_type, sizeof http.content_type, "%s",
                   choice % 8 < 3 ? "application/json" : "application/problem+json");
    return http;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static cl_algorithms algorithms;
    static cl_key_answer keys[2];
    if (algorithms.hkdf == NULL && cl_algorithms_open(&algorithms) != CL_OK) {
        abort();
    }
    if (size == 0) {
        return 0;
    }
    cl_error error;
    cl_http_answer http = answer_of(data + 1, size - 1, data[0]);
    if ((data[0] & 8U) == 0) {
        cl_encryption_answer answer = {0};
        cl_code code = cl_parse_encryption(&algorithms, &http, &answer, &error);
        if (code == CL_OK && (http.status != 200 || answer.terms.expires_in == 0)) {
            abort();
        }
    } else {
        memset(keys, 0, sizeof keys);
        (void)cl_kid_parse("4bc31153e689f5bbe9cd6136ff2f83bb", &keys[0].kid);
        cl_decryption_answer answer = {.count = data[0] >> 4U & 1U, .keys = keys};
        cl_code code = cl_parse_decryption(&algorithms, &http, &answer, &error);
        if (code == CL_OK && answer.count == 1 && !keys[0].answered) {
            abort();
        }
    }
    cl_http_answer_free(&http);
    return 0;
}
