/* The thread that renews a certificate, and the identities of this process. */
#include "identity.h"

#include "certificate.h"
#include "clock.h"
#include "error.h"
#include "keyservice.h"
#include "proof.h"
#include "thread.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_PAUSE (60 * CL_SECOND) /* between tries [CL-IDN-032] */
#define LONGEST_SLEEP (60 * CL_SECOND) /* a suspended machine looks at its dates when it wakes, or soon after */
#define ADVICE "; mend the cause, or give a new token, JWT or certificate in the files of the settings"

struct cl_identity {
    cl_settings settings;
    cl_keyservice *service;
    struct cl_identity *next;
    unsigned shares;
    pthread_t thread;
    bool running;  /* in this process */
    cl_pem *proof; /* of the request in flight; the thread's own, like the next two */
    cl_used_token used;
    uint64_t pause;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    bool stopping;
    bool tried;      /* there is a certificate, or a cause why not */
    cl_pem *current; /* NULL: none yet */
    cl_error cause;  /* of the last failure */
    char principal[CL_PRINCIPAL_MAX];
};

static pthread_mutex_t registry_mutex = PTHREAD_MUTEX_INITIALIZER;
static cl_identity *registry;
static pthread_once_t watched = PTHREAD_ONCE_INIT;

static bool holds(const cl_pem *pem)
{
    return pem != NULL && cl_now() < pem->expires_at;
}

static void sleep_until(cl_identity *identity, uint64_t at)
{
    uint64_t now = cl_now();
    uint64_t left = now < at ? at - now : 0;
    left = left < LONGEST_SLEEP ? left : LONGEST_SLEEP;
    struct timespec until = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    left += (uint64_t)until.tv_nsec;
    until.tv_sec += (time_t)(left / CL_SECOND);
    until.tv_nsec = (long)(left % CL_SECOND);
    (void)pthread_cond_timedwait(&identity->changed, &identity->mutex, &until);
}

/* A number from 0 to 1. */
static double chance(void)
{
    uint32_t random = UINT32_MAX / 2;
    (void)cl_random((uint8_t *)&random, sizeof random);
    return (double)random / (double)UINT32_MAX;
}

/* How the next request proves itself [CL-IDN-035]: the JWT, the certificate in use, or what the files hold. */
static cl_pem *choose_proof(cl_identity *identity, cl_error *error)
{
    (void)pthread_mutex_lock(&identity->mutex);
    bool certified = *identity->settings.jwt_file == '\0' && holds(identity->current);
    cl_pem *proof = certified ? cl_pem_keep(identity->current) : NULL;
    (void)pthread_mutex_unlock(&identity->mutex);
    return proof != NULL ? proof : cl_proof_read(&identity->settings, &identity->used, error);
}

static cl_code give_proof(void *context, uint32_t timeout_ms, cl_pem **pem, cl_error *error)
{
    cl_identity *identity = context;
    (void)timeout_ms, (void)error;
    *pem = cl_pem_keep(identity->proof);
    return CL_OK;
}

static cl_code request(cl_identity *identity, EVP_PKEY *key, cl_certificate_answer *answer, uint64_t *sent_at,
                       cl_error *error)
{
    const cl_settings *settings = &identity->settings;
    uint64_t deadline = cl_now() + settings->url_count * settings->request_timeout_ms * CL_MILLISECOND;
    bool answered = false;
    char *csr = key == NULL ? NULL : cl_certificate_csr(key);
    char *body = csr == NULL ? NULL : cl_certificate_request(csr);
    cl_code code =
        body == NULL ? cl_no_memory(error)
                     : cl_keyservice_certificate(identity->service, body, deadline, answer, sent_at, &answered, error);
    free(body);
    free(csr);
    if (answered) {
        cl_proof_answered(settings, identity->proof, &identity->used);
    }
    return code;
}

/* The principal that the next certificate must name, or NULL [CL-IDN-033]. */
static const char *known_principal(cl_identity *identity)
{
    if (*identity->principal == '\0' && identity->proof->text[CL_PEM_CERTIFICATE].data != NULL) {
        X509 *certificate = cl_pem_certificate(&identity->proof->text[CL_PEM_CERTIFICATE]);
        if (certificate != NULL && !cl_certificate_principal(certificate, identity->principal)) {
            *identity->principal = '\0';
        }
        X509_free(certificate);
    }
    return *identity->principal == '\0' ? NULL : identity->principal;
}

static void note_principal(cl_identity *identity, const cl_pem *pem)
{
    X509 *certificate = cl_pem_certificate(&pem->text[CL_PEM_CERTIFICATE]);
    (void)(certificate != NULL && cl_certificate_principal(certificate, identity->principal));
    X509_free(certificate);
}

