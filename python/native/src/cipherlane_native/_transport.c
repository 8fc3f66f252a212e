/*
 * TLS to brokers for confluent-kafka under a certificate that is renewed while a client runs: the pump of libcipherlane's drop-in (pump.h),
 * as a module of Python and a plug-in of librdkafka in one shared object. Python opens a pump, and names it in the settings of a client whose
 * `plugin.library.paths` has this file; librdkafka then calls conf_init(), and the pump belongs to that client until librdkafka frees its
 * configuration. A client that the plug-in did not reach cannot be made: librdkafka knows no setting of that name.
 *
 * Threads: the functions for Python hold the interpreter's lock, those for librdkafka do not, and never take it.
 */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "given.h"
#include "loaded.h"
#include "pump.h"
#include "topics.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME "cipherlane"
#define SETTING "cipherlane.transport"
#define IDENTITY "cipherlane_native.identity"

/* Pumps of which no configuration of librdkafka is the owner yet. */
typedef struct waiting {
    struct waiting *next;
    unsigned long number;
    cl_pump *pump;
} waiting;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static waiting *first;
static unsigned long last_number;

/* 0 without memory. */
static unsigned long put(cl_pump *pump)
{
    waiting *one = malloc(sizeof *one);
    if (one == NULL) {
        return 0;
    }
    (void)pthread_mutex_lock(&mutex);
    *one = (waiting){first, ++last_number, pump};
    unsigned long number = one->number;
    first = one;
    (void)pthread_mutex_unlock(&mutex);
    return number;
}

/* The pump of a number, which is forgotten; NULL if there is none. */
static cl_pump *take(unsigned long number)
{
    cl_pump *pump = NULL;
    (void)pthread_mutex_lock(&mutex);
    for (waiting **place = &first; *place != NULL && pump == NULL;) {
        waiting *one = *place;
        if (one->number == number) {
            pump = one->pump;
            *place = one->next;
            free(one);
        } else {
            place = &one->next;
        }
    }
    (void)pthread_mutex_unlock(&mutex);
    return pump;
}

/* The plug-in */

