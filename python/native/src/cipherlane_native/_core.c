/*
 * What a record costs in cipherlane, in C: the AES-256-GCM call of libcipherlane's core around Python's bytes. It has the
 * names of cipherlane.pure, which says what they mean. Keys come from there, are derived here and wiped by OpenSSL.
 *
 * Threads: the interpreter's lock is held throughout, so a context serves one thread at a time, and no nonce is given
 * twice [CL-ENV-031]. The module refuses to load where there is no such lock (the limited API does).
 * Knows nothing of policy, leases, network and Kafka.
 */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include "bytes.h"
#include "cipher.h"

#include <limits.h>
#include <time.h>

#define INTERFACE 1 /* changes with what cipherlane and this module expect of each other */
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
    PyObject_HEAD
    EVP_CIPHER_CTX *encrypting;
    EVP_CIPHER_CTX *decrypting;
} aead;

typedef struct session {
    PyObject_HEAD
    aead *aead;
    PyObject *key;   /* has the attribute wiped */
    PyObject *clock; /* NULL: the system's */
    Py_buffer alive; /* its first byte is 0 in a forked child */
    double until;
    uint64_t next;
    uint8_t prefix[CL_NONCE_PREFIX_SIZE];
    PyObject *wiped; /* the attribute's name */
} session;

typedef struct tally {
    PyObject_HEAD
    unsigned long long records;
    unsigned long long bytes;
} tally;

typedef struct sealer {
    PyObject_HEAD
    session *session;
    tally *tally;
    PyObject *before;
    PyObject *additional_data;
    Py_ssize_t longest;
} sealer;

typedef struct opener {
    PyObject_HEAD
    aead *aead;
    PyObject *additional_data;
    double until;
} opener;

static struct PyModuleDef module;

static cl_bytes view(PyObject *bytes)
{
    return (cl_bytes){(const uint8_t *)PyBytes_AsString(bytes), (size_t)PyBytes_Size(bytes)};
}

static uint8_t *memory(PyObject *bytes)
{
    return (uint8_t *)PyBytes_AsString(bytes);
}

/* Of any type of this module; the types hold no references in cycles, so none takes part in garbage collection. */
static void release(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release_memory = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release_memory(self);
    Py_DECREF(type);
}

static PyObject *allocate(PyTypeObject *type)
{
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    return alloc(type, 0);
}

static state *state_of(PyObject *self)
{
    return (state *)PyType_GetModuleState(Py_TYPE(self));
}

static PyObject *failed(void)
{
    PyErr_SetString(PyExc_RuntimeError, "OpenSSL failed");
    return NULL;
}

/* Seconds, or -1 with an exception. */
static double now(PyObject *clock)
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

/* None stands for the system's clock. 0, or -1 with an exception. */
static int take_clock(PyObject *given, PyObject **clock)
{
    *clock = given == Py_None ? NULL : given;
    double moment = now(*clock);
    return moment == -1 && PyErr_Occurred() ? -1 : 0;
}

/* Aead */

static void aead_dealloc(PyObject *self)
{
    EVP_CIPHER_CTX_free(((aead *)self)->encrypting); /* wipes the key schedule */
    EVP_CIPHER_CTX_free(((aead *)self)->decrypting);
    release(self);
}

/* The cipher of this key as it is: for tests with public vectors. */
static EVP_CIPHER_CTX *raw_context(const cl_algorithms *algorithms, const uint8_t *key, bool encrypt)
{
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    if (context != NULL && EVP_CipherInit_ex2(context, algorithms->gcm, key, NULL, encrypt ? 1 : 0, NULL) == 1) {
        return context;
    }
    EVP_CIPHER_CTX_free(context);
    return NULL;
}

static EVP_CIPHER_CTX *context_of(const cl_algorithms *algorithms, const Py_buffer *key, const Py_buffer *salt,
                                  bool encrypt)
{
    return salt->buf == NULL ? raw_context(algorithms, key->buf, encrypt)
                             : cl_cipher_new(algorithms, key->buf, salt->buf, encrypt);
}

