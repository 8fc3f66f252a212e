/* Fail-over between addresses, and the calls. */
#include "keyservice.h"

#include "clock.h"
#include "error.h"
#include "http.h"

#include <stdatomic.h>
#include <stdlib.h>

struct cl_keyservice {
    const cl_settings *settings;
    const cl_algorithms *algorithms;
    cl_pem_source source;
    cl_http *http;
    _Atomic uint64_t requests;
    _Atomic uint64_t failures;
};

/* What to make of an answer; `into` is one of the answer structures. */
typedef cl_code (*parser)(const cl_algorithms *, const cl_http_answer *, void *into, cl_error *);

typedef struct call {
    const char *path;
    const char *request;
    parser parse;
    void *into;
    uint64_t sent_at;
    bool answered; /* with what was asked for, or with a refusal that stays */
} call;

cl_keyservice *cl_keyservice_new(const cl_settings *settings, const cl_algorithms *algorithms, cl_pem_source source,
                                 cl_error *error)
{
    cl_keyservice *service = calloc(1, sizeof *service);
    if (service == NULL) {
        (void)cl_no_memory(error);
        return NULL;
    }
    service->settings = settings;
    service->algorithms = algorithms;
    service->source = source;
    service->http = cl_http_new(settings, error);
    if (service->http == NULL) {
        free(service);
        return NULL;
    }
    return service;
}

void cl_keyservice_free(cl_keyservice *service)
{
    if (service != NULL) {
        cl_http_free(service->http);
        free(service);
    }
}

void cl_keyservice_interrupt(cl_keyservice *service)
{
    cl_http_interrupt(service->http);
}

void cl_keyservice_resume(cl_keyservice *service)
{
    cl_http_resume(service->http);
}

void cl_keyservice_numbers(const cl_keyservice *service, uint64_t *requests, uint64_t *failures)
{
    *requests = atomic_load_explicit(&service->requests, memory_order_relaxed);
    *failures = atomic_load_explicit(&service->failures, memory_order_relaxed);
}

/* Milliseconds for one request, 0 when the deadline has come. */
static uint32_t time_left(const cl_keyservice *service, uint64_t deadline)
{
    uint64_t now = cl_now();
    uint64_t left = now < deadline ? (deadline - now + CL_MILLISECOND - 1) / CL_MILLISECOND : 0;
    uint32_t most = service->settings->request_timeout_ms;
    return left < most ? (uint32_t)left : most;
}

/* [CL-KEY-014]: only what says "not me, not now"; a refusal is an answer. */
static bool try_next(cl_code code)
{
    return code == CL_KEY_SERVICE_UNAVAILABLE || code == CL_KEY_SERVICE_INTERNAL || code == CL_AUDIT_UNAVAILABLE;
}

static cl_code post(cl_keyservice *service, const char *url, call *what, uint32_t timeout_ms, cl_error *error)
{
    cl_pem *pem = NULL;
    cl_http_answer http;
    cl_code code = service->source.give(service->source.context, timeout_ms, &pem, error);
    if (code != CL_OK) {
        return code;
    }
    const cl_http_request request = {url, what->path, what->request, timeout_ms, pem};
    code = cl_http_post(service->http, &request, &http, error);
    cl_pem_drop(pem);
    if (code == CL_OK) {
        what->sent_at = http.sent_at;
        code = what->parse(service->algorithms, &http, what->into, error);
        what->answered = !try_next(code);
        cl_http_answer_free(&http);
    }
    return code;
}

static cl_code ask_one(cl_keyservice *service, const char *url, call *what, uint32_t timeout_ms, cl_error *error)
{
    cl_code code = post(service, url, what, timeout_ms, error);
    (void)atomic_fetch_add_explicit(&service->requests, 1, memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&service->failures, code == CL_OK ? 0 : 1, memory_order_relaxed);
    return code;
}

static cl_code ask(cl_keyservice *service, call *what, uint64_t deadline, cl_error *error)
{
    cl_code code = cl_fail(error, CL_KEY_SERVICE_UNAVAILABLE, "key-service-unavailable: no time left to ask");
    for (size_t i = 0; i < service->settings->url_count && try_next(code); i++) {
        uint32_t timeout_ms = time_left(service, deadline);
        if (timeout_ms == 0) {
            break;
        }
        code = ask_one(service, service->settings->url[i], what, timeout_ms, error);
    }
    return code;
}

static cl_code parse_encryption(const cl_algorithms *algorithms, const cl_http_answer *http, void *into,
                                cl_error *error)
{
    return cl_parse_encryption(algorithms, http, into, error);
}

static cl_code parse_decryption(const cl_algorithms *algorithms, const cl_http_answer *http, void *into,
                                cl_error *error)
{
    return cl_parse_decryption(algorithms, http, into, error);
}

static cl_code parse_certificate(const cl_algorithms *algorithms, const cl_http_answer *http, void *into,
                                 cl_error *error)
{
    (void)algorithms;
    return cl_parse_certificate(http, into, error);
}

cl_code cl_keyservice_encryption(cl_keyservice *service, const char *request, uint64_t deadline,
                                 cl_encryption_answer *answer, uint64_t *sent_at, cl_error *error)
{
    call what = {.path = "/v1/encryption-key", .request = request, .parse = parse_encryption, .into = answer};
    cl_code code = ask(service, &what, deadline, error);
    *sent_at = what.sent_at;
    return code;
}

cl_code cl_keyservice_decryption(cl_keyservice *service, const char *request, uint64_t deadline,
                                 cl_decryption_answer *answer, uint64_t *sent_at, cl_error *error)
{
    call what = {.path = "/v1/decryption-keys", .request = request, .parse = parse_decryption, .into = answer};
    cl_code code = ask(service, &what, deadline, error);
    *sent_at = what.sent_at;
    return code;
}

cl_code cl_keyservice_certificate(cl_keyservice *service, const char *request, uint64_t deadline,
                                  cl_certificate_answer *answer, uint64_t *sent_at, bool *answered, cl_error *error)
{
    call what = {.path = "/v1/certificate", .request = request, .parse = parse_certificate, .into = answer};
    cl_code code = ask(service, &what, deadline, error);
    *sent_at = what.sent_at;
    *answered = what.answered;
    return code;
}
