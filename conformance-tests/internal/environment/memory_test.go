package environment

import (
	"crypto/rand"
	"os/exec"
	"testing"
)

func TestSearchMemory(t *testing.T) {
	t.Parallel()
	canary := rand.Text()
	// A program that has the text on its stack, as part of its environment.
	sleeper := exec.Command("sleep", "60")
	sleeper.Env = []string{"CANARY=" + canary}
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = sleeper.Process.Kill()
		_ = sleeper.Wait()
	})
	other := []byte(rand.Text())
	if found, err := SearchMemory(sleeper.Process.Pid, [][]byte{other, []byte(canary)}); err != nil || found != 1 {
		t.Errorf("found %d, %v", found, err)
	}
	if found, err := SearchMemory(sleeper.Process.Pid, [][]byte{other}); err != nil || found != -1 {
		t.Errorf("found %d, %v", found, err)
	}
	if _, err := SearchMemory(1<<30, [][]byte{other}); err == nil {
		t.Error("a process that is none was searched")
	}
}