static PyObject *new_aead(state *known, const Py_buffer *key, const Py_buffer *salt)
{
    if (key->len != CL_KEY_SIZE || (salt->buf != NULL && salt->len != CL_SALT_SIZE)) {
        PyErr_SetString(PyExc_ValueError, "a key has 32 bytes, a salt 12");
        return NULL;
    }
    aead *made = (aead *)allocate(known->aead);
    if (made != NULL) {
        made->encrypting = context_of(&known->algorithms, key, salt, true);
        made->decrypting = context_of(&known->algorithms, key, salt, false);
        if (made->encrypting == NULL || made->decrypting == NULL) {
            Py_CLEAR(made);
            failed();
        }
    }
    return (PyObject *)made;
}

static PyObject *derive(PyObject *self, PyObject *arguments)
{
    Py_buffer key;
    Py_buffer salt;
    if (!PyArg_ParseTuple(arguments, "y*y*:derive", &key, &salt)) {
        return NULL;
    }
    PyObject *made = new_aead(PyModule_GetState(self), &key, &salt);
    PyBuffer_Release(&key);
    PyBuffer_Release(&salt);
    return made;
}

static PyObject *raw(PyObject *self, PyObject *arguments)
{
    Py_buffer key;
    const Py_buffer none = {0};
    if (!PyArg_ParseTuple(arguments, "y*:raw", &key)) {
        return NULL;
    }
    PyObject *made = new_aead(PyModule_GetState(self), &key, &none);
    PyBuffer_Release(&key);
    return made;
}

/* Three bytes objects, the first a nonce; false with an exception. */
static bool three(PyObject *arguments, PyObject **nonce, PyObject **text, PyObject **additional_data)
{
    if (!PyArg_ParseTuple(arguments, "SSS", nonce, text, additional_data)) {
        return false;
    }
    if (PyBytes_Size(*nonce) != CL_IV_SIZE) {
        PyErr_SetString(PyExc_ValueError, "a nonce has 12 bytes");
        return false;
    }
    if (PyBytes_Size(*text) > INT_MAX - CL_TAG_SIZE || PyBytes_Size(*additional_data) > INT_MAX) {
        PyErr_SetString(PyExc_OverflowError, "more than 2 GiB");
        return false;
    }
    return true;
}

static PyObject *aead_encrypt(PyObject *self, PyObject *arguments)
{
    PyObject *nonce = NULL;
    PyObject *text = NULL;
    PyObject *additional_data = NULL;
    if (!three(arguments, &nonce, &text, &additional_data)) {
        return NULL;
    }
    PyObject *written = PyBytes_FromStringAndSize(NULL, PyBytes_Size(text) + CL_TAG_SIZE);
    const cl_aead_input input = {view(nonce).data, {view(additional_data)}, view(text)};
    if (written != NULL && cl_cipher_encrypt(((aead *)self)->encrypting, &input, memory(written)) != CL_OK) {
        Py_CLEAR(written);
        failed();
    }
    return written;
}

/* Plaintext of ciphertext and tag; NULL with the code of what is wrong, or CL_OK for an exception. */
static PyObject *opened(aead *with, const uint8_t *iv, cl_bytes sealed, cl_bytes additional_data, cl_code *code)
{
    *code = CL_OK;
    const cl_aead_input input = {iv, {additional_data}, {sealed.data, sealed.size - CL_TAG_SIZE}};
    PyObject *plaintext = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)input.text.size);
    if (plaintext != NULL) {
        uint8_t empty[1];
        uint8_t *out = input.text.size == 0 ? empty : memory(plaintext); /* b"" is shared by all who have it */
        *code = cl_cipher_decrypt(with->decrypting, &input, sealed.data + input.text.size, out);
        if (*code != CL_OK) {
            Py_CLEAR(plaintext);
        }
    }
    return plaintext;
}

