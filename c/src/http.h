/* POST over mutual TLS with libcurl: connections, time outs, limits. Knows no JSON and no keys. Thread-safe. */
#ifndef CL_HTTP_H
#define CL_HTTP_H

#include "answers.h"
#include "config.h"

typedef struct cl_http cl_http;

/* NULL when libcurl or memory fails, or the PEM files cannot be used. `settings` must outlive it. */
cl_http *cl_http_new(const cl_settings *settings, cl_error *error);
void cl_http_free(cl_http *http);

/*
 * Sends `body` to one address and waits at most `timeout_ms`. CL_OK with *answer filled, whatever its status; free it with
 * cl_http_answer_free. Otherwise CL_KEY_SERVICE_UNAVAILABLE (no connection, no handshake, time out),
 * CL_KEY_SERVICE_BAD_ANSWER (over 1 MiB) or CL_INTERNAL.
 */
cl_code cl_http_post(cl_http *http, const char *url, const char *path, const char *body, uint32_t timeout_ms,
                     cl_http_answer *answer, cl_error *error);

/* Wipes and frees the body. */
void cl_http_answer_free(cl_http_answer *answer);

#endif
