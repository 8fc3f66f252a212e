/* libcurl: a small pool of easy handles, each with its own connection. */
#include "http.h"

#include "clock.h"
#include "error.h"

#include <curl/curl.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BODY_MAX 1048576U
#define POOL 8U

struct cl_http {
    const cl_settings *settings;
    struct curl_slist *headers;
    pthread_mutex_t mutex;
    size_t idle;
    CURL *handles[POOL];
};

cl_http *cl_http_new(const cl_settings *settings)
{
    cl_http *http = calloc(1, sizeof *http);
    if (http == NULL) {
        return NULL;
    }
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        free(http);
        return NULL;
    }
    http->settings = settings;
    (void)pthread_mutex_init(&http->mutex, NULL);
    http->headers = curl_slist_append(NULL, "Content-Type: application/json");
    if (http->headers == NULL) {
        cl_http_free(http);
        return NULL;
    }
    return http;
}

void cl_http_free(cl_http *http)
{
    if (http == NULL) {
        return;
    }
    while (http->idle > 0) {
        curl_easy_cleanup(http->handles[--http->idle]);
    }
    curl_slist_free_all(http->headers);
    (void)pthread_mutex_destroy(&http->mutex);
    free(http);
    curl_global_cleanup();
}

/* What all requests have in common. Proxies and other settings of the environment do not count. */
static bool prepare(const cl_http *http, CURL *curl)
{
    const cl_settings *settings = http->settings;
    bool good = curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) == CURLE_OK;
    good = good && curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "https") == CURLE_OK;
    good = good && curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK;
    good = good && curl_easy_setopt(curl, CURLOPT_PROXY, "") == CURLE_OK;
    good = good && curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2) == CURLE_OK;
    good = good && curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 1L) == CURLE_OK;
    good = good && curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 2L) == CURLE_OK;
    good = good && curl_easy_setopt(curl, CURLOPT_CAINFO, settings->ca) == CURLE_OK;
    good = good && curl_easy_setopt(curl, CURLOPT_CAPATH, NULL) == CURLE_OK;
    good = good && curl_easy_setopt(curl, CURLOPT_SSLCERT, settings->certificate) == CURLE_OK;
    good = good && curl_easy_setopt(curl, CURLOPT_SSLKEY, settings->key) == CURLE_OK;
    good = good && curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)settings->connect_timeout_ms) == CURLE_OK;
    return good && curl_easy_setopt(curl, CURLOPT_HTTPHEADER, http->headers) == CURLE_OK;
}

static CURL *take_handle(cl_http *http)
{
    CURL *curl = NULL;
    (void)pthread_mutex_lock(&http->mutex);
    if (http->idle > 0) {
        curl = http->handles[--http->idle];
    }
    (void)pthread_mutex_unlock(&http->mutex);
    if (curl != NULL) {
        return curl;
    }
    curl = curl_easy_init();
    if (curl != NULL && !prepare(http, curl)) {
        curl_easy_cleanup(curl);
        return NULL;
    }
    return curl;
}

static void give_handle(cl_http *http, CURL *curl)
{
    (void)pthread_mutex_lock(&http->mutex);
    bool kept = http->idle < POOL;
    if (kept) {
        http->handles[http->idle++] = curl;
    }
    (void)pthread_mutex_unlock(&http->mutex);
    if (!kept) {
        curl_easy_cleanup(curl);
    }
}

/* Collects the body; a new block each time it grows, because realloc would leave a copy of a key behind. */
static size_t collect(const char *data, size_t one, size_t size, void *context)
{
    cl_http_answer *answer = context;
    if (one != 1 || size > BODY_MAX - answer->size) {
        return 0;
    }
    uint8_t *grown = malloc(answer->size + size + 1);
    if (grown == NULL) {
        return 0;
    }
    if (answer->size > 0) {
        memcpy(grown, answer->body, answer->size);
    }
    memcpy(grown + answer->size, data, size);
    size_t whole = answer->size + size;
    cl_http_answer_free(answer);
    answer->body = grown;
    answer->size = whole;
    return size;
}

void cl_http_answer_free(cl_http_answer *answer)
{
    if (answer->body != NULL) {
        OPENSSL_cleanse(answer->body, answer->size);
        free(answer->body);
        answer->body = NULL;
        answer->size = 0;
    }
}

static cl_code failed(CURLcode result, const char *url, cl_error *error)
{
    if (result == CURLE_WRITE_ERROR) {
        return cl_fail(error, CL_KEY_SERVICE_BAD_ANSWER, "key-service-bad-answer: %.200s answered more than 1 MiB",
                       url);
    }
    if (result == CURLE_OUT_OF_MEMORY || result == CURLE_FAILED_INIT) {
        return cl_no_memory(error);
    }
    return cl_fail(error, CL_KEY_SERVICE_UNAVAILABLE, "key-service-unavailable: %.200s: %s", url,
                   curl_easy_strerror(result));
}

static bool address(CURL *curl, const char *url, const char *path)
{
    char whole[CL_TEXT_MAX + 64];
    (void)snprintf(whole, sizeof whole, "%s%s", url, path);
    return curl_easy_setopt(curl, CURLOPT_URL, whole) == CURLE_OK;
}

static cl_code perform(CURL *curl, const char *url, cl_http_answer *answer, cl_error *error)
{
    const char *type = NULL;
    answer->sent_at = cl_now();
    CURLcode result = curl_easy_perform(curl);
    if (result != CURLE_OK) {
        return failed(result, url, error);
    }
    if (curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer->status) != CURLE_OK ||
        curl_easy_getinfo(curl, CURLINFO_CONTENT_TYPE, &type) != CURLE_OK) {
        return cl_fail(error, CL_INTERNAL, "internal: libcurl has no status");
    }
    (void)snprintf(answer->content_type, sizeof answer->content_type, "%s", type == NULL ? "" : type);
    return CL_OK;
}

cl_code cl_http_post(cl_http *http, const char *url, const char *path, const char *body, uint32_t timeout_ms,
                     cl_http_answer *answer, cl_error *error)
{
    *answer = (cl_http_answer){0};
    CURL *curl = take_handle(http);
    if (curl == NULL) {
        return cl_no_memory(error);
    }
    bool ready = address(curl, url, path) && curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body) == CURLE_OK &&
                 curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)timeout_ms) == CURLE_OK &&
                 curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, collect) == CURLE_OK &&
                 curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer) == CURLE_OK;
    cl_code code = ready ? perform(curl, url, answer, error) : cl_no_memory(error);
    if (code == CL_OK) {
        give_handle(http, curl);
    } else {
        curl_easy_cleanup(curl); /* a connection that failed is not used again */
        cl_http_answer_free(answer);
    }
    return code;
}