/* A certificate under the proof at hand, and when to ask for the next one. */
static cl_pem *obtain(cl_identity *identity, uint64_t *renew_at, cl_error *error)
{
    cl_certificate_answer answer = {0};
    uint64_t sent_at = 0;
    cl_pem *fresh = NULL;
    EVP_PKEY *key = cl_certificate_key();
    cl_pem_text configured = {NULL, 0};
    cl_pem_mark mark;
    if (!cl_pem_text_read(identity->settings.ca, CL_PEM_MAX, &configured, &mark)) {
        (void)cl_fail(error, CL_KEY_SERVICE_UNAVAILABLE,
                      "key-service-unavailable: " CL_SETTING "keyservice.tls.ca cannot be read");
    } else if (request(identity, key, &answer, &sent_at, error) == CL_OK) {
        fresh = cl_certificate_accept(&answer, key, known_principal(identity), &configured, error);
    }
    if (fresh != NULL) {
        fresh->expires_at = sent_at + answer.terms.expires_in * CL_SECOND;
        *renew_at = sent_at + (uint64_t)((double)(answer.terms.refresh_in * CL_SECOND) * (1.0 - 0.1 * chance()));
        note_principal(identity, fresh);
    }
    cl_pem_text_free(&configured);
    free(answer.certificate);
    free(answer.ca);
    EVP_PKEY_free(key);
    return fresh;
}

/* One try; gives back when to try again. The mutex is not held. */
static uint64_t renew(cl_identity *identity)
{
    cl_error error = {0};
    uint64_t again = 0;
    identity->proof = choose_proof(identity, &error);
    cl_pem *fresh = identity->proof == NULL ? NULL : obtain(identity, &again, &error);
    cl_pem_drop(identity->proof);
    identity->proof = NULL;
    (void)pthread_mutex_lock(&identity->mutex);
    cl_pem *old = fresh == NULL ? NULL : identity->current;
    identity->current = fresh == NULL ? identity->current : fresh;
    identity->cause = error;
    identity->tried = true;
    (void)pthread_cond_broadcast(&identity->changed);
    (void)pthread_mutex_unlock(&identity->mutex);
    cl_pem_drop(old);
    if (fresh != NULL) {
        identity->pause = 0;
        return again;
    }
    uint64_t first = identity->settings.retry_backoff_ms * CL_MILLISECOND;
    identity->pause = identity->pause == 0 ? first : 2 * identity->pause;
    identity->pause = identity->pause < LONGEST_PAUSE ? identity->pause : LONGEST_PAUSE;
    return cl_now() + (uint64_t)((double)identity->pause * (0.8 + 0.4 * chance()));
}

static void *run(void *context)
{
    cl_identity *identity = context;
    uint64_t next = 0;
    (void)pthread_mutex_lock(&identity->mutex);
    while (!identity->stopping) {
        if (cl_now() < next) {
            sleep_until(identity, next);
            continue;
        }
        (void)pthread_mutex_unlock(&identity->mutex);
        next = renew(identity);
        (void)pthread_mutex_lock(&identity->mutex);
    }
    (void)pthread_mutex_unlock(&identity->mutex);
    return NULL;
}

cl_code cl_identity_take(cl_identity *identity, uint32_t timeout_ms, cl_pem **pem, cl_error *error)
{
    cl_code code = CL_OK;
    uint64_t until = cl_now() + timeout_ms * CL_MILLISECOND;
    (void)pthread_mutex_lock(&identity->mutex);
    while (!identity->tried && cl_now() < until) {
        sleep_until(identity, until);
    }
    if (holds(identity->current)) {
        *pem = cl_pem_keep(identity->current);
    } else if (!identity->tried) {
        code = cl_fail(error, CL_KEY_SERVICE_UNAVAILABLE,
                       "key-service-unavailable: still asking for the first certificate");
    } else {
        code = cl_fail(error, CL_KEY_SERVICE_UNAVAILABLE, "key-service-unavailable: %s: %.300s" ADVICE,
                       identity->current == NULL ? "no certificate" : "the certificate has ended",
                       identity->cause.message);
    }
    (void)pthread_mutex_unlock(&identity->mutex);
    return code;
}

uint64_t cl_identity_seconds_left(cl_identity *identity)
{
    (void)pthread_mutex_lock(&identity->mutex);
    uint64_t now = cl_now();
    bool some = identity->current != NULL && now < identity->current->expires_at;
    uint64_t left = some ? (identity->current->expires_at - now) / CL_SECOND : 0;
    (void)pthread_mutex_unlock(&identity->mutex);
    return left;
}

static void destroy(cl_identity *identity)
{
    cl_keyservice_free(identity->service);
    cl_pem_drop(identity->current);
    (void)pthread_cond_destroy(&identity->changed);
    (void)pthread_mutex_destroy(&identity->mutex);
    free(identity);
}

