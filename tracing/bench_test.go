package tracing

import "testing"

// BenchmarkProject is the whole way of one message, without the disk.
func BenchmarkProject(b *testing.B) {
	records := syntheticLog(20, 200)
	for b.Loop() {
		lines(b, records)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(records)), "ns/message")
}
