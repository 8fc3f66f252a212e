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
    size_t since; /* that moment, in bytes */
    opener *last;
    PyObject *topic; /* of `last` */
    uint8_t opening[OPENING_SIZE];
} batch;

static batch batch_of(PyObject *openings, Py_ssize_t longest, PyObject *clock)
{
    return (batch){.openings = openings,
                   .longest = longest > 0 ? (size_t)longest : 0,
                   .clock = clock == Py_None ? NULL : clock,
                   .since = LOOK_AT_CLOCK};
}

static void forget_last(batch *at)
{
    Py_CLEAR(at->last);
    Py_CLEAR(at->topic);
}

static bool as_before(const batch *at, PyObject *topic, const uint8_t *opening)
{
    return at->last != NULL && memcmp(at->opening, opening, OPENING_SIZE) == 0 &&
           (at->topic == topic || PyObject_RichCompareBool(at->topic, topic, Py_EQ) == 1);
}

static void look_up(state *known, batch *at, PyObject *topic, PyObject *value)
{
    forget_last(at);
    at->last = find(known, at->openings, topic, value);
    at->topic = Py_NewRef(topic);
    memcpy(at->opening, view(value).data, OPENING_SIZE);
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
        look_up(known, at, topic, value);
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
    batch at = batch_of(openings, longest, clock);
    PyObject *plaintext = open_next(PyModule_GetState(self), &at, topic, value);
    forget_last(&at);
    if (plaintext == NULL) {
        PyErr_Clear();
        return Py_NewRef(Py_None);
    }
    return plaintext;
}

/* How a record's topic and value are read, and its value written. */
typedef struct access_to {
    PyObject *topic_of;
    PyObject *value_of;
    PyObject *set_value;
} access_to;

/*
 * Whether the record has its plaintext now; an exception may be set where it has not. Its ciphertext goes before the next record is looked
 * at, whose plaintext then finds that memory in the processor's cache: with new memory for each, a record of 1 KB takes half as long again.
 */
static bool open_in_place(state *known, batch *at, const access_to *fields, PyObject *record)
{
    PyObject *topic = PyObject_CallFunctionObjArgs(fields->topic_of, record, NULL);
    PyObject *value = topic == NULL ? NULL : PyObject_CallFunctionObjArgs(fields->value_of, record, NULL);
    PyObject *plaintext = value == NULL ? NULL : open_next(known, at, topic, value);
    Py_XDECREF(value);
    Py_XDECREF(topic);
    PyObject *done = plaintext == NULL ? NULL : PyObject_CallFunctionObjArgs(fields->set_value, record, plaintext, NULL);
    Py_XDECREF(plaintext);
    Py_XDECREF(done);
    return done != NULL;
}

/* 0, or -1 with an exception. */
static int miss(PyObject *missed, Py_ssize_t i)
{
    PyErr_Clear(); /* whatever it was, the long way finds it again and names it */
    PyObject *index = PyLong_FromSsize_t(i);
    int added = index == NULL ? -1 : PyList_Append(missed, index);
    Py_XDECREF(index);
    return added;
}

/* 0, or -1 with an exception. */
static int open_each(state *known, batch *at, const access_to *fields, PyObject *records, PyObject *missed)
{
    for (Py_ssize_t i = 0; i < PyList_Size(records); i++) {
        PyObject *record = Py_NewRef(PyList_GetItem(records, i));
        bool opened = open_in_place(known, at, fields, record);
        Py_DECREF(record);
        if (!opened) {
            forget_last(at);
            if (miss(missed, i) != 0) {
                return -1;
            }
        }
    }
    return 0;
}

PyObject *cn_open_all(PyObject *self, PyObject *arguments)
{
    access_to fields = {NULL, NULL, NULL};
    PyObject *records = NULL;
    PyObject *openings = NULL;
    PyObject *clock = NULL;
    Py_ssize_t longest = 0;
    if (!PyArg_ParseTuple(arguments, "O!O!(OOO)nO:open_all", &PyDict_Type, &openings, &PyList_Type, &records,
                          &fields.topic_of, &fields.value_of, &fields.set_value, &longest, &clock)) {
        return NULL;
    }
    batch at = batch_of(openings, longest, clock);
    PyObject *missed = PyList_New(0);
    if (missed != NULL && open_each(PyModule_GetState(self), &at, &fields, records, missed) != 0) {
        Py_CLEAR(missed);
    }
    forget_last(&at);
    return missed;
}

PyType_Slot cn_opener_slots[] = {{Py_tp_dealloc, opener_dealloc}, {0, NULL}};
