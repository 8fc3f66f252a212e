// What the key service answers to operators: the members of spec/operator.md that the tool shows.

package operator

import (
	"context"
	"net/url"
	"time"
)

// Scope is one scope with its current key.
type Scope struct {
	Scope    string    `json:"scope"`
	Kid      string    `json:"kid"`
	Created  time.Time `json:"created"`
	Records  int64     `json:"records"`
	Bytes    int64     `json:"bytes"`
	Rotation Rotation  `json:"rotation"`
}

// Rotation says when a scope gets a new key by itself. Every is in seconds.
type Rotation struct {
	Every   int64 `json:"every"`
	Records int64 `json:"records"`
	Bytes   int64 `json:"bytes"`
}

// Rotated is the answer to a rotation.
type Rotated struct {
	Scope string `json:"scope"`
	Kid   string `json:"kid"`
}

const pageSize = "1000"

// Scopes gives all of them, page by page.
func (c *Client) Scopes(ctx context.Context) ([]Scope, error) {
	var all []Scope
	for query := (url.Values{"limit": {pageSize}}); ; {
		var page struct {
			Scopes []Scope `json:"scopes"`
			Next   string  `json:"next"`
		}
		if err := c.Get(ctx, "/v1/scopes", query, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Scopes...)
		if page.Next == "" {
			return all, nil
		}
		query.Set("after", page.Next)
	}
}