static PyObject *aead_decrypt(PyObject *self, PyObject *arguments)
{
    PyObject *nonce = NULL;
    PyObject *text = NULL;
    PyObject *additional_data = NULL;
    if (!three(arguments, &nonce, &text, &additional_data)) {
        return NULL;
    }
    cl_code code = CL_AUTHENTICATION_FAILED;
    PyObject *plaintext = NULL;
    if (view(text).size >= CL_TAG_SIZE) {
        plaintext = opened((aead *)self, view(nonce).data, view(text), view(additional_data), &code);
    }
    if (code == CL_AUTHENTICATION_FAILED) {
        PyErr_SetNone(state_of(self)->invalid_tag);
    } else if (code != CL_OK) {
        failed();
    }
    return plaintext;
}

static PyObject *aead_session(PyObject *self, PyObject *arguments)
{
    state *known = state_of(self);
    PyObject *key = NULL;
    PyObject *clock = NULL;
    PyObject *mark = NULL;
    double until = 0;
    Py_buffer prefix;
    unsigned long long counter = 0;
    if (!PyArg_ParseTuple(arguments, "Oy*KOOd:session", &key, &prefix, &counter, &mark, &clock, &until)) {
        return NULL;
    }
    session *made = NULL;
    if (prefix.len != CL_NONCE_PREFIX_SIZE) {
        PyErr_SetString(PyExc_ValueError, "a prefix has 20 bytes");
    } else if (take_clock(clock, &clock) == 0 && (made = (session *)allocate(known->session)) != NULL) {
        made->aead = (aead *)Py_NewRef(self);
        made->key = Py_NewRef(key);
        made->clock = Py_XNewRef(clock);
        made->wiped = Py_NewRef(known->wiped);
        made->until = until;
        made->next = counter;
        memcpy(made->prefix, prefix.buf, CL_NONCE_PREFIX_SIZE);
        if (PyObject_GetBuffer(mark, &made->alive, PyBUF_SIMPLE) != 0 || made->alive.len < 1) {
            Py_CLEAR(made);
        }
    }
    PyBuffer_Release(&prefix);
    return (PyObject *)made;
}

static PyObject *aead_opener(PyObject *self, PyObject *arguments)
{
    PyObject *additional_data = NULL;
    double until = 0;
    if (!PyArg_ParseTuple(arguments, "Sd:opener", &additional_data, &until)) {
        return NULL;
    }
    opener *made = (opener *)allocate(state_of(self)->opener);
    if (made != NULL) {
        made->aead = (aead *)Py_NewRef(self);
        made->additional_data = Py_NewRef(additional_data);
        made->until = until;
    }
    return (PyObject *)made;
}

