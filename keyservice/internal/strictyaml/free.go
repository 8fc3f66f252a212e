// Values of any form.

package strictyaml

import "encoding/json"

// Object reads a mapping whose members may be anything that JSON has, as JSON would give it: numbers are float64.
func (n Node) Object() (map[string]any, error) {
	var value map[string]any
	if err := n.node.Decode(&value); err != nil {
		return nil, n.Errorf("expected a mapping (name: value)")
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, n.Errorf("expected values that JSON has: %v", err)
	}
	value = nil
	err = json.Unmarshal(text, &value)
	return value, err
}
