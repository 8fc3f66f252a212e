package driver

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
)

// Handler carries out a request; an error that is not *Error becomes one with the code CodeDriver.
type Handler func(Request) (any, error)

// Serve answers requests until in ends.
func Serve(in io.Reader, out io.Writer, handle Handler) error {
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, MaxLine)
	encoder := json.NewEncoder(out)
	for scanner.Scan() {
		var request Request
		if err := json.Unmarshal(scanner.Bytes(), &request); err != nil {
			return err
		}
		if err := encoder.Encode(answer(request, handle)); err != nil {
			return err
		}
	}
	return scanner.Err()
}

func answer(request Request, handle Handler) Answer {
	result, err := handle(request)
	if err != nil {
		return Answer{ID: request.ID, Error: asError(err)}
	}
	ok, err := json.Marshal(result)
	if err != nil {
		return Answer{ID: request.ID, Error: asError(err)}
	}
	return Answer{ID: request.ID, OK: ok}
}

func asError(err error) *Error {
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}
	return &Error{CodeDriver, err.Error()}
}
