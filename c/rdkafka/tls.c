/* One SSL_CTX for each certificate. */
#include "tls.h"

#include "certificate.h"
#include "error.h"
#include "topics.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOST_MAX 256U
#define RESUMED_MAX 64U

/* What a broker gave last, to be resumed. */
typedef struct resumed {
    char host[HOST_MAX];
    SSL_SESSION *session;
} resumed;

struct cl_tls {
    char peer_ids[CL_TEXT_MAX];
    uint32_t timeout_ms;
    bool verify_host;
    cl_identity *identity;
    pthread_mutex_t mutex; /* guards what follows */
    cl_pem *pem;           /* that the context was made from */
    SSL_CTX *context;
    resumed sessions[RESUMED_MAX];
    size_t next;
};

static void free_host(void *parent, void *host, CRYPTO_EX_DATA *data, int index, long number, void *pointer)
{
    (void)parent, (void)data, (void)index, (void)number, (void)pointer;
    free(host);
}

/* What an SSL says about the host it is for; OpenSSL never gives such a number back, so there is one. */
static pthread_once_t slot_once = PTHREAD_ONCE_INIT;
static int slot;

static void make_slot(void)
{
    slot = SSL_get_ex_new_index(0, NULL, NULL, NULL, free_host);
}

cl_tls *cl_tls_new(cl_identity *identity, const cl_tls_terms *terms, cl_error *error)
{
    cl_tls *tls = calloc(1, sizeof *tls);
    if (tls == NULL) {
        cl_identity_release(identity);
        (void)cl_no_memory(error);
        return NULL;
    }
    (void)snprintf(tls->peer_ids, sizeof tls->peer_ids, "%s", terms->peer_ids);
    tls->timeout_ms = terms->timeout_ms;
    tls->verify_host = terms->verify_host;
    (void)pthread_mutex_init(&tls->mutex, NULL);
    (void)pthread_once(&slot_once, make_slot);
    tls->identity = identity;
    if (slot < 0) {
        (void)cl_no_memory(error);
        cl_tls_free(tls);
        return NULL;
    }
    return tls;
}

static void forget_sessions(cl_tls *tls)
{
    for (size_t i = 0; i < RESUMED_MAX; i++) {
        SSL_SESSION_free(tls->sessions[i].session);
        tls->sessions[i] = (resumed){.session = NULL};
    }
}

void cl_tls_free(cl_tls *tls)
{
    if (tls != NULL) {
        forget_sessions(tls);
        SSL_CTX_free(tls->context);
        cl_pem_drop(tls->pem);
        cl_identity_release(tls->identity);
        (void)pthread_mutex_destroy(&tls->mutex);
        free(tls);
    }
}

static resumed *find(cl_tls *tls, const char *host)
{
    for (size_t i = 0; i < RESUMED_MAX; i++) {
        if (strcmp(tls->sessions[i].host, host) == 0) {
            return &tls->sessions[i];
        }
    }
    return NULL;
}

/* OpenSSL calls this with a session of its own, which is kept if 1 comes back. */
static int on_session(SSL *ssl, SSL_SESSION *session)
{
    cl_tls *tls = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    const char *host = SSL_get_ex_data(ssl, slot);
    bool keep = host != NULL && strlen(host) < HOST_MAX;
    (void)pthread_mutex_lock(&tls->mutex);
    keep = keep && SSL_get_SSL_CTX(ssl) == tls->context; /* not of a certificate before */
    if (keep) {
        resumed *place = find(tls, host);
        place = place == NULL ? &tls->sessions[tls->next++ % RESUMED_MAX] : place;
        SSL_SESSION_free(place->session);
        place->session = session;
        memcpy(place->host, host, strlen(host) + 1);
    }
    (void)pthread_mutex_unlock(&tls->mutex);
    return keep ? 1 : 0;
}

static bool trust(SSL_CTX *context, const cl_pem *pem)
{
    const cl_pem_text *text = pem->peers.data == NULL ? &pem->text[CL_PEM_CA] : &pem->peers;
    BIO *bio = BIO_new_mem_buf(text->data, (int)text->size);
    X509 *each = NULL;
    bool good = bio != NULL;
    while (good && (each = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
        good = X509_STORE_add_cert(SSL_CTX_get_cert_store(context), each) == 1;
        X509_free(each);
    }
    ERR_clear_error(); /* the end of the text is an error to OpenSSL */
    BIO_free(bio);
    return good;
}

static bool show(SSL_CTX *context, const cl_pem *pem)
{
    BIO *chain = BIO_new_mem_buf(pem->text[CL_PEM_CERTIFICATE].data, (int)pem->text[CL_PEM_CERTIFICATE].size);
    BIO *bio = BIO_new_mem_buf(pem->text[CL_PEM_KEY].data, (int)pem->text[CL_PEM_KEY].size);
    X509 *leaf = chain == NULL ? NULL : PEM_read_bio_X509(chain, NULL, NULL, NULL);
    EVP_PKEY *key = bio == NULL ? NULL : PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
    bool good = leaf != NULL && key != NULL && SSL_CTX_use_certificate(context, leaf) == 1 &&
                SSL_CTX_use_PrivateKey(context, key) == 1;
    X509 *each = NULL;
    while (good && (each = PEM_read_bio_X509(chain, NULL, NULL, NULL)) != NULL) {
        good = SSL_CTX_add_extra_chain_cert(context, each) == 1; /* which takes it over */
    }
    ERR_clear_error();
    X509_free(leaf);
    EVP_PKEY_free(key);
    BIO_free(chain);
    BIO_free(bio);
    return good;
}

static SSL_CTX *new_context(cl_tls *tls, const cl_pem *pem)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (context == NULL) {
        return NULL;
    }
    (void)SSL_CTX_set_app_data(context, tls);
    (void)SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                        SSL_MODE_RELEASE_BUFFERS);
    (void)SSL_CTX_set_options(context,
                              SSL_OP_IGNORE_UNEXPECTED_EOF); /* Kafka's frames say themselves whether they are whole */
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_default_read_buffer_len(context, 65536); /* several records with one system call */
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    (void)SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(context, on_session);
    if (SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 && trust(context, pem) && show(context, pem)) {
        return context;
    }
    SSL_CTX_free(context);
    return NULL;
}

