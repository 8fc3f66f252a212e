/*
 * What the files of this module share: its types, and how they are made. Names are those of cipherlane.pure, which says what
 * they mean; what crosses files begins with cn_.
 *
 * Threads: the interpreter's lock is held throughout, so a context serves one thread at a time, and no nonce is given
 * twice [CL-ENV-031].
 */
#ifndef CIPHERLANE_NATIVE_CORE_H
#define CIPHERLANE_NATIVE_CORE_H

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include "bytes.h"
#include "cipher.h"

#include <limits.h>

#define INTERFACE 2 /* changes with what cipherlane and this module expect of each other */
#define COUNTER_SIZE 4U
#define ENVELOPE_SIZE (CL_PREAMBLE_SIZE + CL_NONCE_SIZE)
#define OPENING_SIZE (CL_PREAMBLE_SIZE + CL_SALT_SIZE) /* what all records of a session begin with */
#define SESSION_RECORDS UINT32_MAX                     /* the counter that is never used [CL-ENV-032] */
#define LONGEST (INT_MAX - 1024)                       /* of a value; OpenSSL takes no more in one call */
#define LOOK_AT_CLOCK 262144U                          /* after so many bytes, a record counting as 1,024 more */

typedef struct state {
    cl_algorithms algorithms;
    PyTypeObject *aead;
    PyTypeObject *session;
    PyTypeObject *sealer;
    PyTypeObject *tally;
    PyTypeObject *opener;
    PyObject *invalid_tag;
    PyObject *wiped;
} state;

typedef struct aead {
    PyObject_HEAD EVP_CIPHER_CTX *encrypting;
    EVP_CIPHER_CTX *decrypting;
} aead;

typedef struct session {
    PyObject_HEAD aead *aead;
    PyObject *key;   /* has the attribute wiped */
    PyObject *clock; /* NULL: the system's */
    Py_buffer alive; /* its first byte is 0 in a forked child */
    double until;
    uint64_t next;
    uint8_t prefix[CL_NONCE_PREFIX_SIZE];
    PyObject *wiped; /* the attribute's name */
} session;

typedef struct tally {
    PyObject_HEAD unsigned long long records;
    unsigned long long bytes;
} tally;

typedef struct sealer {
    PyObject_HEAD session *session;
    tally *tally;
    PyObject *before;
    PyObject *additional_data;
    Py_ssize_t longest;
} sealer;

typedef struct opener {
    PyObject_HEAD aead *aead;
    PyObject *additional_data;
    double until;
} opener;

static inline cl_bytes view(PyObject *bytes)
{
    return (cl_bytes){(const uint8_t *)PyBytes_AsString(bytes), (size_t)PyBytes_Size(bytes)};
}

static inline uint8_t *memory(PyObject *bytes)
{
    return (uint8_t *)PyBytes_AsString(bytes);
}

static inline state *state_of(PyObject *self)
{
    return (state *)PyType_GetModuleState(Py_TYPE(self));
}

/* Of any type of this module; the types hold no references in cycles, so none takes part in garbage collection. */
void cn_release(PyObject *self);
PyObject *cn_allocate(PyTypeObject *type);

/* Sets the exception for what OpenSSL refused; NULL. */
PyObject *cn_failed(void);

/* Seconds by a clock of Python, or by the system's where it is NULL; -1 with an exception. */
double cn_now(PyObject *clock);

/* Plaintext of ciphertext and tag; NULL with the code of what is wrong, or CL_OK for an exception. */
PyObject *cn_open(aead *with, const uint8_t *iv, cl_bytes sealed, cl_bytes additional_data, cl_code *code);

/* Functions of the module and methods, as Python calls them. */
PyObject *cn_derive(PyObject *self, PyObject *arguments);
PyObject *cn_raw(PyObject *self, PyObject *arguments);
PyObject *cn_aead_session(PyObject *self, PyObject *arguments);
PyObject *cn_aead_opener(PyObject *self, PyObject *arguments);
PyObject *cn_open_one(PyObject *self, PyObject *arguments);
PyObject *cn_open_all(PyObject *self, PyObject *arguments);

extern PyType_Slot cn_aead_slots[];
extern PyType_Slot cn_session_slots[];
extern PyType_Slot cn_sealer_slots[];
extern PyType_Slot cn_tally_slots[];
extern PyType_Slot cn_opener_slots[];

#endif
