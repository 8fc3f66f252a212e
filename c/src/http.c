/* libcurl: a small pool of easy handles, each with its own connection and the PEM texts that it began with. */
#include "http.h"

#include "clock.h"
#include "error.h"
#include "pem.h"

#include <curl/curl.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BODY_MAX 1048576U
#define POOL 8U

typedef struct connection {
    CURL *curl;
    cl_pem *pem;
} connection;

struct cl_http {
    const cl_settings *settings;
    struct curl_slist *headers;
    pthread_mutex_t mutex; /* guards what follows, and the references of PEM texts */
    cl_pem *pem;           /* in force */
    size_t idle;
    connection connections[POOL];
};

/* The mutex is held, or nobody else is there. */
static void hang_up(connection *one)
{
    curl_easy_cleanup(one->curl);
    cl_pem_drop(one->pem);
}

cl_http *cl_http_new(const cl_settings *settings, cl_error *error)
{
    cl_http *http = calloc(1, sizeof *http);
    if (http == NULL || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        free(http);
        (void)cl_no_memory(error);
        return NULL;
    }
    http->settings = settings;
    (void)pthread_mutex_init(&http->mutex, NULL);
    http->headers = curl_slist_append(NULL, "Content-Type: application/json");
    if (http->headers == NULL) {
        (void)cl_no_memory(error);
    } else {
        http->pem = cl_pem_read(settings, error);
    }
    if (http->pem == NULL) {
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
        hang_up(&http->connections[--http->idle]);
    }
    cl_pem_drop(http->pem);
    curl_slist_free_all(http->headers);
    (void)pthread_mutex_destroy(&http->mutex);
    free(http);
    curl_global_cleanup();
}

static bool set_blob(CURL *curl, CURLoption option, const cl_pem_text *text)
{
    struct curl_blob blob = {text->data, text->size, CURL_BLOB_NOCOPY};
    return curl_easy_setopt(curl, option, &blob) == CURLE_OK;
}

static bool present(const connection *one)
{
    return set_blob(one->curl, CURLOPT_CAINFO_BLOB, &one->pem->text[CL_PEM_CA]) &&
           set_blob(one->curl, CURLOPT_SSLCERT_BLOB, &one->pem->text[CL_PEM_CERTIFICATE]) &&
           set_blob(one->curl, CURLOPT_SSLKEY_BLOB, &one->pem->text[CL_PEM_KEY]);
}

/* What all requests have in common. Proxies and other settings of the environment do not count. */
static bool prepare(const cl_http *http, const connection *one)
{
    CURL *curl = one->curl;
    const cl_settings *settings = http->settings;
    bool good = curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) == CURLE_OK && present(one);
    good = good && curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "https") == CURLE_OK;
    good = good && curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK;
    good = good && curl_easy_setopt(curl, CURLOPT_PROXY, "") == CURLE_OK;
    good = good && curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2) == CURLE_OK;
    good = good && curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 1L) == CURLE_OK;
    good = good && curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 2L) == CURLE_OK;
    good = good && curl_easy_setopt(curl, CURLOPT_CAINFO, NULL) == CURLE_OK;
    good = good && curl_easy_setopt(curl, CURLOPT_CAPATH, NULL) == CURLE_OK;
    good = good && curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)settings->connect_timeout_ms) == CURLE_OK;
    return good && curl_easy_setopt(curl, CURLOPT_HTTPHEADER, http->headers) == CURLE_OK;
}

/* Files that cannot be used leave the old ones in force, and are looked at again with the next request [CL-KEY-016]. */
static void renew_pem(cl_http *http)
{
    cl_pem *fresh = cl_pem_changed(http->pem, http->settings) ? cl_pem_read(http->settings, NULL) : NULL;
    if (fresh != NULL) {
        cl_pem_drop(http->pem);
        http->pem = fresh;
    }
}

/* An idle connection under the PEM texts in force, or none yet (curl is NULL). */
static connection take_idle(cl_http *http)
{
    (void)pthread_mutex_lock(&http->mutex);
    renew_pem(http);
    connection taken = {NULL, NULL};
    while (taken.curl == NULL && http->idle > 0) {
        taken = http->connections[--http->idle];
        if (taken.pem != http->pem) {
            hang_up(&taken);
            taken = (connection){NULL, NULL};
        }
    }
    if (taken.curl == NULL) {
        taken.pem = http->pem;
        taken.pem->references++;
    }
    (void)pthread_mutex_unlock(&http->mutex);
    return taken;
}

/* A connection that failed is not used again. */
static void give(cl_http *http, connection *one, bool good)
{
    (void)pthread_mutex_lock(&http->mutex);
    if (good && http->idle < POOL) {
        http->connections[http->idle++] = *one;
    } else {
        hang_up(one);
    }
    (void)pthread_mutex_unlock(&http->mutex);
}

static bool take(cl_http *http, connection *one)
{
    *one = take_idle(http);
    if (one->curl != NULL) {
        return true;
    }
    one->curl = curl_easy_init();
    if (one->curl != NULL && prepare(http, one)) {
        return true;
    }
    give(http, one, false);
    return false;
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
    connection one;
    *answer = (cl_http_answer){0};
    if (!take(http, &one)) {
        return cl_no_memory(error);
    }
    bool ready = address(one.curl, url, path) && curl_easy_setopt(one.curl, CURLOPT_POSTFIELDS, body) == CURLE_OK &&
                 curl_easy_setopt(one.curl, CURLOPT_TIMEOUT_MS, (long)timeout_ms) == CURLE_OK &&
                 curl_easy_setopt(one.curl, CURLOPT_WRITEFUNCTION, collect) == CURLE_OK &&
                 curl_easy_setopt(one.curl, CURLOPT_WRITEDATA, answer) == CURLE_OK;
    cl_code code = ready ? perform(one.curl, url, answer, error) : cl_no_memory(error);
    give(http, &one, code == CL_OK);
    if (code != CL_OK) {
        cl_http_answer_free(answer);
    }
    return code;
}
