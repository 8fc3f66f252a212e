package soak

import "math"

// Blocks: neighbouring samples are much alike, so that their number says little; the means of so many blocks count as
// measurements. tQuantile is Student's for 95 % and as many blocks less two.
const (
	blocks    = 12
	tQuantile = 2.228
)

// Slope is how fast memory grows, with the half of its 95 % confidence interval.
type Slope struct {
	PerHour    float64 `json:"mib_per_hour"`
	Confidence float64 `json:"plus_minus"`
}

// Grows says that it surely grows by more than a limit; Proven, that it surely does not.
func (s Slope) Grows(limit float64) bool { return s.PerHour-s.Confidence > limit }

// Proven says that it surely grows by less than a limit: a run that is too short proves nothing.
func (s Slope) Proven(limit float64) bool { return s.PerHour+s.Confidence < limit }

// Fit is the least-squares line through the means of blocks of samples.
func Fit(samples []Sample) (Slope, bool) {
	if len(samples) < 2*blocks {
		return Slope{}, false
	}
	var x, y [blocks]float64
	for i := range blocks {
		block := samples[i*len(samples)/blocks : (i+1)*len(samples)/blocks]
		for _, sample := range block {
			x[i] += sample.At.Hours() / float64(len(block))
			y[i] += sample.RSS / float64(len(block))
		}
	}
	meanX, meanY := mean(x[:]), mean(y[:])
	var sxx, sxy float64
	for i := range blocks {
		sxx += (x[i] - meanX) * (x[i] - meanX)
		sxy += (x[i] - meanX) * (y[i] - meanY)
	}
	slope, rest := sxy/sxx, 0.0
	for i := range blocks {
		off := y[i] - meanY - slope*(x[i]-meanX)
		rest += off * off
	}
	return Slope{slope, tQuantile * math.Sqrt(rest/(blocks-2)/sxx)}, true
}

func mean(values []float64) (sum float64) {
	for _, value := range values {
		sum += value / float64(len(values))
	}
	return sum
}
