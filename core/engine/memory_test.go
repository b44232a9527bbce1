package engine

import (
	"testing"
	"unsafe"
)

// TestOperationsStaySmall: 100,000 may wait, and 2 KB are for each of them, its
// arguments and its place in the maps included.
func TestOperationsStaySmall(t *testing.T) {
	if size := unsafe.Sizeof(operation{}); size > 888 {
		t.Errorf("an operation takes %d bytes; beyond 888 (and a header of 8) the allocator gives it 1024", size)
	}
}
