// Reading and writing with buffers that are taken from a pool only while there is data.

package wire

import (
	"errors"
	"io"
	"net"
)

// Reader reads from a stream. It is for one goroutine.
type Reader struct {
	s          Stream
	BeforeWait func() error // called before a read that may wait: to flush what the reader's data became
	small      [smallSize]byte
	large      *[BufferSize]byte
	r, w       int
}

// NewReader makes one.
func NewReader(s Stream) *Reader { return &Reader{s: s} }

// Buffered tells how many bytes are there without waiting.
func (r *Reader) Buffered() int { return r.w - r.r }

// Window gives the bytes that are there.
func (r *Reader) Window() []byte { return r.buf()[r.r:r.w] }

func (r *Reader) buf() []byte {
	if r.large != nil {
		return r.large[:]
	}
	return r.small[:]
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
func (r *Reader) Discard(n int) {
	if r.r += n; r.r == r.w {
		r.r, r.w = 0, 0
	}
}

// fill waits for data and takes all that there is, as far as it fits.
func (r *Reader) fill(need int) error {
	r.room(need)
	if r.BeforeWait != nil {
		if err := r.BeforeWait(); err != nil {
			return err
		}
	}
	buf := r.buf()
	n, err := r.s.Read(buf[r.w:])
	if r.w += n; n == 0 {
		return err
	}
	for r.large != nil && r.w < len(buf) {
		n := r.s.TryRead(buf[r.w:])
		if r.w += n; n == 0 {
			break
		}
	}
	return nil
}

// room makes place for need bytes: an idle reader keeps a small buffer only.
func (r *Reader) room(need int) {
	if r.Buffered() == 0 {
		r.r, r.w = 0, 0
		if need <= smallSize {
			r.release()
			return
		}
	}
	if r.large == nil {
		large := takeBuffer()
		r.w = copy(large[:], r.small[r.r:r.w])
		r.large, r.r = large, 0
		return
	}
	if r.r > 0 {
		r.w = copy(r.large[:], r.large[r.r:r.w])
		r.r = 0
	}
}

func (r *Reader) release() {
	if r.large != nil {
		buffers.Put(r.large)
		r.large = nil
	}
}

// Close gives the buffer back.
func (r *Reader) Close() {
	r.release()
	r.r, r.w = 0, 0
}

// ReadFull fills p; most of a large p comes from the stream without a copy in between.
func (r *Reader) ReadFull(p []byte) error {
	n := copy(p, r.Window())
	r.Discard(n)
	if n < len(p) && r.BeforeWait != nil {
		if err := r.BeforeWait(); err != nil {
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

// CopyTo sends the next n bytes on, in pieces as they come.
func (r *Reader) CopyTo(w *Writer, n int) error { return r.take(n, w.Write) }

// Skip takes the next n bytes away.
func (r *Reader) Skip(n int) error { return r.take(n, func([]byte) error { return nil }) }

func (r *Reader) take(n int, do func([]byte) error) error {
	for n > 0 {
		if r.Buffered() == 0 {
			if err := r.fill(min(n, BufferSize)); err != nil {
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

// Writer gathers small pieces and sends large ones together with them. It is for one goroutine at a time.
type Writer struct {
	s   Stream
	buf *[BufferSize]byte
	n   int
}

// NewWriter makes one.
func NewWriter(s Stream) *Writer { return &Writer{s: s} }

// largePiece is what is not worth a copy.
const largePiece = 16 << 10

// Write takes p, or sends it. p may be used again afterwards.
func (w *Writer) Write(p []byte) error {
	if len(p) >= largePiece || w.n+len(p) > BufferSize {
		return w.send(p)
	}
	if w.buf == nil {
		w.buf = takeBuffer()
	}
	w.n += copy(w.buf[w.n:], p)
	return nil
}

// Flush sends what was gathered.
func (w *Writer) Flush() error {
	if w.n == 0 {
		return nil
	}
	return w.send(nil)
}

func (w *Writer) send(p []byte) error {
	pieces := make(net.Buffers, 0, 2)
	if w.n > 0 {
		pieces = append(pieces, w.buf[:w.n])
	}
	if len(p) > 0 {
		pieces = append(pieces, p)
	}
	err := w.s.WriteAll(pieces)
	if w.buf != nil {
		buffers.Put(w.buf)
		w.buf, w.n = nil, 0
	}
	return err
}
