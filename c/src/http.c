/* libcurl: a small pool of easy handles, each with its own connection and what it shows and trusts. */
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
#define LONGEST_POLL_MS 1000

/* The multi handle is what one thread waits on and another can wake; it holds this one easy handle and its connection to the server. */
typedef struct connection {
    CURL *curl;
    CURLM *multi;
    struct curl_slist *headers;
    cl_pem *pem;
    struct connection *next; /* of those in use */
} connection;

struct cl_http {
    const cl_settings *settings;
    pthread_mutex_t mutex; /* guards what follows */
    bool interrupted;
    connection *busy;
    size_t idle;
    connection connections[POOL];
};

/* A header may hold a token. */
static void free_headers(struct curl_slist *headers)
{
    for (const struct curl_slist *each = headers; each != NULL; each = each->next) {
        OPENSSL_cleanse(each->data, strlen(each->data));
    }
    curl_slist_free_all(headers);
}

static void hang_up(connection *one)
{
    curl_easy_cleanup(one->curl);
    (void)curl_multi_cleanup(one->multi);
    free_headers(one->headers);
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
    (void)pthread_mutex_destroy(&http->mutex);
    free(http);
    curl_global_cleanup();
}

static bool set_blob(CURL *curl, CURLoption option, const cl_pem_text *text)
{
    struct curl_blob blob = {text->data, text->size, CURL_BLOB_NOCOPY};
    return curl_easy_setopt(curl, option, &blob) == CURLE_OK;
}

static bool add_header(connection *one, const char *line)
{
    struct curl_slist *longer = curl_slist_append(one->headers, line);
    one->headers = longer == NULL ? one->headers : longer;
    return longer != NULL;
}

static bool add_bearer(connection *one)
{
    static const char NAME[] = "Authorization: Bearer ";
    char *line = malloc(sizeof NAME + one->pem->bearer.size);
    if (line == NULL) {
        return false;
    }
    memcpy(line, NAME, sizeof NAME - 1);
    memcpy(line + sizeof NAME - 1, one->pem->bearer.data, one->pem->bearer.size + 1);
    bool added = add_header(one, line);
    OPENSSL_cleanse(line, strlen(line));
    free(line);
    return added;
}

static bool present(connection *one)
{
    bool certified = one->pem->text[CL_PEM_CERTIFICATE].data != NULL;
    return set_blob(one->curl, CURLOPT_CAINFO_BLOB, &one->pem->text[CL_PEM_CA]) &&
           (!certified || (set_blob(one->curl, CURLOPT_SSLCERT_BLOB, &one->pem->text[CL_PEM_CERTIFICATE]) &&
                           set_blob(one->curl, CURLOPT_SSLKEY_BLOB, &one->pem->text[CL_PEM_KEY]))) &&
           add_header(one, "Content-Type: application/json") && (one->pem->bearer.data == NULL || add_bearer(one));
}

/* What all requests have in common. Proxies and other settings of the environment do not count. */
static bool prepare(const cl_http *http, connection *one)
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
    return good && curl_easy_setopt(curl, CURLOPT_HTTPHEADER, one->headers) == CURLE_OK;
}

