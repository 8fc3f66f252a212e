// Writing many pieces at once.

package wire

import "net"

// Writer gathers pieces and sends them together. It is for one goroutine at a time.
type Writer struct {
	s      Stream
	pieces net.Buffers // in order: parts of own, and what Pass was given
	size   int         // of them all
	own    *Buffer
	n      int // bytes of own that are taken
}

// NewWriter makes one.
func NewWriter(s Stream) *Writer { return &Writer{s: s} }

const (
	largePiece = smallBuffer // is not worth a copy, and would not fit
	smallPiece = 4 << 10     // is not worth a TLS record of its own
)

// Write takes p, or sends it. p may be used again afterwards.
func (w *Writer) Write(p []byte) error {
	if len(p) < largePiece && w.n+len(p) <= smallBuffer {
		w.keep(p)
		return nil
	}
	w.add(p)
	return w.Flush()
}

// Pass takes p, or sends it. p must stay as it is until Flush.
func (w *Writer) Pass(p []byte) error {
	if len(p) < smallPiece && !w.follows(p) && w.n+len(p) <= smallBuffer {
		w.keep(p)
	} else {
		w.add(p)
	}
	if w.size < BufferSize {
		return nil
	}
	return w.Flush()
}

// keep copies p.
func (w *Writer) keep(p []byte) {
	if w.own == nil {
		w.own = buffers.takeSmall()
	}
	at := w.n
	w.n += copy(w.own.Bytes[at:], p)
	w.add(w.own.Bytes[at:w.n])
}

// add makes one piece of what lies one after the other in memory.
func (w *Writer) add(p []byte) {
	if len(p) == 0 {
		return
	}
	w.size += len(p)
	if w.follows(p) {
		last := &w.pieces[len(w.pieces)-1]
		*last = (*last)[:len(*last)+len(p)]
		return
	}
	w.pieces = append(w.pieces, p)
}

// follows tells whether p lies behind the last piece.
func (w *Writer) follows(p []byte) bool {
	if len(w.pieces) == 0 || len(p) == 0 {
		return false
	}
	last := w.pieces[len(w.pieces)-1]
	end := len(last)
	return cap(last)-end >= len(p) && &last[:end+1][end] == &p[0]
}

// Flush sends what was gathered.
func (w *Writer) Flush() error {
	if len(w.pieces) == 0 {
		return nil
	}
	all := w.pieces
	err := w.s.WriteAll(w.pieces)
	clear(all)
	w.pieces, w.size, w.n = all[:0], 0, 0
	if w.own != nil {
		buffers.put(w.own)
		w.own = nil
	}
	return err
}
