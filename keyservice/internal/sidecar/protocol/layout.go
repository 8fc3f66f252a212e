// The layout of messages, learned from kmsg's own encoder: a field that changes what is encoded is there in that version, and one that
// adds more than its own size is a tagged one.

package protocol

import (
	"bytes"
	"fmt"
	"reflect"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"
)

type kind uint8

const (
	fixed     kind = iota // width bytes
	data                  // bytes or a text, after a length of width bytes
	array                 // elements of of[0]
	structure             // of, and tagged fields
	nullable              // a byte, and unless that is negative a structure
)

// field is one that is encoded in its place; tagged fields need none.
type field struct {
	kind  kind
	width int
	of    []field
}

type layoutKey struct {
	key, version int16
	request      bool
}

var layouts sync.Map // of layoutKey to func() ([]field, error)

// layoutOf gives the layout of a message that is understood.
func layoutOf(key, version int16, request bool) ([]field, error) {
	k := layoutKey{key, version, request}
	learned, ok := layouts.Load(k)
	if !ok {
		learned, _ = layouts.LoadOrStore(k, sync.OnceValues(func() ([]field, error) { return learn(k) }))
	}
	get, ok := learned.(func() ([]field, error))
	if !ok {
		return nil, ErrUnknownAPI
	}
	return get()
}

// message is what requests and responses have in common.
type message interface {
	SetVersion(version int16)
	AppendTo(dst []byte) []byte
}

// learn tries every field, and then checks that the layout fits a message in which every array and structure is there.
func learn(k layoutKey) ([]field, error) {
	var m message = kmsg.ResponseForKey(k.key)
	if k.request {
		m = kmsg.RequestForKey(k.key)
	}
	m.SetVersion(k.version)
	s := &student{m}
	fields := s.fields(reflect.ValueOf(m).Elem())
	c := &cursor{rest: m.AppendTo(nil), flexible: isFlexible(k.key, k.version)}
	c.walk(fields)
	if c.bad || len(c.rest) > 0 {
		return nil, fmt.Errorf("%w: the layout of %s version %d is not known", ErrUnknownAPI, kmsg.NameForKey(k.key), k.version)
	}
	return fields, nil
}

type student struct{ message message }

func (s *student) size() int { return len(s.message.AppendTo(nil)) }

// fields learns a structure within the message. What it tries stays there: the deeper levels need it.
func (s *student) fields(v reflect.Value) []field {
	reset(v)
	var all []field
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; name == "Version" || name == "UnknownTags" {
			continue
		}
		if f, ok := s.field(v.Field(i)); ok {
			all = append(all, f)
		}
	}
	return all
}

// field learns one; false means that it is not encoded in its place in this version.
func (s *student) field(v reflect.Value) (field, bool) {
	switch v.Kind() { //nolint:exhaustive // kmsg has no others
	case reflect.Struct:
		of := s.fields(v)
		return field{structure, 0, of}, len(of) > 0
	case reflect.Pointer:
		if v.Type().Elem().Kind() == reflect.Struct {
			return s.pointer(v)
		}
		return field{data, 2, nil}, s.adds(v, reflect.ValueOf(new("x")), 1)
	case reflect.String:
		return field{data, 2, nil}, s.adds(v, reflect.ValueOf(v.String()+"x").Convert(v.Type()), 1)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return field{data, 4, nil}, s.adds(v, reflect.ValueOf([]byte{1}), 1)
		}
		return s.slice(v)
	case reflect.Array:
		return field{fixed, v.Len(), nil}, s.changes(v, reflect.ValueOf([16]byte{1}))
	default:
		return field{fixed, int(v.Type().Size()), nil}, s.changes(v, another(v))
	}
}

// another gives another value of a simple type.
func another(v reflect.Value) reflect.Value {
	fresh := reflect.New(v.Type()).Elem()
	switch {
	case v.CanInt():
		fresh.SetInt(v.Int() ^ 1)
	case v.CanUint():
		fresh.SetUint(v.Uint() ^ 1)
	case v.CanFloat():
		fresh.SetFloat(v.Float() + 1)
	default:
		fresh.SetBool(!v.Bool())
	}
	return fresh
}

// changes tells whether another value changes what is encoded, but not its size. The old value is put back.
func (s *student) changes(v, other reflect.Value) bool {
	old, before := reflect.ValueOf(v.Interface()), s.message.AppendTo(nil)
	v.Set(other)
	after := s.message.AppendTo(nil)
	v.Set(old)
	return len(before) == len(after) && !bytes.Equal(before, after)
}

// adds tells whether another value makes the message just so much longer. The old value is put back.
func (s *student) adds(v, other reflect.Value, size int) bool {
	old, before := reflect.ValueOf(v.Interface()), s.size()
	if v.Kind() == reflect.Pointer && old.IsNil() { // null takes as much as an empty text
		v.Set(other)
		after := s.size()
		v.SetZero()
		return after == before+size
	}
	v.Set(other)
	after := s.size()
	v.Set(old)
	return after == before+size
}

// slice compares nothing, one element and two: a tagged array costs more the first time.
func (s *student) slice(v reflect.Value) (field, bool) {
	none := s.size()
	v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	reset(v.Index(0))
	one := s.size()
	v.Set(reflect.MakeSlice(v.Type(), 2, 2))
	reset(v.Index(0))
	reset(v.Index(1))
	two := s.size()
	v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	if one == none || two-one != one-none {
		v.SetZero()
		return field{}, false
	}
	element := v.Index(0)
	if element.Kind() == reflect.Struct {
		return field{array, 4, []field{{structure, 0, s.fields(element)}}}, true
	}
	f, ok := s.field(element)
	return field{array, 4, []field{f}}, ok
}

// reset sets the defaults, which kmsg's decoder does too; the version, of a whole message, stays.
func reset(v reflect.Value) {
	if set, ok := reflect.TypeAssert[interface{ Default() }](v.Addr()); ok {
		set.Default()
	}
}

// pointer learns a structure that may be null. Whether it is tagged, its fields tell: they change the size then, or are not there.
func (s *student) pointer(v reflect.Value) (field, bool) {
	null := s.message.AppendTo(nil)
	v.Set(reflect.New(v.Type().Elem()))
	of := s.fields(v.Elem())
	if len(of) == 0 || bytes.Equal(s.message.AppendTo(nil), null) {
		v.SetZero()
		return field{}, false
	}
	return field{nullable, 1, of}, true
}