/* An idle connection under these PEM texts, or none yet (curl is NULL). Those under other texts are over. */
static connection take_idle(cl_http *http, cl_pem *pem)
{
    connection taken = {.pem = NULL};
    (void)pthread_mutex_lock(&http->mutex);
    while (taken.curl == NULL && http->idle > 0) {
        taken = http->connections[--http->idle];
        if (taken.pem != pem) {
            hang_up(&taken);
            taken = (connection){.pem = NULL};
        }
    }
    (void)pthread_mutex_unlock(&http->mutex);
    if (taken.curl == NULL) {
        taken.pem = cl_pem_keep(pem);
    }
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

static bool take(cl_http *http, cl_pem *pem, connection *one)
{
    *one = take_idle(http, pem);
    if (one->curl != NULL) {
        return true;
    }
    one->curl = curl_easy_init();
    one->multi = curl_multi_init();
    if (one->curl != NULL && one->multi != NULL && prepare(http, one)) {
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
    if (result == CURLE_ABORTED_BY_CALLBACK) {
        return cl_fail(error, CL_KEY_SERVICE_UNAVAILABLE, "key-service-unavailable: %.200s: the client is being closed",
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

/* Notes a connection in use; false when nothing is to be sent any more. */
static bool enter(cl_http *http, connection *one)
{
    (void)pthread_mutex_lock(&http->mutex);
    bool allowed = !http->interrupted;
    if (allowed) {
        one->next = http->busy;
        http->busy = one;
    }
    (void)pthread_mutex_unlock(&http->mutex);
    return allowed;
}

static void leave(cl_http *http, const connection *one)
{
    (void)pthread_mutex_lock(&http->mutex);
    connection **place = &http->busy;
    while (*place != one) {
        place = &(*place)->next;
    }
    *place = one->next;
    (void)pthread_mutex_unlock(&http->mutex);
}

static bool is_interrupted(cl_http *http)
{
    (void)pthread_mutex_lock(&http->mutex);
    bool interrupted = http->interrupted;
    (void)pthread_mutex_unlock(&http->mutex);
    return interrupted;
}

void cl_http_interrupt(cl_http *http)
{
    (void)pthread_mutex_lock(&http->mutex);
    http->interrupted = true;
    for (const connection *each = http->busy; each != NULL; each = each->next) {
        (void)curl_multi_wakeup(each->multi);
    }
    (void)pthread_mutex_unlock(&http->mutex);
}

void cl_http_resume(cl_http *http)
{
    (void)pthread_mutex_lock(&http->mutex);
    http->interrupted = false;
    (void)pthread_mutex_unlock(&http->mutex);
}

/* A look-up of a name cannot be broken off; whoever closes does not wait for it. */
static void give_up(CURL *curl)
{
#if LIBCURL_VERSION_NUM >= 0x075700
    (void)curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L);
#else
    (void)curl;
#endif
}

/* Until the one transfer has ended, or is interrupted. */
static CURLcode drive(cl_http *http, const connection *one)
{
    int running = 1;
    CURLMcode code = curl_multi_perform(one->multi, &running);
    while (code == CURLM_OK && running > 0) {
        if (is_interrupted(http)) {
            give_up(one->curl);
            return CURLE_ABORTED_BY_CALLBACK;
        }
        code = curl_multi_poll(one->multi, NULL, 0, LONGEST_POLL_MS, NULL);
        code = code == CURLM_OK ? curl_multi_perform(one->multi, &running) : code;
    }
    const CURLMsg *message = code == CURLM_OK ? curl_multi_info_read(one->multi, &running) : NULL;
    return message == NULL ? CURLE_OUT_OF_MEMORY : message->data.result;
}

/* What curl_easy_perform does, but cl_http_interrupt ends it. */
static CURLcode transfer(cl_http *http, connection *one)
{
    if (!enter(http, one)) {
        return CURLE_ABORTED_BY_CALLBACK;
    }
    CURLcode result = CURLE_OUT_OF_MEMORY;
    if (curl_multi_add_handle(one->multi, one->curl) == CURLM_OK) {
        result = drive(http, one);
        (void)curl_multi_remove_handle(one->multi, one->curl);
    }
    leave(http, one);
    return result;
}

static cl_code perform(cl_http *http, connection *one, const char *url, cl_http_answer *answer, cl_error *error)
{
    CURL *curl = one->curl;
    const char *type = NULL;
    answer->sent_at = cl_now();
    CURLcode result = transfer(http, one);
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

cl_code cl_http_post(cl_http *http, const cl_http_request *request, cl_http_answer *answer, cl_error *error)
{
    connection one;
    *answer = (cl_http_answer){0};
    if (!take(http, request->pem, &one)) {
        return cl_no_memory(error);
    }
    bool ready = address(one.curl, request->url, request->path) &&
                 curl_easy_setopt(one.curl, CURLOPT_POSTFIELDS, request->body) == CURLE_OK &&
                 curl_easy_setopt(one.curl, CURLOPT_TIMEOUT_MS, (long)request->timeout_ms) == CURLE_OK &&
                 curl_easy_setopt(one.curl, CURLOPT_WRITEFUNCTION, collect) == CURLE_OK &&
                 curl_easy_setopt(one.curl, CURLOPT_WRITEDATA, answer) == CURLE_OK;
    cl_code code = ready ? perform(http, &one, request->url, answer, error) : cl_no_memory(error);
    give(http, &one, code == CL_OK);
    if (code != CL_OK) {
        cl_http_answer_free(answer);
    }
    return code;
}