static rd_kafka_resp_err_t on_thread_start(rd_kafka_t *rk, rd_kafka_thread_type_t type, const char *name, void *pump)
{
    (void)type, (void)name;
    cl_pump_serve(pump, rk);
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_destroy(rd_kafka_t *rk, void *pump)
{
    (void)rk;
    cl_pump_mute(pump);
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_new(rd_kafka_t *rk, const rd_kafka_conf_t *conf, void *pump, char *errstr, size_t size)
{
    (void)conf, (void)errstr, (void)size;
    rd_kafka_resp_err_t failed = cn_kafka_add_on_destroy()(rk, NAME, on_destroy, pump);
    return failed != RD_KAFKA_RESP_ERR_NO_ERROR
               ? failed
               : cl_kafka()->rd_kafka_interceptor_add_on_thread_start(rk, NAME, on_thread_start, pump);
}

/* The last that is called for a configuration, also for that of a client: its threads are gone. */
static rd_kafka_resp_err_t on_conf_destroy(void *pump)
{
    cl_pump_free(pump);
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static bool hang_on(rd_kafka_conf_t *conf, cl_pump *pump)
{
    const kafka_api *kafka = cl_kafka();
    if (pump == NULL || kafka->rd_kafka_conf_interceptor_add_on_conf_destroy(conf, NAME, on_conf_destroy, pump) !=
                            RD_KAFKA_RESP_ERR_NO_ERROR) {
        cl_pump_free(pump);
        return false;
    }
    kafka->rd_kafka_conf_set_connect_cb(conf, cl_pump_connect);
    return kafka->rd_kafka_conf_interceptor_add_on_new(conf, NAME, on_new, pump) == RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_conf_res_t on_conf_set(rd_kafka_conf_t *conf, const char *name, const char *value, char *errstr,
                                       size_t size, void *opaque)
{
    (void)opaque;
    if (strcmp(name, SETTING) != 0) {
        return RD_KAFKA_CONF_UNKNOWN;
    }
    if (hang_on(conf, value == NULL ? NULL : take(strtoul(value, NULL, 10)))) {
        return RD_KAFKA_CONF_OK;
    }
    (void)snprintf(errstr, size, SETTING " is set by cipherlane itself, for one client each");
    return RD_KAFKA_CONF_INVALID;
}

/* What librdkafka looks for in a plug-in (rdkafka.h, rd_kafka_plugin_f_conf_init_t). */
__attribute__((visibility("default"))) rd_kafka_plugin_f_conf_init_t conf_init;

rd_kafka_resp_err_t conf_init(rd_kafka_conf_t *conf, void **opaque, char *errstr, size_t size)
{
    (void)opaque, (void)errstr, (void)size;
    return cl_kafka()->rd_kafka_conf_interceptor_add_on_conf_set(conf, NAME, on_conf_set, NULL);
}

/* The module */

static void forget_identity(PyObject *capsule)
{
    cl_identity_release(PyCapsule_GetPointer(capsule, IDENTITY));
}

static PyObject *load(PyObject *self, PyObject *path)
{
    (void)self;
    const char *text = PyUnicode_AsUTF8AndSize(path, NULL);
    const char *why = text == NULL ? NULL : cn_kafka_load(text);
    if (why != NULL) {
        PyErr_SetString(PyExc_ImportError, why);
    }
    return text == NULL || why != NULL ? NULL : Py_NewRef(Py_None);
}

static PyObject *new_identity(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    cl_identity *made = cn_identity_new();
    PyObject *capsule = made == NULL ? PyErr_NoMemory() : PyCapsule_New(made, IDENTITY, forget_identity);
    if (capsule == NULL) {
        cl_identity_release(made);
    }
    return capsule;
}

static PyObject *give(PyObject *self, PyObject *arguments)
{
    (void)self;
    PyObject *capsule = NULL;
    const char *text[CL_PEM_FILES];
    Py_ssize_t size[CL_PEM_FILES];
    double until = 0;
    if (!PyArg_ParseTuple(arguments, "Oy#y#y#d", &capsule, &text[CL_PEM_CA], &size[CL_PEM_CA],
                          &text[CL_PEM_CERTIFICATE], &size[CL_PEM_CERTIFICATE], &text[CL_PEM_KEY], &size[CL_PEM_KEY],
                          &until)) {
        return NULL;
    }
    cl_identity *identity = PyCapsule_GetPointer(capsule, IDENTITY);
    cl_pem *pem = identity == NULL ? NULL : cl_pem_new();
    bool whole = pem != NULL;
    for (cl_pem_file i = CL_PEM_CA; whole && i < CL_PEM_FILES; i++) {
        whole = size[i] < CL_PEM_MAX && cl_pem_text_copy(&pem->text[i], text[i], (size_t)size[i]);
    }
    if (!whole) {
        cl_pem_drop(pem);
        return identity == NULL ? NULL : PyErr_NoMemory();
    }
    pem->expires_at = (uint64_t)(until * 1e9);
    cn_identity_give(identity, pem);
    return Py_NewRef(Py_None);
}

static PyObject *number_of(cl_pump *pump)
{
    unsigned long number = put(pump);
    if (number == 0) {
        cl_pump_free(pump);
        return PyErr_NoMemory();
    }
    return PyLong_FromUnsignedLong(number);
}

static PyObject *begin(PyObject *self, PyObject *arguments)
{
    (void)self;
    PyObject *capsule = NULL;
    int verify_host = 0;
    unsigned timeout_ms = 0;
    cl_error error = {0};
    cl_tls_terms terms = {.peer_ids = ""};
    if (!PyArg_ParseTuple(arguments, "OspI", &capsule, &terms.peer_ids, &verify_host, &timeout_ms)) {
        return NULL;
    }
    cl_identity *identity = PyCapsule_GetPointer(capsule, IDENTITY);
    if (identity == NULL) {
        return NULL;
    }
    if (strlen(terms.peer_ids) >= CL_TEXT_MAX || !cl_ids_valid(terms.peer_ids)) {
        PyErr_SetString(PyExc_ValueError, "a list of SPIFFE ids that is too long, or holds what is none");
        return NULL;
    }
    terms.verify_host = verify_host != 0;
    terms.timeout_ms = timeout_ms;
    cl_pump *pump = cl_pump_new(cn_identity_keep(identity), &terms, &error);
    if (pump == NULL) {
        PyErr_SetString(PyExc_OSError, error.message);
        return NULL;
    }
    return number_of(pump);
}

static PyObject *drop(PyObject *self, PyObject *number)
{
    (void)self;
    unsigned long which = PyLong_AsUnsignedLong(number);
    if (PyErr_Occurred() != NULL) {
        return NULL;
    }
    cl_pump *pump = take(which);
    Py_BEGIN_ALLOW_THREADS;
    cl_pump_free(pump);
    Py_END_ALLOW_THREADS;
    return Py_NewRef(Py_None);
}

static PyMethodDef functions[] = {
    {"load", load, METH_O, NULL},       {"identity", new_identity, METH_NOARGS, NULL},
    {"give", give, METH_VARARGS, NULL}, {"begin", begin, METH_VARARGS, NULL},
    {"drop", drop, METH_O, NULL},       {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_transport",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit__transport(void);
PyMODINIT_FUNC PyInit__transport(void)
{
    /* A process may end while connections are open: then OpenSSL must not be cleaned up below them. */
    if (OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL) != 1) {
        PyErr_SetString(PyExc_ImportError, "OpenSSL cannot be used");
        return NULL;
    }
    return PyModule_Create(&module);
}
