package place_test

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"

	"github.com/fermata-hitl/fermata/cmd/internal/place"
	"github.com/fermata-hitl/fermata/cmd/internal/place/run"
)

func TestStartConnectsOrSaysWhyNot(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "pl") // short, because of the socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("FERMATA_AUTOSTART", "0")
	d := place.Dirs{State: dir + "/s", Runtime: dir}
	if err := place.Start(context.Background(), d); !errors.Is(err, run.ErrAutostartOff) {
		t.Errorf("without a core: %v", err)
	}
	l, err := net.Listen("unix", d.NATSSocket())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := place.Start(context.Background(), d); err != nil {
		t.Errorf("with a core: %v", err)
	}
}
