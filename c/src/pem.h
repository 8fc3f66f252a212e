/*
 * The three PEM files: read, checked, kept in memory so that they can be replaced while a client runs [CL-KEY-016]. A cl_pem is immutable and
 * counted, so that a connection can go on with what it began with.
 */
#ifndef CL_PEM_H
#define CL_PEM_H

#include "config.h"

#include <sys/types.h>

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
    unsigned references; /* guarded by whoever shares it */
    cl_pem_text text[CL_PEM_FILES];
    cl_pem_mark mark[CL_PEM_FILES];
} cl_pem;

/*
 * Reads the files and proves that they can be used together: certificates in the CA file, a certificate, its private key without a
 * passphrase. One reference; NULL with CL_CONFIGURATION_INVALID, which names the setting, or CL_INTERNAL in *error.
 */
cl_pem *cl_pem_read(const cl_settings *settings, cl_error *error);

/* Whether a file is another one than was read. */
bool cl_pem_changed(const cl_pem *pem, const cl_settings *settings);

/* Wipes and frees with the last reference; NULL is allowed. */
void cl_pem_drop(cl_pem *pem);

#endif
