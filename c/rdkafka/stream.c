/* Bytes between librdkafka and a broker, in TLS on the broker's side. */
#include "stream.h"

#include "cipher.h"
#include "clock.h"
#include "error.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define ROUNDS 16 /* pieces each way in one turn, so that every connection has its turn */
/* A connection is closed one to two of these before its certificate ends, or of a tenth of what is left. */
#define MARGIN (30 * CL_SECOND)
#define DRAIN (5 * CL_SECOND)  /* for answers to requests under way */
#define SETUP (30 * CL_SECOND) /* to connect and shake hands */

static void fail(cl_stream *one, const char *why)
{
    (void)snprintf(one->why, sizeof one->why, "%.150s", why);
    one->over = true;
}

static const char *tls_reason(const SSL *ssl)
{
    static _Thread_local char text[160];
    long verified = SSL_get_verify_result(ssl);
    unsigned long code = ERR_peek_last_error();
    if (verified != X509_V_OK) {
        (void)snprintf(text, sizeof text, "the broker's certificate is refused: %s",
                       X509_verify_cert_error_string(verified));
    } else {
        const char *reason = code == 0 ? NULL : ERR_reason_error_string(code);
        (void)snprintf(text, sizeof text, "TLS: %s", reason == NULL ? "the broker hung up" : reason);
    }
    return text;
}

/* Sends TLS records; false while the wire does not take them all. */
static bool flush(cl_stream *one)
{
    char *data = NULL;
    size_t size = (size_t)BIO_get_mem_data(one->out, &data);
    while (one->out_sent < size) {
        ssize_t sent = send(one->wire.fd, data + one->out_sent, size - one->out_sent, MSG_NOSIGNAL);
        if (sent < 0) {
            if (errno != EAGAIN && errno != EINTR) {
                fail(one, "cannot send");
            }
            return false;
        }
        one->out_sent += (size_t)sent;
    }
    (void)BIO_reset(one->out);
    one->out_sent = 0;
    return true;
}

/* Gives librdkafka what it did not take at once; false while it still does not. */
static bool give_rest(cl_stream *one)
{
    size_t given = 0;
    while (given < one->rest_size) {
        ssize_t sent = send(one->plain.fd, one->rest + given, one->rest_size - given, MSG_NOSIGNAL);
        if (sent < 0) {
            one->over = one->over || (errno != EAGAIN && errno != EINTR);
            memmove(one->rest, one->rest + given, one->rest_size - given);
            one->rest_size -= given;
            return false;
        }
        given += (size_t)sent;
    }
    free(one->rest);
    one->rest = NULL;
    one->rest_size = 0;
    return true;
}

static void keep_rest(cl_stream *one, const uint8_t *data, size_t size)
{
    one->rest = malloc(size);
    one->over = one->over || one->rest == NULL;
    if (one->rest != NULL) {
        memcpy(one->rest, data, size);
        one->rest_size = size;
    }
}

/* As many TLS records as fill the piece, or are there; *dry says that no more are. */
static size_t gather(cl_stream *one, uint8_t *piece, bool *dry)
{
    size_t size = 0;
    while (size < CL_STREAM_PIECE) {
        int got = SSL_read(one->ssl, piece + size, (int)(CL_STREAM_PIECE - size));
        if (got <= 0) {
            int why = SSL_get_error(one->ssl, got);
            if (why == SSL_ERROR_ZERO_RETURN || why == SSL_ERROR_SYSCALL) {
                one->ended = true; /* the broker's right; librdkafka connects again */
            } else if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) {
                fail(one, tls_reason(one->ssl));
            }
            *dry = true;
            return size;
        }
        size += (size_t)got;
    }
    return size;
}

/* From the wire to librdkafka, until one of them has enough. */
static void bring(cl_stream *one, uint8_t *piece)
{
    bool dry = false;
    for (int i = 0; !one->over && !dry && give_rest(one); i++) {
        if (i == ROUNDS) {
            one->again = true; /* TLS may hold records that epoll knows nothing of */
            return;
        }
        size_t size = gather(one, piece, &dry);
        cl_frames_follow(&one->answers, piece, size);
        ssize_t sent = size == 0 ? 0 : send(one->plain.fd, piece, size, MSG_NOSIGNAL);
        one->over = one->over || (sent < 0 && errno != EAGAIN && errno != EINTR);
        size_t taken = sent < 0 ? 0 : (size_t)sent;
        if (taken < size) {
            keep_rest(one, piece + taken, size - taken);
        }
    }
    one->over = one->over || (one->ended && one->rest_size == 0);
}

/* How much of librdkafka's requests to take at most: while draining only the rest of the one that has begun. */
static size_t appetite(const cl_stream *one)
{
    size_t rest = cl_frames_rest(&one->requests);
    return !one->draining ? CL_STREAM_PIECE : rest < CL_STREAM_PIECE ? rest : CL_STREAM_PIECE;
}

/* From librdkafka to the wire, until one of them has enough. */
static void take(cl_stream *one, uint8_t *piece)
{
    for (int i = 0; i < ROUNDS && !one->over && flush(one) && appetite(one) > 0; i++) {
        ssize_t got = recv(one->plain.fd, piece, appetite(one), 0);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
            one->over = true; /* librdkafka closed it */
        }
        if (got <= 0) {
            return;
        }
        cl_frames_follow(&one->requests, piece, (size_t)got);
        for (ssize_t done = 0; done < got;) { /* into memory, so it is taken as a whole */
            int written = SSL_write(one->ssl, piece + done, (int)(got - done));
            if (written <= 0) {
                fail(one, tls_reason(one->ssl));
                return;
            }
            done += written;
        }
    }
}

