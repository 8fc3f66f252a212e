// Package vectors reads spec/vectors.
package vectors

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Vector is one case; Input and Output are read by who knows the kind.
type Vector struct {
	ID      string          `json:"id"`
	Kind    string          `json:"-"`
	Comment string          `json:"comment"`
	Covers  []string        `json:"covers"`
	Input   json.RawMessage `json:"input"`
	Result  string          `json:"result"`
	Output  json.RawMessage `json:"output"`
	Error   *struct {
		Layer string `json:"layer"`
		Code  string `json:"code"`
	} `json:"error"`
}

// Code is the error's, or "ok".
func (v Vector) Code() string {
	if v.Error == nil {
		return "ok"
	}
	return v.Error.Code
}

// Read gives the vectors of every file in a folder, in the order of names.
func Read(folder string) ([]Vector, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no vectors in %s", folder)
	}
	var all []Vector
	for _, file := range files {
		var content struct {
			Kind    string   `json:"kind"`
			Vectors []Vector `json:"vectors"`
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(data, &content); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, vector := range content.Vectors {
			vector.Kind = content.Kind
			all = append(all, vector)
		}
	}
	return all, nil
}
