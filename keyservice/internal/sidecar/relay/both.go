// The two directions of a connection.

package relay

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// errDone ends a connection without being an error.
var errDone = errors.New("done")

// both runs the two directions, one of them in the caller's goroutine: no connection has more than two. When one fails, or ctx ends, it
// calls end, once, which has to make them return. It gives the first error or ctx's cause; nil when that was errDone, or both came to their end.
func both(ctx context.Context, cancel context.CancelCauseFunc, end func(), there, back func() error) error {
	end = sync.OnceFunc(end)
	defer context.AfterFunc(ctx, end)()
	run := func(direction func() error) {
		if err := protect(direction); err != nil {
			cancel(err)
		}
	}
	var other sync.WaitGroup
	other.Go(func() { run(there) })
	run(back)
	other.Wait()
	end()
	if cause := context.Cause(ctx); !errors.Is(cause, errDone) { // what failed afterwards failed because of the end
		return cause
	}
	return nil
}

// protect ends one connection, not the program, when the code for it panics.
func protect(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return do()
}
