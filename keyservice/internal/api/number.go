// Whole numbers as JSON Schema understands them.

package api

import (
	"fmt"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// wholeNumber is an integer that may be written with a fraction of nothing or an exponent (7, 7.0, 7e0): by the schema of openapi.yaml
// all three are the same number. What is beyond 2^53 - 1 reads as 2^53, which no limit allows.
type wholeNumber int64

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (n *wholeNumber) UnmarshalJSONFrom(in *jsontext.Decoder) error {
	value, err := in.ReadValue()
	if err != nil {
		return err
	}
	if value.Kind() != '0' {
		return fmt.Errorf("%s is not a number", value)
	}
	number, err := strconv.ParseFloat(string(value), 64)
	if err != nil || number != math.Trunc(number) {
		return fmt.Errorf("%s is not a whole number", value)
	}
	*n = wholeNumber(max(-maxUsage-1, min(number, maxUsage+1)))
	return nil
}
