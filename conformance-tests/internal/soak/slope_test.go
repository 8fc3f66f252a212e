package soak

import (
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"
)

func grown(perHour, noise float64, life time.Duration) []Sample {
	random := rand.New(rand.NewPCG(1, 2))
	var samples []Sample
	for at := time.Duration(0); at < life; at += life / 600 {
		samples = append(samples, Sample{At: at, RSS: 100 + perHour*at.Hours() + noise*random.NormFloat64()})
	}
	return samples
}

func TestSlope(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		perHour, noise float64
		life           time.Duration
		grows, proven  bool
	}{
		"flat for an hour":         {0, 0.5, time.Hour, false, true},
		"grows for an hour":        {3, 0.5, time.Hour, true, false},
		"flat for two minutes":     {0, 0.5, 2 * time.Minute, false, false},
		"a leak of two minutes":    {600, 0.5, 2 * time.Minute, true, false},
		"shrinks for a whole hour": {-5, 0.5, time.Hour, false, true},
	} {
		slope, enough := Fit(grown(c.perHour, c.noise, c.life))
		if !enough || slope.Grows(1) != c.grows || slope.Proven(1) != c.proven {
			t.Errorf("%s: %+v", name, slope)
		}
		if math.Abs(slope.PerHour-c.perHour) > 2*slope.Confidence {
			t.Errorf("%s: %+v", name, slope)
		}
	}
	if _, enough := Fit(grown(0, 0, time.Hour)[:20]); enough {
		t.Error("20 samples are enough for nothing")
	}
}

func TestLook(t *testing.T) {
	t.Parallel()
	self := Watch("self", os.Getpid(), true)
	if err := self.Look(time.Second); err != nil || self.Samples[0].RSS < 1 || self.Samples[0].Descriptors < 3 {
		t.Errorf("%v, %+v", err, self.Samples)
	}
	if err := Watch("nobody", 1<<30, true).Look(0); err == nil {
		t.Error("a process that is none has memory")
	}
	if len(self.After(2*time.Second)) != 0 || len(self.After(time.Second)) != 1 {
		t.Error("the warm-up is not left out")
	}
}
