/*
 * The module: what a record costs in cipherlane, in C: the AES-256-GCM call of libcipherlane's core around Python's bytes. It has the
 * names of cipherlane.pure, which says what they mean. Keys come from there, are derived here and wiped by OpenSSL.
 *
 * Threads: the interpreter's lock is held throughout, so a context serves one thread at a time, and no nonce is given
 * twice [CL-ENV-031]. The module refuses to load where there is no such lock (the limited API does).
 * Knows nothing of policy, leases, network and Kafka.
 */
#include "core.h"

#include <time.h>

/* Of any type of this module; the types hold no references in cycles, so none takes part in garbage collection. */
void cn_release(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release_memory = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release_memory(self);
    Py_DECREF(type);
}

PyObject *cn_allocate(PyTypeObject *type)
{
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    return alloc(type, 0);
}

PyObject *cn_failed(void)
{
    PyErr_SetString(PyExc_RuntimeError, "OpenSSL failed");
    return NULL;
}

/* Seconds, or -1 with an exception. */
double cn_now(PyObject *clock)
{
    if (clock != NULL) {
        PyObject *moment = PyObject_CallNoArgs(clock);
        double seconds = moment == NULL ? -1 : PyFloat_AsDouble(moment);
        Py_XDECREF(moment);
        return seconds;
    }
#ifdef CLOCK_BOOTTIME
    struct timespec moment;
    if (clock_gettime(CLOCK_BOOTTIME, &moment) == 0) {
        return (double)moment.tv_sec + (double)moment.tv_nsec * 1e-9;
    }
#endif
    PyErr_SetString(PyExc_OSError, "no clock that runs on through suspend");
    return -1;
}

/* The module */

#define NO_NEW (Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE)

static PyTypeObject *new_type(PyObject *self, const char *name, size_t size, PyType_Slot *slots)
{
    PyType_Spec spec = {name, (int)size, 0, NO_NEW, slots};
    return (PyTypeObject *)PyType_FromModuleAndSpec(self, &spec, NULL);
}

static PyObject *attribute_of(const char *name, const char *attribute)
{
    PyObject *imported = PyImport_ImportModule(name);
    PyObject *found = imported == NULL ? NULL : PyObject_GetAttrString(imported, attribute);
    Py_XDECREF(imported);
    return found;
}

static int execute(PyObject *self)
{
    state *known = PyModule_GetState(self);
    if (cl_algorithms_open(&known->algorithms) != CL_OK) {
        PyErr_SetString(PyExc_ImportError, "this OpenSSL has no AES-256-GCM");
        return -1;
    }
    known->aead = new_type(self, "cipherlane_native.Aead", sizeof(aead), cn_aead_slots);
    known->session = new_type(self, "cipherlane_native.Session", sizeof(session), cn_session_slots);
    known->sealer = new_type(self, "cipherlane_native.Sealer", sizeof(sealer), cn_sealer_slots);
    known->tally = new_type(self, "cipherlane_native.Tally", sizeof(tally), cn_tally_slots);
    known->opener = new_type(self, "cipherlane_native.Opener", sizeof(opener), cn_opener_slots);
    known->invalid_tag = attribute_of("cryptography.exceptions", "InvalidTag");
    known->wiped = PyUnicode_InternFromString("wiped");
    bool complete = known->aead != NULL && known->session != NULL && known->sealer != NULL && known->tally != NULL &&
                    known->opener != NULL && known->invalid_tag != NULL && known->wiped != NULL;
    return complete && PyModule_AddIntConstant(self, "INTERFACE", INTERFACE) == 0
               ? PyModule_AddStringConstant(self, "OPENSSL", OpenSSL_version(OPENSSL_VERSION))
               : -1;
}

static int clear(PyObject *self)
{
    state *known = PyModule_GetState(self);
    Py_CLEAR(known->aead);
    Py_CLEAR(known->session);
    Py_CLEAR(known->sealer);
    Py_CLEAR(known->tally);
    Py_CLEAR(known->opener);
    Py_CLEAR(known->invalid_tag);
    Py_CLEAR(known->wiped);
    return 0;
}

static void release_module(void *self)
{
    clear(self);
    cl_algorithms_close(&((state *)PyModule_GetState(self))->algorithms);
}

static PyMethodDef functions[] = {
    {"derive", cn_derive, METH_VARARGS, NULL},
    {"raw", cn_raw, METH_VARARGS, NULL},
    {"open_one", cn_open_one, METH_VARARGS, NULL},
    {"open_all", cn_open_all, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyModuleDef_Slot slots[] = {{Py_mod_exec, execute}, {0, NULL}};
static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "_core", .m_size = sizeof(state),  .m_methods = functions,
    .m_slots = slots,      .m_clear = clear,  .m_free = release_module,
};

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&module);
}
