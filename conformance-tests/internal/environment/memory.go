package environment

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
)

const memoryBlock = 4 << 20

// SearchMemory looks for byte sequences in all that a process may write to: what a core file of it would hold. It gives the index
// of the first one that is there, or -1.
func SearchMemory(pid int, patterns [][]byte) (found int, err error) {
	maps, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return -1, err
	}
	defer func() { _ = maps.Close() }()
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return -1, err
	}
	defer func() { _ = memory.Close() }()
	searched := int64(0)
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		var from, to int64
		var rights string
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &from, &to, &rights); err != nil || !strings.HasPrefix(rights, "rw") {
			continue // not memory of its own, or addresses beyond those of programs
		}
		size, found := searchRegion(memory, from, to, patterns)
		if found >= 0 {
			return found, nil
		}
		searched += size
	}
	if searched == 0 {
		return -1, errors.New("there was no memory to search: has the process ended?")
	}
	return -1, nil
}

// searchRegion reads block by block, each with the end of the one before. What cannot be read, the system does not write to a
// core file either.
func searchRegion(memory *os.File, from, to int64, patterns [][]byte) (searched int64, found int) {
	longest := 0
	for _, pattern := range patterns {
		longest = max(longest, len(pattern))
	}
	buffer := make([]byte, memoryBlock+longest)
	for at := from; at < to; at += memoryBlock {
		n, _ := memory.ReadAt(buffer[:min(int64(len(buffer)), to-at)], at)
		for i, pattern := range patterns {
			if bytes.Contains(buffer[:n], pattern) {
				return searched, i
			}
		}
		searched += int64(n)
	}
	return searched, -1
}
