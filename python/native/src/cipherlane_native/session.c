/* Sessions of an encrypter, and the sealers that count on in them: no nonce twice [CL-ENV-031]. */
#include "core.h"

/* None stands for the system's clock. 0, or -1 with an exception. */
static int take_clock(PyObject *given, PyObject **clock)
{
    *clock = given == Py_None ? NULL : given;
    double moment = cn_now(*clock);
    return moment == -1 && PyErr_Occurred() ? -1 : 0;
}

PyObject *cn_aead_session(PyObject *self, PyObject *arguments)
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
    } else if (take_clock(clock, &clock) == 0 && (made = (session *)cn_allocate(known->session)) != NULL) {
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

static void session_dealloc(PyObject *self)
{
    session *gone = (session *)self;
    Py_XDECREF((PyObject *)gone->aead);
    Py_XDECREF(gone->key);
    Py_XDECREF(gone->clock);
    Py_XDECREF(gone->wiped);
    PyBuffer_Release(&gone->alive);
    cn_release(self);
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
    sealer *made = (sealer *)cn_allocate(known->sealer);
    if (made == NULL || (made->tally = (tally *)cn_allocate(known->tally)) == NULL) {
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
    double moment = cn_now(this->clock);
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
        return cn_failed();
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
    cn_release(self);
}

static PyMethodDef sealer_methods[] = {{"seal", sealer_seal, METH_O, NULL}, {NULL, NULL, 0, NULL}};
static PyMemberDef sealer_members[] = {{"tally", T_OBJECT_EX, offsetof(sealer, tally), READONLY, NULL}, {0}};
static PyMemberDef tally_members[] = {{"records", T_ULONGLONG, offsetof(tally, records), READONLY, NULL},
                                      {"bytes", T_ULONGLONG, offsetof(tally, bytes), READONLY, NULL},
                                      {0}};

PyType_Slot cn_session_slots[] = {{Py_tp_dealloc, session_dealloc}, {Py_tp_methods, session_methods}, {0, NULL}};
PyType_Slot cn_sealer_slots[] = {
    {Py_tp_dealloc, sealer_dealloc}, {Py_tp_methods, sealer_methods}, {Py_tp_members, sealer_members}, {0, NULL}};
PyType_Slot cn_tally_slots[] = {{Py_tp_dealloc, cn_release}, {Py_tp_members, tally_members}, {0, NULL}};
