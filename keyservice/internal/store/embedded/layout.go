// Checks the bbolt file before bbolt opens it. bbolt trusts its file: it has no checksums but on its two headers, and
// where a byte is wrong it may lose keys without a word, crash at a later write, or never come to an end. So this file
// sees that every page is in its place, whole, and used exactly once. What the keys hold is verified by verify.go.
//
// The format is version 2 of bbolt's, which has been the same since Bolt; integers are of the machine's byte order.

package embedded

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

const (
	headerSize  = 16 // id 8, kind 2, count 2, overflow 4
	elementSize = 16
	bucketSize  = 16 // root page 8, sequence 8
	metaSize    = 64
	metaMagic   = 0xED0CDAED
	minPage     = 1 << 10
	maxPage     = 1 << 16
	maxDepth    = 32

	branchKind   = 0x01
	leafKind     = 0x02
	freelistKind = 0x10
	bucketFlag   = 0x01
)

var native = binary.NativeEndian

// meta is a header page: there are two, of which the one with the higher transaction counts. When that one is damaged,
// bbolt quietly goes back to the other: keys that were handed out would be gone. So both must be whole.
type meta struct{ pageSize, root, freelist, high, transaction uint64 }

// layout is the walk through the file.
type layout struct {
	file     io.ReaderAt
	pageSize uint64
	used     []bool // by page
}

// checkLayout refuses a file that is in use, cut, or not put together as bbolt does.
func checkLayout(path string) (err error) {
	f, err := os.Open(path) // #nosec G304 -- the administrator's path
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); err != nil {
		return errInUse
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	m, err := readHeaders(f)
	if err != nil {
		return err
	}
	if pages := uint64(info.Size()) / m.pageSize; m.high > pages { // #nosec G115 -- a size is not negative
		return fmt.Errorf("it is cut short: %d pages of %d are there", pages, m.high)
	}
	return walk(f, m)
}

func readHeaders(f io.ReaderAt) (meta, error) {
	first, err := readMeta(f, 0)
	if err != nil {
		return meta{}, err
	}
	if first.pageSize < minPage || first.pageSize > maxPage {
		return meta{}, errors.New("its header is damaged")
	}
	second, err := readMeta(f, first.pageSize)
	if err == nil && second.transaction > first.transaction {
		return second, nil
	}
	return first, err
}

func readMeta(f io.ReaderAt, at uint64) (meta, error) {
	b := make([]byte, metaSize)
	if _, err := f.ReadAt(b, int64(at)+headerSize); err != nil { // #nosec G115 -- at most maxPage
		return meta{}, errors.New("it is cut short: its header is incomplete")
	}
	sum := fnv.New64a()
	_, _ = sum.Write(b[:metaSize-8])
	if native.Uint32(b) != metaMagic || sum.Sum64() != native.Uint64(b[metaSize-8:]) {
		return meta{}, errors.New("its header is damaged")
	}
	return meta{uint64(native.Uint32(b[8:])), native.Uint64(b[16:]), native.Uint64(b[32:]), native.Uint64(b[40:]), native.Uint64(b[48:])}, nil
}

func walk(f io.ReaderAt, m meta) error {
	if m.high < 4 {
		return errors.New("its header is damaged")
	}
	l, _, err := newLayout(f, m)
	if err != nil {
		return err
	}
	if _, err := l.page(m.root, 0); err != nil {
		return err
	}
	for id, used := range l.used {
		if !used {
			return fmt.Errorf("page %d belongs to nothing", id)
		}
	}
	return nil
}

// newLayout begins a walk: it claims the headers and the pages that hold nothing, which it gives.
func newLayout(f io.ReaderAt, m meta) (l *layout, free []uint64, err error) {
	l = &layout{file: f, pageSize: m.pageSize, used: make([]bool, m.high)}
	l.used[0], l.used[1] = true, true
	free, err = l.freelist(m.freelist)
	return l, free, err
}

// claim marks a page as used, and refuses one that does not exist or is used already.
func (l *layout) claim(id uint64) error {
	if id >= uint64(len(l.used)) || l.used[id] {
		return fmt.Errorf("page %d does not exist or is used twice", id)
	}
	l.used[id] = true
	return nil
}

