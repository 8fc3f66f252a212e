/* Openers of what one session wrote, and a batch of records that are opened with them. */
#include "core.h"

PyObject *cn_aead_opener(PyObject *self, PyObject *arguments)
{
    PyObject *additional_data = NULL;
    double until = 0;
    if (!PyArg_ParseTuple(arguments, "Sd:opener", &additional_data, &until)) {
        return NULL;
    }
    opener *made = (opener *)cn_allocate(state_of(self)->opener);
    if (made != NULL) {
        made->aead = (aead *)Py_NewRef(self);
        made->additional_data = Py_NewRef(additional_data);
        made->until = until;
    }
    return (PyObject *)made;
}

static void opener_dealloc(PyObject *self)
{
    Py_XDECREF((PyObject *)((opener *)self)->aead);
    Py_XDECREF(((opener *)self)->additional_data);
    cn_release(self);
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
    size_t since;           /* that moment, in bytes */
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
        at->moment = cn_now(at->clock);
        at->since = 0;
    }
    if (at->last == NULL || PyErr_Occurred() || at->moment >= at->last->until) {
        return NULL;
    }
    cl_code code = CL_OK;
    cl_bytes sealed = {bytes.data + ENVELOPE_SIZE, bytes.size - ENVELOPE_SIZE};
    return cn_open(at->last->aead, bytes.data + OPENING_SIZE, sealed, view(at->last->additional_data), &code);
}

PyObject *cn_open_one(PyObject *self, PyObject *arguments)
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

PyObject *cn_open_all(PyObject *self, PyObject *arguments)
{
    PyObject *lists[2] = {NULL, NULL};
    PyObject *openings = NULL;
    PyObject *clock = NULL;
    Py_ssize_t longest = 0;
    if (!PyArg_ParseTuple(arguments, "O!O!O!nO:open_all", &PyDict_Type, &openings, &PyList_Type, &lists[0],
                          &PyList_Type, &lists[1], &longest, &clock)) {
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

PyType_Slot cn_opener_slots[] = {{Py_tp_dealloc, opener_dealloc}, {0, NULL}};