static void init_changed(cl_identity *identity)
{
    pthread_condattr_t attributes;
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&identity->changed, &attributes);
    (void)pthread_condattr_destroy(&attributes);
}

static bool same(const cl_settings *left, const cl_settings *right)
{
    bool urls = left->url_count == right->url_count;
    for (size_t i = 0; urls && i < left->url_count; i++) {
        urls = strcmp(left->url[i], right->url[i]) == 0;
    }
    return urls && strcmp(left->ca, right->ca) == 0 && strcmp(left->certificate, right->certificate) == 0 &&
           strcmp(left->key, right->key) == 0 && strcmp(left->token_file, right->token_file) == 0 &&
           strcmp(left->jwt_file, right->jwt_file) == 0;
}

static cl_identity *find(const cl_settings *settings)
{
    cl_identity *each = registry;
    while (each != NULL && !same(&each->settings, settings)) {
        each = each->next;
    }
    return each;
}

static cl_identity *make(const cl_settings *settings, cl_error *error)
{
    cl_identity *identity = calloc(1, sizeof *identity);
    if (identity == NULL) {
        (void)cl_no_memory(error);
        return NULL;
    }
    cl_settings_copy(&identity->settings, settings);
    (void)pthread_mutex_init(&identity->mutex, NULL);
    init_changed(identity);
    identity->next = registry;
    registry = identity;
    return identity;
}

/* Connections and the thread, which a forked child needs anew. */
static bool start(cl_identity *identity, cl_error *error)
{
    if (identity->running) {
        return true;
    }
    identity->tried = holds(identity->current);
    const cl_pem_source source = {give_proof, identity};
    identity->service = cl_keyservice_new(&identity->settings, NULL, source, error);
    if (identity->service == NULL) {
        return false;
    }
    identity->running = cl_thread_start(&identity->thread, run, identity);
    if (!identity->running) {
        cl_keyservice_free(identity->service);
        identity->service = NULL;
        (void)cl_fail(error, CL_INTERNAL, "internal: no thread");
    }
    return identity->running;
}

static void leave(const cl_identity *identity)
{
    cl_identity **place = &registry;
    while (*place != identity) {
        place = &(*place)->next;
    }
    *place = identity->next;
}

/* The states of all identities are whole while the process is copied. */
static void before_fork(void)
{
    (void)pthread_mutex_lock(&registry_mutex);
    for (cl_identity *each = registry; each != NULL; each = each->next) {
        (void)pthread_mutex_lock(&each->mutex);
    }
}

static void in_parent(void)
{
    for (cl_identity *each = registry; each != NULL; each = each->next) {
        (void)pthread_mutex_unlock(&each->mutex);
    }
    (void)pthread_mutex_unlock(&registry_mutex);
}

/* The thread and the use of the connections stay with the parent; the shares were of its clients. */
static void in_child(void)
{
    for (cl_identity *each = registry; each != NULL; each = each->next) {
        init_changed(each);
        each->running = false;
        each->service = NULL;
        each->proof = NULL;
        each->shares = 0;
    }
    in_parent();
}

static void watch(void)
{
    (void)pthread_atfork(before_fork, in_parent, in_child);
}

cl_identity *cl_identity_share(const cl_settings *settings, cl_error *error)
{
    (void)pthread_once(&watched, watch);
    (void)pthread_mutex_lock(&registry_mutex);
    cl_identity *identity = find(settings);
    identity = identity == NULL ? make(settings, error) : identity;
    if (identity != NULL && !start(identity, error)) {
        if (identity->shares == 0 && identity->current == NULL) {
            leave(identity);
            destroy(identity);
        }
        identity = NULL;
    }
    if (identity != NULL) {
        identity->shares++;
    }
    (void)pthread_mutex_unlock(&registry_mutex);
    return identity;
}

/* The thread, whatever it is waiting for, and its connections; the certificate stays. */
static void stop(cl_identity *identity)
{
    (void)pthread_mutex_lock(&identity->mutex);
    identity->stopping = true;
    (void)pthread_cond_broadcast(&identity->changed);
    (void)pthread_mutex_unlock(&identity->mutex);
    cl_keyservice_interrupt(identity->service); /* which may be silent for as long as a request may last */
    (void)pthread_join(identity->thread, NULL);
    cl_keyservice_free(identity->service);
    identity->service = NULL;
    identity->running = identity->stopping = false;
}

void cl_identity_release(cl_identity *identity)
{
    if (identity == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&registry_mutex);
    bool last = --identity->shares == 0;
    bool left = last && *identity->settings.token_file != '\0'; /* to the next one: a token serves once [CL-IDN-037] */
    if (left) {
        stop(identity);
    } else if (last) {
        leave(identity);
    }
    (void)pthread_mutex_unlock(&registry_mutex);
    if (last && !left) {
        stop(identity);
        destroy(identity);
    }
}