static void shake_hands(cl_stream *one, const cl_tls *tls)
{
    int done = SSL_do_handshake(one->ssl);
    int why = SSL_get_error(one->ssl, done);
    if (done == 1) {
        one->open = cl_tls_peer_allowed(tls, one->ssl);
        if (!one->open) {
            fail(one, "the broker's certificate is refused: it names none of cipherlane.tls.peer.ids");
        }
    } else if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) {
        fail(one, tls_reason(one->ssl));
    }
    (void)flush(one); /* an alert too */
}

static bool answered(const cl_stream *one)
{
    return cl_frames_rest(&one->requests) == 0 && cl_frames_rest(&one->answers) == 0 &&
           one->requests.done == one->answers.done && one->rest_size == 0;
}

/* Ends what took too long, and closes between requests what is near the end of its certificate. */
void cl_stream_look_at_dates(cl_stream *one, uint64_t now)
{
    if (!one->open && now > one->begun + SETUP) {
        fail(one, "no TLS connection within 30 s");
    }
    one->draining = one->draining || (one->open && now >= one->close_at);
    one->over = one->over || now >= one->end_at || (one->draining && answered(one));
}

static bool unsent(const cl_stream *one)
{
    return one->out_sent > 0 || BIO_pending(one->out) > 0;
}

void cl_stream_work(cl_stream *one, const cl_tls *tls, uint8_t piece[CL_STREAM_PIECE])
{
    ERR_clear_error();
    one->again = false;
    if (!one->open) {
        shake_hands(one, tls);
    }
    if (one->open) {
        bring(one, piece);
        take(one, piece);
        (void)flush(one);
    }
    cl_stream_look_at_dates(one, cl_now());
}

uint32_t cl_stream_plain_events(const cl_stream *one)
{
    bool hungry = one->open && !unsent(one) && appetite(one) > 0;
    return (hungry ? (uint32_t)EPOLLIN : 0U) | (one->rest_size > 0 ? (uint32_t)EPOLLOUT : 0U);
}

uint32_t cl_stream_wire_events(const cl_stream *one)
{
    return (one->rest_size == 0 ? (uint32_t)EPOLLIN : 0U) | (unsent(one) ? (uint32_t)EPOLLOUT : 0U);
}

void cl_stream_free(cl_stream *one)
{
    if (one->open) {
        (void)SSL_shutdown(one->ssl);
        char *data = NULL;
        long size = BIO_get_mem_data(one->out, &data);
        (void)!send(one->wire.fd, data, size > 0 ? (size_t)size : 0, MSG_NOSIGNAL);
    }
    SSL_free(one->ssl);
    if (one->wire.fd >= 0) {
        (void)close(one->wire.fd);
    }
    (void)close(one->plain.fd);
    free(one->rest);
    free(one);
}

/* Dials, and prepares the TLS session over the socket. */
bool cl_stream_dial(cl_stream *one, cl_tls *tls)
{
    const int on = 1;
    uint64_t now = cl_now();
    uint64_t ends = 0;
    cl_error error = {0};
    one->begun = now;
    one->ssl = cl_tls_session(tls, one->name, &ends, &error);
    if (one->ssl == NULL) {
        fail(one, error.message);
        return false;
    }
    uint64_t left = ends > now ? ends - now : 0;
    uint64_t margin = left / 10 < MARGIN ? left / 10 : MARGIN;
    uint32_t random = 0;
    (void)cl_random((uint8_t *)&random, sizeof random); /* so that not all connections close at once */
    one->close_at = ends - margin - margin * random / UINT32_MAX;
    one->end_at = one->close_at + (margin < DRAIN ? margin : DRAIN);
    one->wire.fd = socket(one->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
    one->out = BIO_new(BIO_s_mem());
    BIO *in = one->wire.fd < 0 ? NULL : BIO_new_socket(one->wire.fd, BIO_NOCLOSE);
    if (in == NULL || one->out == NULL) {
        BIO_free(in);
        BIO_free(one->out);
        fail(one, "no socket, or no memory");
        return false;
    }
    SSL_set_bio(one->ssl, in, one->out); /* which own them now */
    (void)setsockopt(one->wire.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(one->wire.fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    if (connect(one->wire.fd, (const struct sockaddr *)&one->address, one->address_size) != 0 && errno != EINPROGRESS) {
        fail(one, "cannot connect");
        return false;
    }
    return true;
}

cl_stream *cl_stream_new(const struct sockaddr *address, int size, const char *name, int fd)
{
    cl_stream *one = calloc(1, sizeof *one);
    if (one != NULL) {
        memcpy(&one->address, address, (size_t)size);
        one->address_size = (socklen_t)size;
        one->plain = (cl_side){one, fd, UINT32_MAX};
        one->wire = (cl_side){one, -1, UINT32_MAX};
        one->end_at = UINT64_MAX;
        (void)snprintf(one->name, sizeof one->name, "%s", name);
    }
    return one;
}
