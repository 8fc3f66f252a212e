// Checking a log from outside: is it the whole chain, unchanged, in order [CL-AUD-006]?

package audit

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Expect says what a log should be.
type Expect struct {
	// Head is an anchor kept elsewhere: this line must be there. Without one, lines removed at the end are not noticed.
	Head *Head
	// Middle allows that the first line given is not the first of the chain: older files were put away.
	Middle bool
	// Copy allows what a copy from syslog or stdout may show: text before each line, a line that came twice, and, where the service
	// keeps no file, a new chain at each start.
	Copy bool
}

// Problem is one place where the chain is broken.
type Problem struct {
	File string `json:"file"`
	Line int    `json:"line"` // from 1
	Text string `json:"text"`
}

// Report is what a check found.
type Report struct {
	Chain    string    `json:"chain,omitzero"`
	Files    int       `json:"files"`
	Lines    uint64    `json:"lines"`
	Starts   int       `json:"starts"` // of the service
	Cut      int       `json:"cut"`    // unfinished lines that crashes left, cut off by the service and on record
	First    time.Time `json:"first,omitzero"`
	Last     time.Time `json:"last,omitzero"`
	Head     string    `json:"head"`
	Anchored bool      `json:"anchored"`
	Problems []Problem `json:"problems"`
	More     int       `json:"more_problems"` // not shown
}

// Whole tells whether nothing was found.
func (r *Report) Whole() bool { return len(r.Problems) == 0 }

const maxProblems = 100

// Verify reads files in the order of the chain. An error is one of reading; what is wrong with the log stands in the report.
func Verify(paths []string, e Expect) (*Report, error) {
	v := &verifier{expect: e, report: &Report{Problems: []Problem{}}}
	for _, path := range paths {
		v.file, v.line = path, 0
		v.report.Files++
		if err := EachLine(path, v.take); err != nil {
			return nil, err
		}
	}
	v.finish()
	return v.report, nil
}

type verifier struct {
	expect   Expect
	report   *Report
	file     string
	line     int
	head     Head // of the last line taken
	begun    bool
	anchored bool
}

func (v *verifier) problem(format string, args ...any) {
	if len(v.report.Problems) == maxProblems {
		v.report.More++
		return
	}
	v.report.Problems = append(v.report.Problems, Problem{v.file, v.line, fmt.Sprintf(format, args...)})
}

// take checks one line; ended tells whether it has its end.
func (v *verifier) take(text []byte, ended bool) error {
	v.line++
	if v.expect.Copy {
		text = text[max(0, bytes.IndexByte(text, '{')):]
	}
	if !ended && !v.expect.Copy {
		v.problem("the line has no end: the service was killed and has not started again, or the file was cut")
		return nil
	}
	if line, bad := parseLine(text); bad != nil {
		v.problem("this is not a line of an audit log: it was changed")
	} else {
		v.follow(line, Head{Seq: line.Seq, Hash: sha256.Sum256(text)})
	}
	return nil
}

// follow goes on to the next line; this is what it makes the head.
func (v *verifier) follow(line Line, this Head) {
	if v.expect.Copy && this == v.head {
		return
	}
	v.checkPlace(line)
	v.head, v.begun = this, true
	v.note(line, this)
}

func (v *verifier) checkPlace(line Line) {
	fresh := line.Seq == 1 && line.Prev == Hash{}.String()
	switch {
	case fresh && (!v.begun || v.expect.Copy):
	case !v.begun && v.expect.Middle:
	case !v.begun:
		v.problem("the log begins with line %d of the chain: lines before it are missing (give older files too, or allow it)", line.Seq)
	case line.Seq > v.head.Seq+1:
		v.problem("lines %d to %d of the chain are missing before this one, which is %d", v.head.Seq+1, line.Seq-1, line.Seq)
	case line.Seq <= v.head.Seq:
		v.problem("line %d of the chain stands after line %d: lines were put in another order, or twice", line.Seq, v.head.Seq)
	case line.Prev != hex.EncodeToString(v.head.Hash[:]):
		v.problem("the line before this one (%d of the chain) was changed, or put in the place of another", v.head.Seq)
	}
}

func (v *verifier) note(line Line, this Head) {
	r := v.report
	r.Lines++
	if r.First.IsZero() {
		r.First = line.Time
	}
	r.Last = line.Time
	if line.Action == ActionStart {
		r.Starts++
	}
	if line.Cut > 0 {
		r.Cut++
	}
	if line.Chain != "" && (line.Action == ActionStart || line.Action == ActionRotate) {
		v.checkName(line.Chain)
	}
	if v.expect.Head != nil && *v.expect.Head == this {
		v.anchored = true
	}
}

func (v *verifier) checkName(name string) {
	if v.report.Chain != "" && v.report.Chain != name {
		v.problem("the chain of %q goes on as that of %q: each replica has one of its own", v.report.Chain, name)
	}
	v.report.Chain = name
}

func (v *verifier) finish() {
	v.report.Head, v.report.Anchored = v.head.String(), v.anchored
	if !v.begun {
		v.problem("there is no line at all")
	}
	if want := v.expect.Head; want != nil && !v.anchored {
		if want.Seq > v.head.Seq {
			v.problem("the log ends with line %d of the chain, the head given is line %d: lines were cut off at the end", v.head.Seq, want.Seq)
		} else {
			v.problem("line %d of the chain is not the one of the head given: the log was written anew", want.Seq)
		}
	}
}

// EachLine reads a file, gzip if its name ends in .gz, and calls take for each line, without its end. A line longer than MaxLine and
// what stands before it in a copy comes in pieces: then it is none of an audit log.
func EachLine(path string, take func(text []byte, ended bool) error) (err error) {
	f, err := os.Open(path) // #nosec G304 -- the operator's path
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var in io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	lines := bufio.NewReaderSize(in, 2*MaxLine)
	for {
		text, err := lines.ReadSlice('\n')
		if len(text) > 0 {
			text, ended := bytes.CutSuffix(text, []byte("\n"))
			if err := take(text, ended); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("%s: %w", path, err)
		}
	}
}
