/*
 * POST over mutual TLS with libcurl: connections, time outs, limits. Knows no JSON, no keys, and not where certificates come from. Thread-safe.
 */
#ifndef CL_HTTP_H
#define CL_HTTP_H

#include "answers.h"
#include "pem.h"

typedef struct cl_http cl_http;

/* What is sent, where to, under which certificate, and how long to wait for the answer. */
typedef struct cl_http_request {
    const char *url;
    const char *path;
    const char *body;
    uint32_t timeout_ms;
    cl_pem *pem; /* the caller keeps its reference */
} cl_http_request;

/* NULL when libcurl or memory fails. `settings` must outlive it. */
cl_http *cl_http_new(const cl_settings *settings, cl_error *error);
void cl_http_free(cl_http *http);

/*
 * Sends a body to one address and waits for the answer. CL_OK with *answer filled, whatever its status; free it with
 * cl_http_answer_free. Otherwise CL_KEY_SERVICE_UNAVAILABLE (no connection, no handshake, time out),
 * CL_KEY_SERVICE_BAD_ANSWER (over 1 MiB) or CL_INTERNAL.
 */
cl_code cl_http_post(cl_http *http, const cl_http_request *request, cl_http_answer *answer, cl_error *error);

/*
 * Ends the requests in flight, in other threads, at once, and until cl_http_resume refuses new ones: CL_KEY_SERVICE_UNAVAILABLE. For whoever
 * must wait for such a thread.
 */
void cl_http_interrupt(cl_http *http);
void cl_http_resume(cl_http *http);

/* Wipes and frees the body. */
void cl_http_answer_free(cl_http_answer *answer);

#endif
