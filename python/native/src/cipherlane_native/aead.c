/* A key of AES-256-GCM, derived or as it is: encrypts and decrypts. Sessions and openers are made from it. */
#include "core.h"

static void aead_dealloc(PyObject *self)
{
    EVP_CIPHER_CTX_free(((aead *)self)->encrypting); /* wipes the key schedule */
    EVP_CIPHER_CTX_free(((aead *)self)->decrypting);
    cn_release(self);
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
    aead *made = (aead *)cn_allocate(known->aead);
    if (made != NULL) {
        made->encrypting = context_of(&known->algorithms, key, salt, true);
        made->decrypting = context_of(&known->algorithms, key, salt, false);
        if (made->encrypting == NULL || made->decrypting == NULL) {
            Py_CLEAR(made);
            cn_failed();
        }
    }
    return (PyObject *)made;
}

PyObject *cn_derive(PyObject *self, PyObject *arguments)
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

PyObject *cn_raw(PyObject *self, PyObject *arguments)
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
        cn_failed();
    }
    return written;
}

/* Plaintext of ciphertext and tag; NULL with the code of what is wrong, or CL_OK for an exception. */
PyObject *cn_open(aead *with, const uint8_t *iv, cl_bytes sealed, cl_bytes additional_data, cl_code *code)
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
        plaintext = cn_open((aead *)self, view(nonce).data, view(text), view(additional_data), &code);
    }
    if (code == CL_AUTHENTICATION_FAILED) {
        PyErr_SetNone(state_of(self)->invalid_tag);
    } else if (code != CL_OK) {
        cn_failed();
    }
    return plaintext;
}

static PyMethodDef aead_methods[] = {
    {"encrypt", aead_encrypt, METH_VARARGS, NULL},
    {"decrypt", aead_decrypt, METH_VARARGS, NULL},
    {"session", cn_aead_session, METH_VARARGS, NULL},
    {"opener", cn_aead_opener, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

PyType_Slot cn_aead_slots[] = {{Py_tp_dealloc, aead_dealloc}, {Py_tp_methods, aead_methods}, {0, NULL}};