static PyMethodDef aead_methods[] = {
    {"encrypt", aead_encrypt, METH_VARARGS, NULL}, {"decrypt", aead_decrypt, METH_VARARGS, NULL},
    {"session", aead_session, METH_VARARGS, NULL}, {"opener", aead_opener, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* Session, and the sealers that count on in it */

static void session_dealloc(PyObject *self)
{
    session *gone = (session *)self;
    Py_XDECREF((PyObject *)gone->aead);
    Py_XDECREF(gone->key);
    Py_XDECREF(gone->clock);
    Py_XDECREF(gone->wiped);
    PyBuffer_Release(&gone->alive);
    release(self);
}

static PyObject *session_use_until(PyObject *self, PyObject *moment)
{
    double until = PyFloat_AsDouble(moment);
    if (until == -1 && PyErr_Occurred()) {
        return NULL;
    }
    ((session *)self)->until = until;
    return Py_NewRef(Py_None);
}

static PyObject *session_sealer(PyObject *self, PyObject *arguments)
{
    PyObject *before = NULL;
    PyObject *additional_data = NULL;
    Py_ssize_t longest = 0;
    if (!PyArg_ParseTuple(arguments, "SSn:sealer", &before, &additional_data, &longest)) {
        return NULL;
    }
    state *known = state_of(self);
    sealer *made = (sealer *)allocate(known->sealer);
    if (made == NULL || (made->tally = (tally *)allocate(known->tally)) == NULL) {
        Py_XDECREF((PyObject *)made);
        return NULL;
    }
    made->session = (session *)Py_NewRef(self);
    made->before = Py_NewRef(before);
    made->additional_data = Py_NewRef(additional_data);
    made->longest = longest < LONGEST ? longest : LONGEST;
    return (PyObject *)made;
}

static PyMethodDef session_methods[] = {
    {"use_until", session_use_until, METH_O, NULL},
    {"sealer", session_sealer, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* 1 while the session may encrypt, 0 when it ended, -1 with an exception. */
static int alive(session *this)
{
    if (*(const volatile uint8_t *)this->alive.buf == 0) {
        return 0;
    }
    double moment = now(this->clock);
    if (moment == -1 && PyErr_Occurred()) {
        return -1;
    }
    if (moment >= this->until) {
        return 0;
    }
    PyObject *wiped = PyObject_GetAttr(this->key, this->wiped);
    int ended = wiped == NULL ? -1 : PyObject_IsTrue(wiped);
    Py_XDECREF(wiped);
    /* The count comes last: from here to its use no Python code runs, and so no other thread. */
    return ended < 0 ? -1 : !ended && this->next < SESSION_RECORDS;
}

/* Writes `before`, the nonce of the next record, and ciphertext with tag. */
static cl_code seal_into(sealer *this, cl_bytes text, uint8_t *out)
{
    session *with = this->session;
    cl_bytes before = view(this->before);
    uint32_t counter = (uint32_t)with->next++; /* whatever comes of it, this number is used [CL-ENV-031] */
    memcpy(out, before.data, before.size);
    uint8_t *nonce = out + before.size;
    memcpy(nonce, with->prefix, CL_NONCE_PREFIX_SIZE);
    for (unsigned i = 0; i < COUNTER_SIZE; i++) {
        nonce[CL_NONCE_PREFIX_SIZE + i] = (uint8_t)(counter >> (24U - 8U * i));
    }
    const cl_aead_input input = {nonce + CL_SALT_SIZE, {view(this->additional_data)}, text};
    return cl_cipher_encrypt(with->aead->encrypting, &input, nonce + CL_NONCE_SIZE);
}

static PyObject *sealer_seal(PyObject *self, PyObject *value)
{
    sealer *this = (sealer *)self;
    if (!PyBytes_CheckExact(value) || PyBytes_Size(value) > this->longest) {
        return Py_NewRef(Py_None);
    }
    cl_bytes text = view(value);
    size_t size = view(this->before).size + CL_NONCE_SIZE + text.size + CL_TAG_SIZE;
    PyObject *written = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    int usable = written == NULL ? -1 : alive(this->session);
    if (usable <= 0) {
        Py_XDECREF(written);
        return usable < 0 ? NULL : Py_NewRef(Py_None);
    }
    if (seal_into(this, text, memory(written)) != CL_OK) {
        Py_DECREF(written);
        return failed();
    }
    this->tally->records++;
    this->tally->bytes += text.size;
    return written;
}

static void sealer_dealloc(PyObject *self)
{
    sealer *gone = (sealer *)self;
    Py_XDECREF((PyObject *)gone->session);
    Py_XDECREF((PyObject *)gone->tally);
    Py_XDECREF(gone->before);
    Py_XDECREF(gone->additional_data);
    release(self);
}

static PyMethodDef sealer_methods[] = {{"seal", sealer_seal, METH_O, NULL}, {NULL, NULL, 0, NULL}};
static PyMemberDef sealer_members[] = {{"tally", T_OBJECT_EX, offsetof(sealer, tally), READONLY, NULL}, {0}};
static PyMemberDef tally_members[] = {{"records", T_ULONGLONG, offsetof(tally, records), READONLY, NULL},
                                      {"bytes", T_ULONGLONG, offsetof(tally, bytes), READONLY, NULL},
                                      {0}};

/* Opener */

static void opener_dealloc(PyObject *self)
{
    Py_XDECREF((PyObject *)((opener *)self)->aead);
    Py_XDECREF(((opener *)self)->additional_data);
    release(self);
}

/* The opener of the records that begin as this value does; NULL if there is none. */
static opener *find(state *known, PyObject *openings, PyObject *topic, PyObject *value)
{
    PyObject *name = Py_BuildValue("(Oy#)", topic, PyBytes_AsString(value), (Py_ssize_t)OPENING_SIZE);
    PyObject *found = name == NULL ? NULL : PyDict_GetItemWithError(openings, name);
    Py_XDECREF(name);
    return found != NULL && PyObject_TypeCheck(found, known->opener) ? (opener *)Py_NewRef(found) : NULL;
}

/* Where a batch is: the last opener found serves the records that follow it. */
typedef struct batch {
    PyObject *openings;
    PyObject *clock;
    size_t longest;
    double moment;
    size_t since; /* that moment, in bytes */
    opener *last;           /* owned */
    PyObject *topic;        /* of `last`, borrowed from the list */
    const uint8_t *opening; /* of `last`, borrowed from a value */
} batch;

static bool as_before(const batch *at, PyObject *topic, const uint8_t *opening)
{
    return at->last != NULL && memcmp(at->opening, opening, OPENING_SIZE) == 0 &&
           (at->topic == topic || PyObject_RichCompareBool(at->topic, topic, Py_EQ) == 1);
}

/* A new reference to the plaintext, or NULL: then the long way says why; an exception may be set. */
static PyObject *open_next(state *known, batch *at, PyObject *topic, PyObject *value)
{
    if (!PyBytes_CheckExact(value) || !PyUnicode_CheckExact(topic)) {
        return NULL;
    }
    cl_bytes bytes = view(value);
    if (bytes.size < CL_ENVELOPE_OVERHEAD || bytes.size > at->longest) {
        return NULL;
    }
    if (!as_before(at, topic, bytes.data)) {
        Py_CLEAR(at->last);
        at->last = find(known, at->openings, topic, value);
        at->topic = topic;
        at->opening = bytes.data;
    }
    at->since += bytes.size + 1024;
    if (at->since > LOOK_AT_CLOCK) {
        at->moment = now(at->clock);
        at->since = 0;
    }
    if (at->last == NULL || PyErr_Occurred() || at->moment >= at->last->until) {
        return NULL;
    }
    cl_code code = CL_OK;
    cl_bytes sealed = {bytes.data + ENVELOPE_SIZE, bytes.size - ENVELOPE_SIZE};
    return opened(at->last->aead, bytes.data + OPENING_SIZE, sealed, view(at->last->additional_data), &code);
}

static PyObject *open_one(PyObject *self, PyObject *arguments)
{
    PyObject *openings = NULL;
    PyObject *topic = NULL;
    PyObject *value = NULL;
    PyObject *clock = NULL;
    Py_ssize_t longest = 0;
    if (!PyArg_ParseTuple(arguments, "O!OOnO:open_one", &PyDict_Type, &openings, &topic, &value, &longest, &clock)) {
        return NULL;
    }
    batch at = {.openings = openings, .longest = longest > 0 ? (size_t)longest : 0, .since = LOOK_AT_CLOCK};
    at.clock = clock == Py_None ? NULL : clock;
    PyObject *plaintext = open_next(PyModule_GetState(self), &at, topic, value);
    Py_XDECREF((PyObject *)at.last);
    if (plaintext == NULL) {
        PyErr_Clear();
        return Py_NewRef(Py_None);
    }
    return plaintext;
}

/* 0, or -1 with an exception. */
static int open_into(state *known, batch *at, PyObject *lists[2], PyObject *plaintexts, PyObject *missed)
{
    for (Py_ssize_t i = 0; i < PyList_Size(plaintexts); i++) {
        PyObject *plaintext = open_next(known, at, PyList_GetItem(lists[0], i), PyList_GetItem(lists[1], i));
        if (plaintext == NULL) {
            PyErr_Clear(); /* whatever it was, the long way finds it again and names it */
            Py_CLEAR(at->last);
            plaintext = Py_NewRef(Py_None);
            PyObject *index = PyLong_FromSsize_t(i);
            int added = index == NULL ? -1 : PyList_Append(missed, index);
            Py_XDECREF(index);
            if (added != 0) {
                Py_DECREF(plaintext);
                return -1;
            }
        }
        if (PyList_SetItem(plaintexts, i, plaintext) != 0) {
            return -1;
        }
    }
    return 0;
}

static PyObject *open_all(PyObject *self, PyObject *arguments)
{
    PyObject *lists[2] = {NULL, NULL};
    PyObject *openings = NULL;
    PyObject *clock = NULL;
    Py_ssize_t longest = 0;
    if (!PyArg_ParseTuple(arguments, "O!O!O!nO:open_all", &PyDict_Type, &openings, &PyList_Type, &lists[0], &PyList_Type,
                          &lists[1], &longest, &clock)) {
        return NULL;
    }
    Py_ssize_t count = PyList_Size(lists[1]);
    if (PyList_Size(lists[0]) != count || longest < 0 || longest > INT_MAX) {
        PyErr_SetString(PyExc_ValueError, "as many topics as values, and at most 2 GiB each");
        return NULL;
    }
    batch at = {.openings = openings, .longest = (size_t)longest, .since = LOOK_AT_CLOCK};
    at.clock = clock == Py_None ? NULL : clock;
    PyObject *plaintexts = PyList_New(count);
    PyObject *missed = PyList_New(0);
    PyObject *found = NULL;
    if (plaintexts != NULL && missed != NULL &&
        open_into(PyModule_GetState(self), &at, lists, plaintexts, missed) == 0) {
        found = PyTuple_Pack(2, plaintexts, missed);
    }
    Py_XDECREF((PyObject *)at.last);
    Py_XDECREF(plaintexts);
    Py_XDECREF(missed);
    return found;
}

/* The module */

#define NO_NEW (Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE)

static PyType_Slot aead_slots[] = {{Py_tp_dealloc, aead_dealloc}, {Py_tp_methods, aead_methods}, {0, NULL}};
static PyType_Slot session_slots[] = {{Py_tp_dealloc, session_dealloc}, {Py_tp_methods, session_methods}, {0, NULL}};
static PyType_Slot sealer_slots[] = {
    {Py_tp_dealloc, sealer_dealloc}, {Py_tp_methods, sealer_methods}, {Py_tp_members, sealer_members}, {0, NULL}};
static PyType_Slot tally_slots[] = {{Py_tp_dealloc, release}, {Py_tp_members, tally_members}, {0, NULL}};
static PyType_Slot opener_slots[] = {{Py_tp_dealloc, opener_dealloc}, {0, NULL}};

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
    known->aead = new_type(self, "cipherlane_native.Aead", sizeof(aead), aead_slots);
    known->session = new_type(self, "cipherlane_native.Session", sizeof(session), session_slots);
    known->sealer = new_type(self, "cipherlane_native.Sealer", sizeof(sealer), sealer_slots);
    known->tally = new_type(self, "cipherlane_native.Tally", sizeof(tally), tally_slots);
    known->opener = new_type(self, "cipherlane_native.Opener", sizeof(opener), opener_slots);
    known->invalid_tag = attribute_of("cryptography.exceptions", "InvalidTag");
    known->wiped = PyUnicode_InternFromString("wiped");
    bool complete = known->aead != NULL && known->session != NULL && known->sealer != NULL && known->tally != NULL &&
                    known->opener != NULL && known->invalid_tag != NULL && known->wiped != NULL;
    return complete ? PyModule_AddIntConstant(self, "INTERFACE", INTERFACE) : -1;
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
    {"derive", derive, METH_VARARGS, NULL},
    {"raw", raw, METH_VARARGS, NULL},
    {"open_one", open_one, METH_VARARGS, NULL},
    {"open_all", open_all, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyModuleDef_Slot slots[] = {{Py_mod_exec, execute}, {0, NULL}};
static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "_core", .m_size = sizeof(state), .m_methods = functions,
    .m_slots = slots, .m_clear = clear, .m_free = release_module,
};

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&module);
}
