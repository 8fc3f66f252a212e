/*
 * What a connection to the key service shows and trusts: texts of PEM files, kept in memory so that they can be replaced while a client runs
 * [CL-KEY-016], or a certificate that the key service gave (identity.h). A cl_pem is immutable and counted, so that a connection can go on
 * with what it began with.
 */
#ifndef CL_PEM_H
#define CL_PEM_H

#include "config.h"

#include <openssl/x509.h>
#include <stdatomic.h>
#include <sys/types.h>

#define CL_PEM_MAX 1048576 /* bytes of a file, exclusive */

typedef enum cl_pem_file { CL_PEM_CA, CL_PEM_CERTIFICATE, CL_PEM_KEY, CL_PEM_FILES } cl_pem_file;

typedef struct cl_pem_text {
    char *data; /* size bytes and a NUL */
    size_t size;
} cl_pem_text;

/* By what a changed file is noticed. */
typedef struct cl_pem_mark {
    dev_t device;
    ino_t inode;
    off_t size;
    int64_t seconds; /* of its last change */
    int64_t nanoseconds;
} cl_pem_mark;

typedef struct cl_pem {
    atomic_uint references;
    cl_pem_text text[CL_PEM_FILES]; /* without a certificate .data is NULL: none is shown */
    cl_pem_mark mark[CL_PEM_FILES]; /* of files */
    cl_pem_text bearer;             /* a token to show in a header, or .data is NULL */
    cl_pem_text peers;              /* the CAs of Kafka peers, or .data is NULL: text[CL_PEM_CA] */
    uint64_t expires_at;            /* cl_now() at the end of a certificate that the key service gave; 0: of files */
} cl_pem;

/* A text of a file with `size` bytes at most that is not empty; false when there is none. Free with cl_pem_text_free. */
bool cl_pem_text_read(const char *path, size_t size, cl_pem_text *text, cl_pem_mark *mark);

/* A copy of `size` bytes; false without memory. */
bool cl_pem_text_copy(cl_pem_text *text, const char *data, size_t size);

/* Wipes and frees. */
void cl_pem_text_free(cl_pem_text *text);

/* One without texts and with one reference; NULL without memory. */
cl_pem *cl_pem_new(void);

/* The first certificate of a text, or NULL. Free with X509_free. */
X509 *cl_pem_certificate(const cl_pem_text *text);

/*
 * Reads the files and proves that they can be used together: certificates in the CA file, a certificate, its private key without a
 * passphrase. One reference; NULL with CL_CONFIGURATION_INVALID, which names the setting, or CL_INTERNAL in *error.
 */
cl_pem *cl_pem_read(const cl_settings *settings, cl_error *error);

/* Whether a file is another one than was read. */
bool cl_pem_changed(const cl_pem *pem, const cl_settings *settings);

/* One reference more. */
cl_pem *cl_pem_keep(cl_pem *pem);

/* Wipes and frees with the last reference; NULL is allowed. */
void cl_pem_drop(cl_pem *pem);

#endif