/* The context of the certificate in force; the mutex is held. A new certificate begins without sessions: those were of the old one. */
static SSL_CTX *context_of(cl_tls *tls, cl_pem *pem)
{
    if (tls->pem == pem) {
        return tls->context;
    }
    SSL_CTX *fresh = new_context(tls, pem);
    if (fresh != NULL) {
        forget_sessions(tls);
        SSL_CTX_free(tls->context);
        cl_pem_drop(tls->pem);
        tls->context = fresh;
        tls->pem = cl_pem_keep(pem);
    }
    return fresh;
}

/* HOST of HOST:PORT, without the brackets of an IPv6 address; NULL without memory or a port. Free with free(). */
static char *host_of(const char *address)
{
    const char *colon = strrchr(address, ':');
    bool bracket = address[0] == '[';
    size_t size = colon == NULL ? 0 : (size_t)(colon - address) - (bracket ? 2 : 0);
    return size == 0 || size >= HOST_MAX ? NULL : strndup(address + (bracket ? 1 : 0), size);
}

static bool is_address(const char *host)
{
    struct in6_addr memory;
    return inet_pton(AF_INET, host, &memory) == 1 || inet_pton(AF_INET6, host, &memory) == 1;
}

/* SSL_set_tlsext_host_name, whose cast drops const: clang refuses it. */
static bool name_server(SSL *ssl, const char *host)
{
    return SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, (void *)(uintptr_t)host) == 1;
}

static bool aim(const cl_tls *tls, SSL *ssl, const char *host)
{
    bool numeric = is_address(host);
    bool named = numeric || name_server(ssl, host);
    X509_VERIFY_PARAM *wanted = SSL_get0_param(ssl);
    if (!named || !tls->verify_host) {
        return named;
    }
    X509_VERIFY_PARAM_set_hostflags(wanted, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return (numeric ? X509_VERIFY_PARAM_set1_ip_asc(wanted, host) : X509_VERIFY_PARAM_set1_host(wanted, host, 0)) == 1;
}

/* The mutex is held. */
static SSL *begin(cl_tls *tls, cl_pem *pem, char *host)
{
    SSL_CTX *context = host == NULL ? NULL : context_of(tls, pem);
    SSL *ssl = context == NULL ? NULL : SSL_new(context);
    if (ssl == NULL || !aim(tls, ssl, host) || SSL_set_ex_data(ssl, slot, host) != 1) {
        SSL_free(ssl);
        free(host);
        return NULL;
    }
    const resumed *before = find(tls, host);
    if (before != NULL && before->session != NULL) {
        (void)SSL_set_session(ssl, before->session);
    }
    SSL_set_connect_state(ssl);
    return ssl;
}

SSL *cl_tls_session(cl_tls *tls, const char *address, uint64_t *expires_at, cl_error *error)
{
    cl_pem *pem = NULL;
    if (cl_identity_take(tls->identity, tls->timeout_ms, &pem, error) != CL_OK) {
        return NULL;
    }
    *expires_at = pem->expires_at;
    (void)pthread_mutex_lock(&tls->mutex);
    SSL *ssl = begin(tls, pem, host_of(address));
    (void)pthread_mutex_unlock(&tls->mutex);
    cl_pem_drop(pem);
    if (ssl == NULL) {
        unsigned long code = ERR_peek_last_error();
        const char *reason = code == 0 ? NULL : ERR_reason_error_string(code);
        (void)cl_fail(error, CL_INTERNAL, "internal: no TLS session for %.200s: %s", address,
                      reason == NULL ? "no memory, or no host and port" : reason);
    }
    return ssl;
}

bool cl_tls_peer_allowed(const cl_tls *tls, const SSL *ssl)
{
    char principal[CL_PRINCIPAL_MAX];
    if (*tls->peer_ids == '\0') {
        return true;
    }
    const X509 *peer = SSL_get0_peer_certificate(ssl);
    return peer != NULL && cl_certificate_principal(peer, principal) && cl_ids_have(tls->peer_ids, principal);
}