// read gives a page with those that continue it, and claims them.
func (l *layout) read(id uint64) ([]byte, error) {
	if err := l.claim(id); err != nil {
		return nil, err
	}
	header := make([]byte, headerSize)
	if _, err := l.file.ReadAt(header, int64(id*l.pageSize)); err != nil { // #nosec G115 -- within the file
		return nil, err
	}
	overflow := uint64(native.Uint32(header[12:]))
	if native.Uint64(header) != id || overflow >= uint64(len(l.used))-id {
		return nil, fmt.Errorf("page %d is damaged", id)
	}
	for next := id + 1; next <= id+overflow; next++ {
		if err := l.claim(next); err != nil {
			return nil, err
		}
	}
	data := make([]byte, (1+overflow)*l.pageSize)
	_, err := l.file.ReadAt(data, int64(id*l.pageSize)) // #nosec G115 -- within the file
	return data, err
}

// freelist claims the pages that hold nothing, and gives them.
func (l *layout) freelist(id uint64) (free []uint64, err error) {
	data, err := l.read(id)
	if err != nil {
		return nil, err
	}
	count, ids := uint64(native.Uint16(data[10:])), data[headerSize:]
	if count == 0xFFFF { // then the first id is the count
		count, ids = native.Uint64(ids), ids[8:]
	}
	if native.Uint16(data[8:]) != freelistKind || count > uint64(len(ids)/8) {
		return nil, errors.New("its list of free pages is damaged")
	}
	for i := range count {
		page := native.Uint64(ids[8*i:])
		if err := l.claim(page); err != nil {
			return nil, err
		}
		free = append(free, page)
	}
	return free, nil
}

// page walks a page and all below it, and gives its first key.
func (l *layout) page(id uint64, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, errors.New("its pages are nested too deep")
	}
	data, err := l.read(id)
	if err != nil {
		return nil, err
	}
	first, err := l.elements(data, depth)
	if err != nil {
		return nil, fmt.Errorf("page %d: %w", id, err)
	}
	return first, nil
}

// element is one entry of a page: in a branch a key and the page below it, in a leaf a key and a value, which may be a
// bucket.
type element struct{ flags, start, keySize, valueSize, child uint64 }

// readElement reads the entry at an offset of a page; start is the offset of its key in the page.
func readElement(kind uint16, page []byte, at int) element {
	word := func(i int) uint64 { return uint64(native.Uint32(page[at+i:])) }
	if kind == branchKind {
		return element{start: uint64(at) + word(0), keySize: word(4), child: native.Uint64(page[at+8:])} // #nosec G115 -- an offset
	}
	return element{flags: word(0), start: uint64(at) + word(4), keySize: word(8), valueSize: word(12)} // #nosec G115 -- an offset
}

var errElements = errors.New("its entries are damaged")

// elements walks the entries of a page and gives the first key. Keys and values follow each other without a gap, in the
// order of the keys.
func (l *layout) elements(data []byte, depth int) (first []byte, err error) {
	kind, count := native.Uint16(data[8:]), int(native.Uint16(data[10:]))
	end := uint64(headerSize + count*elementSize)
	if kind != leafKind && (kind != branchKind || count == 0) || end > uint64(len(data)) {
		return nil, errElements
	}
	var last []byte
	for i := range count {
		e := readElement(kind, data, headerSize+i*elementSize)
		if e.start != end || e.keySize == 0 || e.keySize+e.valueSize > uint64(len(data))-end {
			return nil, errElements
		}
		key, value := data[end:end+e.keySize], data[end+e.keySize:end+e.keySize+e.valueSize]
		if bytes.Compare(last, key) >= 0 {
			return nil, errElements
		}
		if i == 0 {
			first = key
		}
		if err := l.below(kind, e, key, value, depth); err != nil {
			return nil, err
		}
		last, end = key, end+e.keySize+e.valueSize
	}
	return first, nil
}

func (l *layout) below(kind uint16, e element, key, value []byte, depth int) error {
	if kind == branchKind {
		return l.child(e.child, key, depth)
	}
	return l.value(e.flags, value, depth)
}

// child walks a page below a branch. The branch names it by its first key: with another one, bbolt finds its place
// when it reads, and loses it when it writes.
func (l *layout) child(id uint64, key []byte, depth int) error {
	first, err := l.page(id, depth+1)
	if err == nil && !bytes.Equal(first, key) {
		return errElements
	}
	return err
}

// value walks a bucket, of pages of its own or small enough to stand in the value itself.
func (l *layout) value(flags uint64, value []byte, depth int) (err error) {
	if flags == 0 {
		return nil
	}
	if flags != bucketFlag || len(value) < bucketSize {
		return errElements
	}
	root, inline := native.Uint64(value), value[bucketSize:]
	switch {
	case root != 0 && len(inline) == 0:
		_, err = l.page(root, depth+1)
	case root == 0 && len(inline) >= headerSize && native.Uint16(inline[8:]) == leafKind && depth <= maxDepth:
		_, err = l.elements(inline, depth+1)
	default:
		err = errElements
	}
	return err
}
