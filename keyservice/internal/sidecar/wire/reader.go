// Reading and writing with buffers that are taken from a pool only while there is data.

package wire

import (
	"errors"
	"io"
)

// Reader reads from a stream. It is for one goroutine. While nothing is there it holds no buffer.
type Reader struct {
	s          Stream
	BeforeWait func() error // called before a read that may wait, and before what Window and Peek gave is overwritten
	buf        *Buffer
	r, w       int
}

// NewReader makes one.
func NewReader(s Stream) *Reader { return &Reader{s: s} }

// Buffered tells how many bytes are there without waiting.
func (r *Reader) Buffered() int { return r.w - r.r }

// Window gives the bytes that are there. They stay until BeforeWait has been called.
func (r *Reader) Window() []byte {
	if r.buf == nil {
		return nil
	}
	return r.buf.Bytes[r.r:r.w]
}

// Peek gives the next n bytes, at most BufferSize, which stay. io.EOF means that the stream ended before the first of them,
// io.ErrUnexpectedEOF within.
func (r *Reader) Peek(n int) ([]byte, error) {
	for r.Buffered() < n {
		if err := r.fill(n); err != nil {
			if errors.Is(err, io.EOF) && r.Buffered() > 0 {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return r.Window()[:n], nil
}

// Discard takes n bytes that are there.
func (r *Reader) Discard(n int) { r.r += n }

// fill waits for data and takes all that there is, as far as it fits. There is room for n bytes then.
func (r *Reader) fill(n int) error {
	if err := r.beforeWait(); err != nil {
		return err
	}
	if err := r.receive(n); err != nil {
		return err
	}
	for r.w < len(r.buf.Bytes) {
		more := r.s.TryRead(r.buf.Bytes[r.w:])
		if r.w += more; more == 0 {
			break
		}
	}
	return nil
}

func (r *Reader) beforeWait() error {
	if r.BeforeWait == nil {
		return nil
	}
	return r.BeforeWait()
}

// receive waits for data, without a buffer if there is nothing that it must come after.
func (r *Reader) receive(room int) error {
	if r.Buffered() == 0 {
		r.Close()
		buf, n, err := r.s.Receive()
		r.buf, r.w = buf, n
		return err
	}
	r.makeRoom(room)
	n, err := r.s.Read(r.buf.Bytes[r.w:])
	if r.w += n; n > 0 {
		return nil
	}
	return err
}

// makeRoom moves what is there to the beginning, of a large buffer if a small one does not hold n bytes.
func (r *Reader) makeRoom(n int) {
	from := r.buf
	if r.r == 0 && n <= len(from.Bytes) {
		return
	}
	if n > len(from.Bytes) {
		r.buf = buffers.takeLarge()
		defer buffers.put(from)
	}
	r.w = copy(r.buf.Bytes, from.Bytes[r.r:r.w])
	r.r = 0
}

// Close gives the buffer back.
func (r *Reader) Close() {
	if r.buf != nil {
		buffers.put(r.buf)
	}
	r.buf, r.r, r.w = nil, 0, 0
}

// ReadFull fills p; most of a large p comes from the stream without a copy in between.
func (r *Reader) ReadFull(p []byte) error {
	n := copy(p, r.Window())
	r.Discard(n)
	if n < len(p) {
		if err := r.beforeWait(); err != nil {
			return err
		}
	}
	for n < len(p) {
		m, err := r.s.Read(p[n:])
		if n += m; n < len(p) && err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
	}
	return nil
}

// CopyTo sends the next n bytes on, in pieces as they come and without a copy: BeforeWait must flush w.
func (r *Reader) CopyTo(w *Writer, n int) error { return r.take(n, w.Pass) }

// Skip takes the next n bytes away.
func (r *Reader) Skip(n int) error { return r.take(n, func([]byte) error { return nil }) }

func (r *Reader) take(n int, do func([]byte) error) error {
	for n > 0 {
		if r.Buffered() == 0 {
			if err := r.fill(1); err != nil {
				if errors.Is(err, io.EOF) {
					err = io.ErrUnexpectedEOF
				}
				return err
			}
		}
		piece := r.Window()[:min(n, r.Buffered())]
		if err := do(piece); err != nil {
			return err
		}
		r.Discard(len(piece))
		n -= len(piece)
	}
	return nil
}
