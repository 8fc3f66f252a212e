/*
 * One connection: librdkafka's end of a pair of sockets, a TLS session, and the socket to the broker; what one side does not take is not read from the other. Of one thread.
 */
#ifndef CL_STREAM_H
#define CL_STREAM_H

#include "frames.h"
#include "tls.h"

#include <sys/socket.h>

#define CL_STREAM_PIECE 65536U /* bytes taken at once: four full TLS records */
#define CL_STREAM_NAME 512U    /* bytes of HOST:PORT, NUL included */

/* What a descriptor in the set of epoll belongs to. */
typedef struct cl_side {
    struct cl_stream *stream;
    int fd;
    uint32_t events; /* asked for */
} cl_side;

typedef struct cl_stream {
    struct cl_stream *next;
    cl_side plain; /* librdkafka's end of the pair is the other one */
    cl_side wire;
    SSL *ssl;
    BIO *out;        /* TLS records for the wire */
    size_t out_sent; /* bytes of them that it took */
    bool open;
    bool over;  /* to be freed */
    bool ended; /* by the broker: what it sent is still given to librdkafka */
    bool draining;
    bool again;    /* has more to do than one turn */
    uint8_t *rest; /* for librdkafka, which did not take it at once */
    size_t rest_size;
    cl_frames requests;
    cl_frames answers;
    uint64_t begun;
    uint64_t close_at; /* to begin draining */
    uint64_t end_at;   /* whatever is under way */
    struct sockaddr_storage address;
    socklen_t address_size;
    char name[CL_STREAM_NAME];
    char why[160]; /* it failed, or "" */
} cl_stream;

/* One that is not yet dialled; `fd` is our end of the pair and the stream's from now on. NULL without memory. */
cl_stream *cl_stream_new(const struct sockaddr *address, int size, const char *name, int fd);

/* Tells the broker that it ends, if TLS was up, and closes both sides. */
void cl_stream_free(cl_stream *one);

/* Begins to connect, under the newest certificate; false: it is over, and `why` says why. */
bool cl_stream_dial(cl_stream *one, cl_tls *tls);

/* Does what can be done without waiting; `piece` is memory for it. */
void cl_stream_work(cl_stream *one, const cl_tls *tls, uint8_t piece[CL_STREAM_PIECE]);

/* Ends what took too long, and closes between requests what is near the end of its certificate [CL-TLS-010]. */
void cl_stream_look_at_dates(cl_stream *one, uint64_t now);

/* What to wait for, as epoll says it. */
uint32_t cl_stream_plain_events(const cl_stream *one);
uint32_t cl_stream_wire_events(const cl_stream *one);

#endif
